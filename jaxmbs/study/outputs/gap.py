"""The signed distance of two convex shapes, as the widest gap between parallel planes that separate them.

For a unit vector n from one shape to the other, the gap is the distance along n from the end of the one to the
beginning of the other. No gap is wider than the distance of the shapes. The widest gap is that distance, or, if the
shapes overlap, minus the depth of overlap. It is found by Newton's method on the sphere of directions, with edges and
corners rounded less and less. Whatever direction the method ends at, its gap is never more than the distance, so a
clearance is never overestimated. The derivative with respect to the poses is that of the rounded gap in the fixed best
direction (envelope theorem), which is well defined because rounded edges touch at a single point.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.spatial import Vector3
from jaxmbs.spatial.known import accepting
from jaxmbs.study.outputs.shapes import Reach, farthest

Scalar = Any
LAST = 1e-5
ROUNDINGS = np.append(np.geomspace(0.3, LAST, 19), np.full(5, LAST))  # per iteration, relative to the shapes' size
STEPS = (1.0, 0.3, 0.05, 0.005)
# these accept known numbers, which occur when the shapes do not move relative to one another
_abs = accepting(jnp.abs)
_exp = accepting(jnp.exp)
_log = accepting(jnp.log)
_maximum = accepting(jnp.maximum)
_minimum = accepting(jnp.minimum)
_sqrt = accepting(jnp.sqrt)
_where = accepting(jnp.where)
_stop = accepting(jax.lax.stop_gradient)


def signed_distance(a: Reach, b: Reach) -> Scalar:
    """Distance [m] between two shapes, negative where they overlap."""
    d = b.center - a.center
    stopped = jax.tree_util.tree_map(_stop, (a, b, d))
    size = _size(stopped[0], stopped[1])
    n = Vector3.of([_stop(x) for x in _best(stopped[0], stopped[1], stopped[2], size)])
    slope = _rounded(a, b, d, n, LAST, size, bends=False)[0]
    found = _stop(_gap(a, b, d, n) - slope) + slope
    for m in _faces(a, b):  # these directions rotate with the shapes
        for side in (m, -m):
            found = _maximum(found, _gap(a, b, d, side))
    return found


def _gap(a: Reach, b: Reach, d: Vector3, n: Vector3) -> Scalar:
    """Gap in the direction n: d.n, with d from the centre of a to that of b, minus how far a reaches along n and b
    against it."""
    out = d @ n - a.ball - b.ball
    for shape in (a, b):
        for w, e in shape.along:
            out = out - w * _abs(e @ n)
        for r, e in shape.discs:
            c = e @ n
            square = _maximum(1 - c * c, 0.0)
            out = out - r * _sqrt(_where(square > 0, square, 1.0)) * (square > 0)
    if a.points:
        out = out - farthest(a.points, n)
    if b.points:
        out = out - farthest(b.points, -n)
    return out


def _faces(a: Reach, b: Reach) -> list[Vector3]:
    """Directions that are best where faces or edges meet: normals of faces, and common normals of pairs of edges."""
    one = [[e for _, e in x.along] for x in (a, b)]
    across = [u.cross(v) for u in one[0] for v in one[1]]
    return [*one[0], *one[1], *(_unit(x) for x in across)]


def _unit(x: Vector3) -> Vector3:
    square = x @ x
    tiny = square < 1e-20
    scale = 1 / _sqrt(_where(tiny, 1.0, square))
    return Vector3(_where(tiny, 1.0, x.x * scale), _where(tiny, 0.0, x.y * scale), _where(tiny, 0.0, x.z * scale))


def _size(a: Reach, b: Reach) -> Scalar:
    """Approximately the sum of both sizes."""
    size = sum(w for x in (a, b) for w, _ in (*x.along, *x.discs)) + a.ball + b.ball
    for x in (a, b):
        for p in x.points:
            size = _maximum(size, p.norm())
    return size


def _best(a: Reach, b: Reach, d: Vector3, size: Scalar) -> Vector3:
    """The direction of the widest gap."""

    def step(now: tuple[Scalar, ...], rounding: Scalar) -> tuple[Any, None]:
        n = Vector3.of(now)
        t = _unit(Vector3(_abs(n.x) > 0.6, _abs(n.x) <= 0.6, 0.0 * n.x).cross(n))
        u = n.cross(t)
        value, slope, bend = _rounded(a, b, d, n, rounding, size)
        g1, g2 = slope @ t, slope @ u
        shift = _abs(n @ slope) + 1e-6 * size
        k11, k12, k22 = (bend @ t) @ t + shift, (bend @ t) @ u, (bend @ u) @ u + shift
        det = k11 * k22 - k12 * k12
        p1, p2 = (k22 * g1 - k12 * g2) / det, (k11 * g2 - k12 * g1) / det
        long = _sqrt(p1 * p1 + p2 * p2)
        cap = _minimum(1.0, 1.0 / _where(long > 0, long, 1.0))
        best, most = n, value
        for length in STEPS:
            x = _unit(n + t * (p1 * cap * length) + u * (p2 * cap * length))
            there = _rounded(a, b, d, x, rounding, size, bends=False)[0]
            better = there > most
            best = Vector3(*(_where(better, y, z) for y, z in zip(x, best, strict=True)))
            most = _where(better, there, most)
        return tuple(best), None

    start = tuple(jnp.asarray(x) for x in _unit(d))
    n, _ = jax.lax.scan(step, start, jnp.asarray(ROUNDINGS, start[0].dtype))
    return Vector3(*n)


class _Sum:
    """A symmetric matrix as a sum of outer products and a multiple of the identity, for products with vectors."""

    def __init__(self) -> None:
        self.terms: list[tuple[Scalar, Vector3]] = []
        self.one: Scalar = 0.0

    def __matmul__(self, x: Vector3) -> Vector3:
        out = x * self.one
        for w, v in self.terms:
            out = out + v * (w * (v @ x))
        return out


def _rounded(
    a: Reach, b: Reach, d: Vector3, n: Vector3, rounding: Scalar, size: Scalar, bends: bool = True
) -> tuple[Scalar, Vector3, _Sum]:
    """The gap of shapes whose edges and corners are rounded, its gradient, and minus its second derivative (if
    `bends`)."""
    value, slope, bend = d @ n - (a.ball + b.ball), d - n * (a.ball + b.ball), _Sum()
    soft = rounding * rounding
    for shape in (a, b):
        for sign, pairs in ((1.0, shape.along), (-1.0, shape.discs)):
            for w, e in pairs:  # w sqrt(n.Q n), Q = e e' + soft, or 1 - e e' + soft
                Qn = e * (e @ n) + n * soft if sign > 0 else n * (1 + soft) - e * (e @ n)
                root = _sqrt(Qn @ n)
                value, slope = value - w * root, slope - Qn * (w / root)
                if bends:
                    bend.one = bend.one + w / root * (soft if sign > 0 else 1 + soft)
                    bend.terms += [(sign * w / root, e), (-w / root**3, Qn)]
    for side, points in ((1.0, a.points), (-1.0, b.points)):
        if points:
            heat = rounding * size
            reach = [(p @ n) * side for p in points]
            top = reach[0]
            for x in reach[1:]:
                top = _maximum(top, x)
            weights = [_exp((x - top) / heat) for x in reach]
            total = sum(weights[1:], weights[0])
            shares = [x / total for x in weights]
            mean = points[0] * shares[0]
            for p, s in zip(points[1:], shares[1:], strict=True):
                mean = mean + p * s
            # the soft maximum is the weighted mean of n @ p plus an entropy term, which does not matter to the direction
            # since n has unit length
            value, slope = value - (top + heat * _log(total)), slope - mean * side
            if bends:
                bend.terms += [(s / heat, p - mean) for p, s in zip(points, shares, strict=True)]
    return value, slope, bend
