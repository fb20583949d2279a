"""Joints about or along one axis: revolute, prismatic, helical, cylindrical, and the universal joint's two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jaxmbs.model.fields import element, field
from jaxmbs.model.joints.base import Joint, JointMotion, fixed_motion, velocity_of
from jaxmbs.model.kinds import Kind
from jaxmbs.spatial import IDENTITY3, ZERO3, Motion, Transform, about_axis
from jaxmbs.spatial.scalar import Scalar, mul

Numbers = Mapping[str, Any]
Scalars = Sequence[Scalar]


@element
class Revolute(Joint):
    """Rotation about an axis. q: angle [rad].

    >>> mech = mbs.Mechanism("wheel")
    >>> mech.add_body("wheel", mass=1.0, inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("axle", mbs.Revolute(axis=(0, 0, 1)), "world", "wheel")
    >>> mech.build().nv
    1
    """

    axis: Any = field(Kind.DIRECTION, "", "axis in the joint frame", default=(0.0, 0.0, 1.0))
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        a = p["axis"]
        return fixed_motion(Transform(about_axis(a, q[0]), ZERO3), (Motion(a, ZERO3),), v)

    def _random_ranges(self) -> tuple[float, ...]:
        return (math.pi,)


@element
class Prismatic(Joint):
    """Displacement along an axis. q: displacement [m].

    >>> mech = mbs.Mechanism("slide")
    >>> mech.add_body("block", mass=1.0)
    >>> mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "block")
    >>> mech.build().nv
    1
    """

    axis: Any = field(Kind.DIRECTION, "", "axis in the joint frame", default=(0.0, 0.0, 1.0))
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        a = p["axis"]
        return fixed_motion(Transform(IDENTITY3, a * q[0]), (Motion(ZERO3, a),), v)


@element
class Helical(Joint):
    """Screw about an axis. q: angle [rad].

    >>> mech = mbs.Mechanism("screw")
    >>> mech.add_body("nut", mass=1.0)
    >>> mech.add_joint("thread", mbs.Helical(axis=(0, 0, 1), pitch=0.01), "world", "nut")
    >>> mbs.get(mech.build(), "thread.pitch")
    0.01
    """

    axis: Any = field(Kind.DIRECTION, "", "axis in the joint frame", default=(0.0, 0.0, 1.0))
    pitch: Any = field(Kind.NUMBER, "m/rad", "displacement per angle", default=0.0)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        a, h = p["axis"], p["pitch"]
        placement = Transform(about_axis(a, q[0]), a * mul(h, q[0]))
        return fixed_motion(placement, (Motion(a, a * h),), v)

    def _random_ranges(self) -> tuple[float, ...]:
        return (math.pi,)


@element
class Cylindrical(Joint):
    """Rotation about and displacement along an axis. q: angle [rad], displacement [m].

    >>> mech = mbs.Mechanism("piston")
    >>> mech.add_body("rod", mass=1.0, inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("bore", mbs.Cylindrical(axis=(0, 0, 1)), "world", "rod")
    >>> mech.build().nv
    2
    """

    axis: Any = field(Kind.DIRECTION, "", "axis in the joint frame", default=(0.0, 0.0, 1.0))
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        a = p["axis"]
        placement = Transform(about_axis(a, q[0]), a * q[1])
        return fixed_motion(placement, (Motion(a, ZERO3), Motion(ZERO3, a)), v)

    def _random_ranges(self) -> tuple[float, ...]:
        return (math.pi, 1.0)


@element
class Universal(Joint):
    """Rotation about `axis_1`, then about `axis_2`, which need not be orthogonal. q: the two angles [rad].

    >>> mech = mbs.Mechanism("shaft")
    >>> mech.add_body("shaft", mass=1.0, inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("cross", mbs.Universal(axis_1=(1, 0, 0), axis_2=(0, 1, 0)), "world", "shaft")
    >>> mech.build().nv
    2
    """

    axis_1: Any = field(Kind.DIRECTION, "", "axis on the parent's side, in the joint frame", default=(1.0, 0.0, 0.0))
    axis_2: Any = field(Kind.DIRECTION, "", "axis on the child's side, in the joint frame", default=(0.0, 1.0, 0.0))
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        a, b = p["axis_1"], p["axis_2"]
        second = about_axis(b, q[1])
        first_seen = second.T @ a
        S = (Motion(first_seen, ZERO3), Motion(b, ZERO3))
        # the first axis turns backwards as the second angle grows, seen from the child
        bias = Motion(first_seen.cross(b) * mul(v[0], v[1]), ZERO3)
        return JointMotion(Transform(about_axis(a, q[0]) @ second, ZERO3), S, velocity_of(S, v), bias)

    def _random_ranges(self) -> tuple[float, ...]:
        return (math.pi, math.pi)
