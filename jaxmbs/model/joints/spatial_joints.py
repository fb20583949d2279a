"""Joints of several freedoms: planar, spherical and free."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jax

from jaxmbs.model.fields import element
from jaxmbs.model.joints.base import Joint, JointMotion, fixed_motion, velocity_of
from jaxmbs.spatial import (
    ZERO3,
    Motion,
    Transform,
    Vector3,
    about_axis,
    displacement,
    from_quaternion,
    quaternion_rate,
    turned,
)
from jaxmbs.spatial.scalar import Scalar

Numbers = Mapping[str, Any]
Scalars = Sequence[Scalar]

_X, _Y, _Z = Vector3(1, 0, 0), Vector3(0, 1, 0), Vector3(0, 0, 1)
_ROTATIONS = tuple(Motion(e, ZERO3) for e in (_X, _Y, _Z))
_TRANSLATIONS = tuple(Motion(ZERO3, e) for e in (_X, _Y, _Z))


@element
class Planar(Joint):
    """Motion in the xy plane of the parent joint frame. q: x, y [m], angle about z [rad].

    >>> mech = mbs.Mechanism("puck")
    >>> mech.add_body("puck", mass=1.0, inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("ice", mbs.Planar(), "world", "puck")
    >>> mech.build().nv
    3
    """

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        R = about_axis(_Z, q[2])
        along_x, along_y = R.T @ _X, R.T @ _Y
        S = (Motion(ZERO3, along_x), Motion(ZERO3, along_y), _ROTATIONS[2])
        drift = (along_x * v[0] + along_y * v[1]).cross(_Z) * v[2]
        placement = Transform(R, Vector3(q[0], q[1], 0))
        return JointMotion(placement, S, velocity_of(S, v), Motion(ZERO3, drift))

    def _random_ranges(self) -> tuple[float, ...]:
        return (1.0, 1.0, math.pi)


def _random_quaternion(key: jax.Array) -> jax.Array:
    q = jax.random.normal(key, (4,))
    return q / jax.numpy.linalg.norm(q)


@element
class Spherical(Joint):
    """Rotation about a point. q: quaternion w, x, y, z; v: angular velocity in the child joint frame [rad/s].

    >>> mech = mbs.Mechanism("top")
    >>> mech.add_body("top", mass=1.0, com=(0, 0, 0.1), inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("tip", mbs.Spherical(), "world", "top")
    >>> print(mech.build().neutral())
    [1. 0. 0. 0.]
    """

    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 3
    quaternion: ClassVar[int | None] = 0

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        return fixed_motion(Transform(from_quaternion(q), ZERO3), _ROTATIONS, v)

    def rates(self, q: Scalars, v: Scalars, p: JointMotion) -> tuple[Scalar, ...]:
        return quaternion_rate(q, Vector3.of(v))

    def moved(self, q: Scalars, change: Scalars) -> tuple[Scalar, ...]:
        return turned(q, Vector3.of(change))

    def neutral(self) -> tuple[float, ...]:
        return (1.0, 0.0, 0.0, 0.0)

    def random(self, key: jax.Array) -> jax.Array:
        return _random_quaternion(key)


@element
class Free(Joint):
    """No constraint. q: x, y, z [m] in the parent joint frame, quaternion w, x, y, z;
    v: angular [rad/s] and linear velocity [m/s] in the child joint frame.

    >>> mech = mbs.Mechanism("satellite")
    >>> mech.add_body("bus", mass=100.0, inertia=(10.0, 12.0, 14.0))
    >>> mech.add_joint("orbit", mbs.Free(), "world", "bus")
    >>> print(mech.build().neutral())
    [0. 0. 0. 1. 0. 0. 0.]
    """

    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    quaternion: ClassVar[int | None] = 3

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        placement = Transform(from_quaternion(q[3:7]), Vector3.of(q[:3]))
        return fixed_motion(placement, _ROTATIONS + _TRANSLATIONS, v)

    def rates(self, q: Scalars, v: Scalars, p: JointMotion) -> tuple[Scalar, ...]:
        return (*(p.placement.rotation @ Vector3.of(v[3:])), *quaternion_rate(q[3:7], Vector3.of(v[:3])))

    def moved(self, q: Scalars, change: Scalars) -> tuple[Scalar, ...]:
        turn, linear = Vector3.of(change[:3]), Vector3.of(change[3:])
        there = Vector3.of(q[:3]) + from_quaternion(q[3:7]) @ displacement(turn, linear)
        return (*there, *turned(q[3:7], turn))

    def neutral(self) -> tuple[float, ...]:
        return (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)

    def random(self, key: jax.Array) -> jax.Array:
        position, orientation = jax.random.split(key)
        p = jax.random.uniform(position, (3,), minval=-1.0, maxval=1.0)
        return jax.numpy.concatenate([p, _random_quaternion(orientation)])
