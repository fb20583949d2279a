"""Constraints: cut joints, nonholonomic elements, user functions."""

from jaxmbs.model.constraints import cuts as cuts
from jaxmbs.model.constraints import freedoms as freedoms
from jaxmbs.model.constraints.base import Constraint as Constraint
from jaxmbs.model.constraints.base import Row as Row
from jaxmbs.model.constraints.functions import FunctionConstraint as FunctionConstraint
from jaxmbs.model.constraints.functions import Holonomic as Holonomic
from jaxmbs.model.constraints.functions import Nonholonomic as Nonholonomic
from jaxmbs.model.constraints.nonholonomic import KnifeEdge as KnifeEdge
from jaxmbs.model.constraints.nonholonomic import RollingDisc as RollingDisc
