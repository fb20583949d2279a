"""The functions of a model that an FMU calls: the loop of trial steps for co-simulation; rates, event indicators and the
next known instant for model exchange.

The loop is that of `simulate`: what it carries from one iteration to the next is the state of the FMU. In model exchange it
makes the events: its steps then have no length, and it goes on until nothing more happens at that instant.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.building import set as with_values
from jaxmbs.dynamics.constrained.constraints import tree_of
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model, ModelError, get
from jaxmbs.simulate.balance import Balance
from jaxmbs.simulate.chance import needs_key
from jaxmbs.simulate.functions import Functions, finite
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.locating import Search
from jaxmbs.simulate.mode_changes import Changes, all_held, start_mode
from jaxmbs.simulate.run import Run
from jaxmbs.simulate.run_state import RunState
from jaxmbs.simulate.start import with_states
from jaxmbs.simulate.steppers import Flow, stepper_for
from jaxmbs.simulate.steppers.base import Phase

ENDLESS = 1 << 20  # cells of the grid: more than any communication step has
EACH = 16  # how often an event that repeats may happen within a communication step


class IntegratedModel(NamedTuple):
    """A model and the method that integrates it. All functions are of one instance; x: coordinates, their rates, then the
    states of elements with memory; tau (nv,): generalized forces; values: those of the parameters that can be changed."""

    model: Model
    method: str

    @property
    def start(self) -> np.ndarray:
        """The states of elements at the start, as a part of x."""
        own = [np.ravel(np.asarray(get(self.model, p.name), float)) for p in self.model.structure.states]
        return np.concatenate([np.zeros(0), *own])

    def rates(self, t: Any, x: Any, tau: Any, values: Mapping[str, Any], state: RunState) -> Any:
        """dx/dt, with the locks, switches and sides of a state of the loop."""
        found, _ = self._flow(tau, values).derivative(self._phase(x), t, self._mode(state))
        return self._x(found)

    def indicators(self, t: Any, x: Any, tau: Any, values: Mapping[str, Any], state: RunState) -> Any:
        """The event indicators: an event or a change of side is due where one of them changes its sign. If there are none,
        one number without a meaning, because a program needs a result."""
        found = [value for _, value in self._indicated(t, x, tau, values, state)]
        return jnp.stack(found or [jnp.zeros(())])

    def slopes(
        self, t: Any, x: Any, tau: Any, values: Mapping[str, Any], state: RunState, dt: Any, dx: Any, dtau: Any,
        along: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        """The derivatives of `rates`, then of `indicators`, along dt, dx, dtau, and `along` for the parameters."""

        def both(t: Any, x: Any, tau: Any, values: Mapping[str, Any]) -> Any:
            return jnp.concatenate([f(t, x, tau, values, state) for f in (self.rates, self.indicators)])

        return jax.jvp(both, (t, x, tau, dict(values)), (dt, dx, dtau, dict(along)))[1]

    def next(self, t: Any, x: Any, tau: Any, values: Mapping[str, Any], state: RunState) -> Any:
        """The next instant [s] that is known beforehand: of a condition on time, of an event that is armed then, of a force
        element, of a controller. Infinite if there is none; of controllers, it may have passed."""
        run, mode = self._run(t, jnp.zeros(()), self._phase(x), tau, values, state.mode), self._mode(state)
        dues = [e.when.due(run.tree.values.of(e.name, e.when.numbers)) for e in run.events]
        later = [
            jnp.where(fired > 0, jnp.inf, jnp.asarray(due, jnp.float64))
            for due, fired in zip(dues, state.fired, strict=True)
            if due is not None
        ]
        later += run.watch.arming.values()
        later += [t + wait for wait in run.branches.waits(mode, t)]
        due = [t + wait for wait in run.sampling.waits(state.samples, t, jnp.inf)]
        later = [jnp.where(instant > t, instant, jnp.inf) for instant in later]
        return functools.reduce(jnp.minimum, [*later, *due], jnp.asarray(jnp.inf))

    def watched(self, values: Mapping[str, Any]) -> list[str]:
        """The name of the event or force element of each event indicator."""
        zero, names = jnp.zeros(()), []

        def found(x: Any, values: Mapping[str, Any]) -> Any:
            tau = jnp.zeros(self.model.nv)
            state, _ = self.begin(zero, x, tau, values)
            names.extend(name for name, _ in self._indicated(zero, x, tau, values, state))
            return zero

        jax.eval_shape(found, jnp.zeros(self.model.nq + self.model.nv + len(self.start)), dict(values))
        return names

    def _indicated(self, t: Any, x: Any, tau: Any, values: Mapping[str, Any], state: RunState) -> list[tuple[str, Any]]:
        """The event indicators with the names of their events and elements.

        They are the guards, with three exceptions. A condition on time has none (`next`). That of an event that is over is
        constant. That of a stop on which a joint rests changes its sign where the guard exceeds rounding: there the joint
        leaves the stop, or has wrongly passed it."""
        phase, mode = self._phase(x), self._mode(state)
        run = self._run(t, jnp.zeros(()), phase, tau, values, mode)
        run.watch.start(t, phase, mode)  # which finds the guards
        stops, out = run.watch.stops, []
        guards = [g for group in run.guards.values(t, phase, mode) for g in group] if run.events else []
        for i, (k, g, below) in enumerate(zip(run.watch.of_guard, guards, state.below, strict=True)):
            event = run.events[k]
            over = jnp.asarray(False) if event.repeat else state.fired[k] > 0
            if i in stops:
                met = state.met[stops.guards.index(i)]
                g = jnp.where(met & ~below, stops.near - jnp.abs(g), jnp.where(over & ~met, -1.0, g))
            else:
                g = jnp.where(over, -1.0, g)
            if event.when.due(run.tree.values.of(event.name, event.when.numbers)) is None:
                out.append((event.name, g))
        corners = zip(run.branches.corners, run.guards.of_corners(t, phase, mode), strict=True)
        return out + [(self.model.structure.forces[k].name, g) for (k, _), (g, _) in corners]

    def _mode(self, state: RunState) -> Mode:
        return self.changes().only(state.mode)

    def begin(self, t: Any, x: Any, tau: Any, values: Mapping[str, Any]) -> tuple[RunState, Any]:
        """(the state of the loop before its first iteration, x after the samples at the start)."""
        phase = self._phase(x)
        run = self._run(t, jnp.asarray(1.0), phase, tau, values)
        phase, samples = run.sampling.start(phase, t, run.mode)
        run.mode = run.branches.after_samples(t, phase, run.mode, run.sampling.written, jnp.asarray(True))
        one = jnp.ones(2) if run.tree.structure.constrained else None
        kinetic = run.of.energy(t, phase, run.mode)[0]
        balance = Balance.start(kinetic, phase.work)
        return run.start(phase, samples, balance, (jnp.zeros(()), one), None), self._x(phase)

    def step(self, state: RunState) -> RunState:
        """The state before the first iteration of another communication step."""
        zero, none = jnp.zeros(()), jnp.zeros((), jnp.int32)
        run = self._run(zero, jnp.ones(()), state.phase, jnp.zeros(self.model.nv), {}, state.mode)
        spare, search = none + run.branches.spare, Search.none(zero)
        return state._replace(search=search, cell=none, into=zero, count=none, spare=spare)

    def placed(self, t: Any, x: Any, tau: Any, values: Mapping[str, Any], state: RunState) -> RunState:
        """The state before the first iteration of the events at time t, where an importer has brought the motion to x."""
        state = self.step(state)
        state = state._replace(phase=self._phase(x)._replace(work=state.phase.work))
        if (sides := state.mode.sides) is None:
            return state
        run = self._run(t, jnp.zeros(()), state.phase, tau, values, state.mode)
        # a run flips the sides of an instant at the end of the step that leads to it, and here there is no such step
        flips: list[list[Any]] = [[False] * n for n in sides.counts]
        for (k, j, _), wait in zip(run.branches.instants, run.branches.waits(state.mode, t), strict=True):
            flips[k][j] = wait <= 0
        return state._replace(mode=replace(state.mode, sides=sides.flipped(flips)))

    def iterate(self, t: Any, h: Any, state: RunState, tau: Any, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """(state, x, whether nothing more is left to compute, the time then, what is wrong) after one iteration of a
        communication step that begins at t, with steps of length h; h = 0: of the events at t. What is wrong: 0 nothing,
        1 numbers are not finite, 2 the motion would pass a stop on which it rests, 3 a controller gave a value that a
        parameter cannot have, 4 constraints were violated when an event switched them on."""
        run = self._run(t, h, state.phase, tau, values, state.mode)
        run.watch.start(t, state.phase, state.mode)  # which finds the guards; their values are in the state
        new = run.iteration(state)
        refused = jnp.asarray(False) if new.samples is None else new.samples.refused
        misplaced = functools.reduce(jnp.logical_or, new.misplaced, jnp.asarray(False))
        wrong = jnp.where(misplaced, 4, jnp.where(refused, 3, jnp.where(new.stuck, 2, 0)))
        wrong = jnp.where(finite(run.tree, new.phase), wrong, 1).astype(jnp.int32)
        return new, self._x(new.phase), run.ended(new), new.t_done, wrong

    def changes(self) -> Changes:
        """What may be locked and switched."""
        return Changes.of(self.model.structure, all_held(self.model, ()))

    def _flow(self, tau: Any, values: Mapping[str, Any]) -> Flow:
        model = with_states(with_values(self.model, values), jnp.float64)
        tree = tree_of(model, jnp.float64) if model.structure.constrained else Tree(model, jnp.float64)
        tree.lockable = self.changes().lockable(model.structure)
        return Flow(tree, tau)

    def _phase(self, x: Any) -> Phase:
        nq, nv, own, at = self.model.nq, self.model.nv, [], 0
        memory = list(x[nq + nv :])
        for p in self.model.structure.states:
            size = math.prod(p.shape)
            own.append(tuple(memory[at : at + size]))
            at += size
        return Phase(list(x[:nq]), list(x[nq : nq + nv]), jnp.zeros(()), tuple(own))

    def _x(self, phase: Phase) -> Any:
        parts = [phase.q, phase.v, *phase.states]
        return jnp.stack([jnp.asarray(c, jnp.float64) for part in parts for c in list(part)])

    def _run(self, t: Any, h: Any, phase: Phase, tau: Any, values: Mapping[str, Any], mode: Mode | None = None) -> Run:
        """The loop from a phase on; mode: None for that of the start."""
        flow, changes = self._flow(tau, values), self.changes()
        if mode is None:
            mode = start_mode(self.model, None, all_held(self.model, ())) or Mode(None, None, None)
        by = stepper_for(self.method, self.model, None)
        of = Functions(flow, by, None, (0, None), EACH, 0, changes, None, None, 0, None, 0)
        end = t + jnp.where(h > 0, ENDLESS * h, 1.0)  # a run takes samples only before its end
        return Run(of, Grid(t, end, h, h, h, ENDLESS), lambda x, *_: (x.extra, x.kept), phase, mode)


def checked(model: Model, where: str) -> None:
    """Refuse models whose motion an FMU cannot carry on."""
    if said := needs_key(model.structure):
        raise ModelError(f"{where}: {said}, and an FMU has no random numbers; leave out the noise")
