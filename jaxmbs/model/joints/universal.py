"""The universal joint (Cardan or Hooke joint)."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector
from jaxmbs.model.joints.base import Coordinate, Joint, JointMotion, Numbers, Scalars, velocity_of
from jaxmbs.model.joints.equations import ConstantAngle, Equations, Points
from jaxmbs.spatial import ZERO3, Force, Motion, Transform, Vector3, about_axis
from jaxmbs.spatial.scalar import Scalar, arctan2


@element
class Universal(Joint):
    """Rotation about `axis_1`, fixed in the parent, and `axis_2`, fixed in the child, which need not be orthogonal.
    q: the two angles [rad].

    >>> mech = mbs.Mechanism("shaft")
    >>> mech.add_body("shaft", mass=1.0, inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("cross", mbs.Universal(axis_1=(1, 0, 0), axis_2=(0, 1, 0)), "world", "shaft")
    >>> mech.build().nv
    2
    """

    axis_1: Vector = field(Kind.DIRECTION, "", "axis on the parent's side, in the joint frame", default=(1.0, 0.0, 0.0))
    axis_2: Vector = field(Kind.DIRECTION, "", "axis on the child's side, in the joint frame", default=(0.0, 1.0, 0.0))
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    fixed_hinge_point: ClassVar[bool] = True

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        a, b = p["axis_1"], p["axis_2"]
        second = about_axis(b, q[1])
        first_seen = second.T @ a
        S = (Motion(first_seen, ZERO3), Motion(b, ZERO3))
        # seen from the child, the first axis rotates backwards as the second angle grows
        bias = Motion(first_seen.cross(b) * (v[0] * v[1]), ZERO3)
        return JointMotion(Transform(about_axis(a, q[0]) @ second, ZERO3), S, velocity_of(S, v), bias)

    def coordinates(self) -> tuple[Coordinate, ...]:
        return Coordinate("angle_1", "rad"), Coordinate("angle_2", "rad")

    def coordinates_of(self, p: Numbers, X: Transform) -> tuple[Scalar, ...]:
        a, b = p["axis_1"], p["axis_2"]
        return _angle(a, b, X.rotation @ b), _angle(b, X.rotation.T @ a, a)

    def duals(self, p: Numbers, X: Transform) -> tuple[Force, ...]:
        first, second = X.rotation.T @ p["axis_1"], p["axis_2"]
        cosine = first @ second
        size = 1 / (1 - cosine * cosine)
        moments = (first - second * cosine) * size, (second - first * cosine) * size
        return Force(moments[0], ZERO3), Force(moments[1], ZERO3)

    def equations(self, p: Numbers) -> tuple[Equations, ...]:
        return Points(), ConstantAngle(p["axis_1"], p["axis_2"])


def _angle(axis: Vector3, start: Vector3, end: Vector3) -> Scalar:
    """Angle of the rotation about the axis that takes the unit vector `start` to `end`."""
    return arctan2(axis @ start.cross(end), start @ end - axis @ start * (axis @ end))
