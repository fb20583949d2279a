"""Functions and results with names in `jaxmbs`: each is one line here, and nowhere else."""

from jaxmbs.dynamics.body_motion import body_accelerations as body_accelerations
from jaxmbs.dynamics.body_motion import body_velocities as body_velocities
from jaxmbs.dynamics.body_motion import velocities as velocities
from jaxmbs.dynamics.constrained.public import constrained_dynamics as constrained_dynamics
from jaxmbs.dynamics.constrained.public import constraint_jacobian as constraint_jacobian
from jaxmbs.dynamics.constrained.public import constraint_rows as constraint_rows
from jaxmbs.dynamics.constrained.public import impact as impact
from jaxmbs.dynamics.constrained.public import joint_impulses as joint_impulses
from jaxmbs.dynamics.element_forces import ElementForce as ElementForce
from jaxmbs.dynamics.element_forces import element_forces as element_forces
from jaxmbs.dynamics.flight import FlightCondition as FlightCondition
from jaxmbs.dynamics.flight import flight_condition as flight_condition
from jaxmbs.dynamics.orbit import OrbitalElements as OrbitalElements
from jaxmbs.dynamics.orbit import orbital_elements as orbital_elements
from jaxmbs.dynamics.trees import bias_forces as bias_forces
from jaxmbs.dynamics.trees import body_poses as body_poses
from jaxmbs.dynamics.trees import energy as energy
from jaxmbs.dynamics.trees import forward_dynamics as forward_dynamics
from jaxmbs.dynamics.trees import integrate as integrate
from jaxmbs.dynamics.trees import inverse_dynamics as inverse_dynamics
from jaxmbs.dynamics.trees import jacobian as jacobian
from jaxmbs.dynamics.trees import joint_reactions as joint_reactions
from jaxmbs.dynamics.trees import mass_matrix as mass_matrix
from jaxmbs.dynamics.trees import momentum as momentum
from jaxmbs.dynamics.trees import rates as rates
