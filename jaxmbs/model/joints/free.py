"""The joint of a free-floating body."""

from __future__ import annotations

from typing import ClassVar

import jax

from jaxmbs.model.fields import element
from jaxmbs.model.joints.base import Coordinate, Joint, JointMotion, Numbers, Scalars, fixed_motion
from jaxmbs.model.joints.equations import AXES, Equations
from jaxmbs.model.joints.spherical import ATTITUDE, ROTATIONS, random_quaternion
from jaxmbs.spatial import (
    ZERO3,
    Force,
    Motion,
    Transform,
    Vector3,
    displacement,
    from_quaternion,
    quaternion_rate,
    to_quaternion,
    turned,
    unit_quaternion,
)
from jaxmbs.spatial.scalar import Scalar

TRANSLATIONS = tuple(Motion(ZERO3, e) for e in AXES)


@element
class Free(Joint):
    """No constraint. q: x, y, z [m] in the parent joint frame, quaternion w, x, y, z;
    v: angular [rad/s] and linear velocity [m/s] in the child joint frame.

    A quaternion of any length stands for the normalised one; a zero quaternion stands for the identity, with zero
    derivatives.

    >>> mech = mbs.Mechanism("satellite")
    >>> mech.add_body("bus", mass=100.0, inertia=(10.0, 12.0, 14.0))
    >>> mech.add_joint("orbit", mbs.Free(), "world", "bus")
    >>> print(mech.build().neutral())
    [0. 0. 0. 1. 0. 0. 0.]
    """

    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    quaternion: ClassVar[int | None] = 3
    free: ClassVar[bool] = True

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        placement = Transform(from_quaternion(q[3:7]), Vector3.of(q[:3]))
        return fixed_motion(placement, ROTATIONS + TRANSLATIONS, v)

    def rates(self, q: Scalars, v: Scalars, m: JointMotion) -> tuple[Scalar, ...]:
        return (*(m.placement.rotation @ Vector3.of(v[3:])), *quaternion_rate(q[3:7], Vector3.of(v[:3])))

    def moved(self, q: Scalars, change: Scalars) -> tuple[Scalar, ...]:
        turn, linear = Vector3.of(change[:3]), Vector3.of(change[3:])
        there = Vector3.of(q[:3]) + from_quaternion(q[3:7]) @ displacement(turn, linear)
        return (*there, *turned(q[3:7], turn))

    def bracket(self, a: Scalars, b: Scalars) -> tuple[Scalar, ...]:
        one, other = (Motion(Vector3.of(x[:3]), Vector3.of(x[3:])) for x in (a, b))
        return one.cross(other).scalars()

    def coordinates(self) -> tuple[Coordinate, ...]:
        return (*(Coordinate(name, "m", "position") for name in "xyz"), *ATTITUDE)

    def speeds(self) -> tuple[Coordinate, ...]:
        turning = (Coordinate(name, "rad/s", "angular") for name in ("wx", "wy", "wz"))
        return (*turning, *(Coordinate(name, "m/s", "linear") for name in ("vx", "vy", "vz")))

    def neutral(self) -> tuple[float, ...]:
        return (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)

    def random(self, key: jax.Array) -> jax.Array:
        position, orientation = jax.random.split(key)
        p = jax.random.uniform(position, (3,), minval=-1.0, maxval=1.0)
        return jax.numpy.concatenate([p, random_quaternion(orientation)])

    def normalised(self, q: Scalars) -> tuple[Scalar, ...]:
        return (*q[:3], *unit_quaternion(q[3:]))

    def coordinates_of(self, p: Numbers, X: Transform) -> tuple[Scalar, ...]:
        return (*X.position, *to_quaternion(X.rotation))

    def duals(self, p: Numbers, X: Transform) -> tuple[Force, ...]:
        return (*(Force(e, ZERO3) for e in AXES), *(Force(ZERO3, e) for e in AXES))

    def equations(self, p: Numbers) -> tuple[Equations, ...]:
        return ()
