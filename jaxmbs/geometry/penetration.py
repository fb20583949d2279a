"""How deep points and edges of two unions of pieces are in each other.

A search without derivatives finds the deepest place, and the part of the surface from which its depth counts. The depth
below this part is then a formula of the placement, so that its derivatives are exact. Everything is computed in scalars, and
one loop goes through the points and edges of both unions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.lookup import Table, lookup
from jaxmbs.geometry.features import BALL, FIELDS, SHARP, WIDTH, WITHIN, Features
from jaxmbs.geometry.tables import choose
from jaxmbs.spatial import Matrix3, Vector3

Scalar = Any
TURNS = 40  # towards the deepest point of an edge; flat faces take a few
AT = dict(zip(FIELDS, np.cumsum([0, *FIELDS.values()]).tolist(), strict=False))


class Place(NamedTuple):
    """Where a union touches the other one: the depth [m], the direction in which a displacement reduces it (its length is 1,
    or less at an edge that crosses the other union), and the point."""

    depth: Scalar
    outward: Vector3
    point: Vector3


class Touch(NamedTuple):
    """A point in the other union (of_edge is false), or the deepest place of an edge with its deeper end, all in axes of the
    second union. second: whether the feature is one of the second union."""

    place: Place
    end: Place
    of_edge: Any
    second: Any


class Surfaces:
    """The surfaces of two unions, in tables from which machine code reads, and their features.

    A ball or a capsule is looked for in the other union by its middle: a point or a segment. Corners and edges of sharp
    pieces are therefore looked for only in the sharp pieces of the other union, middles of capsules also in its capsules,
    and middles of balls in its capsules and balls as well; of two balls, only the one of the first union is looked for.
    """

    def __init__(self, a: Features, b: Features, dtype: Any):
        self.dtype = dtype
        self.rows = Table(np.concatenate([b.rows, a.rows]).astype(dtype).reshape(-1))
        self.starts = Table(np.concatenate([b.starts, a.starts[1:] + b.starts[-1]]).astype(np.int32))
        self.pieces = (len(b.starts) - 1) // 2, (len(a.starts) - 1) // 2
        self.sharp, self.thin = (b.sharp, a.sharp), (b.thin, a.thin)
        self.bounds = [(*map(float, x.middle), x.reach) for x in (b, a)]
        self.slack = 1e2 * float(np.finfo(dtype).eps) * max(a.reach, b.reach)
        self.features = self._listed(a, (b.sharp, b.thin, self.pieces[0]), 0)
        self.features += self._listed(b, (a.sharp, a.thin, a.thin), 1)
        self.balls = any(x[7] for x in self.features)
        faces = np.concatenate([x.rows[x.of_faces] for x in (a, b)])
        self.flat = not self.balls and not faces[:, AT["side"]].any()  # all that is looked at are planes
        self.hidden = bool(faces[:, WITHIN].any())

    def _listed(self, x: Features, met: tuple[int, int, int], second: int) -> list[tuple[float, ...]]:
        """Rows of a point, the vector to the other end, the radius, the kind, whether it is an edge, and whether it is of
        the second union. met: for each kind of feature, the number of pieces of the other one in which it may be deep."""
        zero = np.zeros((len(x.points), 3))
        points = np.concatenate([x.points[:, :3], zero, x.points[:, 3:], zero[:, :1]], axis=1)
        edges = np.concatenate(
            [x.edges[:, :3], x.edges[:, 3:6] - x.edges[:, :3], x.edges[:, 6:], x.edges[:, :1] * 0 + 1], 1
        )
        found = np.concatenate([points, edges])
        some = np.array(met)[found[:, 7].astype(int)] > 0
        return [(*row, float(second)) for row in found[some].tolist()]

    def range(self, kind: Any, second: Any) -> tuple[Any, Any]:
        """The first of the pieces in which a feature may be deep, and the one after the last."""
        first = np.int32(self.pieces[0])
        sharp, thin = (jnp.where(second, first + np.int32(x[1]), np.int32(x[0])) for x in (self.sharp, self.thin))
        last = jnp.where(kind == SHARP, sharp, jnp.where((kind == BALL) & ~second, first, thin))
        return jnp.where(second, first, np.int32(0)), last

    def beside(self, x: Vector3, reach: Scalar, second: Any) -> Any:
        """Whether everything within `reach` of a point is outside."""
        *middle, radius = choose(second, self.bounds[1], self.bounds[0])
        d, most = x - Vector3(*middle), radius + reach
        return d @ d > most * most

    def within(self, row: Any) -> Any:
        return lookup(self.rows, row, WIDTH, WITHIN) > 0 if self.hidden else np.bool_(False)

    def number(self, row: Any, name: str, k: int = 0) -> Scalar:
        return lookup(self.rows, row, WIDTH, AT[name] + k)

    def vector(self, row: Any, name: str) -> Vector3:
        return Vector3(*(self.number(row, name, k) for k in range(3)))

    def depth(self, row: Any, x: Vector3) -> Scalar:
        """The depth of a point by a row, see `Features`."""
        return self.depth_and_outward(row, x)[0]

    def depth_and_outward(self, row: Any, x: Vector3) -> tuple[Scalar, Vector3]:
        """The depth of a point by a row, and minus its gradient."""
        e, d = self.vector(row, "axis"), x - self.vector(row, "center")
        if self.flat:
            return -(e @ d), e
        radius, half, side, slope, tilt, rim = (
            self.number(row, name) for name in ("radius", "half", "side", "slope", "tilt", "rim")
        )
        z = e @ d
        width, u = _length_and_direction(d - e * jnp.clip(z, -half, half))
        depth = tilt * (radius + slope * z - side * width)
        outward = (u * side - e * slope) * tilt
        if not self.balls:
            return depth, outward
        from_rim, v = _length_and_direction(u * (width - radius) + e * z)
        return jnp.where(rim > 0, -from_rim, depth), Vector3(*choose(rim > 0, v, outward))

    def in_piece(self, j: Any, x: Vector3, least: Scalar, ball: Any) -> tuple[Scalar, Any]:
        """The depth of a point in a piece, and the row that gives it; -infinity if it is less than `least`. ball: whether
        the point is the middle of a ball or of a capsule. The depth outside the piece is then minus the distance from it;
        of any other point, it is the least of the depths below the planes."""
        none = jnp.asarray(-jnp.inf, self.dtype)
        faces, edges, last = (lookup(self.starts, 2 * j + k) for k in range(3))

        def face(s: Any) -> Any:
            k, depth, row = s
            here, hidden = self.depth(k, x), self.within(k)
            depth, row = choose(~hidden & (here < depth), (here, k), (depth, row))
            out = (hidden & (here < -self.slack)) | (depth < least)
            return k + 1, jnp.where(out, none, depth), row

        start = faces, -none, jnp.int32(-1)
        _, depth, row = jax.lax.while_loop(lambda s: (s[0] < edges) & (s[1] > none), face, start)
        depth = jnp.where(row < 0, none, depth)
        if not self.balls:
            return depth, row
        outside = ball & (depth < 0) & (depth > none) & (edges < last)
        foot = x + self.depth_and_outward(jnp.maximum(row, 0), x)[1] * depth

        def other(s: Any) -> Any:
            """Whether the nearest point of the face's plane lies in the face; then, if not, the nearest edge."""
            k, on, nearest, at = s
            is_face = k < edges
            here = self.depth(k, Vector3(*choose(is_face, foot, x)))
            on = on & (~is_face | (here >= -self.slack))
            nearest, at = choose(~is_face & (here > nearest), (here, k), (nearest, at))
            return jnp.where(is_face & ~on, edges, jnp.where((k + 1 == edges) & on, last, k + 1)), on, nearest, at

        begin = jnp.where(outside, faces, last), outside == outside, none, row
        _, on, nearest, at = jax.lax.while_loop(lambda s: s[0] < last, other, begin)
        nearest = jnp.where(nearest < least, none, nearest)
        return choose(outside & ~on, (nearest, at), (depth, row))

    def touching(self, x: Vector3, d: Vector3, least: Scalar, kind: Any, of_edge: Any, second: Any) -> tuple[Any, ...]:
        """Where an edge from x to x + d is deeper in a piece than at its ends: (depth, the rows on both sides of the deepest
        point, its place along the edge, 0 to 1), in the piece in which this is most; then the depth of the deeper end, or of
        the point x, its row, and which end it is. least: what is less deep is left out; kind, of_edge, second: of the
        feature, see `_listed`."""
        zero, none = jnp.asarray(0.0, self.dtype), jnp.int32(-1)
        ball = kind > SHARP
        first, last = self.range(kind, second)
        middle, half = x + d * 0.5, 0.5 * jnp.sqrt(d @ d)
        last = jnp.where(self.beside(middle, half - least, second), first, last)

        def crossed(s: Any) -> Any:
            j, *best = s
            here = self._crossed(j, x, d, jnp.maximum(best[0], least), ball)
            return j + 1, *choose(here[0] > best[0], here, best)

        start = jnp.where(of_edge, first, last), zero - jnp.inf, none, none, zero
        _, depth, i, j, t = jax.lax.while_loop(lambda s: s[0] < last, crossed, start)

        def end(s: Any) -> Any:
            """The depth of the first end in one piece after the other; then, for an edge, that of its second end."""
            k, which, *best = s
            here = self.in_piece(k, x + d * which, jnp.maximum(best[0], least), ball)
            best = choose(here[0] > best[0], (*here, which), best)
            again = (k + 1 == last) & of_edge & (which == 0)
            return jnp.where(again, first, k + 1), jnp.where(again, 1.0, which), *best

        begin = jnp.where(of_edge & (depth == -jnp.inf), last, first), zero, zero - jnp.inf, none, zero
        _, _, *deeper = jax.lax.while_loop(lambda s: s[0] < last, end, begin)
        return depth, i, j, t, *deeper

    def _crossed(self, j: Any, x: Vector3, d: Vector3, least: Scalar, ball: Any) -> tuple[Any, ...]:
        """The first four results of `touching`, for one piece. The depth along an edge is a concave function: tangents on
        both sides bound it, and the next place is where they meet."""
        zero = jnp.asarray(0.0, self.dtype)
        faces, edges = (lookup(self.starts, 2 * j + k) for k in range(2))
        far = x + d

        def face(s: Any) -> Any:
            """Cut off what is beyond a face that lies in another piece. The whole edge is out if both its ends are beyond
            any flat face."""
            k, low, high = s
            a, b = self.depth(k, x), self.depth(k, far)
            flat = np.bool_(True) if self.flat else self.number(k, "side") == 0
            if self.hidden:
                hidden, cut = self.within(k), a / jnp.where(a == b, 1.0, a - b)
                low = jnp.where(hidden & (a < 0), jnp.where(b > 0, jnp.maximum(low, cut), jnp.inf), low)
                high = jnp.where(hidden & (b < 0), jnp.where(a > 0, jnp.minimum(high, cut), -jnp.inf), high)
            return k + 1, jnp.where(flat & (jnp.maximum(a, b) < least), jnp.inf, low), high

        _, low, high = jax.lax.while_loop(
            lambda s: (s[0] < edges) & (s[1] < s[2]), face, (faces, zero, zero + 1)
        )  # fmt: skip

        def turn(s: Any) -> Any:
            """Both ends first, then where the tangents meet. a, b: (place, depth, slope, row) on both sides."""
            count, on, _, _, *ends = s
            a, b = ends[:4], ends[4:]
            steep = a[2] - b[2]
            t = (b[1] - a[1] + a[2] * a[0] - b[2] * b[0]) / jnp.where(steep > 0, steep, 1.0)
            t = jnp.clip(t, a[0], b[0])
            most = a[1] + a[2] * (t - a[0])
            t = jnp.where(count == 0, low, jnp.where(count == 1, high, t))
            here = x + d * t
            depth, row = self.in_piece(j, here, zero - jnp.inf, ball)
            row = jnp.maximum(row, 0)
            slope = -(self.depth_and_outward(row, here)[1] @ d)
            found = (count > 1) & ((most - depth <= self.slack) | (most < least))
            rises = (count == 0) | ((count > 1) & (slope > 0))
            right = jnp.where(rises, slope > 0, (slope < 0) | (count > 1)) & (depth > -jnp.inf)
            new = t, depth, slope, row
            a, b = choose(rises & ~found, new, a), choose(rises | found, b, new)
            return count + 1, on & right & ~found, t, depth, *a, *b

        nothing = zero, zero, zero, jnp.int32(0)
        begin = jnp.int32(0), low < high, zero, zero, *nothing, *nothing
        count, _, t, depth, *ends = jax.lax.while_loop(lambda s: s[1] & (s[0] < TURNS), turn, begin)
        good = (count > 2) & (depth >= least)
        return jnp.where(good, depth, zero - jnp.inf), ends[3], ends[7], t


