"""The gap between the rim of a disc and the inner side of a tube with open ends, exact at any tilt."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.geometry.tables import choose
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.scalar import safe_sqrt
from jaxmbs.study.outputs.base import normals
from jaxmbs.study.outputs.hollow import Gap
from jaxmbs.study.outputs.path import Numbers, point
from jaxmbs.study.outputs.shapes import Disc, Tube

Scalar = Any
TURNS = 40  # where the farthest point is about to divide into two, Newton's method is slow


def rim_gap(disc: Disc, tube: Tube, placed: Numbers) -> Gap:
    """The gap of a disc in a tube. placed: the disc's body in axes of the tube's body. The gap is that of the part of the
    rim between the ends of the tube; of all points of the disc between the ends, the nearest to the wall is on its rim."""
    R, axis = Matrix3(*placed[:9]), Vector3.of(tube.axis)
    u, w = (R @ Vector3.of((e * disc.radius).tolist()) for e in normals(disc.axis))
    base = Vector3.of(tube.center) - axis * (tube.length / 2)
    return _gap(point(placed, Vector3.of(disc.center)) - base, u, w, axis, tube.radius, tube.length)


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
