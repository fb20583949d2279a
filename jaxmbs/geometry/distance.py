"""Distance of two bodies that are unions of convex pieces, with planes that prove it.

For two pieces, the method is that of Gilbert, Johnson and Keerthi: a simplex in the difference of the pieces, whose point
closest to the origin is found, gains the farthest point of the difference towards the origin until that is no farther.
Each direction on the way gives two parallel planes with the pieces on their outer sides. The gap between them is never more
than the distance, and the widest gap is the result, however the iteration ends.

Groups of pieces whose boxes are farther apart than the least gap found so far are passed over. Everything is written for
numbers, so that a batch of positions is one loop of machine code that stops as soon as no row needs another iteration.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.lookup import Table, lookup
from jaxmbs.geometry.pieces import Union
from jaxmbs.spatial import Matrix3, Vector3

Scalar = Any
ITERATIONS = 40  # polyhedra need about ten; round pieces converge linearly
SUBSETS = tuple(s for n in range(4) for s in itertools.combinations(range(3), n))


class Separation(NamedTuple):
    """gap [m]: the widest gap found between parallel planes that separate the bodies' nearest pieces, never more than
    their distance; negative where they overlap. normal: unit vector across the planes, from the first to the second
    body; point_a, point_b: the nearest points. All in axes of the first body. piece_a, piece_b: which pieces."""

    gap: Scalar
    normal: Vector3
    point_a: Vector3
    point_b: Vector3
    piece_a: Scalar
    piece_b: Scalar


class Unions:
    """Unions of pieces, one after another in tables from which machine code reads. Each is known by its number."""

    def __init__(self, unions: Sequence[Union], dtype: Any):
        def table(arrays: Iterable[Any]) -> Table:
            return Table(np.concatenate([np.asarray(x, dtype).reshape(-1) for x in arrays]))

        def starts(sizes: Iterable[int]) -> Table:
            return Table(np.cumsum([0, *sizes], dtype=np.int32))

        self.dtype = dtype
        pieces = [x for u in unions for x in u.pieces]
        normals = [x.normals() for x in pieces]
        trees = [u.tree for u in unions]
        self.rounded = any(x.radii.any() for x in pieces)
        self._centers = table(x.centers for x in pieces)
        self._axes, self._radii = table(x.axes for x in pieces), table(x.radii for x in pieces)
        self._discs, self._faces = starts(len(x.radii) for x in pieces), starts(map(len, normals))
        self._normals, self._ball = table(normals), table(x.ball for x in pieces)
        self._boxes, self._group_boxes = table(_listed(u.boxes) for u in unions), table(_listed(x.boxes) for x in trees)
        self._pieces, self._groups = starts(len(u.pieces) for u in unions), starts(len(x.after) for x in trees)
        firsts = zip(trees, self._groups.numbers, self._pieces.numbers, strict=False)
        numbered = [(x.after + group, np.where(x.piece < 0, -1, x.piece + piece)) for x, group, piece in firsts]
        self._after, self._single = (Table(np.concatenate(x).astype(np.int32)) for x in zip(*numbered, strict=True))

    def pieces(self, union: Any) -> tuple[Any, Any]:
        """The first of its pieces, and the one after its last."""
        return lookup(self._pieces, union), lookup(self._pieces, union + 1)

    def groups(self, union: Any) -> tuple[Any, Any]:
        return lookup(self._groups, union), lookup(self._groups, union + 1)

    def faces(self, piece: Any) -> tuple[Any, Any]:
        return lookup(self._faces, piece), lookup(self._faces, piece + 1)

    def normal(self, face: Any) -> Vector3:
        return _three(self._normals, face)

    def ball(self, piece: Any) -> Scalar:
        return lookup(self._ball, piece)

    def box(self, piece: Any) -> _Box:
        return _Box.of(self._boxes, piece)

    def group(self, number: Any) -> _Box:
        return _Box.of(self._group_boxes, number)

    def after(self, group: Any) -> Any:
        """The group that follows if this one is passed over."""
        return lookup(self._after, group)

    def single(self, group: Any) -> Any:
        """The piece that a group consists of, -1 if it has more."""
        return lookup(self._single, group)

    def farthest(self, piece: Any, n: Vector3) -> Vector3:
        """The point of a piece, without its thickness, that is farthest in the direction n, of length one."""

        def turn(x: Any) -> Any:
            k, end, best, *point = x
            p = _three(self._centers, k)
            if self.rounded:
                e, r = _three(self._axes, k), lookup(self._radii, k)
                across = n - e * (e @ n)
                square = across @ across
                tiny = square <= 1e-24
                p = p + across * jnp.where(tiny, 0.0, r / jnp.sqrt(jnp.where(tiny, 1.0, square)))
            value = p @ n
            more = value > best
            return (k + 1, end, jnp.where(more, value, best), *_choose(more, p, point))

        zero = jnp.asarray(0.0, self.dtype)
        first = (lookup(self._discs, piece), lookup(self._discs, piece + 1), zero - jnp.inf, zero, zero, zero)
        _, _, _, *point = jax.lax.while_loop(lambda x: x[0] < x[1], turn, first)
        return Vector3(*point)


class _Box(NamedTuple):
    """A box: its middle, unit vectors along its edges, and halves of their lengths."""

    middle: Vector3
    edges: tuple[Vector3, ...]
    halves: Vector3

    @classmethod
    def of(cls, table: Table, k: Any) -> _Box:
        x = [_three(table, 5 * k + c) for c in range(5)]
        return cls(x[0], tuple(x[1:4]), x[4])

    def placed(self, rotation: Matrix3, position: Vector3) -> _Box:
        return _Box(rotation @ self.middle + position, tuple(rotation @ e for e in self.edges), self.halves)

    def apart(self, other: _Box) -> Scalar:
        """The widest gap between the boxes along any of their edges, never more than their distance."""
        T = other.middle - self.middle
        C = [[abs(e @ f) for f in other.edges] for e in self.edges]
        h, g = tuple(self.halves), tuple(other.halves)
        found = None
        for k in range(3):
            one = abs(T @ self.edges[k]) - h[k] - (g[0] * C[k][0] + g[1] * C[k][1] + g[2] * C[k][2])
            two = abs(T @ other.edges[k]) - g[k] - (h[0] * C[0][k] + h[1] * C[1][k] + h[2] * C[2][k])
            wider = jnp.maximum(one, two)
            found = wider if found is None else jnp.maximum(found, wider)
        return found

    def size(self) -> Scalar:
        return self.halves.norm()


def _listed(boxes: Any) -> np.ndarray:
    n = len(boxes.middles)
    return np.concatenate([boxes.middles, boxes.edges.reshape(n, 9), boxes.halves], axis=1)


class _Search(NamedTuple):
    """The simplex: corners of the difference and the points of the first body that belong to them, three of each, their
    weights in the closest point v, and which of them it has; the widest gap so far and its direction."""

    v: tuple[Scalar, ...]
    corners: tuple[Scalar, ...]
    points: tuple[Scalar, ...]
    weights: tuple[Scalar, ...]
    used: tuple[Scalar, ...]
    gap: Scalar
    normal: tuple[Scalar, ...]
    going: Scalar
    count: Scalar


def separation(
    unions: Unions, first: Any, second: Any, rotation: Matrix3, position: Vector3, enough: Scalar
) -> Separation:
    """The separation of two bodies by their numbers; rotation, position: those of the second in axes of the first. Where
    the gap is proven to be more than `enough` [m], the result is only proven to be more than `enough`."""
    u, zero = unions, jnp.asarray(0.0, unions.dtype)
    group, last_group = u.groups(first)
    piece, last_piece = u.pieces(second)

    def examined(i: Any, j: Any, box: _Box, found: Any, needed: Any) -> Any:
        """The least gap so far and what belongs to it, after a pair of pieces."""
        own = u.box(i)
        limit = jnp.minimum(found[0], enough)
        center = box.middle - own.middle
        most = own.size() + box.size()
        gap, n, p, v = _apart(u, i, j, rotation, position, center, most, needed, limit)
        new = (gap - u.ball(i) - u.ball(j), *n, *(p + n * u.ball(i)), *(p + v - n * u.ball(j)), i, j)
        return _choose(needed & (new[0] < found[0]), new, found)

    def with_all(x: Any) -> Any:
        """The same after the pairs of all pieces of the first body with the piece j of the second."""
        j, *found = x
        box = u.box(j).placed(rotation, position)

        def passing(x: Any) -> Any:
            """The next group that may be nearer than the limit, and whether it is a single piece."""
            k, _, limit = x
            near = u.group(k).apart(box) < limit
            single = near & (u.single(k) >= 0)
            return jnp.where(single, k, jnp.where(near, k + 1, u.after(k))), single, limit

        def pair(x: Any) -> Any:
            k, *found = x
            limit = jnp.minimum(found[0], enough)
            k, single, _ = jax.lax.while_loop(lambda x: (x[0] < last_group) & ~x[1], passing, (k, k < 0, limit))
            found = examined(u.single(k), j, box, tuple(found), single)
            return (jnp.where(single, u.after(k), k), *found)

        return (j + 1, *jax.lax.while_loop(lambda x: x[0] < last_group, pair, (group, *found))[1:])

    none = jnp.int32(0)
    start = (piece, zero + jnp.inf, zero + 1, *(zero,) * 8, none, none)
    _, *found = jax.lax.while_loop(lambda x: x[0] < last_piece, with_all, start)
    own = found[10] - u.pieces(first)[0], found[11] - piece
    return Separation(found[0], Vector3(*found[1:4]), Vector3(*found[4:7]), Vector3(*found[7:10]), *own)


class _Passes(NamedTuple):
    """Searches for the widest gap of two pieces: the first finds their distance. If they overlap, each further one displaces
    them along m by `shift`, until they are apart. number: of the next one; trial: from which of two directions they began;
    before: the gap in the direction m; then the widest gap so far, its direction, and the points that belong to it."""

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


def _apart(
    u: Unions, i: Any, j: Any, rotation: Matrix3, position: Vector3, center: Vector3, most: Scalar, needed: Any, enough: Any
) -> tuple[Scalar, Vector3, Vector3, Vector3]:  # fmt: skip
    """The widest gap of two pieces, without their thickness, its direction, a point of the first, and the vector from it to
    that of the second. center: from the middle of the first to that of the second; most: the size of both.

    Where they overlap, the gap is negative: the depth in the best of some directions. The best of the faces' normals is
    improved: displaced in its direction until they are apart, the pieces have another direction between their closest
    points, which is better unless the first one was the best nearby. The same is tried from the direction of their middles.
    """
    zero = jnp.asarray(0.0, u.dtype)
    none = jnp.int32(0)
    middle = _unit(center)
    (face_a, last_a), (face_b, last_b) = u.faces(i), u.faces(j)
    of_a = last_a - face_a
    faces = of_a + last_b - face_b

    def in_direction(n: Vector3) -> Scalar:
        return n @ (rotation @ u.farthest(j, -(rotation.T @ n)) + position - u.farthest(i, n))

    def face(x: Any) -> Any:
        """The widest gap in the directions of the first faces, and in that of the middles, which is the last one."""
        _, k, best, _, *n = x
        of_faces = _choose(k < of_a, u.normal(face_a + k), rotation @ -u.normal(face_b + k - of_a))
        m = Vector3(*_choose(k < faces, of_faces, middle))
        value = in_direction(m)
        more = value > best
        return (k < faces, k + 1, jnp.where(more, value, best), value, *_choose(more, m, n))

    def once(x: _Passes) -> _Passes:
        first, m = x.number == 0, Vector3(*x.m)
        start = Vector3(*_choose(first, center, m))
        s = _closest(u, i, j, rotation, position + m * x.shift, start, jnp.where(first, enough, jnp.inf))
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
        m = _choose(overlapping, of_face, _choose(again, middle, n))
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
            _choose(overlapping, of_face, _choose(first | (value > x.gap), n, x.normal)),
            _choose(taken, points, x.point),
            _choose(taken, v, x.v),
        )

    start = _Passes(
        needed, none, none, (zero,) * 3, zero, zero, zero, zero - jnp.inf, (zero + 1, zero, zero), (zero,) * 3, (zero,) * 3
    )  # fmt: skip
    x = jax.lax.while_loop(lambda x: x.going, once, start)
    return x.gap, Vector3(*x.normal), Vector3(*x.point), Vector3(*x.v)


def _closest(u: Unions, i: Any, j: Any, rotation: Matrix3, position: Vector3, start: Vector3, enough: Any) -> _Search:
    """The closest points of two pieces, without their thickness. start: the first direction."""
    tiny = 8 * float(jnp.finfo(u.dtype).eps)
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
        n = v * (1 / jnp.where(length > 0, length, 1.0))
        p = u.farthest(i, n)
        w = rotation @ u.farthest(j, -(rotation.T @ n)) + position - p
        gap = jnp.where(length > 0, n @ w, -jnp.inf)
        better = gap > s.gap
        widest, normal = jnp.where(better, gap, s.gap), _choose(better, n, s.normal)
        fresh = s.count == 0
        near = ~fresh & ((length - widest <= tiny * length) | (length <= 0))
        near = near | (widest - thick > enough)
        found, corners, points, weights, used, inside = _reduced(s, w, p)
        stuck = ~fresh & ~(found @ found < square)
        keep = ~fresh & (near | stuck)
        inside = inside & ~keep
        return _Search(
            _choose(keep, s.v, found), _choose(keep, s.corners, corners), _choose(keep, s.points, points),
            _choose(keep, s.weights, weights), _choose(keep, s.used, used),
            jnp.where(inside, jnp.minimum(widest, 0.0), widest), normal, ~(near | stuck | inside), s.count + 1,
        )  # fmt: skip

    return jax.lax.while_loop(lambda s: s.going & (s.count < ITERATIONS), step, search)


def _reduced(s: _Search, w: Vector3, p: Vector3) -> Any:
    """The closest point to the origin of the simplex with the new corner w (p: the point of the first body), its corners,
    their points and weights, which are used, and whether the origin is inside."""
    corners = [Vector3(*s.corners[3 * k : 3 * k + 3]) for k in range(3)]
    u = [x - w for x in corners]
    G = {(i, j): u[i] @ u[j] for i in range(3) for j in range(i, 3)}
    g = [-(x @ w) for x in u]
    best, mu, chosen = w @ w, [0.0 * best_ for best_ in w], [s.used[0] & ~s.used[0]] * 3
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
    new_corners = [y for k in range(3) for y in _choose(free[k], w, corners[k])]
    new_points = [y for k in range(3) for y in _choose(free[k], p, old[k])]
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


def _three(table: Table, k: Any) -> Vector3:
    return Vector3(*(lookup(table, 3 * k + c) for c in range(3)))


def _unit(x: Vector3) -> Vector3:
    """x divided by its length; the first axis if that is zero."""
    square = x @ x
    some = square > 0
    scale = 1 / jnp.sqrt(jnp.where(some, square, 1.0))
    return Vector3(jnp.where(some, x.x * scale, 1.0), x.y * scale, x.z * scale)


def _choose(which: Any, yes: Any, no: Any) -> tuple[Scalar, ...]:
    return tuple(jnp.where(which, x, y) for x, y in zip(yes, no, strict=True))
