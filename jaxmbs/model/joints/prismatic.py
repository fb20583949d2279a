"""The prismatic joint, a slide."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector
from jaxmbs.model.joints.base import Coordinate, InPlane, Joint, JointMotion, Numbers, Scalars, fixed_motion
from jaxmbs.model.joints.equations import Aligned, Equations, Points, perpendicular
from jaxmbs.spatial import IDENTITY3, ZERO3, Force, Motion, Transform
from jaxmbs.spatial.scalar import Scalar, vanishes


@element
class Prismatic(Joint):
    """Displacement along an axis. q: displacement [m].

    >>> mech = mbs.Mechanism("slide")
    >>> mech.add_body("block", mass=1.0)
    >>> mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "block")
    >>> mech.build().nv
    1
    """

    axis: Vector = field(Kind.DIRECTION, "", "axis in the joint frame", default=(0.0, 0.0, 1.0))
    within_free: ClassVar[tuple[int, ...] | None] = (5,)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    keeps_orientation: ClassVar[bool] = True

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        a = p["axis"]
        return fixed_motion(Transform(IDENTITY3, a * q[0]), (Motion(ZERO3, a),), v)

    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("displacement", "m"),)

    def coordinates_of(self, p: Numbers, X: Transform) -> tuple[Scalar, ...]:
        return (p["axis"] @ X.position,)

    def duals(self, p: Numbers, X: Transform) -> tuple[Force, ...]:
        return (Force(ZERO3, p["axis"]),)

    def equations(self, p: Numbers) -> tuple[Equations, ...]:
        return Points(perpendicular(p["axis"])), Aligned()

    def in_plane(self, p: Numbers, normal: int) -> InPlane | str:
        out = list(p["axis"])[normal]
        if vanishes(out):
            return InPlane(False, (p["axis"],))
        return "has an axis that is not known to lie in the plane"
