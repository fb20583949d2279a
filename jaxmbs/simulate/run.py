"""Time as a loop of trial steps: each turn tries one step per instance and accepts it, shortens it, or stands still.

One `scan` whose turns are the cells of the grid and some more for locating events: an instance that meets an event
spends a few turns on it while the others go on. Locating is Newton's method on the length h of the trial step, kept inside
what was tried before, h - g / g' with g the guard at its end and g' its rate along the motion. When |g| is down to
rounding, one more such turn is accepted: with g differentiated and g' not, h then carries the exact derivative of the
event's time (implicit function theorem), in both modes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.guards import Guards
from jaxmbs.simulate.jumps import after_impact, jumps, next_mode, struck

TURNS = 12  # beyond the grid, for locating one event
REPEATED = 16  # events of a kind that repeats are located up to this number
FINEST = 1e-10  # of a step: how far from its instant an event may be found


class Events(NamedTuple):
    """Events of one instance in the order in which they happened, k places.

    time (k,) [s], that of the end of the run where unused; index (k,): into model.event_names, -1 where unused;
    energy_lost (k,) [J]: what the energy dropped by at the event (negative: what a switch brought in).

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_event("end", when=mbs.Time(0.05), then=mbs.Finish())
    >>> mbs.simulate(mech.build(), [0.5, 0.0], [0.0, 0.0], t_end=0.1, dt=0.01, save_every=None).events.time.tolist()
    [0.05]
    """

    time: Any
    index: Any
    energy_lost: Any


class Search(NamedTuple):
    """Where an event is being located: its guard (-1: none), lengths tried before and after it, the next one, and whether
    that one is to be accepted."""

    guard: Any
    low: Any
    high: Any
    length: Any
    settled: Any


class Turn(NamedTuple):
    """One instance between two turns."""

    phase: Any  # q, v, work
    cell: Any  # number of finished cells
    into: Any  # [s] since the start of the present one
    mode: Mode
    below: tuple[Any, ...]  # per guard: it was negative when last seen, so that it can rise
    fired: tuple[Any, ...]  # per event: how many times
    search: Search
    events: Events
    count: Any
    lost: Any  # energy lost in events so far
    done: Any
    t_done: Any  # [s] when it was
    extra: Any  # carried along by `landed`
    kept: Any  # what `landed` last returned


Stepper = Callable[[Any, Any, Any, Mode], tuple[Any, Any]]  # (phase, t, h, mode) -> (phase at t + h, conditioning)


class Run:
    """The loop for one tree and its events.

    step: a trial step; energy(t, q, v, mode); landed(extra, row, cell, t, phase, mode, lost,
    conditioning) -> (extra, row), at every point of the grid.
    """

    def __init__(self, tree: Tree, grid: Grid, step: Stepper, energy: Any, landed: Any, force: Any):
        self.tree, self.grid, self.step, self.energy, self.landed = tree, grid, step, energy, landed
        self.guards = Guards(tree, force)
        self.events = tree.structure.events
        self.places = sum(REPEATED if e.repeat else 1 for e in self.events)
        self.turns = grid.steps + TURNS * self.places

    def start(self, phase: Any, mode: Mode, extra: Any, kept: Any) -> Turn:
        dtype, zero = self.tree.dtype, jnp.zeros((), self.tree.dtype)
        groups = self.guards.values(jnp.asarray(self.grid.t0, dtype), phase[0], phase[1], mode)
        self.of_guard = [k for k, group in enumerate(groups) for _ in group]
        below = [
            jnp.asarray(True) if self.events[k].when.already else g < 0 for k, group in enumerate(groups) for g in group
        ]
        none, k = jnp.zeros((), jnp.int32), self.places
        log = Events(jnp.full(k, self.grid.t_end, dtype), jnp.full(k, -1, jnp.int32), jnp.zeros(k, dtype))
        return Turn(
            phase, none, zero, mode, tuple(below), (none,) * len(self.events),
            Search(none - 1, zero, zero, zero, jnp.asarray(False)), log, none, zero, jnp.asarray(False), zero, extra, kept,
        )  # fmt: skip

    def turn(self, x: Turn) -> Turn:
        """One trial step and what follows from it."""
        dtype, grid, pick = self.tree.dtype, self.grid, _pick
        last = x.cell == grid.steps - 1
        length = jnp.where(last, jnp.asarray(grid.last, dtype), jnp.asarray(grid.dt, dtype))
        start = jnp.asarray(grid.t0, dtype) + x.cell.astype(dtype) * jnp.asarray(grid.dt, dtype)
        end = jnp.where(last, jnp.asarray(grid.t_end, dtype), start + length)
        rest, searching = length - x.into, x.search.guard >= 0
        h = jnp.where(searching, x.search.length, rest)
        t = jnp.where(searching, start + x.into + h, end)
        phase, least = self.step(x.phase, start + x.into, h, x.mode)

        groups, slopes = self.guards.with_rates(t, phase[0], phase[1], x.mode)
        g, slope = ([y for group in z for y in group] for z in (groups, slopes))
        slope = [jax.lax.stop_gradient(s) for s in slope]
        # at the very start of a step only what does not fall counts: it is due now
        due = zip(self.of_guard, x.below, g, slope, strict=True)
        rises = [self._armed(x, k) & b & (y >= 0) & ((h > 0) | (s >= 0)) for k, b, y, s in due]
        at = [h - y / jnp.where(s == 0, 1.0, s) for y, s in zip(g, slope, strict=True)]
        sought = [x.search.guard == i for i in range(len(g))]
        candidates = [r | (x.search.settled & s) for r, s in zip(rises, sought, strict=True)]
        risen = _any(rises)
        first = _first(at, candidates)
        found = jnp.where(_any(candidates), first, x.search.guard)

        # where it stands next: between the lengths that were tried before and after the event
        near, size = pick(found, at), jnp.abs(pick(found, g))
        low = jnp.where(searching & ~risen, h, jnp.where(searching, x.search.low, 0.0))
        high = jnp.where(risen, h, x.search.high)
        finest = jnp.maximum(FINEST * length, 4 * jnp.finfo(dtype).eps * jnp.abs(t))
        close = size <= finest * jnp.abs(pick(found, slope))
        already = (h <= 0) & risen  # true from the start of this step: it happens at once
        inside = (near > low) & (near < high)
        bound = jnp.where(near <= 0, jnp.where(low == 0, 0.0, (low + high) / 2), (low + high) / 2)
        following = jnp.where(close, jnp.clip(near, 0.0, rest), jnp.where(inside, near, bound))

        happens = ~x.done & (found == x.search.guard) & searching & (x.search.settled | already)
        lands = ~x.done & ~searching & ~risen
        moves = happens | lands
        event = pick(found, [jnp.full((), k, jnp.int32) for k in self.of_guard])
        now = [happens & (event == k) for k in range(len(self.events))]

        mode = next_mode(self.tree.structure, x.mode, now)
        after, dropped = phase, jnp.zeros((), dtype)
        if any(jumps(self.tree.structure, e) for e in self.events):
            jumped = _any([n for n, e in zip(now, self.events, strict=True) if jumps(self.tree.structure, e)])
            hit, rates = struck(self.tree, phase[1], now)
            v = after_impact(self.tree, phase[0], phase[1], t, mode, hit, rates)
            after = (phase[0], _where(jumped, v, phase[1]), phase[2])
        before_event = self.energy(t, *phase[:2], x.mode)
        dropped = jnp.where(happens, before_event - self.energy(t, *after[:2], mode), 0.0)

        fired = tuple(f + n for f, n in zip(x.fired, now, strict=True))
        lost = x.lost + dropped
        below = self._below(x, g, happens, event, t, after, mode)
        place = happens & (jnp.arange(self.places) == x.count)
        events = Events(
            jnp.where(place, t, x.events.time), jnp.where(place, event, x.events.index),
            jnp.where(place, dropped, x.events.energy_lost),
        )  # fmt: skip
        finishes = _any([n for n, e in zip(now, self.events, strict=True) if any(a.finishes for a in e.then)])
        cell = x.cell + lands
        done = x.done | (cell >= grid.steps) | (happens & finishes)
        ahead = ~moves & ~x.done
        none = Search(jnp.full((), -1, jnp.int32), jnp.zeros((), dtype), jnp.zeros((), dtype), rest, jnp.asarray(False))
        seek = Search(found.astype(jnp.int32), low, high, following, close & ahead)
        extra, kept = self.landed(x.extra, x.kept, cell, t, after, mode, lost, least)
        return Turn(
            _where(moves, after, x.phase), cell, jnp.where(happens, x.into + h, jnp.where(lands, 0.0, x.into)),
            mode, tuple(jnp.where(moves, b, old) for b, old in zip(below, x.below, strict=True)), fired,
            _where(ahead, seek, none), events, x.count + happens, lost, done,
            jnp.where(x.done, x.t_done, t),
            _where(lands, extra, x.extra), _where(lands, kept, x.kept),
        )  # fmt: skip

    def _armed(self, x: Turn, k: int) -> Any:
        """Whether event k may happen."""
        e = self.events[k]
        armed = ~x.done & (x.count < self.places)
        if not e.repeat:
            armed &= x.fired[k] == 0
        if e.after is not None:
            armed &= x.fired[[o.name for o in self.events].index(e.after)] > 0
        return armed

    def _below(self, x: Turn, g: list[Any], happens: Any, event: Any, t: Any, after: Any, mode: Mode) -> list[Any]:
        """Per guard whether it can rise from here: it is negative, or about to be; one that waits its turn stays."""
        repeated = any(e.repeat for e in self.events)
        falls = [y < 0 for y in g]
        if repeated:
            groups, slopes = self.guards.with_rates(t, after[0], after[1], mode)
            pairs = zip((y for z in groups for y in z), (y for z in slopes for y in z), strict=True)
            falls = [(y < 0) | ((y <= jnp.finfo(self.tree.dtype).eps ** 0.5) & (s < 0)) for y, s in pairs]
        out = []
        for k, y, b, falling in zip(self.of_guard, g, x.below, falls, strict=True):
            own = happens & (event == k)
            waits = b & ((y < 0) | happens | self._unarmed_already(x, k))
            out.append(jnp.where(own, falling, waits | (y < 0)))
        return out

    def _unarmed_already(self, x: Turn, k: int) -> Any:
        """A condition that counts where it is true already keeps waiting for its event to be armed."""
        return ~self._armed(x, k) if self.events[k].when.already else False


def _pick(index: Any, items: list[Any]) -> Any:
    out = items[0]
    for k, item in enumerate(items[1:], 1):
        out = jnp.where(index == k, item, out)
    return out


def _any(x: list[Any]) -> Any:
    out = jnp.asarray(False)
    for y in x:
        out = out | y
    return out


def _first(at: list[Any], of: list[Any]) -> Any:
    """Number of the candidate with the smallest time."""
    best, least = jnp.full((), -1, jnp.int32), jnp.full((), np.inf, at[0].dtype)
    for k, (time, on) in enumerate(zip(at, of, strict=True)):
        time = jax.lax.stop_gradient(time)
        better = on & (time < least)
        best, least = jnp.where(better, jnp.int32(k), best), jnp.where(better, time, least)
    return best


def _where(on: Any, a: Any, b: Any) -> Any:
    return jax.tree_util.tree_map(lambda x, y: jnp.where(on, x, y), a, b)