def _length_and_direction(x: Vector3) -> tuple[Scalar, Vector3]:
    """Length and direction of a vector; both are zero, with zero derivatives, for the zero vector."""
    square = x @ x
    some = square > 0
    scale = 1 / jnp.sqrt(jnp.where(some, square, 1.0))
    return jnp.where(some, square * scale, 0.0), x * jnp.where(some, scale, 0.0)


def summed(
    surfaces: Surfaces,
    rotation: Matrix3,
    position: Vector3,
    band: Scalar,
    each: Callable[[Touch], Sequence[Scalar]],
    size: int,
) -> tuple[Scalar, ...]:
    """The sums, over all points and edges, of the `size` numbers that each(touch) returns. rotation, position: of the first
    union in axes of the second. For what is less deep than -band [m], these numbers must be zero."""
    dtype = surfaces.dtype
    back = rotation.T
    placements = (*rotation, *position), (*back, *-(back @ position))

    def one(total: Any, x: Any) -> Any:
        radius, kind, of_edge, second = x[6], x[7], x[8] > 0, x[9] > 0
        turned = choose(second, placements[1], placements[0])
        R = Matrix3(*turned[:9])
        here, d = R @ Vector3(*x[:3]) + Vector3(*turned[9:]), R @ Vector3(*x[3:6])
        least = jax.lax.stop_gradient(-(radius + band))
        found = surfaces.touching(_still(here), _still(d), least, kind, of_edge, second)
        depth, i, j, t, _, row, which = found
        crossed = of_edge & (depth > -jnp.inf)
        out, normal = surfaces.depth_and_outward(jnp.maximum(row, 0), here + d * which)
        nowhere = -1.0 - band
        # two balls touch in the middle of their overlap, whichever is the first
        inwards = radius - jnp.where(kind == BALL, 0.5 * (out + radius), 0.0)
        end = Place(jnp.where(row < 0, nowhere, out + radius), normal, here + d * which - normal * inwards)
        middle = _deepest_along(surfaces, here, d, jnp.maximum(i, 0), jnp.maximum(j, 0), t, radius)
        depth = jnp.where(crossed, middle.depth, jnp.where(of_edge, nowhere, end.depth))
        outward, point = (
            Vector3(*choose(of_edge, x, y)) for x, y in ((middle.outward, end.outward), (middle.point, end.point))
        )
        place = Place(depth, outward, point)
        place, end = (_in_second(x, second, rotation, position) for x in (place, end))
        more = each(Touch(place, end, of_edge, second))
        return tuple(x + y for x, y in zip(total, more, strict=True)), None

    start = tuple(jnp.zeros((), dtype) for _ in range(size))
    if not surfaces.features:
        return start
    columns = tuple(jnp.asarray(c) for c in np.array(surfaces.features, dtype).T)
    return jax.lax.scan(one, start, columns)[0]


