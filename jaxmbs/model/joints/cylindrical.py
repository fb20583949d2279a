"""The cylindrical joint, a sleeve: it rotates about and slides along one axis."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector
from jaxmbs.model.joints.base import Coordinate, Joint, JointMotion, Numbers, Scalars, fixed_motion
from jaxmbs.model.joints.equations import Equations, Parallel, Points, angle_about, perpendicular
from jaxmbs.spatial import ZERO3, Force, Motion, Transform, about_axis
from jaxmbs.spatial.scalar import Scalar


@element
class Cylindrical(Joint):
    """Rotation about and displacement along an axis. q: angle [rad], displacement [m].

    >>> mech = mbs.Mechanism("piston")
    >>> mech.add_body("rod", mass=1.0, inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("bore", mbs.Cylindrical(axis=(0, 0, 1)), "world", "rod")
    >>> mech.build().nv
    2
    """

    axis: Vector = field(Kind.DIRECTION, "", "axis in the joint frame", default=(0.0, 0.0, 1.0))
    within_free: ClassVar[tuple[int, ...] | None] = (2, 5)
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    turning_axis: ClassVar[str | None] = "axis"

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        a = p["axis"]
        placement = Transform(about_axis(a, q[0]), a * q[1])
        return fixed_motion(placement, (Motion(a, ZERO3), Motion(ZERO3, a)), v)

    def coordinates(self) -> tuple[Coordinate, ...]:
        return Coordinate("angle", "rad"), Coordinate("displacement", "m")

    def coordinates_of(self, p: Numbers, X: Transform) -> tuple[Scalar, ...]:
        return angle_about(p["axis"], X), p["axis"] @ X.position

    def duals(self, p: Numbers, X: Transform) -> tuple[Force, ...]:
        return Force(p["axis"], ZERO3), Force(ZERO3, p["axis"])

    def equations(self, p: Numbers) -> tuple[Equations, ...]:
        return Points(perpendicular(p["axis"])), Parallel(p["axis"])
