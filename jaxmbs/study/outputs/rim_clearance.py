"""Clearance of a rim in a shell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxmbs.geometry.tables import choose
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.given import Vector
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.scalar import safe_sqrt
from jaxmbs.study.outputs.base import REDUCTION, REDUCTIONS, Described, Output, Scalar, normals
from jaxmbs.study.outputs.hollow import Gap, Memory, since_last
from jaxmbs.study.outputs.path import Numbers, placement, point

TURNS = 40  # where the farthest point is about to divide into two, Newton's method is slow


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
            bodies = output.shell.body, output.rim.body, scene
            value, new[k] = since_last(output._gap_at, bodies, recalled[k][0])
            found.append(value)
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

    The height of a point along the axis depends only on s, the cosine of its angle from where the circle is highest. For
    each s, one half of the circle, always the same, has the point that is farther from the axis, and on this half the
    square of the distance is a concave function of s. Of the points inside the shell, the farthest is therefore the one
    whose s is nearest to that of the farthest point of the whole circle.
    """
    z0, z1, z2 = axis @ center, axis @ e1, axis @ e2
    d = center - axis * z0
    du, dw = d @ e1, d @ e2
    rise = safe_sqrt(z1 * z1 + z2 * z2)
    x, y = _unit(z1, z2)
    along, across = du * x + dw * y, dw * x - du * y

    tilted = rise > 0
    low, high = ((end - z0) / jnp.where(tilted, rise, 1.0) for end in (0.0, length))
    level = (z0 >= 0) & (z0 <= length)
    low = jnp.where(tilted, jnp.maximum(low, -1.0), -1.0)
    high = jnp.where(tilted, jnp.minimum(high, 1.0), 1.0)
    best = _farthest(along, across, rise * rise)
    cut = (best < low) | (best > high)
    s = jnp.where(best < low, low, jnp.where(best > high, high, best))
    square = 1 - s * s
    c = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    c = jnp.where(across < 0, -c, c)
    place = s * x - c * y, s * y + c * x
    # a maximum does not change with its place to first order: the farthest point of the whole circle needs no derivatives
    cosine, sine = choose(cut, place, jax.lax.stop_gradient(place))

    p = d + (e1 - axis * z1) * cosine + (e2 - axis * z2) * sine
    # a state that is not finite must show in the result instead of counting as "out"
    broken = ~jnp.isfinite(z0 + d @ d)
    inside = jnp.where(tilted, low <= high, level)
    depth = jnp.minimum(length - (z0 - rise), z0 + rise)
    return Gap(jnp.where(broken, jnp.nan, radius - safe_sqrt(p @ p)), inside | broken, depth)


def _farthest(along: Scalar, across: Scalar, bend: Scalar) -> Scalar:
    """The s in [-1, 1] at which 2 along s + 2 |across| sqrt(1 - s^2) - bend s^2 is largest.

    It is along / x, where x is the largest root of (across / (x - bend))^2 + (along / x)^2 = 1. Newton's method for the
    inverse of the left side's square root never passes it when it starts below.
    """
    along, across, bend = jax.lax.stop_gradient((along, jnp.abs(across), bend))
    tiny = 4 * float(jnp.finfo(jnp.result_type(along)).eps)

    def turn(state: tuple[Scalar, Scalar, Scalar]) -> tuple[Scalar, Scalar, Scalar]:
        count, x, _ = state
        over_x, over = 1 / x, 1 / jnp.where(across > 0, x - bend, 1.0)
        u, w = across * over, along * over_x
        square = u * u + w * w
        steep = u * u * over + w * w * over_x
        step = square * (jnp.sqrt(square) - 1) / jnp.where(steep > 0, steep, 1.0)
        return count + 1, jnp.maximum(x + step, x), step > tiny * x

    first = jnp.maximum(bend + across, jnp.abs(along))
    some = first > 0
    start = jnp.int32(0), jnp.where(some, first, 1.0), some
    _, x, _ = jax.lax.while_loop(lambda z: z[2] & (z[0] < TURNS), turn, start)
    return jnp.where(some, jnp.clip(along / x, -1.0, 1.0), 0.0)


def _unit(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """(x, y) normalised; (1, 0) for the zero vector."""
    square = x * x + y * y
    scale = 1 / jnp.sqrt(jnp.where(square > 0, square, 1.0))
    return jnp.where(square > 0, x * scale, 1.0), y * scale
