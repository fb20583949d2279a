"""Functions and results with names in `jaxmbs`: each is one line here, and nowhere else."""

from jaxmbs.stability.equilibrium import Equilibrium as Equilibrium
from jaxmbs.stability.equilibrium import equilibrium as equilibrium
from jaxmbs.stability.linearize import Linearization as Linearization
from jaxmbs.stability.linearize import linearize as linearize
from jaxmbs.stability.modes import Modes as Modes
from jaxmbs.stability.modes import modes as modes
from jaxmbs.stability.parts import reduced_part as reduced_part
from jaxmbs.stability.path import EquilibriumPath as EquilibriumPath
from jaxmbs.stability.path import equilibrium_path as equilibrium_path