def _in_second(x: Place, second: Any, rotation: Matrix3, position: Vector3) -> Place:
    """A place in axes of the second union; it is given in those of the first if the feature is one of the second."""
    outward, point = rotation @ x.outward, rotation @ x.point + position
    return Place(x.depth, Vector3(*choose(second, outward, x.outward)), Vector3(*choose(second, point, x.point)))


def _still(x: Vector3) -> Vector3:
    return Vector3(*map(jax.lax.stop_gradient, x))


def _deepest_along(surfaces: Surfaces, x: Vector3, d: Vector3, i: Any, j: Any, t: Scalar, radius: Scalar) -> Place:
    """The deepest point of an edge near the place t, between the rows i and j: where their depths are equal, or, if they are
    the same, where the depth does not change along the edge. A step of Newton's method makes it exact, and gives it the
    derivatives of the implicit function."""

    def row(k: Any, t: Scalar) -> tuple[Scalar, Vector3]:
        return surfaces.depth_and_outward(k, x + d * t)

    t, zero = jax.lax.stop_gradient(t), jnp.zeros_like(t)
    (a, out_a), (b, out_b) = row(i, t), row(j, t)
    rise, fall = -(out_a @ d), -(out_b @ d)
    if surfaces.flat:  # the rows differ
        same, residual, slope = zero > 0, a - b, rise - fall
    else:
        bend = jax.jvp(lambda t: -(row(i, t)[1] @ d), (t,), (zero + 1,))[1]
        same = i == j
        residual, slope = jnp.where(same, rise, a - b), jnp.where(same, bend, rise - fall)
    t = t - residual / jnp.where(slope == 0, 1.0, slope)
    (depth, out_a), (_, out_b) = row(i, t), row(j, t)
    rise, fall = -(out_a @ d), -(out_b @ d)
    steep = rise - fall
    share = jnp.where(same, 1.0, -fall / jnp.where(same | (steep == 0), 1.0, steep))
    out = out_a * share + out_b * (1 - share)
    return Place(depth + radius, out, x + d * t - _length_and_direction(out)[1] * radius)
