"""The public names: what `jaxmbs.study.NAME` finds."""

from jaxmbs.io.errors import InputError as InputError
from jaxmbs.study.problem import Study as Study
from jaxmbs.study.problem import read as read
from jaxmbs.study.repeat import History as History
from jaxmbs.study.repeat import repeat as repeat
from jaxmbs.study.report import Written as Written
from jaxmbs.study.report import report as report
from jaxmbs.study.run import resume as resume
from jaxmbs.study.run import run as run
from jaxmbs.study.store import Store as Store
