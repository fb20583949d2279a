"""The revolute joint, a hinge."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector
from jaxmbs.model.joints.base import Coordinate, InPlane, Joint, JointMotion, Numbers, Scalars, fixed_motion
from jaxmbs.model.joints.equations import Equations, Parallel, Points, angle_about
from jaxmbs.spatial import ZERO3, Force, Motion, Transform, about_axis
from jaxmbs.spatial.scalar import Scalar, vanishes


@element
class Revolute(Joint):
    """Rotation about an axis. q: angle [rad].

    >>> mech = mbs.Mechanism("wheel")
    >>> mech.add_body("wheel", mass=1.0, inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("axle", mbs.Revolute(axis=(0, 0, 1)), "world", "wheel")
    >>> mech.build().nv
    1
    """

    axis: Vector = field(Kind.DIRECTION, "", "axis in the joint frame", default=(0.0, 0.0, 1.0))
    within_free: ClassVar[tuple[int, ...] | None] = (2,)
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    fixed_hinge_point: ClassVar[bool] = True
    turning_axis: ClassVar[str | None] = "axis"

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        a = p["axis"]
        return fixed_motion(Transform(about_axis(a, q[0]), ZERO3), (Motion(a, ZERO3),), v)

    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("angle", "rad"),)

    def coordinates_of(self, p: Numbers, X: Transform) -> tuple[Scalar, ...]:
        return (angle_about(p["axis"], X),)

    def duals(self, p: Numbers, X: Transform) -> tuple[Force, ...]:
        return (Force(p["axis"], ZERO3),)

    def equations(self, p: Numbers) -> tuple[Equations, ...]:
        return Points(), Parallel(p["axis"])

    def in_plane(self, p: Numbers, normal: int) -> InPlane | str:
        across = (x for i, x in enumerate(p["axis"]) if i != normal)
        if all(map(vanishes, across)):
            return InPlane(True)
        return "has an axis that is not known to be normal to the plane"
