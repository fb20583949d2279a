"""Clearance of a rim in a shell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.given import Vector
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.scalar import safe_sqrt
from jaxmbs.study.outputs.base import REDUCTION, REDUCTIONS, Described, Output, Scalar, normals
from jaxmbs.study.outputs.hollow import Gap, Memory, least_gap
from jaxmbs.study.outputs.path import Numbers, placement, point, since


@element
class Rim(Described):
    """A circle fixed to a body."""

    body: str = field(Kind.BODY_OR_WORLD, "", "body that carries it")
    center: Vector = field(Kind.VECTOR, "m", "centre, in body axes")
    axis: Vector = field(Kind.AXIS, "", "axis, in body axes")
    radius: float = field(Kind.POSITIVE, "m", "radius")


@element
class Shell(Described):
    """The inner side of a cylinder fixed to a body."""

    body: str = field(Kind.BODY_OR_WORLD, "", "body that carries it")
    base: Vector = field(Kind.VECTOR, "m", "centre of its base, in body axes")
    axis: Vector = field(Kind.AXIS, "", "axis towards the open end, in body axes")
    radius: float = field(Kind.POSITIVE, "m", "inner radius")
    length: float = field(Kind.POSITIVE, "m", "from the base to the open end")


@element
class RimClearance(Output):
    """Gap [m] between a rim and the inner side of a cylindrical shell, negative once they would touch.

    A point of the rim counts while it lies within the shell's length. The gap is the smallest over the points that
    count, and undefined once none counts; reduce = "time_out" gives the time of the first step at which that is so.

    The least gap of a whole run, and its time, are found between the steps too, where the bodies move on cubics. In a
    window, the gap counts at the steps only.
    """

    always_defined: ClassVar[bool] = False

    rim: Rim = field(Kind.PART, "", "the rim", of=Rim)
    shell: Shell = field(Kind.PART, "", "the shell around it", of=Shell)
    reduce: str = field(Kind.CHOICE, "", REDUCTION, default="min", choices=REDUCTIONS, kw_only=True)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "length"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        found = self._gap_at(placement(self.shell.body, self.rim.body, scene))
        return found.value, found.counts

    @classmethod
    def measure_all(
        cls, outputs: Sequence[Output], scenes: Sequence[Scene], recalled: Mapping[int, tuple[Any, Scalar]]
    ) -> tuple[list[tuple[Scalar, ...]], dict[int, Any]]:
        given: list[Any] = list(outputs)
        found: list[tuple[Scalar, ...]] = []
        new: dict[int, Any] = {}
        for k, (output, scene) in enumerate(zip(given, scenes, strict=True)):
            if k not in recalled:
                found.append(output.measure(scene))
                continue
            m = recalled[k][0]
            path, rate, h = since((output.shell.body, output.rim.body, scene), m.time, m.placed, m.rates)
            gap, s, falling, counted = least_gap(output._gap_at, path, rate, h, m)
            t = jnp.asarray(scene.t)
            found.append((gap.value, gap.counts, t - (1 - s) * h))
            new[k] = Memory(t, path.end, rate, falling, counted)
        return found, new

    @property
    def memory(self) -> Any:
        return Memory.none()

    def _gap_at(self, placed: Numbers) -> Gap:
        """With the rim's body so placed in axes of the shell's."""
        rim, shell = self.rim, self.shell
        R = Matrix3(*placed[:9])
        u, w = (R @ Vector3.of((e * rim.radius).tolist()) for e in normals(rim.axis))
        center = point(placed, Vector3.of(rim.center)) - Vector3.of(shell.base)
        return _gap(center, u, w, Vector3.of(shell.axis), shell.radius, shell.length)


def _gap(center: Vector3, e1: Vector3, e2: Vector3, axis: Vector3, radius: Scalar, length: Scalar) -> Gap:
    """Gap of the circle center + e1 cos + e2 sin in a shell from the origin along `axis`.

    Of the points inside, the one farthest from the axis is either the farthest of the whole circle, or a point where
    the circle leaves the shell.
    """
    z0, z1, z2 = axis @ center, axis @ e1, axis @ e2
    d, u, w = center - axis * z0, e1 - axis * z1, e2 - axis * z2
    dd, du, dw, uu, uw, ww = d @ d, d @ u, d @ w, u @ u, u @ w, w @ w

    def square(c: Scalar, s: Scalar) -> Scalar:
        return dd + 2 * (du * c + dw * s) + uu * c * c + 2 * uw * c * s + ww * s * s

    points = [(square(c, s), z0 + z1 * c + z2 * s) for c, s in _farthest(du, dw, uu, uw, ww)]
    points = [(far, (z >= 0) & (z <= length)) for far, z in points]
    tilt = safe_sqrt(z1 * z1 + z2 * z2)
    x, y = _unit(z1, z2)
    for end in (0.0, length):
        k = (end - z0) / jnp.where(tilt > 0, tilt, 1.0)
        crosses = (jnp.abs(k) < 1) & (tilt > 0)
        h = jnp.sqrt(jnp.where(crosses, 1 - k * k, 1.0))
        points += [(square(k * x - h * y, k * y + h * x), crosses), (square(k * x + h * y, k * y - h * x), crosses)]

    far, inside = jnp.zeros_like(dd), jnp.zeros_like(points[0][1])
    for distance, here in points:
        far, inside = jnp.where(here & (distance > far), distance, far), inside | here
    # a state that is not finite must show in the result instead of counting as "out"
    broken = ~jnp.isfinite(z0 + dd)
    depth = jnp.minimum(length - (z0 - tilt), z0 + tilt)
    return Gap(jnp.where(broken, jnp.nan, radius - safe_sqrt(far)), inside | broken, depth)


def _farthest(du: Scalar, dw: Scalar, uu: Scalar, uw: Scalar, ww: Scalar) -> list[tuple[Scalar, Scalar]]:
    """(cosine, sine) of two points of the ellipse, one of which is the farthest from the axis, or near it.

    Maximises a convex function on a circle: a step to the direction of its gradient never lowers it. Subtracting the
    smallest eigenvalue adds only a constant to the function, and few iterations suffice while the tilt is small. There are
    two starts, towards the offset of the axes and along the ellipse's long axis: one is near the maximum. To first order, a
    maximum does not change with its place, so that the points need no derivatives.
    """
    du, dw, uu, uw, ww = jax.lax.stop_gradient((du, dw, uu, uw, ww))
    half = (uu - ww) / 2
    root = jnp.sqrt(half * half + uw * uw)
    least = (uu + ww) / 2 - root
    x, y = jnp.where(half > 0, half + root, uw), jnp.where(half > 0, uw, root - half)
    side = jnp.where(x * du + y * dw < 0, -1.0, 1.0)
    found = []
    for c, s in (_unit(du, dw), _unit(side * x, side * y)):
        for _ in range(3):
            c, s = _unit(du + (uu - least) * c + uw * s, dw + uw * c + (ww - least) * s)
        found.append((c, s))
    return found


def _unit(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """(x, y) normalised; (1, 0) for the zero vector."""
    square = x * x + y * y
    scale = 1 / jnp.sqrt(jnp.where(square > 0, square, 1.0))
    return jnp.where(square > 0, x * scale, 1.0), y * scale
