"""The samples of controllers and elements, at which a run ends a step; commands and states are held in between."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.loads import elements
from jaxmbs.model import Mode, Model, ModelError
from jaxmbs.model.field_rules import refused as value_refused
from jaxmbs.model.forces.sampled_force import SampledForce
from jaxmbs.model.model import get
from jaxmbs.model.parameters import is_traced
from jaxmbs.simulate.chance import Chance, is_noisy
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.guards import Instant
from jaxmbs.simulate.locating import any_of
from jaxmbs.simulate.steppers.base import Flow, Phase
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, where

NEAR = 1e-9  # a sample this near the end of a step, as a share of a cell, is at the end, apart from rounding
_ROUNDING = 8  # rounding errors of the time that are added to this


class SensedInstant(Instant):
    """The motion at one instant, as sensors see it (`jaxmbs.model.control.sensors.SensedInstant`)."""

    def __init__(self, flow: Flow, phase: Phase, t: Any, mode: Mode | None):
        super().__init__(State(flow.tree.remembering(phase.states), phase.q, phase.v, t, mode), flow.tau)
        self.flow, self.phase, self.mode = flow, phase, mode
        self.normal: Sequence[Scalar] = ()

    def with_noise(self, normal: Sequence[Scalar]) -> SensedInstant:
        """The same instant for a sensor whose noise has these standard normal numbers."""
        other = copy.copy(self)
        other.normal = normal
        return other

    def angular(self, body: str) -> Vector3:
        return self.state.scene.around(body).angular(body)

    def specific_force(self, body: str, local: Vector3) -> Vector3:
        dtype, zero = self.flow.tree.dtype, jnp.zeros((), self.flow.tree.dtype)
        start = self.phase._replace(work=zero)
        slope, _ = self.flow.derivative(start, self.t, self.mode)
        slope = jax.tree_util.tree_map(lambda x: jnp.asarray(x, dtype), slope._replace(work=zero))

        def velocity(t: Any, phase: Phase) -> list[Any]:
            tree = self.flow.tree.remembering(phase.states)
            scene = State(tree, phase.q, phase.v, t, self.mode).scene.around(body)
            return [jnp.asarray(x, dtype) for x in scene.velocity(body, local)]

        _, a = jax.jvp(velocity, (jnp.asarray(self.t, dtype), start), (jnp.ones((), dtype), slope))
        force, x = Vector3.of(a) - self.flow.tree.values["gravity"], self.point(body, local)
        for _, element, numbers, _, on in elements(self.state.scene, self.mode):
            free_fall = element.gravitation(numbers, self.t, x)
            if free_fall is not None:
                force = force - Vector3(*(where(on, g, 0.0) for g in free_fall))
        return force


class Samples(NamedTuple):
    """What a run knows of the samples of its controllers."""

    next: tuple[Any, ...]  # per sensor with a period, element that samples, controller: number of its next sample
    release: tuple[Any, ...]  # per controller with a delay: number of the sample whose commands take effect next
    refused: Any  # whether a controller gave a parameter a value that it cannot have, or has such a delay itself


class Sampling:
    """The controllers of a run. They sample at its start, but not at its end: a run that goes on from there takes that
    sample."""

    def __init__(self, flow: Flow, grid: Grid, chance: Chance | None):
        self.flow, self.tree, self.grid = flow, flow.tree, grid
        s = flow.tree.structure
        self.controllers = s.controllers
        values, dtype = flow.tree.values, flow.tree.dtype
        self.acting = [f.name for f in s.forces if isinstance(f.element, SampledForce)]
        self.measuring = [name for name, _ in s.clocks[: len(s.clocks) - len(self.acting) - len(s.controllers)]]
        self.period = [period for _, period in s.clocks]
        self.offset = [jnp.asarray(values[f"{name}.offset"], dtype) for name, _ in s.clocks]
        names = {p.name for p in s.states}
        owners = {name.partition(".")[0] for x in self.controllers for name in x.fixed.writes}
        self.written = [k for k, f in enumerate(s.forces) if f.name in owners]
        self.delayed = [x for x in self.controllers if f"{x.name}.commands" in names]
        self.delays = [jnp.asarray(values[f"{x.name}.delay"], dtype) for x in self.delayed]
        latest = jnp.maximum(jnp.abs(jnp.asarray(grid.t0, dtype)), jnp.abs(jnp.asarray(grid.t_end, dtype)))
        self.near = NEAR * grid.dt + _ROUNDING * jnp.finfo(dtype).eps * latest
        self.chance, self.keys = chance, {} if chance is None else chance.keys

    def start(self, phase: Phase, t: Any, mode: Mode | None) -> tuple[Phase, Samples | None]:
        """The phase after the samples at the start."""
        if not self.period:
            return phase, None
        firsts = [*self.offset, *self._releases()]
        found = (self._count(t, first, period) for first, period in zip(firsts, self._periods(), strict=True))
        now, following = zip(*found, strict=True)
        n = len(self.period)
        late = [(delay < 0) | (delay >= x.fixed.period) for x, delay in zip(self.delayed, self.delays, strict=True)]
        samples = Samples(following[:n], following[n:], any_of(late))
        return self.after(phase, t, mode, list(now), samples)

    def _count(self, t: Any, first: Any, period: float) -> tuple[Any, Any]:
        """(whether one of the instants first, first + period, ... is at t, the number of the next one after t)."""
        cells = (t - first) / period
        nearest = jnp.round(cells)
        now = (jnp.abs(cells - nearest) * period < self.near) & (nearest >= 0)
        following = jnp.where(now, nearest, jnp.maximum(jnp.ceil(cells), 0.0))  # `after` adds 1 to those that are due
        return now, following.astype(jnp.int32)

    def _periods(self) -> list[float]:
        return [*self.period, *(x.fixed.period for x in self.delayed)]

    def _releases(self) -> list[Any]:
        """Times [s] at which the commands of the first samples take effect."""
        own = {name: first for (name, _), first in zip(self.tree.structure.clocks, self.offset, strict=True)}
        return [own[x.name] + delay for x, delay in zip(self.delayed, self.delays, strict=True)]

    def _next(self, samples: Samples) -> list[Any]:
        """Time [s] of the next measurement of each sensor with a period, of the next sample of each controller, then of each
        next effect of its commands."""
        firsts, counts = [*self.offset, *self._releases()], [*samples.next, *samples.release]
        return [first + n * period for first, n, period in zip(firsts, counts, self._periods(), strict=True)]

    def waits(self, samples: Samples | None, begin: Any, rest: Any) -> list[Any]:
        """How long [s] it is until each time of `_next`; infinite if this is at the end of the cell or later."""
        if samples is None:
            return []
        waits = [jnp.maximum(time - begin, 0.0) for time in self._next(samples)]
        return [jnp.where(wait < rest - self.near, wait, jnp.inf) for wait in waits]

    def due(self, samples: Samples | None, t: Any, arrives: Any) -> list[Any]:
        """Whether each of the times of `_next` is at the end of a step."""
        if samples is None:
            return []
        goes_on = arrives & (t < jnp.asarray(self.grid.t_end, self.tree.dtype) - self.near)
        return [goes_on & (time <= t + self.near) for time in self._next(samples)]

    def after(self, phase: Phase, t: Any, mode: Mode | None, due: list[Any], samples: Samples) -> tuple[Phase, Samples]:
        """The phase after the samples and the effects of commands that are due."""
        n = len(self.period)
        phase = jax.tree_util.tree_map(lambda x: jnp.asarray(x, self.tree.dtype), phase)
        phase, refused = jax.lax.cond(
            any_of(due),
            lambda: self._sampled(phase, t, mode, due[:n], due[n:], samples),
            lambda: (phase, samples.refused),
        )
        following, release = (
            tuple(a + b for a, b in zip(x, y, strict=True))
            for x, y in ((samples.next, due[:n]), (samples.release, due[n:]))
        )
        return phase, Samples(following, release, refused)

    def _sampled(
        self,
        phase: Phase,
        t: Any,
        mode: Mode | None,
        due: list[Any],
        released: list[Any],
        samples: Samples,
    ) -> tuple[Phase, Any]:
        """(the phase, whether a value was refused up to now). Commands that waited take effect before the samples, those of
        a sample whose delay is zero just after it."""
        s = self.tree.structure
        states = {p.name: x for p, x in zip(s.states, phase.states, strict=True)}
        own = {p.name: p for p in s.states}
        first, last = len(self.measuring), len(self.measuring) + len(self.acting)
        sensors, elements_due, due, counts = due[:first], due[first:last], due[last:], samples.next[last:]
        numbers = {x.name: n for x, n in zip(self.controllers, counts, strict=True)}
        waited = [n < numbers[x.name] for x, n in zip(self.delayed, samples.release, strict=True)]
        refused = samples.refused

        def set_where(now: Any, name: str, values: Sequence[Any]) -> None:
            states[name] = tuple(jnp.where(now, a, b) for a, b in zip(values, states[name], strict=True))

        def release(which: list[Any]) -> None:
            for x, now in zip(self.delayed, which, strict=True):
                *rest, waits = states[f"{x.name}.commands"]
                set_where(now, f"{x.name}.commands", [*rest, 0.0])
                for name in x.fixed.writes:
                    first, rest = rest[: len(states[name])], rest[len(states[name]) :]
                    set_where(now & (waits > 0), name, first)

        release([now & before for now, before in zip(released, waited, strict=True)])
        phase = phase._replace(states=tuple(states[p.name] for p in s.states))
        tree = self.tree.remembering(phase.states)
        q, v, seen = tree.vector(phase.q), tree.vector(phase.v), SensedInstant(self.flow, phase, t, mode)
        readings, so_far = {}, sum(samples.next, jnp.zeros((), jnp.int32))  # the same in a run that goes on
        for k, x in enumerate(s.sensors):
            normal = [ZERO] * x.element.draws
            if self.chance is not None and is_noisy(s, x):
                normal = self.chance.normal(k, so_far, x.element.draws, tree.dtype)
            readings[x.name] = x.element.reading(tree.values.of(x.name, x.element.numbers), seen.with_noise(normal))
        for name, element, given, scene, on in elements(seen.state.scene, mode):
            if isinstance(element, SampledForce):
                now = elements_due[self.acting.index(name)] & on
                for state, value in self._of_element(name, element, given, scene).items():
                    set_where(now, state, value)
        for name, now in zip(self.measuring, sensors, strict=True):
            held = f"{name}.reading"
            set_where(now, held, list(jnp.asarray(readings[name], tree.dtype)))
            readings[name] = jnp.stack(list(states[held]))
        waiting = {x.name for x in self.delayed}
        for k, (x, now) in enumerate(zip(self.controllers, due, strict=True)):
            memory = f"{x.name}.state"
            state = jnp.stack(list(states[memory])) if memory in states else None
            seen_by = {name: readings[name] for name in x.fixed.reads}
            key = jax.random.fold_in(self.keys[x.name], counts[k]) if x.name in self.keys else None
            given = tree.model, t, q, v, seen_by
            shapes = {name: own[name].shape for name in x.fixed.writes}
            numbers = tree.values.of(x.name, x.fixed.numbers)
            new, found = x.fixed.updated(f"controller {x.name!r}", shapes, state, numbers, tree.dtype, given, key)
            for name, value in found.items():
                refused |= now & value_refused(own[name].kind, value)
            if x.name in waiting:
                commands = [*(jnp.ravel(found[name]) for name in x.fixed.writes), jnp.ones(1, tree.dtype)]
                found = {f"{x.name}.commands": jnp.concatenate(commands)}
            if state is not None:
                found = {**found, memory: new}
            for name, value in found.items():
                set_where(now, name, list(jnp.ravel(jnp.asarray(value, tree.dtype))))
        release([now & ~before for now, before in zip(released, waited, strict=True)])
        return phase._replace(states=tuple(states[p.name] for p in s.states)), refused

    def _of_element(self, name: str, element: SampledForce, numbers: Any, scene: Any) -> dict[str, list[Any]]:
        """The new values of the states of a force element that samples."""
        own = {p.name: len(p.pattern) for p in self.tree.structure.states if p.name.rpartition(".")[0] == name}
        given = {f"{name}.{state}": x for state, x in element.sampled(numbers, scene).items()}
        where = f"force {name!r}: {type(element).__name__}.sampled"
        if unknown := next((state for state in given if state not in own), None):
            raise ModelError(f"{where} gives a value of {unknown!r}, which is no state; its states are {sorted(own)}")
        moving = {f"{name}.{state}" for state in element.rates(numbers, scene)}
        for state in own:
            if (state in given) is (state in moving):
                said = "a rate and a" if state in given else "neither a rate nor a"
                raise ModelError(f"{where}: the state {state!r} has {said} value at the samples; give one of them")
        found = {state: [*(x if isinstance(x, tuple | list | Vector3) else jnp.ravel(x))] for state, x in given.items()}
        for state, values in found.items():
            if len(values) != own[state]:
                raise ModelError(f"{where} gives {len(values)} numbers for {state!r}, which has {own[state]}")
        return {state: [jnp.asarray(x, self.tree.dtype) for x in values] for state, values in found.items()}


def check_delays(model: Model) -> None:
    """Raise ModelError for a delay of a controller that was built without one: it has no place for commands that wait."""
    s = model.structure
    for x in s.controllers:
        name = f"{x.name}.delay"
        if x.fixed.writes and f"{x.name}.commands" not in s.table:
            given = get(model, name)
            if is_traced(given) or np.any(np.asarray(given)):
                raise ModelError(
                    f"controller {x.name!r}: {name!r} was set, but the controller was built without a delay; build it "
                    "with one of any length, Controller(..., delay=...), and set that"
                )


def reserved(model: Model, grid: Grid) -> int:
    """The largest possible number of instants that are not at the end of a cell of a grid; each takes an iteration of its
    own."""
    total, table = 0, model.structure.table
    for owner, period in model.structure.clocks:
        cells, name = period / grid.dt, f"{owner}.offset"
        on_grid = table[name][0].pattern == (0,) and name not in model.overrides and grid.t0 == 0
        each = math.ceil(grid.steps * grid.dt / period) + 1
        if grid.points is not None or not on_grid or abs(cells - round(cells)) > NEAR * cells:
            total += each
        total += each if f"{owner}.commands" in table else 0
    return total
