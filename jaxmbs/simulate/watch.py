"""Which events may happen, and what a run stores about their guards from one iteration to the next."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.simulate.consistency import moved_apart
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.guards import Guards
from jaxmbs.simulate.locating import any_of
from jaxmbs.simulate.mode_changes import Changes, jumps, rebounding
from jaxmbs.simulate.run_state import Happened, Judged, RunState, Tried
from jaxmbs.simulate.steppers.base import Phase
from jaxmbs.simulate.stops import Stops

FINEST = 1e-10  # how exactly the time of an event is located, as a fraction of a cell


class Watch:
    """The events of one tree. of_guard: index of the event of each guard. Per event, rebounding: whether a joint may rebound
    before it is locked; again: whether it may happen several times; jumping: whether velocities jump. enabling: {event:
    mask of the constraints that it switches on}; arming: {event: time [s] from which it is armed}."""

    def __init__(self, tree: Tree, grid: Grid, guards: Guards):
        self.tree, self.grid, self.guards, self.events = tree, grid, guards, tree.structure.events
        self.rebounding = [rebounding(tree, e) for e in self.events]
        self.again = [e.repeat or late for e, late in zip(self.events, self.rebounding, strict=True)]
        self.jumping = [jumps(tree.structure, e) for e in self.events]
        self.order = [e.name for e in self.events]
        switched = [Changes.switched_on(tree.structure, e) for e in self.events]
        self.enabling = {k: on for k, on in enumerate(switched) if on.any()}
        arming = {k: tree.values[f"{e.name}.armed_from"] for k, e in enumerate(self.events) if e.waits}
        self.arming = {k: jnp.asarray(time, tree.dtype) for k, time in arming.items()}

    def start(self, t: Any, phase: Phase, mode: Mode) -> tuple[Any, Any, Any]:
        """(below, met, seen) at the start of a run (`RunState`). Also numbers the guards."""
        groups = self.guards.values(t, phase, mode) if self.events else []
        values = [g for group in groups for g in group]
        self.of_guard = [k for k, group in enumerate(groups) for _ in group]
        self.stops = Stops(self.tree, self.of_guard, self.again)
        met = self.stops.start(values)
        below = [
            jnp.asarray(True) if self.events[k].when.already else g < 0
            for k, g in zip(self.of_guard, values, strict=True)
        ]
        zero = jnp.zeros((), self.tree.dtype)  # with a zero rate, no peak is looked for
        return tuple(below), met, tuple((jax.lax.stop_gradient(g), zero) for g in values)

    def unarmed(self, now: Any) -> dict[int, Any]:
        """{event with `armed_from`: time [s] until then, infinite if that is past}."""
        return {k: self._until(time, now) for k, time in self.arming.items()}

    def _until(self, time: Any, now: Any) -> Any:
        near = jnp.maximum(FINEST * self.grid.dt, 4 * jnp.finfo(time.dtype).eps * jnp.abs(time))
        wait = time - now
        return jnp.where(wait > near, wait, jnp.inf)

    def may_happen(self, x: RunState, k: int, unarmed: dict[int, Any], again: bool = False) -> Any:
        """Whether event k may happen; again: regardless of whether it has already happened."""
        e = self.events[k]
        armed = ~x.done
        if not (e.repeat or again):
            armed &= x.fired[k] == 0
        if e.after is not None:
            armed &= x.fired[self.order.index(e.after)] > 0
        if e.waits:
            armed &= unarmed[k] == jnp.inf
        return armed

    def armed(self, x: RunState, may: list[Any]) -> list[Any]:
        """For each guard, whether it counts now: it can rise (`below`), and its event may happen."""
        return [b & may[k] for k, b in zip(self.of_guard, x.below, strict=True)]

    def seen(self, judged: Judged, now: list[Any]) -> list[tuple[Any, Any]]:
        """(value, rate) of each guard; the rate is zero just after an event, because that may have changed it."""
        values = jax.lax.stop_gradient(judged.values)
        after = any_of(now)
        return [(values[i], jnp.where(after, 0.0, judged.rates[i])) for i in range(len(self.of_guard))]

    def below(self, x: RunState, tried: Tried, judged: Judged, happened: Happened) -> list[Any]:
        """For each guard, whether it can rise from here: it is negative, or about to be. A guard that has risen while
        another event happens retains its flag. After an impact, the new velocities are decisive."""
        happens, now, phase = judged.out.happens | tried.jumped, happened.now, tried.step.phase
        g, slope = judged.values[: len(self.of_guard)], judged.rates[: len(self.of_guard)]
        if any(again and not jumps for again, jumps in zip(self.again, self.jumping, strict=True)):
            _, slopes = self.guards.with_rates(tried.t, phase, happened.mode)
            of_switches = [y for z in slopes for y in z]
            slope = [s if self.jumping[k] else o for k, s, o in zip(self.of_guard, slope, of_switches, strict=True)]
        repeats, near = any(self.again), jnp.finfo(self.tree.dtype).eps ** 0.5
        out = []
        for i, (k, y, s, b) in enumerate(zip(self.of_guard, g, slope, x.below, strict=True)):
            # at the instant of an event its guard is zero but for rounding, and the rate says where it goes from there
            again = (y < -near) | ((y <= near) & (s < 0)) if repeats else y < 0
            # a condition that also counts if it is already true waits until its event is armed
            waits = ~judged.may[k] if self.events[k].when.already else False
            later = b & ((y < 0) | happens | waits) | (y < 0)
            if i in self.stops:
                again = self.stops.leaves(y, s)
                later &= ~x.met[self.stops.guards.index(i)] | (y < -near)
            over = x.due == k if x.due is not None and self.jumping[k] else now[k]
            out.append(jnp.where(over, again, later))
        return out

    def rests(self, x: RunState, tried: Tried, judged: Judged, happened: Happened) -> tuple[tuple[Any, ...], Any]:
        """(met, stuck): per guard of a stop, whether the stop is met; whether a stop that was met would be passed."""
        if not x.met:
            return x.met, jnp.asarray(False)
        g, slope, out = judged.values, judged.rates, judged.out
        may = {i: self.may_happen(x, self.of_guard[i], tried.unarmed, again=True) for i in self.stops.guards}
        stuck = ~x.done & out.arrives & self.stops.passed(x.met, g, may)
        return self.stops.met(x.met, g, slope, out.found, happened.now, x.due, happened.closed), stuck

    def misplaced(self, x: RunState, tried: Tried) -> tuple[Any, ...]:
        """For each event that switches constraints on, whether coordinates had to change to satisfy them."""
        if not self.enabling:
            return ()
        far = tried.jumped & moved_apart(self.tree, x.phase.q, tried.step.phase.q)
        return tuple(m | (far & (x.due == k)) for m, k in zip(x.misplaced, self.enabling, strict=True))

    def violated(self, x: RunState) -> Any:
        """Mask (constraints,) of those that were violated when an event switched them on."""
        s = self.tree.structure
        out = jnp.zeros(len(s.loops) + len(s.constraints), bool)
        for m, on in zip(x.misplaced, self.enabling.values(), strict=True):
            out |= m & on
        return out
