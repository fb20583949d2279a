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
from jaxmbs.spatial import (
    IDENTITY3,
    ZERO3,
    ArticulatedInertia,
    Force,
    Matrix3,
    Motion,
    Symmetric3,
    Transform,
    Vector3,
    from_quaternion,
)
from jaxmbs.spatial.components import components
from jaxmbs.spatial.known import ONE, known
from jaxmbs.spatial.scalar import Scalar, total, vanishes
from jaxmbs.spatial.vectors import grouped, skew


@components
class Subspace:
    """The columns of a node's motion as products S_k = T s_k, of a matrix T for all modes and of numbers s_k (`shapes`) that
    do not depend on its rotation: T = [[E, 0], [0, Rᵀ]] with E = 2 (1 - [g]) / (1 + g·g), `turning`, and the rotation R.

    half: g, the Rodrigues vector of the rotation; place: of the node in its joint frame [m]; entering: (1 - [g] + g gᵀ)/2,
    which is E⁻¹ Rᵀ.
    """

    shapes: tuple[Motion, ...]
    half: Vector3
    place: Vector3
    rotation: Matrix3
    turning: Matrix3
    entering: Matrix3

    def entered(self, m: Motion) -> Motion:
        """T⁻¹ times the motion that the node would have if it were fixed to its joint frame, which has the motion m."""
        return Motion(self.entering @ m.angular, m.linear + m.angular.cross(self.place))

    def wrench(self, f: Force) -> Force:
        """Tᵀ f; along the modes, s_k · Tᵀ f = S_k · f."""
        return Force(self.turning.T @ f.moment, self.rotation @ f.force)

    def inertia(self, I: ArticulatedInertia) -> ArticulatedInertia:
        """Tᵀ I T."""
        E, R = self.turning.T, self.rotation
        return ArticulatedInertia(I.A.rotated(E), E @ (I.B @ R.T), I.C.rotated(R))


@element
class FlexibleNode(Joint):
    """The frame of a node of a flexible body, which moves with the body's elastic coordinates; made by
    `Mechanism.add_flexible_body`. q: none.

    The rotation is that of the Rodrigues vector g = (sum of rotation_k q_k)/2, by the angle 2 atan |g|. It differs from that
    of the linear theory by terms of third order only, and is a proper rotation at any q.
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

    def subspace(self, p: Numbers, q: Scalars) -> Subspace:
        """The columns S of the joint's motion as products."""
        halves, slopes = [x * 0.5 for x in grouped(p["rotation"])], grouped(p["displacement"])
        place = _combined(slopes, q)
        if len(p["shortening"]) > 1:
            bent = _mixed(p["shortening"], q)
            slopes = [u + x for u, x in zip(slopes, bent, strict=True)]
            place = place + _combined(bent, q) * 0.5
        shapes = tuple(Motion(x, u) for x, u in zip(halves, slopes, strict=True))
        if all(vanishes(c) for x in halves for c in x):
            return Subspace(shapes, ZERO3, place, IDENTITY3, IDENTITY3, IDENTITY3)
        g = _combined(halves, q)
        turned, scale = IDENTITY3 - skew(g), 2 / (1 + g @ g)
        half = turned + Symmetric3.outer(g).full()
        E, N = (Matrix3(*(x * factor for x in M)) for M, factor in ((turned, scale), (half, known(0.5))))
        return Subspace(shapes, g, place, from_quaternion([ONE, *g]), E, N)

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        own = self.subspace(p, q)
        S = tuple(Motion(own.turning @ x.angular, own.rotation.T @ x.linear) for x in own.shapes)
        V, drawn = velocity_of(S, v), ZERO3
        if len(p["shortening"]) > 1:
            drawn = own.rotation.T @ _combined(_mixed(p["shortening"], v), v)
        # -g·w is the rate of change of 2/(1 + g·g), divided by it
        bias = Motion(V.angular * -(own.half @ V.angular), drawn - V.angular.cross(V.linear))
        return JointMotion(Transform(own.rotation, own.place), S, V, bias)

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
