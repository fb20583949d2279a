"""jaxmbs: rigid multibody dynamics in JAX, for batches of different mechanisms.

Arguments that mean the same everywhere: `model`, from `Mechanism.build`; q (nq,), coordinates of the joints [m, rad,
quaternions w, x, y, z]; v (nv,), velocities [m/s, rad/s]; a (nv,), accelerations [m/s², rad/s²]; tau (nv,), generalized
forces along v [N, N m]; t, the time [s]; mode, locks and switches from `Model.mode`, None for none. Arrays are one
instance: `jax.vmap`, or `mbs.jit(fn, in_axes=...)`, makes the batch. Results have the dtype of q and v. Functions of
users take (model, t, q, v) in this order. Errors are ModelError and name the element and the remedy.
"""

from jaxmbs import absolute as absolute
from jaxmbs import library as library
from jaxmbs.batching import jit as jit
from jaxmbs.batching import use_all_cores as use_all_cores
from jaxmbs.dynamics import AugmentedBodies as AugmentedBodies
from jaxmbs.dynamics import BaseMotion as BaseMotion
from jaxmbs.dynamics import BiasSplit as BiasSplit
from jaxmbs.dynamics import BodyLoads as BodyLoads
from jaxmbs.dynamics import Bond as Bond
from jaxmbs.dynamics import BondGraph as BondGraph
from jaxmbs.dynamics import Controlled as Controlled
from jaxmbs.dynamics import MovingBase as MovingBase
from jaxmbs.dynamics import PlanarParameters as PlanarParameters
from jaxmbs.dynamics import Vertex as Vertex
from jaxmbs.dynamics import augmented_bodies as augmented_bodies
from jaxmbs.dynamics import bias_forces as bias_forces
from jaxmbs.dynamics import bias_split as bias_split
from jaxmbs.dynamics import body_loads as body_loads
from jaxmbs.dynamics import body_poses as body_poses
from jaxmbs.dynamics import bond_graph as bond_graph
from jaxmbs.dynamics import constrained_dynamics as constrained_dynamics
from jaxmbs.dynamics import constraint_jacobian as constraint_jacobian
from jaxmbs.dynamics import constraint_rows as constraint_rows
from jaxmbs.dynamics import controlled_dynamics as controlled_dynamics
from jaxmbs.dynamics import energy as energy
from jaxmbs.dynamics import forward_dynamics as forward_dynamics
from jaxmbs.dynamics import free_dynamics as free_dynamics
from jaxmbs.dynamics import hinge_reactions as hinge_reactions
from jaxmbs.dynamics import impact as impact
from jaxmbs.dynamics import integrate as integrate
from jaxmbs.dynamics import inverse_dynamics as inverse_dynamics
from jaxmbs.dynamics import jacobian as jacobian
from jaxmbs.dynamics import joint_impulses as joint_impulses
from jaxmbs.dynamics import joint_reactions as joint_reactions
from jaxmbs.dynamics import mass_matrix as mass_matrix
from jaxmbs.dynamics import momentum as momentum
from jaxmbs.dynamics import moving_base_dynamics as moving_base_dynamics
from jaxmbs.dynamics import planar_parameters as planar_parameters
from jaxmbs.dynamics import rates as rates
from jaxmbs.io import load as load
from jaxmbs.model import Mechanism as Mechanism
from jaxmbs.model import Mode as Mode
from jaxmbs.model import Model as Model
from jaxmbs.model import ModelError as ModelError
from jaxmbs.model import ModelWarning as ModelWarning
from jaxmbs.model import Pose as Pose
from jaxmbs.model import derivative as derivative
from jaxmbs.model import free as free
from jaxmbs.model import get as get
from jaxmbs.model import set as set
from jaxmbs.model import vary as vary
from jaxmbs.model.constraints import Holonomic as Holonomic
from jaxmbs.model.constraints import KnifeEdge as KnifeEdge
from jaxmbs.model.constraints import Nonholonomic as Nonholonomic
from jaxmbs.model.constraints import RollingDisc as RollingDisc
from jaxmbs.model.forces import Bushing as Bushing
from jaxmbs.model.forces import CentralGravity as CentralGravity
from jaxmbs.model.forces import Contact as Contact
from jaxmbs.model.forces import Cylinder as Cylinder
from jaxmbs.model.forces import Damper as Damper
from jaxmbs.model.forces import External as External
from jaxmbs.model.forces import LinearSpring as LinearSpring
from jaxmbs.model.forces import Plane as Plane
from jaxmbs.model.forces import Pusher as Pusher
from jaxmbs.model.forces import Sphere as Sphere
from jaxmbs.model.forces import Thruster as Thruster
from jaxmbs.model.forces import TorsionSpring as TorsionSpring
from jaxmbs.model.graph import Graph as Graph
from jaxmbs.model.graph import graph_of as graph_of
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
from jaxmbs.simulate import Solution as Solution
from jaxmbs.simulate import Status as Status
from jaxmbs.simulate import assemble as assemble
from jaxmbs.simulate import simulate as simulate
from jaxmbs.symbolic import Operations as Operations
from jaxmbs.symbolic import WrittenOut as WrittenOut
from jaxmbs.symbolic import write_out as write_out
