"""The frame of a node of a flexible body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector
from jaxmbs.model.joints.base import Coordinate, Joint, JointMotion, Numbers, Scalars, velocity_of
from jaxmbs.spatial import IDENTITY3, ZERO3, Motion, Transform, Vector3, from_quaternion
from jaxmbs.spatial.known import ONE, ZERO
from jaxmbs.spatial.scalar import Scalar, total, vanishes
from jaxmbs.spatial.vectors import grouped


@element
class FlexibleNode(Joint):
    """The frame of a node of a flexible body, which moves with the body's elastic coordinates; made by
    `Mechanism.add_flexible_body`. q: none.

    The rotation is that of the Rodrigues vector g = (sum of rotation_k q_k)/2, of the angle 2 atan |g|: the rotation of
    the linear theory up to terms of third order, and a proper rotation at any q.
    """

    modes: int = field(Kind.COUNT, "", "number of modes of the body")
    displacement: Vector = field(
        Kind.LIST, "kg^-0.5", "for each mode, the displacement of the node, in its joint frame"
    )
    rotation: Vector = field(Kind.LIST, "rad/(m kg^0.5)", "for each mode, the rotation of the node, in its joint frame")

    follows: ClassVar[bool] = True

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        shapes, halves = grouped(p["displacement"]), [x * 0.5 for x in grouped(p["rotation"])]
        g = _combined(halves, q)
        if all(vanishes(c) for x in halves for c in x):
            R, angular = IDENTITY3, [ZERO3] * self.modes
            stretch: Scalar = ZERO
        else:
            scale = 2 / (1 + g @ g)
            R = from_quaternion([ONE, *g])
            angular = [(x - g.cross(x)) * scale for x in halves]
            stretch = -(g @ _combined(halves, v)) * scale  # rate of change of `scale`, divided by it
        S = tuple(Motion(w, R.T @ u) for w, u in zip(angular, shapes, strict=True))
        V = velocity_of(S, v)
        bias = Motion(V.angular * stretch, -V.angular.cross(V.linear))
        return JointMotion(Transform(R, _combined(shapes, q)), S, V, bias)

    def rates(self, q: Scalars, v: Scalars, m: JointMotion) -> tuple[Scalar, ...]:
        return ()

    def coordinates(self) -> tuple[Coordinate, ...]:
        return ()


def _combined(vectors: Sequence[Vector3], by: Scalars) -> Vector3:
    return Vector3(*(total(*(getattr(x, c) * y for x, y in zip(vectors, by, strict=True))) for c in "xyz"))
