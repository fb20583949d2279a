"""Clearance of a rim in a shell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.given import Vector
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Vector3
from jaxmbs.study.outputs.base import REDUCTION, REDUCTIONS, Described, Output, Scalar, normals, turned


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
    count, and undefined once none counts; reduce = "time_out" gives the time when that happens.
    """

    always_defined: ClassVar[bool] = False

    rim: Rim = field(Kind.PART, "", "the rim", of=Rim)
    shell: Shell = field(Kind.PART, "", "the shell around it", of=Shell)
    reduce: str = field(Kind.CHOICE, "", REDUCTION, default="min", choices=REDUCTIONS, kw_only=True)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "length"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        rim, shell = self.rim, self.shell
        to_shell, from_rim = scene.rotation(shell.body).T, scene.rotation(rim.body)
        across, along = (Vector3.of((e * rim.radius).tolist()) for e in normals(rim.axis))
        center = scene.point(rim.body, Vector3.of(rim.center)) - scene.point(shell.body, Vector3.of(shell.base))
        u, w = (turned(to_shell, turned(from_rim, e)) for e in (across, along))
        return _gap(turned(to_shell, center), u, w, Vector3.of(shell.axis), shell.radius, shell.length)


def _gap(
    center: Vector3, e1: Vector3, e2: Vector3, axis: Vector3, radius: Scalar, length: Scalar
) -> tuple[Scalar, Scalar]:
    """Gap of the circle center + e1 cos + e2 sin in a shell from the origin along `axis`, and whether any of it is
    inside.

    Of the points inside, the one farthest from the axis is either the farthest of the whole circle, or a point where
    the circle leaves the shell.
    """
    z0, z1, z2 = axis @ center, axis @ e1, axis @ e2
    d, u, w = center - axis * z0, e1 - axis * z1, e2 - axis * z2
    dd, du, dw, uu, uw, ww = d @ d, d @ u, d @ w, u @ u, u @ w, w @ w

    def square(c: Scalar, s: Scalar) -> Scalar:
        return dd + 2 * (du * c + dw * s) + uu * c * c + 2 * uw * c * s + ww * s * s

    # Maximises a convex function on a circle: a step to the direction of its gradient never lowers it. Subtracting the
    # smallest eigenvalue adds only a constant to the function, and few iterations suffice while the tilt is small.
    # There are two starts, towards the offset of the axes and along the ellipse's long axis: one is near the maximum.
    half = (uu - ww) / 2
    root = jnp.sqrt(half * half + uw * uw)
    least = (uu + ww) / 2 - root
    x, y = jnp.where(half > 0, half + root, uw), jnp.where(half > 0, uw, root - half)
    side = jnp.where(x * du + y * dw < 0, -1.0, 1.0)
    points = []
    for c, s in (_unit(du, dw), _unit(side * x, side * y)):
        for _ in range(3):
            c, s = _unit(du + (uu - least) * c + uw * s, dw + uw * c + (ww - least) * s)
        z = z0 + z1 * c + z2 * s
        points.append((square(c, s), (z >= 0) & (z <= length)))
    tilt = jnp.sqrt(z1 * z1 + z2 * z2)
    x, y = _unit(z1, z2)
    for end in (0.0, length):
        k = (end - z0) / jnp.where(tilt > 0, tilt, 1.0)
        crosses = (jnp.abs(k) < 1) & (tilt > 0)
        h = jnp.sqrt(jnp.where(crosses, 1 - k * k, 0.0))
        points += [(square(k * x - h * y, k * y + h * x), crosses), (square(k * x + h * y, k * y - h * x), crosses)]

    far, inside = jnp.zeros_like(dd), jnp.zeros_like(points[0][1])
    for distance, here in points:
        far, inside = jnp.where(here & (distance > far), distance, far), inside | here
    # a state that is not finite must show in the result instead of counting as "out"
    broken = ~jnp.isfinite(z0 + dd)
    return jnp.where(broken, jnp.nan, radius - jnp.sqrt(far)), inside | broken


def _unit(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """(x, y) normalised; (1, 0) for the zero vector."""
    square = x * x + y * y
    scale = 1 / jnp.sqrt(jnp.where(square > 0, square, 1.0))
    return jnp.where(square > 0, x * scale, 1.0), y * scale
