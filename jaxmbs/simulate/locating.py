"""The decision about a trial step from the guards at its end: an event or a switching surface must still be located, it
happens, or the step is accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.spatial import kernel

LATE = 6  # trials after which a guard that is zero to rounding counts as located, even if its time is less exact


class Search(NamedTuple):
    """The search for an event. guard: index of its guard (-1: none); low, high: lengths [s] tried that end before and
    after it; length: the next length; settled: whether the step of that length is to be accepted; tries: number of
    trials so far; tried, rate: of the last trial, its length and the rate of the guard at its end."""

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
        """No search; the next trial step has this length."""
        zero, none = jnp.zeros_like(length), jnp.zeros((), jnp.int32)
        return Search(none - 1, zero, zero, length, jnp.asarray(False), none, zero, zero)

    def enough(self) -> Any:
        """The value up to which a guard counts as zero. It is negative during the first trials, in which only the time
        decides whether the event is located, and then grows."""
        eps = float(jnp.finfo(self.length.dtype).eps)
        return jnp.where(self.tries >= LATE + 1, eps**0.6, jnp.where(self.tries >= LATE, eps**0.75, -1.0))

    def after(
        self, h: Any, near: Any, value: Any, rate: Any, finest: Any, rest: Any, was_on: Any, out: Outcome
    ) -> Search:
        """The search after a trial step of length h, at whose end the guard has this value and rate; the next length
        lies between those tried before and after the event. near: the length that Newton's method proposes; finest: how
        exact it must be; rest: the longest length; was_on: whether anything was being located; out: the decision."""
        tried, value, step = jax.lax.stop_gradient((h, value, near - h))
        # every length that is tried has this derivative: it converges with the lengths, but more slowly, because the
        # rate is that of the exact motion and not that of the numerical step
        derivative = near - jax.lax.stop_gradient(near)
        # where rounding leaves the time uncertain, keep the length tried, with the derivative of Newton's method
        last = near - jnp.where(jnp.abs(step) <= finest, 0.0, step)
        low = jnp.where(was_on & ~out.risen, tried, jnp.where(was_on, self.low, 0.0))
        high = jnp.where(out.risen, tried, self.high)
        near = tried + self._root(tried, value, rate, was_on & (self.guard == out.found)) + derivative
        inside = (near > low) & (near < high)
        bound = jnp.where(near <= 0, jnp.where(low == 0, 0.0, (low + high) / 2), (low + high) / 2)
        # no longer than `rest`, with the full derivative: by rounding, an event at the end of a cell is often beyond it
        last = last + jax.lax.stop_gradient(jnp.minimum(last, rest) - last)
        following = jnp.where(out.close, last, jnp.where(inside, near, bound))
        tries = jnp.where(was_on, self.tries + 1, 0)
        return Search(out.found, low, high, following, out.close & out.ahead, tries, tried, rate)

    def _root(self, h: Any, value: Any, rate: Any, again: Any) -> Any:
        """The distance from h to the rising zero of a parabola, which has this value and rate at h, and the rate of the
        previous trial at its end (a straight line unless `again`: there was a previous trial). This takes only a few
        trials even if the guard just touches zero, where Newton's method merely halves its error in each trial."""
        apart = h - self.tried
        bend = jnp.where(again & (apart != 0), (rate - self.rate) / jnp.where(apart == 0, 1.0, apart), 0.0)
        slope = rate + jnp.sqrt(jnp.maximum(rate * rate - 2 * bend * value, 0.0))
        return jnp.where(slope > 0, -2 * value / jnp.where(slope > 0, slope, 1.0), jnp.inf)


