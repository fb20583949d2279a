"""The public names of `jaxmbs.study`."""

from jaxmbs.io.errors import InputError as InputError
from jaxmbs.study.distributions.public import *  # noqa: F403
from jaxmbs.study.evidence.bundle import bundle as bundle
from jaxmbs.study.evidence.machine import compare_machine as compare_machine
from jaxmbs.study.evidence.steps import check_steps as check_steps
from jaxmbs.study.problem.save import save as save
from jaxmbs.study.problem.study import Study as Study
from jaxmbs.study.problem.study import read as read
from jaxmbs.study.reliability import LimitState as LimitState
from jaxmbs.study.reliability import design_points as design_points
from jaxmbs.study.reliability import first_order as first_order
from jaxmbs.study.reliability import importance_sampling as importance_sampling
from jaxmbs.study.reliability import limit_state as limit_state
from jaxmbs.study.reliability import second_order as second_order
from jaxmbs.study.reliability import subset_simulation as subset_simulation
from jaxmbs.study.reliability import worst_cases as worst_cases
from jaxmbs.study.reliability.rare import limit_state_of as limit_state_of
from jaxmbs.study.reliability.rare import rare as rare
from jaxmbs.study.reports.report import Written as Written
from jaxmbs.study.reports.report import report as report
from jaxmbs.study.results.store import Store as Store
from jaxmbs.study.runs.run import resume as resume
from jaxmbs.study.runs.run import run as run
from jaxmbs.study.samples.function import sample_function as sample_function
from jaxmbs.study.samples.repeat import History as History
from jaxmbs.study.samples.repeat import repeat as repeat
from jaxmbs.study.statistics.order_statistics import anytime_interval as anytime_interval
from jaxmbs.study.statistics.order_statistics import interval as interval
from jaxmbs.study.statistics.order_statistics import samples_for_width as samples_for_width
from jaxmbs.study.statistics.order_statistics import samples_needed as samples_needed
from jaxmbs.study.statistics.order_statistics import tolerance as tolerance
from jaxmbs.study.statistics.sensitivity import derivatives as derivatives
from jaxmbs.study.statistics.sensitivity import sensitivity as sensitivity
from jaxmbs.study.trades.designs import Designs as Designs
from jaxmbs.study.trades.trade import Trade as Trade
from jaxmbs.study.trades.trade import trade as trade
