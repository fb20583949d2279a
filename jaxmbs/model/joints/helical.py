"""The helical joint, a screw."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.joints.base import Coordinate, Joint, JointMotion, Numbers, Scalars, fixed_motion
from jaxmbs.model.joints.equations import Equations, Parallel, Points, Screw, angle_about, perpendicular
from jaxmbs.spatial import ZERO3, Force, Motion, Transform, about_axis
from jaxmbs.spatial.scalar import Scalar


@element
class Helical(Joint):
    """Screw motion about an axis. q: angle [rad].

    >>> mech = mbs.Mechanism("screw")
    >>> mech.add_body("nut", mass=1.0)
    >>> mech.add_joint("thread", mbs.Helical(axis=(0, 0, 1), pitch=0.01), "world", "nut")
    >>> mbs.get(mech.build(), "thread.pitch")
    0.01
    """

    axis: Vector = field(Kind.DIRECTION, "", "axis in the joint frame", default=(0.0, 0.0, 1.0))
    pitch: Number = field(Kind.NUMBER, "m/rad", "displacement per angle", default=0.0)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    turning_axis: ClassVar[str | None] = "axis"

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        a, h = p["axis"], p["pitch"]
        placement = Transform(about_axis(a, q[0]), a * (h * q[0]))
        return fixed_motion(placement, (Motion(a, a * h),), v)

    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("angle", "rad"),)

    def coordinates_of(self, p: Numbers, X: Transform) -> tuple[Scalar, ...]:
        return (angle_about(p["axis"], X),)

    def duals(self, p: Numbers, X: Transform) -> tuple[Force, ...]:
        return (Force(p["axis"], ZERO3),)

    def equations(self, p: Numbers) -> tuple[Equations, ...]:
        a = p["axis"]
        return Points(perpendicular(a)), Parallel(a), Screw(a, p["pitch"])