class Facts(NamedTuple):
    """What is known about a trial step of length h, as the input of the decision.

    done: the instance has ended; jumped: velocities jumped in place of a step; fails: the step is refused; hides: a
    guard may have risen and fallen again within the step; on: the zero of the guard `guard` is being located, and this
    trial is accepted if `settled`; short: an instant comes before the end of the cell; cut: the step ends even before
    that (`Tried`); room: the log has room for one more event; finest: how exactly the time of an event must be located;
    enough: `Search.enough`. Of all guards (from the index `corners` on, those of switching surfaces): values, rates,
    the lengths `at` which they vanish, and whether they count (armed).
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
    """The decision. found: the guard to be located from now on, -1: none; risen: a guard rose through zero in the step;
    close: the event is located to tolerance; happens: what was being located happens at the end of the step; arrives:
    the step is accepted and met nothing; ticks: it arrives at an instant; lands: it arrives at the end of its cell;
    ahead: the next trial is to locate `found`; looks: the step is refused, and the next trial ends where a guard may
    have risen."""

    found: Any
    risen: Any
    close: Any
    happens: Any
    arrives: Any
    ticks: Any
    lands: Any
    ahead: Any
    looks: Any


def outcome(facts: Facts) -> Outcome:
    """The decision. The kernel returns all flags as bits of one integer: with separate flags, the compiled program
    would repeat the computation for every number of an iteration that depends on them."""
    found, bits = _decided(jax.lax.stop_gradient(facts._replace(corners=0)), facts.corners)
    return Outcome(found, *((bits & (1 << k)) != 0 for k in range(len(Outcome._fields) - 1)))


@kernel
def _decided(x: Facts, corners: int) -> tuple[Any, Any]:
    """(`Outcome.found`, the other fields of `Outcome` as bits of one integer)."""
    # a falling guard that is positive only by rounding has just happened, and so has any falling one if h is zero
    falls = [(s < 0) & ((x.h <= 0) | (z - x.h <= x.finest)) for s, z in zip(x.rates, x.at, strict=True)]
    rises = [on & (y >= 0) & ~past for on, y, past in zip(x.armed, x.values, falls, strict=True)]
    sought = [x.guard == i for i in range(len(x.values))]
    candidates = [r | (x.settled & s) for r, s in zip(rises, sought, strict=True)]
    risen = any_of(rises) & ~x.fails & ~x.jumped
    # among several at the same time, prefer the one that is being located
    order = [y - jnp.where(s, 2 * x.finest, 0.0) for y, s in zip(x.at, sought, strict=True)]
    found = jnp.where(any_of(candidates), first_of(order, candidates), x.guard)
    value = pick(found, x.values)
    close = (jnp.abs(pick(found, x.at) - x.h) <= x.finest) | ((value >= 0) & (value <= x.enough))
    already = (x.h <= 0) & risen  # its condition holds from the start of this step: it happens at once
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
    """The least length at which a guard that is negative at both ends of a step of length h may have been above zero:
    where the cubic through its values and rates has its maximum, if that is not negative. Infinite if there is no such
    guard.

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
    """The item with this index; the first one if the index is out of range."""
    out = items[0]
    for k, item in enumerate(items[1:], 1):
        out = jnp.where(index == k, item, out)
    return out


def chosen(on: Any, a: Any, b: Any) -> Any:
    """The pytree a if `on`, else b."""
    return jax.tree_util.tree_map(lambda x, y: jnp.where(on, x, y), a, b)


def any_of(x: Any) -> Any:
    """Whether any of the flags x is true."""
    out = jnp.asarray(False)
    for y in x:
        out = out | y
    return out


def first_of(at: Any, of: Any) -> Any:
    """Index of the candidate with the smallest time in `at`; -1 if there is none. of: whether each is a candidate."""
    best, least = jnp.full((), -1, jnp.int32), jnp.full((), np.inf, at[0].dtype if at else None)
    for k, (time, on) in enumerate(zip(at, of, strict=True)):
        time = jax.lax.stop_gradient(time)
        better = on & (time < least)
        best, least = jnp.where(better, jnp.int32(k), best), jnp.where(better, time, least)
    return best
