"""A run as a loop of trial steps: each iteration tries one step per instance, then accepts, shortens or refuses it.

The loop is one `scan`, with an iteration for every cell of the grid and some more for locating events: an
instance that meets an event spends a few iterations on it while the others go on. An event is located by Newton's
method on the length h of the trial step: h - g / g', with g the guard at the end of the step and g' its rate along the
motion, corrected by the change of g' between trials and limited by the lengths tried before. When |g| is down to
rounding, a step of the length h - g / g' is accepted: because g is differentiated and g' is not, h then has the exact
derivative of the event's time (implicit function theorem), in forward and reverse mode.

An iteration tries a step, which `advance` projects onto the constraints (`_try`); evaluates the guards at its end
(`_judge`); chooses the next length if something was met within the step (`_locate`); applies the event that happens at
its end (`_jump`); and accepts or refuses the step (`_land`).

An impact takes the iteration after its event: a step in which velocities jump and no time passes. It uses the equations
of any other step, with gravity, force elements and rates set to zero, so that a program contains these equations only
once (`Stepper.impulses`).

With a tolerance, a trial step whose estimated error is above it is refused and tried again with a shorter length. The
length of the next step is what the error allows (`pace`), at most the rest of the cell of the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.model import Mode
from jaxmbs.simulate.balance import Balance
from jaxmbs.simulate.branches import LOCATING, Branches
from jaxmbs.simulate.functions import Functions
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.guards import Guards
from jaxmbs.simulate.impacts import Impact, struck
from jaxmbs.simulate.locating import Facts, Search, any_of, chosen, first_of, outcome, passed_peak, pick
from jaxmbs.simulate.log import Events, entered, with_loss
from jaxmbs.simulate.loops import varied
from jaxmbs.simulate.mode_changes import closes, next_mode
from jaxmbs.simulate.pace import Pace
from jaxmbs.simulate.run_state import AFTER_JUMP, ON_GRID, Happened, Judged, RunState, Tried
from jaxmbs.simulate.sampling import Samples, Sampling
from jaxmbs.simulate.steppers.base import Phase
from jaxmbs.simulate.watch import FINEST, Watch

PEEKS = 2  # steps that check whether a guard rises and falls within a step, in addition to two for each event


class Run:
    """The loop for one tree and its events, from the phase `start` in a mode.

    landed(state, cell, tried, mode, lost, before) -> (extra, kept): the new `extra` and `kept` of the state at a point
    of the grid, from those of `state`, the one before the iteration. If the fold of `of` takes events, the new extra
    also counts at events and just after velocities jumped, and before is (phase, mode, event): the mode before the
    event, and the event's index, ON_GRID or AFTER_JUMP. Otherwise before is None.

    mode: the given one with the branches of the force elements; iterations: how many are reserved; count: the most of these
    that are made, None for all.
    """

    def __init__(self, of: Functions, grid: Grid, landed: Callable[..., Any], start: Phase, mode: Mode):
        self.of, self.tree, self.grid, self.landed = of, of.tree, grid, landed
        self.catches = of.sees > 1
        self.guards = Guards(of.tree, of.flow.tau)
        self.events = of.tree.structure.events
        self.watch = Watch(of.tree, grid, self.guards)
        self.branches = Branches(self.guards, jnp.asarray(grid.t0, of.tree.dtype), start, mode)
        self.mode = self.branches.first(mode)
        self.sampling = Sampling(of.flow, grid, of.chance)
        self.impacts = any(self.watch.jumping)
        self.adaptive = of.tolerance is not None
        self.places = sum(of.most if again else 1 for again in self.watch.again)
        spare, instants = self.branches.spare, len(self.branches.instants) + len(self.watch.arming)
        more = LOCATING * self.places + instants
        more += self.places if self.impacts else 0
        more += spare + LOCATING if spare else 0
        more += of.samples
        more += 2 * (PEEKS + 2 * self.places) if self.events else 0  # twice, because each refuses another step
        steps, count = of.trials if self.adaptive else (grid.steps, grid.count)
        self.iterations, self.count = steps + more, None if count is None else count + more

    def start(self, phase: Phase, samples: Samples | None, balance: Balance, extra: Any, kept: Any) -> RunState:
        """The state before the first iteration, with a derivative for all that will have one (`loops.varied`)."""
        dtype, zero = self.tree.dtype, jnp.zeros((), self.tree.dtype)
        none, false = jnp.zeros((), jnp.int32), jnp.asarray(False)
        below, met, seen = self.watch.start(jnp.asarray(self.grid.t0, dtype), phase, self.mode)
        x = RunState(
            phase=phase, cell=none, into=zero, mode=self.mode, below=below, met=met, stuck=false,
            fired=(none,) * len(self.events), search=Search.none(zero),
            events=Events.none(self.places, self.grid.t_end, dtype) if self.places else None, count=none,
            due=none - 1 if self.impacts else None, lost=zero, done=false, t_done=zero, spare=none + self.branches.spare,
            pace=Pace.start(jnp.asarray(self.grid.first, dtype)) if self.adaptive else None, balance=balance, seen=seen,
            peak=zero + jnp.inf, misplaced=(false,) * len(self.watch.enabling), samples=samples, extra=extra, kept=kept,
        )  # fmt: skip
        of = (self.tree.model, phase)
        x = x._replace(extra=(varied(extra[0], of), *extra[1:]))
        if not below and not self.branches.corners:
            return x
        # the time of an event has a derivative, and so has everything that is multiplied by the length of a step
        found = (x.phase.work, x.search.length, x.into, x.events, x.kept, x.lost, x.t_done)
        work, length, into, events, kept, lost, t_done = varied(found, of)
        x = x._replace(phase=x.phase._replace(work=work), balance=x.balance._replace(work=work))
        seek = x.search._replace(length=length)
        return x._replace(search=seek, into=into, events=events, kept=kept, lost=lost, t_done=t_done)

    def iteration(self, x: RunState) -> RunState:
        """One trial step and its consequences."""
        if self.of.changes is not None:
            x = x._replace(mode=self.of.changes.only(x.mode))
        tried = self._try(x)
        judged = self._judge(x, tried)
        search = self._locate(x, tried, judged)
        happened = self._jump(x, tried, judged)
        return self._land(x, tried, judged, search, happened)

    def _try(self, x: RunState) -> Tried:
        """A step to the end of the cell or the next instant, or as long as the tolerance or the search for an event
        requires; or an impact."""
        start, length, end = self.grid.cell(x.cell, self.tree.dtype)
        begin, impact = start + x.into, self._impact(x)
        jumped = jnp.asarray(False) if impact is None else impact.now
        rest, searching = length - x.into, self.branches.searches(x)
        unarmed = self.watch.unarmed(self.now(x)) if self.watch.arming else {}
        waits = [*self.branches.waits(x.mode, begin), *unarmed.values()]
        waits += self.sampling.waits(x.samples, begin, rest)
        instant = first_of(waits, [jnp.asarray(True)] * len(waits))
        short = jnp.asarray(False)
        if waits:
            wait = pick(instant, waits)
            short = wait < rest
            rest = jnp.where(short, wait, rest)
        whole, cut = (rest, jnp.asarray(False)) if x.pace is None else x.pace.within(rest)
        looking = (x.peak < whole) & ~searching
        whole, cut = jnp.where(looking, x.peak, whole), cut | looking
        h = jnp.where(jumped, 0.0, jnp.where(searching, x.search.length, whole))
        t = jnp.where(jumped | searching | short | cut, begin + h, end)
        step = self.of.advance(x.phase, begin, h, x.mode, impact)
        fails = jnp.asarray(False) if x.pace is None else ~x.done & ~jumped & ~(step.error <= 1)
        return Tried(begin, h, t, length, rest, searching, looking, jumped, short, cut, instant, unarmed, step, fails)

    def _judge(self, x: RunState, tried: Tried) -> Judged:
        """The guards at the end of the step, and the decision that they lead to."""
        dtype, h, t, phase = self.tree.dtype, tried.h, tried.t, tried.step.phase
        g, slope = ([y for group in z for y in group] for z in self.guards.with_rates(t, phase, x.mode))
        for corner, rate in self.guards.of_corners(t, phase, x.mode):
            g, slope = [*g, corner], [*slope, rate]
        slope = [jax.lax.stop_gradient(s) for s in slope]
        may = [self.watch.may_happen(x, k, tried.unarmed) for k in range(len(self.events))]
        armed = self.watch.armed(x, may) + self.branches.armed(x)
        if not g:  # there are only instants, which need not be located
            g, slope, armed = [-jnp.ones((), dtype)], [jnp.zeros((), dtype)], [jnp.asarray(False)]
        finest = jnp.maximum(FINEST * tried.length, 4 * jnp.finfo(dtype).eps * jnp.abs(t))
        at = [h - y / jnp.where(s == 0, 1.0, s) for y, s in zip(g, slope, strict=True)]
        peak = passed_peak(x.seen, h, g, slope, armed)
        hides = (peak < h) & ~tried.looking
        facts = Facts(
            done=x.done, jumped=tried.jumped, fails=tried.fails, hides=hides, on=tried.searching, short=tried.short,
            cut=tried.cut, room=x.count < self.places, guard=x.search.guard, settled=x.search.settled, h=h, finest=finest,
            enough=x.search.enough(), values=tuple(g), rates=tuple(slope), at=tuple(at), armed=tuple(armed),
            corners=len(x.below),
        )  # fmt: skip
        return Judged(g, slope, at, armed, may, finest, peak, outcome(facts))

    def _locate(self, x: RunState, tried: Tried, judged: Judged) -> Search:
        """The search for what was met within the step, if it goes on."""
        out = judged.out
        at, value, rate = (pick(out.found, y) for y in (judged.at, judged.values, judged.rates))
        found = x.search.after(tried.h, at, value, rate, judged.finest, tried.rest, tried.searching, out)
        return chosen(out.ahead, found, Search.none(tried.rest))

    def _jump(self, x: RunState, tried: Tried, judged: Judged) -> Happened:
        """The changes by the event or switching surface that is met at the end of the step."""
        out, phase = judged.out, tried.step.phase
        at_corner = out.found >= len(x.below)
        event = pick(out.found, [jnp.full((), k, jnp.int32) for k in self.watch.of_guard]) if self.events else out.found
        now = [out.happens & ~at_corner & (event == k) for k in range(len(self.events))]
        closed = [closes(self.tree, e, phase.v) for e in self.events]
        mode = next_mode(self.tree, x.mode, now, closed)
        mode = replace(mode, sides=self.branches.after(x, tried, judged))
        due, dropped = None, jnp.zeros((), self.tree.dtype)
        if self.impacts:
            strikes = any_of([n for n, jumps in zip(now, self.watch.jumping, strict=True) if jumps])
            due = jnp.where(strikes, event, -1)
        if self.events:
            before = chosen(tried.jumped, x.phase, tried.step.phase)
            dropped = self._energy(tried.t, before, x.mode) - self._energy(tried.t, phase, mode)
            dropped = jnp.where(out.happens | tried.jumped, dropped, 0.0)
        return Happened(at_corner, out.happens & ~at_corner, event, now, closed, mode, due, dropped)

    def _land(self, x: RunState, tried: Tried, judged: Judged, search: Search, happened: Happened) -> RunState:
        """The state after the iteration: at the end of the step if it is accepted, otherwise where it was, with a
        search or a shorter step to come."""
        out, step, jumped, now = judged.out, tried.step, tried.jumped, happened.now
        moves = out.happens | out.arrives | jumped
        below = self.watch.below(x, tried, judged, happened)
        met, stuck = self.watch.rests(x, tried, judged, happened)
        finishes = any_of([n for n, e in zip(now, self.events, strict=True) if any(a.finishes for a in e.then)])
        cell = x.cell + out.lands
        done = x.done | (cell >= self.grid.number) | (out.happens & finishes) | stuck
        pace = x.pace
        if pace is not None:
            h, t, error = jax.lax.stop_gradient((tried.h, tried.t, step.error))
            order = self.of.stepper.error_order or 0
            pace = pace.after(h, t, error, order, moves & ~jumped, tried.fails)
            done |= pace.stalled
        lost = x.lost + happened.dropped
        due = self.sampling.due(x.samples, tried.t, out.arrives)
        ended, samples = step.phase, x.samples
        if samples is not None:
            ended, samples = self.sampling.after(step.phase, tried.t, happened.mode, due, samples)
            jump = self._energy(tried.t, step.phase, happened.mode) - self._energy(tried.t, ended, happened.mode)
            lost += jnp.where(any_of(due), jump, 0.0)
            tried = tried._replace(step=step._replace(phase=ended))
            mode = self.branches.after_samples(tried.t, ended, happened.mode, self.sampling.written, any_of(due))
            happened = happened._replace(mode=mode)
        ends = moves & ((out.happens & finishes) | stuck) & ~x.done
        if happened.due is not None:
            ends &= happened.due < 0
        extra, kept = self._kept(x, cell, tried, judged, happened, lost, ends)
        seen = zip(self.watch.seen(judged, now), x.seen, strict=True)
        return x._replace(
            phase=chosen(moves, ended, x.phase), cell=cell, mode=happened.mode,
            into=jnp.where(moves & ~out.lands, x.into + tried.h, jnp.where(out.lands, 0.0, x.into)),
            below=tuple(chosen(moves, b, old) for b, old in zip(below, x.below, strict=True)),
            met=tuple(chosen(moves, m, old) for m, old in zip(met, x.met, strict=True)), stuck=x.stuck | stuck,
            fired=tuple(f + (n & over) for f, n, over in zip(x.fired, now, happened.closed, strict=True)),
            search=search, events=self._log(x, tried, happened), count=x.count + happened.logged, due=happened.due,
            lost=lost, done=done, t_done=jnp.where(x.done, x.t_done, tried.t),
            spare=x.spare - (~out.arrives & ~tried.fails & ~x.done & happened.at_corner), pace=pace,
            balance=chosen(jumped, x.balance, x.balance.seen(step.kinetic, x.phase.work)),
            seen=tuple(chosen(moves, new, old) for new, old in seen), peak=jnp.where(out.looks, judged.peak, jnp.inf),
            misplaced=self.watch.misplaced(x, tried), extra=extra, kept=kept,
            samples=samples,
        )  # fmt: skip

    def _log(self, x: RunState, tried: Tried, happened: Happened) -> Events | None:
        """The log after the iteration."""
        if x.events is None:
            return None
        place, latest = (jnp.arange(self.places) == k for k in (x.count, x.count - 1))
        late = zip(happened.now, happened.closed, self.watch.rebounding, strict=True)
        thrown = [n & ~c for n, c, rebounds in late if rebounds]
        place, rebounded = place & happened.logged, any_of(thrown) if thrown else None
        events = entered(x.events, place, tried.t, happened.event, happened.dropped, rebounded)
        return with_loss(events, latest & tried.jumped, happened.dropped)

    def _kept(
        self, x: RunState, cell: Any, tried: Tried, judged: Judged, happened: Happened, lost: Any, ends: Any
    ) -> Any:
        """(extra, kept) after the iteration. ends: whether the run ends at an instant within the cell, with no impact to
        follow."""
        out, jumped, phase = judged.out, tried.jumped, tried.step.phase
        caught = happened.logged if self.catches and self.events else jnp.asarray(False)
        last = ends | (jumped & x.done)  # the run ends with the velocities after its last impact
        instant = jnp.where(caught, happened.event, jnp.where(jumped & ~last, AFTER_JUMP, ON_GRID))
        before = (phase, chosen(caught, x.mode, happened.mode), instant) if self.catches else None
        extra, kept = self.landed(x, cell, tried, happened.mode, lost, before)
        here = out.lands | caught | jumped if self.catches else out.lands | last
        return chosen(here, extra, x.extra), chosen(out.lands, kept, x.kept)

    def _impact(self, x: RunState) -> Impact | None:
        """The impact of this iteration, or None if no event of the model has one."""
        if x.due is None:
            return None
        picks = [x.due == k for k in range(len(self.events))]
        closed = [closes(self.tree, e, x.phase.v) for e in self.events]
        return Impact(x.due >= 0, *struck(self.tree, x.phase.v, picks, closed))

    def _energy(self, t: Any, phase: Any, mode: Mode) -> Any:
        return sum(self.of.energy(t, phase, mode))

    @staticmethod
    def ended(x: RunState) -> Any:
        """Whether the instance is done and no impact remains to be computed."""
        return x.done if x.due is None else x.done & (x.due < 0)

    def now(self, x: RunState) -> Any:
        """The time [s] of an instance between two iterations."""
        start = self.grid.begins(x.cell, self.tree.dtype)
        return jnp.where(x.done, x.t_done, start + x.into)
