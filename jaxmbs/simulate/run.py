"""A run as a loop of trial steps: each turn tries one step per instance and accepts it, shortens it, or does not move.

The loop is one `scan`, with a turn for every cell of the grid and some more for locating events: an instance that meets an
event spends a few turns on it while the others go on. An event is located by Newton's method on the length h of the trial
step, kept between the lengths tried before: h - g / g', with g the guard at the end of the step and g' its rate along the
motion. When |g| is down to rounding, one more such step is accepted: because g is differentiated and g' is not, h then
carries the exact derivative of the event's time (implicit function theorem), in both modes.

An impact takes the turn after its event: a step in which velocities jump and no time passes. It uses the equations of any
other step, with gravity, force elements and rates set to zero, so that a program contains these equations only once
(`Stepper.impulses`).

Switching surfaces of force elements (`Force.corners`) are located like events: a trial step stays on the branch (`sides`) on
which it began, so that what is integrated is smooth, and the next step begins at the surface, on the other branch. The
elements say how many turns are reserved for this. When these are used up, branches are determined anew at every point of the
grid, and the energy balance (`balance`) tells whether that was accurate enough.

With a tolerance, a trial step whose estimated error is above it is refused and tried again with a shorter length; the next
step is as long as the error allows (`pace`), and no longer than the cell of the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.simulate.balance import Balance
from jaxmbs.simulate.consistency import moved_apart
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.guards import Guards
from jaxmbs.simulate.jumps import Changes, Impact, closes, jumps, next_mode, rebounding, struck
from jaxmbs.simulate.locating import Search, Seen, any_of, first_of, outcome, passed_peak, pick
from jaxmbs.simulate.log import REPEATED, Events
from jaxmbs.simulate.loops import varied
from jaxmbs.simulate.pace import Pace
from jaxmbs.simulate.stops import Stops

TURNS = 12  # beyond those of the grid, for locating one event
ON_GRID, AFTER_JUMP = -1, -2  # in place of an event's index: at a point of the grid; just after velocities jumped
PEEKS = 2  # steps that check whether a guard rises and falls within one, in addition to two for each event
FINEST = 1e-10  # how far from its instant an event may be found, as a fraction of a cell


class Turn(NamedTuple):
    """The state of one instance between two turns."""

    phase: Any  # q, v, work
    cell: Any  # number of finished cells
    into: Any  # [s] since the start of the current one
    mode: Mode
    below: tuple[Any, ...]  # per guard: whether it was negative when last seen, so that it can rise
    met: tuple[Any, ...]  # per guard of a stop: whether the stop is met (`Stops`)
    stuck: Any  # whether the run ended because the motion was about to pass a stop on which it rests
    fired: tuple[Any, ...]  # per event: how often it has happened
    search: Search
    events: Events | None
    count: Any
    due: Any  # event whose impact the next turn computes (-1: none), None if no event has an impact
    lost: Any  # energy lost in events so far
    done: Any
    t_done: Any  # [s] time at which the instance was done
    spare: Any  # turns left for switching surfaces
    pace: Pace | None  # of an adaptive run
    balance: Balance
    seen: tuple[tuple[Any, Any], ...]  # (value, rate) of each guard of an event at the start of the current step
    peak: Any  # [s] length of the next trial step, up to where a guard may rise and fall again; infinite if nowhere
    misplaced: tuple[Any, ...]  # per event that switches constraints on: whether they were violated then
    extra: Any  # carried along by `landed`
    kept: Any  # what `landed` last returned


# (phase, t, h, mode, impact) -> (phase at t + h, kinetic energy at t, conditioning, error over the tolerance)
Step = Callable[[Any, Any, Any, Mode, "Impact | None"], tuple[Any, Any, Any, Any]]


class Run:
    """The loop for one tree and its events.

    step: a trial step; energy(t, q, v, mode); landed(extra, row, cell, t, phase, mode, lost,
    conditioning, before) -> (extra, row), at every point of the grid; changes: `Changes`, or None if anything may change;
    trials: (number of trial steps, order of the error) of an adaptive run, else None; most: how often a repeating event may
    happen; catches: whether the `extra` of `landed` is also kept at events and just after velocities jumped. Then before is
    (q, v, mode, event), with the mode before the event and the event's index, ON_GRID or AFTER_JUMP.
    """

    def __init__(
        self, tree: Tree, grid: Grid, step: Step, energy: Any, landed: Any, force: Any, changes: Any,
        trials: tuple[int, int] | None = None, catches: bool = False, most: int = REPEATED,
    ):  # fmt: skip
        self.trials, self.catches = trials, catches
        self.changes = changes
        self.tree, self.grid, self.step, self.energy, self.landed = tree, grid, step, energy, landed
        self.guards = Guards(tree, force)
        self.events = tree.structure.events
        self.rebounding = [rebounding(tree, e) for e in self.events]
        self.again = [e.repeat or late for e, late in zip(self.events, self.rebounding, strict=True)]
        self.places = sum(most if again else 1 for again in self.again)
        self.jumping = [jumps(tree.structure, e) for e in self.events]
        switched = [Changes.switched_on(tree.structure, e) for e in self.events]
        self.enabling = {k: on for k, on in enumerate(switched) if on.any()}
        arming = {k: tree.values[f"{e.name}.armed_from"] for k, e in enumerate(self.events) if e.waits}
        self.arming = {k: jnp.asarray(time, tree.dtype) for k, time in arming.items()}

    def located(self, mode: Mode, t: Any, start: tuple[Any, Any]) -> Mode:
        """The mode with the branches (`sides`) of the force elements at the start. Also sets the number of turns."""
        forces = self.tree.structure.forces
        sides, self.corners, self.instants = self.guards.kinks(t, *start, mode)
        self.spare = sum(forces[k].element.trials for k, _ in self.corners)
        self.turns = (self.trials[0] if self.trials else self.grid.steps) + TURNS * self.places
        self.turns += len(self.instants) + len(self.arming) + (self.places if any(self.jumping) else 0)
        self.turns += self.spare + TURNS if self.spare else 0
        self.turns += 2 * (PEEKS + 2 * self.places) if self.events else 0  # twice: each also refuses a step
        return replace(mode, sides=sides if self.corners or self.instants else None)

    def start(self, phase: Any, mode: Mode, balance: Balance, extra: Any, kept: Any) -> Turn:
        dtype, zero = self.tree.dtype, jnp.zeros((), self.tree.dtype)
        first = jnp.asarray(self.grid.t0, dtype)
        groups = self.guards.values(first, phase[0], phase[1], mode) if self.events else []
        self.of_guard = [k for k, group in enumerate(groups) for _ in group]
        self.stops = Stops(self.tree, self.of_guard, self.again)
        met = self.stops.start([g for group in groups for g in group])
        below = [
            jnp.asarray(True) if self.events[k].when.already else g < 0 for k, group in enumerate(groups) for g in group
        ]
        none, k = jnp.zeros((), jnp.int32), self.places
        log = Events.none(k, self.grid.t_end, dtype) if k else None  # fused loops take no empty arrays
        seek, pace = Search.none(zero), None
        if self.trials:
            pace = Pace.start(jnp.asarray(self.grid.dt, dtype))
        unknown = tuple(
            (jax.lax.stop_gradient(g), zero) for group in groups for g in group
        )  # without a rate no peak is sought
        turn = Turn(
            phase, none, zero, mode, tuple(below), met, jnp.asarray(False), (none,) * len(self.events), seek, log, none,
            none - 1 if any(self.jumping) else None, zero, jnp.asarray(False), zero, none + self.spare, pace, balance,
            unknown, zero + jnp.inf, (jnp.asarray(False),) * len(self.enabling), extra, kept,
        )  # fmt: skip
        return self._varied(turn)

    def _varied(self, x: Turn) -> Turn:
        """x with a derivative for everything that will have one in the loop (`loops.varied`)."""
        of = (self.tree.model, x.phase)
        x = x._replace(extra=(varied(x.extra[0], of), *x.extra[1:]))
        if not self.of_guard and not self.corners:
            return x
        # the time of an event has a derivative, and so has everything that is multiplied by the length of a step
        found = (x.phase[2], x.search.length, x.into, x.events, x.kept, x.lost, x.t_done)
        work, length, into, events, kept, lost, t_done = varied(found, of)
        x = x._replace(phase=(*x.phase[:2], work), balance=x.balance._replace(work=work))
        seek = x.search._replace(length=length)
        return x._replace(search=seek, into=into, events=events, kept=kept, lost=lost, t_done=t_done)

    def turn(self, x: Turn) -> Turn:
        """One trial step and its consequences."""
        dtype, grid = self.tree.dtype, self.grid
        if self.changes is not None:
            x = x._replace(mode=self.changes.only(x.mode))
        start, length, end = grid.cell(x.cell, dtype)
        impact = self._impact(x)
        jumped = jnp.asarray(False) if impact is None else impact.now
        rest, searching = length - x.into, (x.search.guard >= 0) & (x.spare > -TURNS)
        waits = [self._wait(x, k, j, time - (start + x.into)) for k, j, time in self.instants]
        waits += [self._unarmed_for(x, k) for k in self.arming]
        instant = first_of(waits, [jnp.asarray(True)] * len(waits))
        rest, short = self._shortened(rest, instant, waits)
        whole, cut = (rest, jnp.asarray(False)) if x.pace is None else x.pace.within(rest)
        looking = (x.peak < whole) & ~searching
        whole, cut = jnp.where(looking, x.peak, whole), cut | looking
        h = jnp.where(jumped, 0.0, jnp.where(searching, x.search.length, whole))
        t = jnp.where(jumped | searching | short | cut, start + x.into + h, end)
        phase, kinetic, least, error = self.step(x.phase, start + x.into, h, x.mode, impact)
        fails = jnp.asarray(False) if x.pace is None else ~x.done & ~jumped & ~(error <= 1)

        of_events = self.guards.with_rates(t, phase[0], phase[1], x.mode)
        g, slope = ([y for group in z for y in group] for z in of_events)
        for corner, rate in self.guards.of_corners(t, phase[0], phase[1], x.mode):
            g, slope = [*g, corner], [*slope, rate]
        slope = [jax.lax.stop_gradient(s) for s in slope]
        armed = self._armed(x)
        if not g:  # instants alone, which need no locating
            g, slope, armed = [-jnp.ones((), dtype)], [jnp.zeros((), dtype)], [jnp.asarray(False)]
        finest = jnp.maximum(FINEST * length, 4 * jnp.finfo(dtype).eps * jnp.abs(t))
        at = [h - y / jnp.where(s == 0, 1.0, s) for y, s in zip(g, slope, strict=True)]
        peak = passed_peak(x.seen, h, g, slope, armed)
        hides = (peak < h) & ~looking
        seen = Seen(
            x.done, jumped, fails, hides, searching, short, cut, x.count < self.places, x.search.guard, x.search.settled, h,
            finest, x.search.enough(), tuple(g), tuple(slope), tuple(at), tuple(armed), len(self.of_guard),
        )  # fmt: skip
        out = outcome(seen)
        found, happens, arrives, lands = out.found, out.happens, out.arrives, out.lands
        moves = happens | arrives | jumped
        at_corner = found >= len(self.of_guard)
        event = pick(found, [jnp.full((), k, jnp.int32) for k in self.of_guard]) if self.events else found
        now = [happens & ~at_corner & (event == k) for k in range(len(self.events))]

        closed = [closes(self.tree, e, phase[1]) for e in self.events]
        mode = replace(
            next_mode(self.tree, x.mode, now, closed),
            sides=self._sides(x, g, armed, happens, found, out.ticks, instant),
        )
        due, dropped = None, jnp.zeros((), dtype)
        if impact is not None:
            strikes = any_of([n for n, jumps in zip(now, self.jumping, strict=True) if jumps])
            due = jnp.where(strikes, event, -1)
        if self.events:
            before = _where(jumped, x.phase, phase)
            dropped = self.energy(t, *before[:2], x.mode) - self.energy(t, *phase[:2], mode)
            dropped = jnp.where(happens | jumped, dropped, 0.0)

        fired = tuple(f + (n & over) for f, n, over in zip(x.fired, now, closed, strict=True))
        lost = x.lost + dropped
        below = self._below(x, g, slope, happens | jumped, now, t, phase, mode)
        logged = happens & ~at_corner
        events = x.events
        if events is not None:
            place, latest = (jnp.arange(self.places) == k for k in (x.count, x.count - 1))
            thrown = [n & ~c for n, c, late in zip(now, closed, self.rebounding, strict=True) if late]
            events = events.entered(place & logged, t, event, dropped, any_of(thrown) if thrown else None)
            events = events.with_loss(latest & jumped, dropped)
        finishes = any_of([n for n, e in zip(now, self.events, strict=True) if any(a.finishes for a in e.then)])
        peak = jnp.where(out.looks, peak, jnp.inf)
        cell = x.cell + lands
        done = x.done | (cell >= grid.steps) | (happens & finishes)
        met, stuck = x.met, jnp.asarray(False)
        if met:
            may = [self._may_happen(x, k, again=True) for k in self.of_guard]
            stuck = ~x.done & arrives & self.stops.passed(met, g, may)
            met = self.stops.met(met, g, slope, found, now, x.due, closed)
            done |= stuck
        pace = x.pace
        if self.trials and pace is not None:
            tried, end, error = jax.lax.stop_gradient((h, t, error))
            pace = pace.after(tried, end, error, self.trials[1], moves & ~jumped, fails)
            done |= pace.stalled
        at, value, rate = (pick(found, y) for y in (at, g, slope))
        seek = x.search.after(h, at, value, rate, finest, rest, searching, out)
        caught = logged if self.catches and self.events else jnp.asarray(False)
        last = jumped & x.done  # the run ends with the velocities after its last impact
        instant = jnp.where(caught, event, jnp.where(jumped & ~last, AFTER_JUMP, ON_GRID))
        before = (*phase[:2], _where(caught, x.mode, mode), instant) if self.catches else None
        extra, kept = self.landed(x.extra, x.kept, cell, t, phase, mode, lost, least, before)
        return Turn(
            _where(moves, phase, x.phase), cell, jnp.where(moves & ~lands, x.into + h, jnp.where(lands, 0.0, x.into)),
            mode, tuple(jnp.where(moves, b, old) for b, old in zip(below, x.below, strict=True)),
            tuple(jnp.where(moves, m, old) for m, old in zip(met, x.met, strict=True)), x.stuck | stuck,
            fired,
            _where(out.ahead, seek, Search.none(rest)), events, x.count + logged, due, lost, done,
            jnp.where(x.done, x.t_done, t), x.spare - (~arrives & ~fails & ~x.done & at_corner), pace,
            _where(jumped, x.balance, x.balance.seen(kinetic, x.phase[2])),
            tuple(_where(moves, new, old) for new, old in zip(self._seen(g, slope, now), x.seen, strict=True)), peak,
            self._misplaced(x, phase, jumped),
            _where(lands | caught | jumped if self.catches else lands | last, extra, x.extra), _where(lands, kept, x.kept),
        )  # fmt: skip

    def _impact(self, x: Turn) -> Impact | None:
        """The impact of this turn, or None if no event has an impact."""
        if x.due is None:
            return None
        picks = [x.due == k for k in range(len(self.events))]
        closed = [closes(self.tree, e, x.phase[1]) for e in self.events]
        return Impact(x.due >= 0, *struck(self.tree, x.phase[1], picks, closed))

    @staticmethod
    def ended(x: Turn) -> Any:
        """Whether the instance is done and no impact is left to compute."""
        return x.done if x.due is None else x.done & (x.due < 0)

    def now(self, x: Turn) -> Any:
        """The time [s] of an instance between two turns."""
        start = self.grid.begins(x.cell, self.tree.dtype)
        return jnp.where(x.done, x.t_done, start + x.into)

    def _armed(self, x: Turn) -> list[Any]:
        """For each guard, whether it counts now: those of events if they were negative and the event may happen, those of
        switching surfaces while turns are left."""
        of_events = [b & self._may_happen(x, k) for k, b in zip(self.of_guard, x.below, strict=True)]
        out = []
        for i, (k, _) in enumerate(self.corners, len(self.of_guard)):
            room = (x.spare > 0) | ((x.search.guard == i) & (x.spare > -TURNS))
            acts = True if x.mode.force is None else x.mode.force[k]
            out.append(~x.done & room & acts)
        return of_events + out

    def _may_happen(self, x: Turn, k: int, again: bool = False) -> Any:
        """Whether event k may happen; again: even if it has already happened and does not repeat."""
        e = self.events[k]
        armed = ~x.done
        if not (e.repeat or again):
            armed &= x.fired[k] == 0
        if e.after is not None:
            armed &= x.fired[[o.name for o in self.events].index(e.after)] > 0
        if e.waits:
            armed &= self._unarmed_for(x, k) == jnp.inf
        return armed

    def _unarmed_for(self, x: Turn, k: int) -> Any:
        """Time [s] until event k is armed; infinite if it is armed already."""
        time = self.arming[k]
        near = jnp.maximum(FINEST * self.grid.dt, 4 * jnp.finfo(time.dtype).eps * jnp.abs(time))
        wait = time - self.now(x)
        return jnp.where(wait > near, wait, jnp.inf)

    def _seen(self, g: list[Any], slope: list[Any], now: list[Any]) -> list[tuple[Any, Any]]:
        """(value, rate) of each guard of an event; the rate is zero just after an event, which may have changed it."""
        values = jax.lax.stop_gradient(g)
        after = any_of(now)
        return [(values[i], jnp.where(after, 0.0, slope[i])) for i in range(len(self.of_guard))]

    def _misplaced(self, x: Turn, phase: Any, jumped: Any) -> tuple[Any, ...]:
        """For each event that switches constraints on, whether bodies had to be moved to satisfy them."""
        if not self.enabling:
            return ()
        far = jumped & moved_apart(self.tree, x.phase[0], phase[0])
        return tuple(m | (far & (x.due == k)) for m, k in zip(x.misplaced, self.enabling, strict=True))

    def misplaced(self, x: Turn) -> Any:
        """Mask (constraints,) of those that were violated when an event switched them on."""
        s = self.tree.structure
        out = jnp.zeros(len(s.loops) + len(s.constraints), bool)
        for m, on in zip(x.misplaced, self.enabling.values(), strict=True):
            out |= m & on
        return out

    def _shortened(self, rest: Any, instant: Any, waits: list[Any]) -> tuple[Any, Any]:
        """(length of the step, at most up to the next instant, whether that instant ends it)."""
        if not waits:
            return rest, jnp.asarray(False)
        wait = pick(instant, waits)
        short = wait < rest
        return jnp.where(short, wait, rest), short

    @staticmethod
    def _wait(x: Any, k: int, j: int, wait: Any) -> Any:
        """Time [s] until an instant of a force element; infinite if it has passed."""
        return jnp.where(x.mode.sides.of(k)[j], jnp.inf, wait)

    def _sides(
        self, x: Turn, g: list[Any], armed: list[Any], happens: Any, found: Any, ticks: Any, instant: Any
    ) -> Any:
        """The branches (`sides`) of the force elements after this turn."""
        if x.mode.sides is None:
            return None
        flips: list[list[Any]] = [[False] * n for n in x.mode.sides.counts]
        for i, (k, j) in enumerate(self.corners, len(self.of_guard)):
            unseen = (g[i] >= 0) & ~armed[i]  # passed while it was not watched
            flips[k][j] = unseen | (happens & (found == i))
        for i, (k, j, _) in enumerate(self.instants):
            flips[k][j] = ticks & (instant == i)
        return x.mode.sides.flipped(flips)

    def _below(
        self, x: Turn, g: list[Any], slope: list[Any], happens: Any, now: list[Any], t: Any, phase: Any, mode: Mode
    ) -> list[Any]:
        """For each guard of an event, whether it can rise from here: it is negative, or about to be. A guard that has risen
        while another event happens keeps its flag. After an impact, the velocities after it decide."""
        g, slope = g[: len(self.of_guard)], slope[: len(self.of_guard)]
        if any(again and not jumps for again, jumps in zip(self.again, self.jumping, strict=True)):
            _, slopes = self.guards.with_rates(t, phase[0], phase[1], mode)
            of_switches = [y for z in slopes for y in z]
            slope = [s if self.jumping[k] else o for k, s, o in zip(self.of_guard, slope, of_switches, strict=True)]
        repeats, near = any(self.again), jnp.finfo(self.tree.dtype).eps ** 0.5
        out = []
        for i, (k, y, s, b) in enumerate(zip(self.of_guard, g, slope, x.below, strict=True)):
            again = (y < 0) | ((y <= near) & (s < 0)) if repeats else y < 0
            later = b & ((y < 0) | happens | self._unarmed_already(x, k)) | (y < 0)
            if i in self.stops:
                again = self.stops.leaves(y, s)
                later &= ~x.met[self.stops.guards.index(i)] | (y < -near)
            over = x.due == k if x.due is not None and self.jumping[k] else now[k]
            out.append(jnp.where(over, again, later))
        return out

    def _unarmed_already(self, x: Turn, k: int) -> Any:
        """Whether a guard keeps waiting for its event to be armed: its condition also counts if it is true already then."""
        return ~self._may_happen(x, k) if self.events[k].when.already else False


def _where(on: Any, a: Any, b: Any) -> Any:
    return jax.tree_util.tree_map(lambda x, y: jnp.where(on, x, y), a, b)
