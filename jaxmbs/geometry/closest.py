"""The widest gap between two convex pieces, with the planes that prove it.

The method is that of Gilbert, Johnson and Keerthi. It keeps a simplex in the difference of the pieces, finds the point of
the simplex that is closest to the origin, and adds the point of the difference that is farthest in the direction from there
to the origin, until this brings the simplex no closer. Each of these directions gives two parallel planes with the pieces
on their outer sides. The gap between them is never more than the distance, and the widest gap is the result, however the
iteration ends.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.geometry.tables import Unions, choose
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.scalar import minimum

Scalar = Any
ITERATIONS = 40  # polyhedra need about ten; round pieces converge linearly
LOOSE = 0.2  # of a gap's excess over `exact`: by up to this share of it, the gap may be found too small
SUBSETS = tuple(s for n in range(4) for s in itertools.combinations(range(3), n))


class Limits(NamedTuple):
    """When a search ends before the distance is known: see `Before`."""

    exact: Scalar
    enough: Scalar
    displacement: Vector3


class _Search(NamedTuple):
    """The simplex: three corners in the difference, the points of the first body that belong to them, their weights in the
    closest point v, and which of them are used; the widest gap so far and its direction."""

    v: tuple[Scalar, ...]
    corners: tuple[Scalar, ...]
    points: tuple[Scalar, ...]
    weights: tuple[Scalar, ...]
    used: tuple[Scalar, ...]
    gap: Scalar
    normal: tuple[Scalar, ...]
    going: Scalar
    count: Scalar


class _Passes(NamedTuple):
    """Searches for the widest gap of two pieces: the first finds their distance. If they overlap, each further one displaces
    them along m by `shift`, until they are apart. going: whether there is a next one; number: its number; trial: from which
    of two directions they began; before: the gap in the direction m; middle: that in the direction between the pieces'
    middles; then the widest gap so far, its direction, a point of the first piece, and the vector v to one of the second."""

    going: Any
    number: Any
    trial: Any
    m: tuple[Scalar, ...]
    shift: Scalar
    before: Scalar
    middle: Scalar
    gap: Scalar
    normal: tuple[Scalar, ...]
    point: tuple[Scalar, ...]
    v: tuple[Scalar, ...]


def widest_gap(
    u: Unions, i: Any, j: Any, rotation: Matrix3, position: Vector3, starts: tuple[Vector3, Vector3], most: Scalar,
    needed: Any, limits: Limits,
) -> tuple[Scalar, Vector3, Vector3, Vector3]:  # fmt: skip
    """The widest gap of two pieces, without their thickness, its direction, a point of the first, and the vector from it to
    a point of the second. starts: the first direction of the search, and that from the middle of the first piece to the
    middle of the second, of any lengths; most: the size of both together; needed: whether to search at all; limits: of the
    search for their distance.

    Where they overlap, the gap is negative: the depth in the best of some directions. The search begins with the best of
    the faces' normals. The pieces are displaced along it until they are apart; the direction between their closest points
    is then a better one, unless the first was the best nearby. The same is tried from the direction between their middles.
    """
    zero = jnp.asarray(0.0, u.dtype)
    none = jnp.int32(0)
    middle = _unit(starts[1])
    (face_a, last_a), (face_b, last_b) = u.faces(i), u.faces(j)
    of_a = last_a - face_a
    faces = of_a + last_b - face_b

    def in_direction(n: Vector3) -> Scalar:
        return n @ (rotation @ u.farthest(j, -(rotation.T @ n)) + position - u.farthest(i, n))

    def face(x: Any) -> Any:
        """The widest gap so far after one more direction: those of the faces' normals, and last that between the middles."""
        _, k, best, _, *n = x
        of_faces = choose(k < of_a, u.normal(face_a + k), rotation @ -u.normal(face_b + k - of_a))
        m = Vector3(*choose(k < faces, of_faces, middle))
        value = in_direction(m)
        more = value > best
        return (k < faces, k + 1, jnp.where(more, value, best), value, *choose(more, m, n))

    def once(x: _Passes) -> _Passes:
        first, m = x.number == 0, Vector3(*x.m)
        start = Vector3(*choose(first, starts[0], m))
        exact, enough = (jnp.where(first, x, jnp.inf) for x in (limits.exact, limits.enough))
        own = Limits(exact, enough, limits.displacement)
        s = _closest(u, i, j, rotation, position + m * x.shift, start, own)
        n = Vector3(*s.normal)
        value = s.gap - x.shift * (m @ n)
        points, v = tuple(_weighted(s.points, s.weights)), tuple(Vector3(*s.v) - m * x.shift)
        overlapping = first & ~(s.gap > 0)
        _, _, best, last, *of_face = jax.lax.while_loop(
            lambda x: x[0], face, (overlapping, none, zero - jnp.inf, zero, *(zero,) * 3)
        )
        taken = first | (x.number == 1) | (value > x.gap)
        ends = ~first & ((value - x.before <= 1e-6 * most) | (x.number >= 8 * (x.trial + 1)))
        again = ends & (x.trial == 0)
        m = choose(overlapping, of_face, choose(again, middle, n))
        before = jnp.where(overlapping, best, jnp.where(again, x.middle, value))
        return _Passes(
            jnp.where(first, overlapping, ~ends | again),
            jnp.where(again, 9, x.number + 1),
            jnp.where(again, 1, x.trial),
            m,
            0.01 * most - before,
            before,
            jnp.where(overlapping, last, x.middle),
            jnp.where(overlapping, best, jnp.where(value > x.gap, value, x.gap)),
            choose(overlapping, of_face, choose(first | (value > x.gap), n, x.normal)),
            choose(taken, points, x.point),
            choose(taken, v, x.v),
        )

    start = _Passes(
        needed, none, none, (zero,) * 3, zero, zero, zero, zero - jnp.inf, (zero + 1, zero, zero), (zero,) * 3, (zero,) * 3
    )  # fmt: skip
    x = jax.lax.while_loop(lambda x: x.going, once, start)
    return x.gap, Vector3(*x.normal), Vector3(*x.point), Vector3(*x.v)


