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
from jaxmbs.dynamics import bias_forces as bias_forces
from jaxmbs.dynamics import body_accelerations as body_accelerations
from jaxmbs.dynamics import body_poses as body_poses
from jaxmbs.dynamics import body_velocities as body_velocities
from jaxmbs.dynamics import constrained_dynamics as constrained_dynamics
from jaxmbs.dynamics import constraint_jacobian as constraint_jacobian
from jaxmbs.dynamics import constraint_rows as constraint_rows
from jaxmbs.dynamics import energy as energy
from jaxmbs.dynamics import forward_dynamics as forward_dynamics
from jaxmbs.dynamics import impact as impact
from jaxmbs.dynamics import integrate as integrate
from jaxmbs.dynamics import inverse_dynamics as inverse_dynamics
from jaxmbs.dynamics import jacobian as jacobian
from jaxmbs.dynamics import joint_impulses as joint_impulses
from jaxmbs.dynamics import joint_reactions as joint_reactions
from jaxmbs.dynamics import mass_matrix as mass_matrix
from jaxmbs.dynamics import momentum as momentum
from jaxmbs.dynamics import rates as rates
from jaxmbs.io import from_mjcf as from_mjcf
from jaxmbs.io import from_urdf as from_urdf
from jaxmbs.io import load as load
from jaxmbs.io import save as save
from jaxmbs.model import Mechanism as Mechanism
from jaxmbs.model import Mode as Mode
from jaxmbs.model import Model as Model
from jaxmbs.model import ModelError as ModelError
from jaxmbs.model import ModelWarning as ModelWarning
from jaxmbs.model import Pose as Pose
from jaxmbs.model import derivative as derivative
from jaxmbs.model import free as free
from jaxmbs.model import get as get
from jaxmbs.model import rotation as rotation
from jaxmbs.model import set as set
from jaxmbs.model import vary as vary
from jaxmbs.model.constraints import Coupling as Coupling
from jaxmbs.model.constraints import Holonomic as Holonomic
from jaxmbs.model.constraints import KnifeEdge as KnifeEdge
from jaxmbs.model.constraints import Nonholonomic as Nonholonomic
from jaxmbs.model.constraints import RollingDisc as RollingDisc
from jaxmbs.model.control import Controller as Controller
from jaxmbs.model.control import Encoder as Encoder
from jaxmbs.model.control import Imu as Imu
from jaxmbs.model.control import Switch as Switch
from jaxmbs.model.events import Bounce as Bounce
from jaxmbs.model.events import Disable as Disable
from jaxmbs.model.events import Distance as Distance
from jaxmbs.model.events import Enable as Enable
from jaxmbs.model.events import Finish as Finish
from jaxmbs.model.events import ForceBelow as ForceBelow
from jaxmbs.model.events import JointReaches as JointReaches
from jaxmbs.model.events import Lock as Lock
from jaxmbs.model.events import ReactionExceeds as ReactionExceeds
from jaxmbs.model.events import Release as Release
from jaxmbs.model.events import Time as Time
from jaxmbs.model.events import When as When
from jaxmbs.model.forces import Actuator as Actuator
from jaxmbs.model.forces import Bushing as Bushing
from jaxmbs.model.forces import CentralGravity as CentralGravity
from jaxmbs.model.forces import Contact as Contact
from jaxmbs.model.forces import ControlMomentGyro as ControlMomentGyro
from jaxmbs.model.forces import Cylinder as Cylinder
from jaxmbs.model.forces import Damper as Damper
from jaxmbs.model.forces import External as External
from jaxmbs.model.forces import Friction as Friction
from jaxmbs.model.forces import JointSpring as JointSpring
from jaxmbs.model.forces import LinearSpring as LinearSpring
from jaxmbs.model.forces import Motor as Motor
from jaxmbs.model.forces import Plane as Plane
from jaxmbs.model.forces import Pusher as Pusher
from jaxmbs.model.forces import ReactionWheel as ReactionWheel
from jaxmbs.model.forces import Slosh as Slosh
from jaxmbs.model.forces import Sphere as Sphere
from jaxmbs.model.forces import Thruster as Thruster
from jaxmbs.model.forces import TorsionSpring as TorsionSpring
from jaxmbs.model.joints import Carried as Carried
from jaxmbs.model.joints import Cylindrical as Cylindrical
from jaxmbs.model.joints import Fixed as Fixed
from jaxmbs.model.joints import Free as Free
from jaxmbs.model.joints import General as General
from jaxmbs.model.joints import Helical as Helical
from jaxmbs.model.joints import Planar as Planar
from jaxmbs.model.joints import Prismatic as Prismatic
from jaxmbs.model.joints import Revolute as Revolute
from jaxmbs.model.joints import Spherical as Spherical
from jaxmbs.model.joints import Universal as Universal
from jaxmbs.simulate import Events as Events
from jaxmbs.simulate import Solution as Solution
from jaxmbs.simulate import Status as Status
from jaxmbs.simulate import Steps as Steps
from jaxmbs.simulate import assemble as assemble
from jaxmbs.simulate import simulate as simulate
from jaxmbs.simulate import steppers as steppers
from jaxmbs.stability import Equilibrium as Equilibrium
from jaxmbs.stability import EquilibriumPath as EquilibriumPath
from jaxmbs.stability import Linearization as Linearization
from jaxmbs.stability import Modes as Modes
from jaxmbs.stability import equilibrium as equilibrium
from jaxmbs.stability import equilibrium_path as equilibrium_path
from jaxmbs.stability import linearize as linearize
from jaxmbs.stability import modes as modes
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
