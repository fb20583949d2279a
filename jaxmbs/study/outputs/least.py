"""The least distance of two shapes during a motion, also between its steps."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.geometry import Before, Separation
from jaxmbs.geometry.tables import choose
from jaxmbs.simulate.locating import chosen
from jaxmbs.spatial import Vector3
from jaxmbs.study.outputs.gap import Pair, Separated, each, of_bodies, on_second, over_pairs
from jaxmbs.study.outputs.path import ZERO, Numbers, Path, between, placement, point, rates
from jaxmbs.study.outputs.shapes import Shape

Scalar = Any
Point = tuple[Scalar, ...]  # of a path: its s, the distance [m], and its derivative with respect to s [m]
GROWTH = 1.5  # rows of a batch search together: if at step n, then again at about step GROWTH n
AHEAD = 1.5  # a search looks this many times as far ahead as the motion would go at its present speed
LONGER = 3.0  # one that was needed earlier looks ahead this many times as far as the last one reached, at most
MARGIN = 0.1  # share of the expected motion by which the gaps should exceed the least distance
INSTANTS = 8  # of a step that are looked at if the distance may have been much less than the least so far
WIDE = 0.05  # much less: by more than this share of the motion in the step
SEARCHES = 12 + INSTANTS  # of one step at most
SMALL = 0.6  # the least distance is found to within this power of the rounding error times the motion in a step
UNKNOWN = -1e30  # [m]
MEMORY = 48  # numbers of a memory
PLACED = 25  # the first of these numbers: the time, the placement and its rates
VALUE = 11  # numbers that `_value` needs


class Memory(NamedTuple):
    """What a run remembers of a pair of shapes.

    Of the last time: its `time` [s], NaN before the first one; the placement of the second body in axes of the first, and
    its rates; the distance [m] and its rate [m/s], NaN if they were not computed.

    Of the last search: the placement `searched`; how many steps were made since. The planes between pairs of pieces were at
    least `gap` [m] apart, and at least `ahead` [m] after a displacement [m] of the second body. piece_b: which piece of the
    second body was the nearest.

    times: how many times there were so far; due: after how many of them the next search is made, whether it is needed or
    not.
    """

    time: Scalar
    placed: Numbers
    rates: Numbers
    distance: Scalar
    rate: Scalar
    searched: Numbers
    steps: Scalar
    displacement: tuple[Scalar, ...]
    gap: Scalar
    ahead: Scalar
    piece_b: Scalar
    times: Scalar
    due: Scalar

    @classmethod
    def of(cls, x: Sequence[Scalar]) -> Memory:
        """From its numbers in order."""
        return cls(
            x[0], tuple(x[1:13]), tuple(x[13:25]), x[25], x[26], tuple(x[27:39]), x[39], tuple(x[40:43]), *x[43:]
        )

    def numbers(self) -> list[Scalar]:
        return jax.tree.leaves(tuple(self))

    @classmethod
    def none(cls) -> Memory:
        return cls(np.nan, ZERO, ZERO, np.nan, np.nan, ZERO, 0.0, (0.0,) * 3, UNKNOWN, UNKNOWN, 0.0, 0.0, 0.0)


def least_distances(
    pairs: Sequence[Pair], memory: jax.Array, least: Sequence[Scalar]
) -> tuple[list[tuple[Scalar, Scalar]], jax.Array]:
    """(for each pair its least distance since the last time, with the instant [s]; the new memory). memory: the numbers of
    the memories, (pairs, numbers). A distance that cannot be less than `least`, that of all times before, may be replaced by
    a lower bound, which is not less than `least` either. All pairs are of one time.

    The planes between two pieces, fixed to the first body, still separate them when the second body has moved, with a gap
    that has changed by no more than the motion across the planes. As long as no gap can thus have become less than the least
    distance, there is nothing to compute. In a batch, this would hold for a different number of steps in each row, and rows
    would wait for one another's searches. Some searches are therefore made before they are needed, at the same steps in all
    rows.

    Between two times, the second body moves on cubics with the placements and velocities of both times, and the corners of
    these cubics (`Path.corners`) bound the gaps. Where neither this bound nor the length of the motion proves that the
    distance in between was no less than the least one at the times so far, some instants in between are looked at, and the
    least distance is then found next to the best of them.
    """
    t = jnp.asarray(pairs[0][2].t)
    here, rate = (of_bodies(pairs, fn) for fn in (placement, rates))
    now = jnp.broadcast_to(t.astype(memory.dtype), (len(pairs), 1))
    motion = jnp.concatenate([memory[:, :PLACED], now, here, rate], axis=1)
    forms = jnp.asarray(np.array([[*_middle(b), _reach(b)] for _, b, _ in pairs]), memory.dtype)
    rows = jnp.concatenate([motion, memory[:, PLACED:], jnp.stack(least)[:, None], forms], axis=1)
    found = over_pairs(pairs, rows, _searched)
    values = each(_value, motion, found[:, :VALUE])
    new = jnp.concatenate([now, here, rate, found[:, VALUE:]], axis=1)
    return [(values[k, 0], values[k, 1]) for k in range(len(pairs))], new


def _motion(x: Sequence[Scalar]) -> tuple[Path, Scalar]:
    """The path from the last time to the present one, and how long it took [s], from the numbers of both."""
    time, t = x[0], x[PLACED]
    placed, before, here, rate = (tuple(x[k : k + 12]) for k in (1, 13, PLACED + 1, PLACED + 13))
    return between(time, placed, before, t, here, rate)


def _value(motion: jax.Array, found: jax.Array) -> jax.Array:
    """(least distance, its instant), as functions of the motion. found: the first numbers of `_searched`."""
    path, h = _motion(list(motion))
    idle, bound, s, gap, enough, *x = list(found)
    moved = Vector3(*x[:3]) @ point(path.at(s), Vector3(*x[3:]))
    value = jnp.where(gap > enough, enough, gap + (moved - jax.lax.stop_gradient(moved)))
    t = motion[PLACED]
    return jnp.stack([jnp.where(idle > 0, bound, value), jnp.where(idle > 0, t, t - (1 - s) * h)])


def _searched(x: Sequence[Scalar], separated: Separated) -> list[Scalar]:
    """For one pair, the numbers that `_value` needs, and those of the new memory other than its time, placement and rates.
    x: the numbers of the motion, the others of the memory, the least distance, and the form of the second shape."""
    path, h = _motion(x)
    m = Memory.of([*x[:PLACED], *x[2 * PLACED : PLACED + MEMORY]])
    least, form = x[PLACED + MEMORY], _Form(Vector3(*x[-4:-1]), x[-1])
    of_corners = [_bound(form, m, corner) for corner in path.corners()[1:]]
    bound, last = functools.reduce(jnp.minimum, [y.least for y in of_corners]), of_corners[-1]
    needed, due = ~(bound >= least), m.times >= m.due
    following = jnp.where(due, jnp.floor(GROWTH * m.times) + 1, m.due)
    more = AHEAD * (following - m.times) / (m.steps + 1)
    more = jnp.where(needed, jnp.minimum(more, LONGER), more) * ~jnp.isnan(m.time)
    exact = jnp.where(needed, jnp.inf, least)
    enough = jnp.where(needed | due, least + MARGIN * more * last.moved, -jnp.inf)
    start = Before(exact, enough, tuple(last.displacement * more), m.piece_b)
    before = jnp.where(needed, m.distance, jnp.inf)  # infinity: the distance between the times does not matter
    row = _Row(start, least, bound, path, before, m.rate * h, _length(form, path))
    end, best, s = _least(row, separated)
    idle = enough == -jnp.inf
    new = _remembered(
        m._replace(times=m.times + 1, due=following, rates=tuple(x[PLACED + 13 : 2 * PLACED])), row, idle, end
    )
    nearest = on_second(best, path.at(s))
    return [idle, bound, s, best.gap, enough, *best.normal, *nearest, *new.numbers()[PLACED:]]


def _remembered(m: Memory, row: _Row, idle: Scalar, end: Separation) -> Memory:
    """A memory with the last search, and with what was computed now. idle: nothing was; end: the separation now."""
    start, placed = row.start, row.path.end
    unknown = idle | (end.gap > jnp.minimum(start.exact, end.passed))
    growing = end.normal @ point(m.rates, on_second(end, placed))
    distance, rate = (jnp.where(unknown, jnp.nan, x) for x in (end.gap, growing))
    now = m._replace(distance=distance, rate=rate)
    gap, ahead = (jnp.minimum(x, end.passed) for x in (end.gap, end.ahead))
    fresh = now._replace(
        searched=placed, steps=0.0, displacement=start.displacement, gap=gap, ahead=ahead, piece_b=end.piece_b
    )
    return chosen(idle, now._replace(steps=m.steps + 1), fresh)


class _Row(NamedTuple):
    """What a search of one pair begins with. least: that of all times before [m]; bound: of those on the path [m]; distance,
    rate: at the first time [m, m], NaN if unknown; length [m]: of the longest path of a point of the second body."""

    start: Before
    least: Scalar
    bound: Scalar
    path: Path
    distance: Scalar
    rate: Scalar
    length: Scalar


class _Form(NamedTuple):
    """Of a shape: its middle, and an upper bound on how far its farthest point is from there [m]."""

    middle: Vector3
    reach: Scalar


class _Bound(NamedTuple):
    """least: a lower bound on the distance of the shapes [m]; moved: the most that a point of the second has moved since the
    last search [m]; displacement: that of its middle, in axes of the first body."""

    least: Scalar
    moved: Scalar
    displacement: Vector3


class _Line(NamedTuple):
    """The search for the instant s of the least distance. number: of distances computed; points are (s, distance, rate).

    First some instants are looked at from the beginning to the end, at multiples of `apart`: last: the last one; lowest: the
    one with the least distance; low, high: those before and after it, which is not known yet if `open`. Then the least
    distance is between the points before and after. end: the separation at s = 1; best: the least one, at `where`.
    """

    going: Scalar
    number: Scalar
    s: Scalar
    looking: Scalar
    apart: Scalar
    last: Point
    low: Point
    lowest: Point
    high: Point
    open: Scalar
    before: Point
    after: Point
    end: Separation
    best: Separation
    where: Scalar


def _least(row: _Row, separated: Separated) -> tuple[Separation, Separation, Scalar]:
    """The separation at the end of the path, the least one on it, and its s."""
    start, path = row.start, row.path
    zero = jnp.zeros_like(row.length)
    small = float(jnp.finfo(zero.dtype).eps) ** SMALL * row.length
    begin: Point = (zero, row.distance, row.rate)
    known = ~jnp.isnan(row.distance)

    def not_less(a: Point, b: Point) -> Scalar:
        """A lower bound on the distances between two points of the path: the distance changes by no more than the motion."""
        return (a[1] + b[1] - row.length * (b[0] - a[0])) / 2

    def turn(z: _Line) -> _Line:
        first, looked = z.number == 0, (z.number == 0) | z.looking
        exact, enough = (jnp.where(first, x, jnp.inf) for x in (start.exact, start.enough))
        placed = path.at(z.s)
        piece_b = jnp.where(first, start.piece_b, z.best.piece_b)
        ahead = tuple(jnp.where(first, c, 0.0) for c in start.displacement)
        x = separated(placed, Before(exact, enough, ahead, piece_b))
        rate = x.normal @ point(path.rate(z.s), on_second(x, placed))
        rate = jnp.where(x.gap > x.passed, row.length, rate)  # of pieces that were passed over, at most
        here: Point = (z.s, jnp.minimum(x.gap, x.passed), rate)
        better = first | (x.gap < z.best.gap)
        best, where = chosen(better, x, z.best), jnp.where(better, z.s, z.where)
        least = jnp.minimum(row.least, best.gap)

        # the points that were looked at: of the first two, the beginning may be unknown
        end = choose(first, here, z.after)
        last = choose(first, begin, here)
        lower = first | (here[1] < z.lowest[1])
        at_end = z.lowest[0] == 1
        low = choose(first, begin, choose(lower | at_end, choose(lower, z.last, here), z.low))
        high = choose(lower, end, choose(z.open, here, z.high))
        lowest = choose(first & (begin[1] <= here[1]), begin, choose(lower, here, z.lowest))
        least_known = jnp.where(known, begin[1], row.least)
        bound = jnp.maximum(row.bound, not_less((zero, least_known, zero), end))
        apart = jnp.where(first, jnp.where(bound < least - WIDE * row.length, 1 / INSTANTS, 1.0), z.apart)
        # there is nothing to see until the motion can have brought the bodies as near as they have been
        length = jnp.where(row.length > 0, row.length, 1.0)
        clear = jnp.maximum((last[1] - least) / length, 0.0)
        following = apart * (jnp.floor((last[0] + clear) / apart) + 1)
        following = jnp.where(first & ~known, 0.0, following)
        more = following < 1 - jnp.maximum((end[1] - least) / length, 0.0)
        looking = looked & more & (bound < least)

        falling = lowest[2] < 0
        ends = here[2] >= 0
        before = choose(looked, choose(falling, lowest, low), choose(ends, z.before, here))
        after = choose(looked, choose(falling, high, lowest), choose(ends, here, z.after))
        after = choose(looking, end, after)
        falls = (before[2] < 0) & (after[2] > 0) & (_fall(before, after) > small)
        going = (looking | (falls & (not_less(before, after) < least))) & (bound < least)
        # where another piece becomes the nearest, the distance has a kink, which the tangents find
        kink = z.number % 3 == 2
        crossing = jnp.where(_convex(before, after), _crossing(before, after)[0], (before[0] + after[0]) / 2)
        between = jnp.where(kink, crossing, _of_cubic(before, after))
        s = jnp.where(looking, following, jnp.clip(between, *_inner(before[0], after[0])))
        return _Line(
            going & (z.number + 1 < SEARCHES), z.number + 1, s, looking, apart, last, low, lowest, high,
            lowest[0] == last[0], before, after, chosen(first, x, z.end), best, where,
        )  # fmt: skip

    nowhere, piece = Vector3(zero, zero, zero), jnp.int32(0)
    none = Separation(zero, nowhere, nowhere, nowhere, piece, piece, zero, zero)
    no, one, at_end = zero > 1, zero + 1, (zero + 1,) * 3
    line = _Line(~no, jnp.int32(0), one, no, one, begin, begin, at_end, at_end, no, begin, at_end, none, none, one)
    found = jax.lax.while_loop(lambda z: z.going, turn, line)
    return found.end, found.best, found.where


def _inner(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    return a + 0.01 * (b - a), b - 0.01 * (b - a)


def _of_cubic(before: Point, after: Point) -> Scalar:
    """The s at which the cubic through two distances with these rates is least; the first rate must be negative."""
    (a, x, falling), (b, y, rising) = before, after
    mean = 3 * (x - y) / jnp.where(b > a, b - a, 1.0) + falling + rising
    root = jnp.sqrt(jnp.maximum(mean * mean - falling * rising, 0.0))
    below = rising - falling + 2 * root
    return b - (b - a) * (rising + root - mean) / jnp.where(below > 0, below, 1.0)


def _convex(before: Point, after: Point) -> Scalar:
    """Whether a convex function can have these values: each is over the tangent of the other."""
    (a, x, falling), (b, y, rising) = before, after
    return (x + falling * (b - a) <= y) & (y - rising * (b - a) <= x)


def _fall(before: Point, after: Point) -> Scalar:
    """By how much a distance between two points may be less than both; from each, the distance falls towards the other."""
    of_convex = jnp.minimum(before[1], after[1]) - _crossing(before, after)[1]
    return jnp.where(_convex(before, after), of_convex, after[2] * (after[0] - before[0]))


def _crossing(before: Point, after: Point) -> tuple[Scalar, Scalar]:
    """(s, distance) where the tangents cross: a convex function between is nowhere less."""
    (a, x, falling), (b, y, rising) = before, after
    slope = jnp.where(rising > falling, rising - falling, 1.0)
    s = (x - y - falling * a + rising * b) / slope
    return s, x + falling * (s - a)


def _bound(form: _Form, m: Memory, now: Numbers) -> _Bound:
    """What the last search tells of a placement near its own."""
    displacement, turning = _change(form, m.searched, now)
    moved, planned = displacement.norm(), Vector3(*m.displacement)
    square = planned @ planned
    share = jnp.clip(planned @ displacement / jnp.where(square > 0, square, 1.0), 0.0, 1.0)
    beside = (displacement - planned * share).norm()
    # the least of gaps that change linearly with the displacement is concave
    along = (1 - share) * m.gap + share * m.ahead - beside
    size = form.reach + form.middle.norm() + Vector3(*now[9:]).norm()
    least = jnp.maximum(along, m.gap - moved)
    return _Bound(least - turning - 32 * jnp.finfo(size.dtype).eps * size, moved + turning, displacement)


def _length(form: _Form, path: Path) -> Scalar:
    """An upper bound on the length of the longest path of a point of a shape [m]."""
    changes = [_change(form, *ends) for ends in itertools.pairwise(path.corners())]
    return 3 * functools.reduce(jnp.maximum, [x.norm() + turning for x, turning in changes])


def _change(form: _Form, before: Numbers, now: Numbers) -> tuple[Vector3, Scalar]:
    """The displacement [m] of a shape's middle between two placements, and an upper bound on how far other points move
    relative to it [m], which is a convex function of the difference of the matrices; these need not be rotations."""
    turned = sum((x - y) ** 2 for x, y in zip(now[:9], before[:9], strict=True))
    return point(now, form.middle) - point(before, form.middle), form.reach * jnp.sqrt(turned / 2)


def _middle(shape: Shape) -> Vector3:
    return Vector3.of(shape.union.tree.boxes.middles[0].tolist())


def _reach(shape: Shape) -> float:
    """An upper bound on the distance from the middle of a shape to its farthest point [m]."""
    return float(np.linalg.norm(shape.union.tree.boxes.halves[0]))
