"""The public names, available as `jaxmbs.simulate.NAME`."""

from jaxmbs.simulate.assembly import assemble as assemble
from jaxmbs.simulate.log import Events as Events
from jaxmbs.simulate.simulate import simulate as simulate
from jaxmbs.simulate.solution import Solution as Solution
from jaxmbs.simulate.solution import Steps as Steps
from jaxmbs.simulate.status import Status as Status