def _closest(
    u: Unions, i: Any, j: Any, rotation: Matrix3, position: Vector3, start: Vector3, limits: Limits
) -> _Search:
    """The closest points of two pieces, without their thickness. start: the first direction."""
    tiny, close = 8 * float(jnp.finfo(u.dtype).eps), float(jnp.finfo(u.dtype).eps) ** (2 / 3)
    zero = jnp.asarray(0.0, u.dtype)
    thick = u.ball(i) + u.ball(j)
    no = zero > 1
    search = _Search(
        tuple(_unit(start)), (zero,) * 9, (zero,) * 9, (zero,) * 3, (no,) * 3, zero - jnp.inf, (zero + 1, zero, zero), ~no,
        jnp.int32(0),
    )  # fmt: skip

    def step(s: _Search) -> _Search:
        v = Vector3(*s.v)
        square = v @ v
        length = jnp.sqrt(square)
        n = Vector3(*_towards(s, v * (1 / jnp.where(length > 0, length, 1.0)), square, close))
        p = u.farthest(i, n)
        w = rotation @ u.farthest(j, -(rotation.T @ n)) + position - p
        gap = jnp.where(length > 0, n @ w, -jnp.inf)
        better = gap > s.gap
        widest, normal = jnp.where(better, gap, s.gap), choose(better, n, s.normal)
        fresh = s.count == 0
        near = ~fresh & ((length - widest <= tiny * length) | (length <= 0))
        closing = minimum(Vector3(*normal) @ limits.displacement, 0.0)
        near = near | (widest - thick + closing > limits.enough)
        near = near | (~fresh & (length - widest <= LOOSE * (widest - thick - limits.exact)))
        found, corners, points, weights, used, inside = _reduced(s, w, p)
        # where planes have proven a gap, the origin is in no simplex, even if one that is almost flat seems to contain it
        stuck = ~fresh & (~(found @ found < square) | (inside & (widest > 0)))
        keep = ~fresh & (near | stuck)
        inside = inside & ~keep
        return _Search(
            choose(keep, s.v, found), choose(keep, s.corners, corners), choose(keep, s.points, points),
            choose(keep, s.weights, weights), choose(keep, s.used, used),
            jnp.where(inside, jnp.minimum(widest, 0.0), widest), normal, ~(near | stuck | inside), s.count + 1,
        )  # fmt: skip

    return jax.lax.while_loop(lambda s: s.going & (s.count < ITERATIONS), step, search)


def _towards(s: _Search, n: Vector3, square: Scalar, close: float) -> tuple[Scalar, ...]:
    """The direction n of the closest point v of a simplex, square: v . v; or that across a triangle near the origin, which
    is the same without the rounding of small differences."""
    a, b, c = (Vector3(*s.corners[3 * k : 3 * k + 3]) for k in range(3))
    e, f = b - a, c - a
    across = e.cross(f)
    size = across @ across
    taken = s.used[0] & s.used[1] & s.used[2] & (square < close * (e @ e)) & (size > 0)
    scale = jnp.where(across @ n < 0, -1.0, 1.0) / jnp.sqrt(jnp.where(size > 0, size, 1.0))
    return choose(taken, across * scale, n)


