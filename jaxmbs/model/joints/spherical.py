"""The ball joint."""

from __future__ import annotations

from typing import ClassVar

import jax

from jaxmbs.model.fields import element
from jaxmbs.model.joints.base import Coordinate, Joint, JointMotion, Numbers, Scalars, fixed_motion
from jaxmbs.model.joints.equations import AXES, Equations, Points
from jaxmbs.spatial import (
    ZERO3,
    Force,
    Motion,
    Transform,
    Vector3,
    from_quaternion,
    quaternion_rate,
    to_quaternion,
    turned,
    unit_quaternion,
)
from jaxmbs.spatial.scalar import Scalar

ATTITUDE = tuple(Coordinate(name, "", "attitude") for name in ("qw", "qx", "qy", "qz"))
ROTATIONS = tuple(Motion(e, ZERO3) for e in AXES)


def random_quaternion(key: jax.Array) -> jax.Array:
    """(4,), uniform over the orientations."""
    q = jax.random.normal(key, (4,))
    return q / jax.numpy.linalg.norm(q)


@element
class Spherical(Joint):
    """Rotation about a point. q: quaternion w, x, y, z; v: angular velocity in the child joint frame [rad/s].

    A quaternion of any length stands for the normalised one; a zero quaternion stands for the identity, with zero
    derivatives.

    >>> mech = mbs.Mechanism("top")
    >>> mech.add_body("top", mass=1.0, com=(0, 0, 0.1), inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("tip", mbs.Spherical(), "world", "top")
    >>> print(mech.build().neutral())
    [1. 0. 0. 0.]
    """

    within_free: ClassVar[tuple[int, ...] | None] = (0, 1, 2)
    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 3
    quaternion: ClassVar[int | None] = 0
    fixed_hinge_point: ClassVar[bool] = True

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        return fixed_motion(Transform(from_quaternion(q), ZERO3), ROTATIONS, v)

    def rates(self, q: Scalars, v: Scalars, m: JointMotion) -> tuple[Scalar, ...]:
        return quaternion_rate(q, Vector3.of(v))

    def moved(self, q: Scalars, change: Scalars) -> tuple[Scalar, ...]:
        return turned(q, Vector3.of(change))

    def bracket(self, a: Scalars, b: Scalars) -> tuple[Scalar, ...]:
        return tuple(Vector3.of(a).cross(Vector3.of(b)))

    def coordinates(self) -> tuple[Coordinate, ...]:
        return ATTITUDE

    def speeds(self) -> tuple[Coordinate, ...]:
        return tuple(Coordinate(name, "rad/s") for name in ("wx", "wy", "wz"))

    def neutral(self) -> tuple[float, ...]:
        return (1.0, 0.0, 0.0, 0.0)

    def random(self, key: jax.Array) -> jax.Array:
        return random_quaternion(key)

    def normalised(self, q: Scalars) -> tuple[Scalar, ...]:
        return unit_quaternion(q)

    def coordinates_of(self, p: Numbers, X: Transform) -> tuple[Scalar, ...]:
        return to_quaternion(X.rotation)

    def duals(self, p: Numbers, X: Transform) -> tuple[Force, ...]:
        return tuple(Force(e, ZERO3) for e in AXES)

    def equations(self, p: Numbers) -> tuple[Equations, ...]:
        return (Points(),)
