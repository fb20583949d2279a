"""Algebra of rigid-body motion in components, for any kind of scalar."""

from jaxmbs.spatial.boundary import kernel as kernel
from jaxmbs.spatial.exponential import displacement as displacement
from jaxmbs.spatial.exponential import turned as turned
from jaxmbs.spatial.inertias import ArticulatedInertia as ArticulatedInertia
from jaxmbs.spatial.inertias import RigidInertia as RigidInertia
from jaxmbs.spatial.motions import IDENTITY as IDENTITY
from jaxmbs.spatial.motions import ZERO_FORCE as ZERO_FORCE
from jaxmbs.spatial.motions import ZERO_MOTION as ZERO_MOTION
from jaxmbs.spatial.motions import Force as Force
from jaxmbs.spatial.motions import Motion as Motion
from jaxmbs.spatial.motions import Transform as Transform
from jaxmbs.spatial.rotations import about_axis as about_axis
from jaxmbs.spatial.rotations import from_quaternion as from_quaternion
from jaxmbs.spatial.rotations import quaternion_rate as quaternion_rate
from jaxmbs.spatial.rotations import to_quaternion as to_quaternion
from jaxmbs.spatial.rotations import unit_quaternion as unit_quaternion
from jaxmbs.spatial.vectors import IDENTITY3 as IDENTITY3
from jaxmbs.spatial.vectors import ZERO3 as ZERO3
from jaxmbs.spatial.vectors import Matrix3 as Matrix3
from jaxmbs.spatial.vectors import Symmetric3 as Symmetric3
from jaxmbs.spatial.vectors import Vector3 as Vector3
