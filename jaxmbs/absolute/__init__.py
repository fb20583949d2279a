"""Absolute (Cartesian) coordinates: Newton-Euler equations for every body, with the joints as constraint equations [Y 2]."""

from jaxmbs.absolute.consistent import consistent as consistent
from jaxmbs.absolute.equations import Body as Body
from jaxmbs.absolute.equations import Equation as Equation
from jaxmbs.absolute.equations import constant_angle as constant_angle
from jaxmbs.absolute.equations import equal_angles as equal_angles
from jaxmbs.absolute.equations import point_line as point_line
from jaxmbs.absolute.equations import point_plane as point_plane
from jaxmbs.absolute.equations import relative_rotation as relative_rotation
from jaxmbs.absolute.public import accelerations as accelerations
from jaxmbs.absolute.public import coordinates as coordinates
from jaxmbs.absolute.public import reactions as reactions
from jaxmbs.absolute.public import rows as rows
from jaxmbs.absolute.public import system as system
from jaxmbs.absolute.system import System as System
