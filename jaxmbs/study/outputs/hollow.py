"""The least gap of a body in a hollow one during a motion, also between its steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.geometry.tables import choose
from jaxmbs.model.forces.base import Scene
from jaxmbs.study.outputs.path import ZERO, Numbers, Path, since

Scalar = Any


class Gap(NamedTuple):
    """Of a body in a hollow one: value: the gap [m]; counts: whether any of the body is inside; depth: how far it is from
    being wholly outside [m]."""

    value: Scalar
    counts: Scalar
    depth: Scalar


GapAt = Callable[[Numbers], Gap]  # from the placement of the body in axes of the hollow one


class Memory(NamedTuple):
    """What a run remembers of the last time: its `time` [s], NaN before the first one; the placement of the body in axes of
    the hollow one, and its rates; whether the gap was falling, and whether it counted (0 or 1)."""

    time: Scalar
    placed: Numbers
    rates: Numbers
    falling: Scalar
    counted: Scalar

    @classmethod
    def none(cls) -> Memory:
        return cls(np.nan, ZERO, ZERO, 0.0, 0.0)


class _Found(NamedTuple):
    """Two instants s with the least gap between them; at the earlier one the gap falls, at the later one it grows or does
    not count. value: the least of both; counts: whether any does; at: its s."""

    before: Scalar
    after: Scalar
    value: Scalar
    counts: Scalar
    at: Scalar


def since_last(
    gap_at: GapAt, bodies: tuple[str, str, Scene], m: Memory
) -> tuple[tuple[Scalar, Scalar, Scalar], Memory]:
    """(the least gap since the last time, whether any of the body counts, the instant [s]), and the new memory. bodies: the
    hollow one, the other, and the present scene."""
    path, rate, h = since(bodies, m.time, m.placed, m.rates)
    gap, s, falling, counted = least_gap(gap_at, path, rate, h, m)
    t = jnp.asarray(bodies[2].t)
    return (gap.value, gap.counts, t - (1 - s) * h), Memory(t, path.end, rate, falling, counted)


def least_gap(gap_at: GapAt, path: Path, rates: Numbers, h: Scalar, m: Memory) -> tuple[Gap, Scalar, Scalar, Scalar]:
    """The least gap on the path of one step of h [s], its s, and for the memory of the next step: whether the gap falls at
    the end, and whether it counts there. rates: of the placement at the end.

    If the gap falls at the beginning and not at the end, bisection finds the instant at which it is least. If the gap is
    least where the body comes in or goes out, bisection finds that instant. If the gap turns more than once in one step, one
    of its minima may be missed.
    """
    fixed, rates, m = jax.lax.stop_gradient((path, rates, m))
    now, rate = _with_rate(gap_at, fixed.end, rates)
    falls = rate < 0
    counted, fell = m.counted > 0, m.falling > 0
    enters, leaves = ~counted & now.counts, counted & ~now.counts
    on = (h > 0) & (enters | leaves | (counted & fell & ~falls))
    found = _bisected(gap_at, fixed, on, enters, enters & falls, leaves & ~fell, now)
    value = _differentiable(gap_at, path, found)
    kept = jnp.asarray(now.counts & falls).astype(value.dtype), jnp.asarray(now.counts).astype(value.dtype)
    return Gap(value, found.counts, now.depth), found.at, *kept


def _bisected(
    gap_at: GapAt, path: Path, on: Scalar, enters: Scalar, at_entry: Scalar, at_exit: Scalar, now: Gap
) -> _Found:
    """The two instants with the least gap between them, by bisection. on: whether to search, else both are the end; enters:
    the body comes in during the step; at_entry, at_exit: the instant sought is that at which it comes in, or goes out."""
    one = jnp.ones_like(now.value)
    turns = jnp.finfo(one.dtype).nmant - 4

    def turn(state: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        number, a, b, *rest = state
        s = (a + b) / 2
        here, rate = _with_rate(gap_at, path.at(s), path.rate(s))
        first = jnp.where(here.counts, ((rate < 0) & ~at_entry) | at_exit, enters)
        x = jnp.where(here.counts, here.value, jnp.inf)
        (low, at) = choose(x <= rest[0], (x, s), tuple(rest))
        return number + 1, jnp.where(first, s, a), jnp.where(first, b, s), low, at

    # where nothing is searched, the end is both instants
    least = jnp.where(now.counts, now.value, jnp.inf)
    start = (jnp.int32(0), jnp.where(on, 0 * one, one), one, least, one)
    _, before, after, low, at = jax.lax.while_loop(lambda x: on & (x[0] < turns), turn, start)
    counts = now.counts | (low < jnp.inf)
    at_end = at >= 1
    before, after = choose(at_end, (one, one), (before, after))
    return _Found(before, after, jnp.where(low < jnp.inf, low, now.value), counts, at)


def _with_rate(gap_at: GapAt, placed: Numbers, rates: Numbers) -> tuple[Gap, Scalar]:
    """The gap and its rate."""

    def value(placed: Numbers) -> tuple[Scalar, Gap]:
        found = gap_at(placed)
        return found.value, found

    _, rate, found = jax.jvp(value, (placed,), (rates,), has_aux=True)
    return found, rate


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _differentiable(gap_at: GapAt, path: Path, found: _Found) -> Scalar:
    """The value that was found, as a function of the path."""
    return found.value


@_differentiable.defjvp
def _changes(gap_at: GapAt, given: tuple[Path, _Found], tangents: tuple[Path, _Found]) -> tuple[Scalar, Scalar]:
    """At a smooth minimum, the change of the gap at its instant. At a kink, as where the nearest point of a rim goes out,
    the change of the gap at which both slopes meet. At the last gap before the whole body is outside, the change of that
    instant counts too."""
    path, found = given
    a, b = found.before, found.after

    def gaps(path: Path) -> tuple[Any, ...]:
        return tuple((x.value, x.depth) for x in (gap_at(path.at(a)), gap_at(path.at(b))))

    def along(s: Scalar) -> tuple[Gap, Gap]:
        return jax.jvp(gap_at, (path.at(s),), (path.rate(s),))

    ends, (at_a, at_b) = zip(along(a), along(b), strict=True)
    (falling, _, deeper), (growing, _, less) = at_a, at_b
    counts = [x.counts for x in ends]
    (of_a, depth_a), (of_b, depth_b) = jax.jvp(gaps, (path,), (tangents[0],))[1]
    slopes = growing - falling
    share = jnp.where(slopes > 0, growing / jnp.where(slopes > 0, slopes, 1.0), 1.0)
    # the steep slope where a rim goes out is that of a square root, whose change is as large as its slope
    share = jnp.where(jnp.isfinite(share), jnp.clip(share, 0.0, 1.0), 1.0)
    kink = share * of_a + (1 - share) * of_b
    alone = [
        x - jnp.where(slope != 0, rate / jnp.where(slope != 0, slope, 1.0), 0.0) * depth
        for x, rate, slope, depth in ((of_a, falling, deeper, depth_a), (of_b, growing, less, depth_b))
    ]
    inside = jnp.where(counts[0], alone[0], alone[1])
    return found.value, jnp.where((a < b) & ~(counts[0] & counts[1]), inside, kink)
