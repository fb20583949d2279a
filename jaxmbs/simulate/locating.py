"""What becomes of a trial step, by the guards at its end: an event or a corner is located, happens, or the step is taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.spatial import kernel

LATE = 6  # trials after which an event counts as located where its guard is zero to rounding: its instant may not be


class Search(NamedTuple):
    """Where an event is being located: its guard (-1: none), lengths tried before and after it, the next one, and whether
    that one is to be accepted; tries: how many there were, the last of length `tried` and with the rate `rate`."""

    guard: Any
    low: Any
    high: Any
    length: Any
    settled: Any
    tries: Any
    tried: Any
    rate: Any

    @staticmethod
    def none(length: Any) -> Search:
        """No search, and a trial step of that length."""
        zero, none = jnp.zeros_like(length), jnp.zeros((), jnp.int32)
        return Search(none - 1, zero, zero, length, jnp.asarray(False), none, zero, zero)

    def enough(self) -> Any:
        """How small a guard is zero by now; negative: only the instant tells."""
        eps = float(jnp.finfo(self.length.dtype).eps)
        return jnp.where(self.tries >= LATE + 1, eps**0.6, jnp.where(self.tries >= LATE, eps**0.75, -1.0))

    def after(
        self, h: Any, near: Any, value: Any, rate: Any, finest: Any, rest: Any, was_on: Any, out: Outcome
    ) -> Search:
        """Where it stands next, between the lengths tried before and after the event, after a step of length h with this
        guard, and its rate, at the end; near: the length that Newton's method proposes, rest: the longest, was_on: whether
        anything was sought in it."""
        tried, value, step = jax.lax.stop_gradient((h, value, near - h))
        # carried by every length that is tried: it converges with the lengths, though slower, for the rate is that of the
        # motion, and not of the numbers that a step makes of it
        derivative = near - jax.lax.stop_gradient(near)
        # where the instant itself is lost in rounding, this length stays; its derivative is Newton's
        last = near - jnp.where(jnp.abs(step) <= finest, 0.0, step)
        low = jnp.where(was_on & ~out.risen, tried, jnp.where(was_on, self.low, 0.0))
        high = jnp.where(out.risen, tried, self.high)
        near = tried + self._root(tried, value, rate, was_on & (self.guard == out.found)) + derivative
        inside = (near > low) & (near < high)
        bound = jnp.where(near <= 0, jnp.where(low == 0, 0.0, (low + high) / 2), (low + high) / 2)
        # no longer than the rest, but as fast as the event moves: one at the end of a cell is often a rounding beyond it
        last = last + jax.lax.stop_gradient(jnp.minimum(last, rest) - last)
        following = jnp.where(out.close, last, jnp.where(inside, near, bound))
        tries = jnp.where(was_on, self.tries + 1, 0)
        return Search(out.found, low, high, following, out.close & out.ahead, tries, tried, rate)

    def _root(self, h: Any, value: Any, rate: Any, again: Any) -> Any:
        """From h to where the parabola of this value and rate, and of the rate before (again: there is one), rises through
        zero: in a few trials where the guard just touches it, too, where Newton's method halves its error in each."""
        apart = h - self.tried
        bend = jnp.where(again & (apart != 0), (rate - self.rate) / jnp.where(apart == 0, 1.0, apart), 0.0)
        slope = rate + jnp.sqrt(jnp.maximum(rate * rate - 2 * bend * value, 0.0))
        return jnp.where(slope > 0, -2 * value / jnp.where(slope > 0, slope, 1.0), jnp.inf)


class Seen(NamedTuple):
    """A trial step of length h and what is known of it, of which a decision is made.

    done, jumped, fails: the instance has ended, velocities jumped in place of a step, the step is refused; hides: a guard
    may have risen and fallen again within it; on: something is
    being located; short, cut: it ends at an instant, or by its tolerance, before the cell does; room: one more event has
    a place; finest: how near is near enough, enough: how small a guard (`Search.enough`); of the guards, those of corners
    from number `corners` on: values, rates, the lengths at which they vanish, whether they count.
    """

    done: Any
    jumped: Any
    fails: Any
    hides: Any
    on: Any
    short: Any
    cut: Any
    room: Any
    guard: Any
    settled: Any
    h: Any
    finest: Any
    enough: Any
    values: tuple[Any, ...]
    rates: tuple[Any, ...]
    at: tuple[Any, ...]
    armed: tuple[Any, ...]
    corners: int


