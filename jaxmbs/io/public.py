"""The public names of `jaxmbs.io`."""

from jaxmbs.io.errors import InputError as InputError
from jaxmbs.io.formats import *  # noqa: F403
from jaxmbs.io.loading import from_robot as from_robot
from jaxmbs.io.loading import is_robot as is_robot
