"""The frame of a node of a flexible body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from jaxmbs.model.errors import ModelError
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

    shortening: Vector = field(
        Kind.LIST,
        "1/(m kg)",
        "for each pair of modes k <= l, the second derivative of the displacement: 3 numbers; or one zero",
        default=(0.0,),
    )

    follows: ClassVar[bool] = True

    def requirements(self, p: Mapping[str, Any]) -> Mapping[str, Any]:
        whole, given = 3 * self.modes * (self.modes + 1) // 2, p["shortening"]
        if np.shape(given)[-1] not in (1, whole):
            raise ModelError(f"shortening: {np.shape(given)[-1]} numbers; pass {whole}, or one zero")
        said = f"shortening: one number that is not zero, for {self.modes} modes; pass {whole} numbers"
        return {said: np.shape(given)[-1] == whole or (given == 0).all(-1)}

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
        slopes, place, drawn = shapes, _combined(shapes, q), ZERO3
        if len(p["shortening"]) > 1:
            bent = _mixed(p["shortening"], q)
            slopes = [u + x for u, x in zip(shapes, bent, strict=True)]
            place = place + _combined(bent, q) * 0.5
            drawn = R.T @ _combined(_mixed(p["shortening"], v), v)
        S = tuple(Motion(w, R.T @ u) for w, u in zip(angular, slopes, strict=True))
        V = velocity_of(S, v)
        bias = Motion(V.angular * stretch, drawn - V.angular.cross(V.linear))
        return JointMotion(Transform(R, place), S, V, bias)

    def rates(self, q: Scalars, v: Scalars, m: JointMotion) -> tuple[Scalar, ...]:
        return ()

    def coordinates(self) -> tuple[Coordinate, ...]:
        return ()


def _combined(vectors: Sequence[Vector3], by: Scalars) -> Vector3:
    return Vector3(*(total(*(getattr(x, c) * y for x, y in zip(vectors, by, strict=True))) for c in "xyz"))


def _mixed(shortening: Sequence[Scalar], by: Scalars) -> list[Vector3]:
    """For each mode, the sum of its second derivatives with the others, each times a number of `by`."""
    n = len(by)
    second = dict(zip(((k, l) for k in range(n) for l in range(k, n)), grouped(shortening), strict=True))
    return [_combined([second[min(k, l), max(k, l)] for l in range(n)], by) for k in range(n)]