def _reduced(s: _Search, w: Vector3, p: Vector3) -> Any:
    """The closest point to the origin of the simplex with the new corner w (p: the point of the first body), its corners,
    their points and weights, which are used, and whether the origin is inside."""
    corners = [Vector3(*s.corners[3 * k : 3 * k + 3]) for k in range(3)]
    u = [x - w for x in corners]
    G = {(i, j): u[i] @ u[j] for i in range(3) for j in range(i, 3)}
    g = [-(x @ w) for x in u]
    best, mu, chosen = w @ w, [0.0 * w.x] * 3, [jnp.asarray(False)] * 3
    inside = chosen[0]
    for subset in SUBSETS[1:]:
        found, det = _solved(G, g, subset)
        valid = det > 0
        for k, x in zip(subset, found, strict=True):
            valid = valid & s.used[k] & (x > 0)
        valid = valid & (sum(found[1:], found[0]) < det)
        scale = 1 / jnp.where(valid, det, 1.0)
        found = [x * scale for x in found]
        v = w
        for k, x in zip(subset, found, strict=True):
            v = v + u[k] * x
        square = v @ v
        if len(subset) == 3:
            inside, square = valid, jnp.where(valid, 0.0, square)
        take = valid & (square < best)
        best = jnp.where(take, square, best)
        for k in range(3):
            x = found[subset.index(k)] if k in subset else 0.0
            mu[k] = jnp.where(take, x, mu[k])
            chosen[k] = jnp.where(take, k in subset, chosen[k])
    v = w
    for x, y in zip(u, mu, strict=True):
        v = v + x * y
    # the first slot that is free takes the new corner
    free = [~chosen[0], chosen[0] & ~chosen[1], chosen[0] & chosen[1] & ~chosen[2]]
    rest = 1 - (mu[0] + mu[1] + mu[2])
    old = [Vector3(*s.points[3 * k : 3 * k + 3]) for k in range(3)]
    new_corners = [y for k in range(3) for y in choose(free[k], w, corners[k])]
    new_points = [y for k in range(3) for y in choose(free[k], p, old[k])]
    weights = tuple(jnp.where(free[k], rest, mu[k]) for k in range(3))
    return (
        v,
        tuple(new_corners),
        tuple(new_points),
        weights,
        tuple(c | f for c, f in zip(chosen, free, strict=True)),
        inside,
    )


def _solved(G: Any, g: Any, subset: tuple[int, ...]) -> tuple[list[Scalar], Scalar]:
    """mu times the determinant, and the determinant, for the edges of a subset: G mu = g."""
    if len(subset) == 1:
        (i,) = subset
        return [g[i]], G[i, i]
    if len(subset) == 2:
        i, j = subset
        return [G[j, j] * g[i] - G[i, j] * g[j], G[i, i] * g[j] - G[i, j] * g[i]], G[i, i] * G[j, j] - G[i, j] * G[i, j]
    c0 = G[1, 1] * G[2, 2] - G[1, 2] * G[1, 2]
    c1 = G[0, 2] * G[1, 2] - G[0, 1] * G[2, 2]
    c2 = G[0, 1] * G[1, 2] - G[0, 2] * G[1, 1]
    d0 = G[0, 0] * G[2, 2] - G[0, 2] * G[0, 2]
    d1 = G[0, 1] * G[0, 2] - G[0, 0] * G[1, 2]
    e0 = G[0, 0] * G[1, 1] - G[0, 1] * G[0, 1]
    found = [c0 * g[0] + c1 * g[1] + c2 * g[2], c1 * g[0] + d0 * g[1] + d1 * g[2], c2 * g[0] + d1 * g[1] + e0 * g[2]]
    return found, G[0, 0] * c0 + G[0, 1] * c1 + G[0, 2] * c2


def _weighted(points: Any, weights: Any) -> Vector3:
    out = Vector3(*points[:3]) * weights[0]
    for k in (1, 2):
        out = out + Vector3(*points[3 * k : 3 * k + 3]) * weights[k]
    return out


def _unit(x: Vector3) -> Vector3:
    """x divided by its length; the first axis if that is zero."""
    square = x @ x
    some = square > 0
    scale = 1 / jnp.sqrt(jnp.where(some, square, 1.0))
    return Vector3(jnp.where(some, x.x * scale, 1.0), x.y * scale, x.z * scale)
