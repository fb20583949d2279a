"""Dynamics of trees: one algorithm per file, named as in the literature."""

from jaxmbs.dynamics.public import bias_forces as bias_forces
from jaxmbs.dynamics.public import body_poses as body_poses
from jaxmbs.dynamics.public import energy as energy
from jaxmbs.dynamics.public import forward_dynamics as forward_dynamics
from jaxmbs.dynamics.public import inverse_dynamics as inverse_dynamics
from jaxmbs.dynamics.public import jacobian as jacobian
from jaxmbs.dynamics.public import joint_reactions as joint_reactions
from jaxmbs.dynamics.public import mass_matrix as mass_matrix
from jaxmbs.dynamics.public import momentum as momentum
