"""The public names of the package, available as `jaxmbs.NAME`."""

import warnings as _warnings
from typing import Any as _Any

from jaxmbs import absolute as absolute
from jaxmbs import design as design
from jaxmbs import library as library
from jaxmbs import study as study
from jaxmbs import textbook as textbook
from jaxmbs.batching import Explanation as Explanation
from jaxmbs.batching import RowProgram as RowProgram
from jaxmbs.batching import explain as explain
from jaxmbs.batching import jit as jit
from jaxmbs.batching import rows as rows
from jaxmbs.batching import use_all_cores as use_all_cores
from jaxmbs.building import Mechanism as Mechanism
from jaxmbs.building import free as free
from jaxmbs.building import set as set
from jaxmbs.building import vary as vary
from jaxmbs.dynamics import ElementForce as ElementForce
from jaxmbs.dynamics import FlightCondition as FlightCondition
from jaxmbs.dynamics import OrbitalElements as OrbitalElements
from jaxmbs.dynamics import bias_forces as bias_forces
from jaxmbs.dynamics import body_accelerations as body_accelerations
from jaxmbs.dynamics import body_poses as body_poses
from jaxmbs.dynamics import body_velocities as body_velocities
from jaxmbs.dynamics import constrained_dynamics as constrained_dynamics
from jaxmbs.dynamics import constraint_jacobian as constraint_jacobian
from jaxmbs.dynamics import constraint_rows as constraint_rows
from jaxmbs.dynamics import element_forces as element_forces
from jaxmbs.dynamics import energy as energy
from jaxmbs.dynamics import flight_condition as flight_condition
from jaxmbs.dynamics import forward_dynamics as forward_dynamics
from jaxmbs.dynamics import impact as impact
from jaxmbs.dynamics import integrate as integrate
from jaxmbs.dynamics import inverse_dynamics as inverse_dynamics
from jaxmbs.dynamics import jacobian as jacobian
from jaxmbs.dynamics import joint_impulses as joint_impulses
from jaxmbs.dynamics import joint_reactions as joint_reactions
from jaxmbs.dynamics import mass_matrix as mass_matrix
from jaxmbs.dynamics import momentum as momentum
from jaxmbs.dynamics import orbital_elements as orbital_elements
from jaxmbs.dynamics import rates as rates
from jaxmbs.dynamics import velocities as velocities
from jaxmbs.exporting import export as export
from jaxmbs.exporting import save_ephemeris as save_ephemeris
from jaxmbs.io.formats import *  # noqa: F403
from jaxmbs.model import Ball as Ball
from jaxmbs.model import BodyPoses as BodyPoses
from jaxmbs.model import Box as Box
from jaxmbs.model import Capsule as Capsule
from jaxmbs.model import Compound as Compound
from jaxmbs.model import Cone as Cone
from jaxmbs.model import Disc as Disc
from jaxmbs.model import Hull as Hull
from jaxmbs.model import Mesh as Mesh
from jaxmbs.model import Mode as Mode
from jaxmbs.model import Model as Model
from jaxmbs.model import ModelError as ModelError
from jaxmbs.model import ModelWarning as ModelWarning
from jaxmbs.model import Panel as Panel
from jaxmbs.model import Part as Part
from jaxmbs.model import Pose as Pose
from jaxmbs.model import Tube as Tube
from jaxmbs.model import derivative as derivative
from jaxmbs.model import get as get
from jaxmbs.model import rotation as rotation
from jaxmbs.model.constraints.public import *  # noqa: F403
from jaxmbs.model.control.public import *  # noqa: F403
from jaxmbs.model.events.public import *  # noqa: F403
from jaxmbs.model.forces.public import *  # noqa: F403
from jaxmbs.model.joints.public import *  # noqa: F403
from jaxmbs.simulate import steppers as steppers
from jaxmbs.simulate.public import *  # noqa: F403
from jaxmbs.stability import Equilibrium as Equilibrium
from jaxmbs.stability import EquilibriumPath as EquilibriumPath
from jaxmbs.stability import Linearization as Linearization
from jaxmbs.stability import Modes as Modes
from jaxmbs.stability import equilibrium as equilibrium
from jaxmbs.stability import equilibrium_path as equilibrium_path
from jaxmbs.stability import linearize as linearize
from jaxmbs.stability import modes as modes
from jaxmbs.stability import reduced_part as reduced_part
from jaxmbs.view import Viewer as Viewer
from jaxmbs.view import animate as animate
from jaxmbs.view import draw as draw
from jaxmbs.view import view as view


def __getattr__(name: str) -> _Any:
    """Return, with a warning, a name that has moved to `jaxmbs.textbook`."""
    if name.startswith("_") or name not in (*vars(textbook), "hinge_reactions"):
        raise AttributeError(f"module 'jaxmbs' has no attribute {name!r}")
    _warnings.warn(f"mbs.{name} is deprecated; use mbs.textbook.{name}", DeprecationWarning, stacklevel=3)
    return getattr(textbook, name)
