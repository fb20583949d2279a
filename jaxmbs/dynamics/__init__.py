"""Dynamics of trees: one algorithm per file, named as in the literature."""

from jaxmbs.dynamics.bias_parts import BiasSplit as BiasSplit
from jaxmbs.dynamics.bias_parts import bias_split as bias_split
from jaxmbs.dynamics.constraint_functions import constrained_dynamics as constrained_dynamics
from jaxmbs.dynamics.constraint_functions import constraint_jacobian as constraint_jacobian
from jaxmbs.dynamics.constraint_functions import constraint_rows as constraint_rows
from jaxmbs.dynamics.constraint_functions import impact as impact
from jaxmbs.dynamics.controlled import Controlled as Controlled
from jaxmbs.dynamics.controlled import controlled_dynamics as controlled_dynamics
from jaxmbs.dynamics.formulations import AugmentedBodies as AugmentedBodies
from jaxmbs.dynamics.formulations import augmented_bodies as augmented_bodies
from jaxmbs.dynamics.formulations import body_loads as body_loads
from jaxmbs.dynamics.formulations import free_dynamics as free_dynamics
from jaxmbs.dynamics.formulations import hinge_reactions as hinge_reactions
from jaxmbs.dynamics.formulations import moving_base_dynamics as moving_base_dynamics
from jaxmbs.dynamics.moving_base import MovingBase as MovingBase
from jaxmbs.dynamics.planar import PlanarParameters as PlanarParameters
from jaxmbs.dynamics.planar import planar_parameters as planar_parameters
from jaxmbs.dynamics.public import bias_forces as bias_forces
from jaxmbs.dynamics.public import body_poses as body_poses
from jaxmbs.dynamics.public import energy as energy
from jaxmbs.dynamics.public import forward_dynamics as forward_dynamics
from jaxmbs.dynamics.public import inverse_dynamics as inverse_dynamics
from jaxmbs.dynamics.public import jacobian as jacobian
from jaxmbs.dynamics.public import joint_reactions as joint_reactions
from jaxmbs.dynamics.public import mass_matrix as mass_matrix
from jaxmbs.dynamics.public import momentum as momentum
