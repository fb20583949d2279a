"""Constraints: nonholonomic elements, couplings, user-defined functions; joints close loops (`jaxmbs.model.joints`)."""

from jaxmbs.model.constraints.base import Constraint as Constraint
from jaxmbs.model.constraints.coupling import Coupling as Coupling
from jaxmbs.model.constraints.functions import FunctionConstraint as FunctionConstraint
from jaxmbs.model.constraints.functions import Holonomic as Holonomic
from jaxmbs.model.constraints.functions import Nonholonomic as Nonholonomic
from jaxmbs.model.constraints.nonholonomic import KnifeEdge as KnifeEdge
from jaxmbs.model.constraints.nonholonomic import RollingDisc as RollingDisc
from jaxmbs.model.constraints.rod import Rod as Rod