class Outcome(NamedTuple):
    """found: the guard that is located from here on, -1: none; risen: one rose through zero in the step; close: its instant
    is as good as found; happens: what was located does, at the end of the step; arrives: the step is taken and nothing
    was met; ticks, lands: it does so at an instant, at the end of its cell; ahead: the next trial is to locate `found`;
    looks: the step is refused, to be tried up to where a guard may have risen first."""

    found: Any
    risen: Any
    close: Any
    happens: Any
    arrives: Any
    ticks: Any
    lands: Any
    ahead: Any
    looks: Any


def outcome(seen: Seen) -> Outcome:
    """The decision, taken once: as one number out of a kernel, or every number of a turn would repeat all of it."""
    found, bits = _decided(jax.lax.stop_gradient(seen._replace(corners=0)), seen.corners)
    return Outcome(found, *((bits & (1 << k)) != 0 for k in range(len(Outcome._fields) - 1)))


@kernel
def _decided(x: Seen, corners: int) -> tuple[Any, Any]:
    """The guard, and the rest of `Outcome` as bits."""
    # one that falls and is positive by rounding alone has just happened; at the very start of a step all that fall have
    falls = [(s < 0) & ((x.h <= 0) | (z - x.h <= x.finest)) for s, z in zip(x.rates, x.at, strict=True)]
    rises = [on & (y >= 0) & ~past for on, y, past in zip(x.armed, x.values, falls, strict=True)]
    sought = [x.guard == i for i in range(len(x.values))]
    candidates = [r | (x.settled & s) for r, s in zip(rises, sought, strict=True)]
    risen = any_of(rises) & ~x.fails & ~x.jumped
    # of several at one instant the one that is being located stays
    order = [y - jnp.where(s, 2 * x.finest, 0.0) for y, s in zip(x.at, sought, strict=True)]
    found = jnp.where(any_of(candidates), first_of(order, candidates), x.guard)
    value = pick(found, x.values)
    close = (jnp.abs(pick(found, x.at) - x.h) <= x.finest) | ((value >= 0) & (value <= x.enough))
    already = (x.h <= 0) & risen  # true from the start of this step: it happens at once
    going = ~x.done & ~x.fails
    happens = going & (found == x.guard) & x.on & ((found >= corners) | x.room) & (x.settled | (already & ~close))
    arrives = going & ~x.on & ~risen & ~x.jumped
    looks = x.hides & (happens | arrives)
    happens, arrives, going = happens & ~looks, arrives & ~looks, going & ~looks
    ticks, lands = arrives & x.short & ~x.cut, arrives & ~x.short & ~x.cut
    ahead = going & ~happens & ~arrives & ~x.jumped
    flags = (risen, close, happens, arrives, ticks, lands, ahead, looks)
    return found.astype(jnp.int32), sum(jnp.where(flag, 1 << k, 0) for k, flag in enumerate(flags))


def passed_peak(
    seen: Sequence[tuple[Any, Any]], h: Any, values: Sequence[Any], rates: Sequence[Any], armed: Sequence[Any]
) -> Any:
    """The length after which a guard, negative at both ends of a step of length h, may have risen and fall again: where the
    cubic through its values and rates is largest, and not negative. Infinite if there is none.

    seen: (value, rate) of the guards of events at the start of the step.
    """
    least = jnp.full_like(h, jnp.inf)
    for (g0, d0), g1, d1, on in zip(seen, values, rates, armed, strict=False):
        g1, length = jax.lax.stop_gradient((g1, jnp.where(h > 0, h, 1.0)))
        rise = (g1 - g0) / length
        b, c = (3 * rise - 2 * d0 - d1) / length, (d0 + d1 - 2 * rise) / length**2
        within = on & (h > 0) & (g0 < 0) & (g1 < 0) & (d0 > 0) & (d1 < 0)
        top = d0 / jnp.where(within, jnp.sqrt(jnp.maximum(b * b - 3 * c * d0, 0.0)) - b, 1.0)
        value = g0 + top * (d0 + top * (b + top * c))
        least = jnp.where(within & (value >= 0) & (top < least), top, least)
    return jax.lax.stop_gradient(least)


def pick(index: Any, items: Any) -> Any:
    """The item of that number; the first for numbers that none has."""
    out = items[0]
    for k, item in enumerate(items[1:], 1):
        out = jnp.where(index == k, item, out)
    return out


def any_of(x: Any) -> Any:
    """Whether one of them holds."""
    out = jnp.asarray(False)
    for y in x:
        out = out | y
    return out


def first_of(at: Any, of: Any) -> Any:
    """Number of the candidate with the smallest time."""
    best, least = jnp.full((), -1, jnp.int32), jnp.full((), np.inf, at[0].dtype if at else None)
    for k, (time, on) in enumerate(zip(at, of, strict=True)):
        time = jax.lax.stop_gradient(time)
        better = on & (time < least)
        best, least = jnp.where(better, jnp.int32(k), best), jnp.where(better, time, least)
    return best
