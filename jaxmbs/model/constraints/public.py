"""Constraints with names in `jaxmbs`: each is one line here, and nowhere else."""

from jaxmbs.model.constraints.coupling import Coupling as Coupling
from jaxmbs.model.constraints.functions import Holonomic as Holonomic
from jaxmbs.model.constraints.functions import Nonholonomic as Nonholonomic
from jaxmbs.model.constraints.nonholonomic import KnifeEdge as KnifeEdge
from jaxmbs.model.constraints.nonholonomic import RollingDisc as RollingDisc
from jaxmbs.model.constraints.rod import Rod as Rod
