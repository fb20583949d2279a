"""Constraints: nonholonomic elements, couplings, user-defined functions; joints close loops (`jaxmbs.model.joints`)."""

from jaxmbs.model.constraints.base import Constraint as Constraint
from jaxmbs.model.constraints.functions import FunctionConstraint as FunctionConstraint
from jaxmbs.model.constraints.public import *  # noqa: F403
