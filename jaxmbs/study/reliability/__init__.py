"""Rare failures: estimates their probability from few simulations, and searches for the worst cases."""

from jaxmbs.study.reliability.design_point import DesignPoint as DesignPoint
from jaxmbs.study.reliability.design_point import design_points as design_points
from jaxmbs.study.reliability.design_point import first_order as first_order
from jaxmbs.study.reliability.design_point import second_order as second_order
from jaxmbs.study.reliability.importance import Failures as Failures
from jaxmbs.study.reliability.importance import failures as failures
from jaxmbs.study.reliability.importance import importance_sampling as importance_sampling
from jaxmbs.study.reliability.limit_state import Estimate as Estimate
from jaxmbs.study.reliability.limit_state import LimitState as LimitState
from jaxmbs.study.reliability.limit_state import limit_state as limit_state
from jaxmbs.study.reliability.plain import plain_sampling as plain_sampling
from jaxmbs.study.reliability.subset import subset_simulation as subset_simulation
from jaxmbs.study.reliability.worst_case import WorstCase as WorstCase
from jaxmbs.study.reliability.worst_case import worst_cases as worst_cases
