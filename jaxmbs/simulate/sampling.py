"""The samples of controllers, at which a run ends a step; their commands and states are held in between."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state import State
from jaxmbs.model import Mode
from jaxmbs.model.forces.base import WORLD, Scene
from jaxmbs.model.structure import Structure
from jaxmbs.simulate.chance import Chance, is_noisy
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.locating import any_of
from jaxmbs.simulate.steppers.base import Flow, Phase
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar

NEAR = 1e-9  # share of a cell of the grid within which a sample is at the end of a step


class Seen:
    """The motion at one instant (`jaxmbs.model.control.sensors.Motion`)."""

    def __init__(self, flow: Flow, phase: Phase, t: Any, mode: Mode | None):
        self.flow, self.phase, self.t, self.mode = flow, phase, t, mode
        self.scene = State(flow.tree.remembering(phase.states), phase.q, phase.v, t, mode).scene
        self.normal: Sequence[Scalar] = ()

    def with_noise(self, normal: Sequence[Scalar]) -> Seen:
        """The same for a sensor with these normal numbers."""
        other = copy.copy(self)
        other.normal = normal
        return other

    def _of(self, body: str, scene: Any) -> Scene:
        return Scene(self.t, {} if body == WORLD else {body: scene.body(body)}, {}, {}, (), ())

    def coordinates(self, joint: str) -> Any:
        return self.scene.joint(joint)[0]

    def rates(self, joint: str) -> Any:
        return self.scene.joint(joint)[1]

    def point(self, body: str, local: Vector3) -> Vector3:
        return self._of(body, self.scene).point(body, local)

    def rotation(self, body: str) -> Matrix3:
        return self._of(body, self.scene).rotation(body)

    def angular(self, body: str) -> Vector3:
        return self._of(body, self.scene).angular(body)

    def specific_force(self, body: str, local: Vector3) -> Vector3:
        dtype, zero = self.flow.tree.dtype, jnp.zeros((), self.flow.tree.dtype)
        start = self.phase._replace(work=zero)
        slope, _ = self.flow.derivative(start, self.t, self.mode)
        slope = jax.tree_util.tree_map(lambda x: jnp.asarray(x, dtype), slope._replace(work=zero))

        def velocity(t: Any, phase: Phase) -> list[Any]:
            tree = self.flow.tree.remembering(phase.states)
            scene = State(tree, phase.q, phase.v, t, self.mode).scene
            return [jnp.asarray(x, dtype) for x in self._of(body, scene).velocity(body, local)]

        _, a = jax.jvp(velocity, (jnp.asarray(self.t, dtype), start), (jnp.ones((), dtype), slope))
        return Vector3.of(a) - self.flow.tree.values["gravity"]


class Samples(NamedTuple):
    """What a run knows of the samples of its controllers."""

    next: tuple[Any, ...]  # per controller: number of its next sample
    release: tuple[Any, ...]  # per controller with a delay: number of the sample whose commands take effect next
    instants: Any  # number of instants so far at which any controller sampled


class Sampling:
    """The controllers of a run. It samples at its start, but not at its end: there a run that goes on from it does."""

    def __init__(self, flow: Flow, grid: Grid, chance: Chance | None):
        self.flow, self.tree, self.grid = flow, flow.tree, grid
        s = flow.tree.structure
        self.controllers = s.controllers
        values, dtype = flow.tree.values, flow.tree.dtype
        self.period = [x.fixed.period for x in self.controllers]
        self.offset = [jnp.asarray(values[f"{x.name}.offset"], dtype) for x in self.controllers]
        names = {p.name for p in s.states}
        owners = {name.partition(".")[0] for x in self.controllers for name in x.fixed.writes}
        self.written = [k for k, f in enumerate(s.forces) if f.name in owners]
        self.delayed = [x for x in self.controllers if f"{x.name}.commands" in names]
        self.delays = [jnp.asarray(values[f"{x.name}.delay"], dtype) for x in self.delayed]
        self.chance, self.keys = chance, {} if chance is None else chance.keys

    def start(self, phase: Phase, t: Any, mode: Mode | None) -> tuple[Phase, Samples | None]:
        """The phase after the samples at the start."""
        if not self.controllers:
            return phase, None
        firsts = [*self.offset, *self._releases()]
        now, following = zip(
            *(_count(t, first, period) for first, period in zip(firsts, self._periods(), strict=True)), strict=True
        )
        n = len(self.controllers)
        samples = Samples(following[:n], following[n:], jnp.zeros((), jnp.int32))
        return self.after(phase, t, mode, list(now), samples)

    def _periods(self) -> list[float]:
        return [*self.period, *(x.fixed.period for x in self.delayed)]

    def _releases(self) -> list[Any]:
        """Times [s] at which the commands of the first samples take effect."""
        own = {x.name: offset for x, offset in zip(self.controllers, self.offset, strict=True)}
        return [own[x.name] + delay for x, delay in zip(self.delayed, self.delays, strict=True)]

    def _next(self, samples: Samples) -> list[Any]:
        """Time [s] of the next sample of each controller, then of each next effect of its commands."""
        firsts, counts = [*self.offset, *self._releases()], [*samples.next, *samples.release]
        return [first + n * period for first, n, period in zip(firsts, counts, self._periods(), strict=True)]

    def waits(self, samples: Samples | None, begin: Any, rest: Any) -> list[Any]:
        """The times [s] until what happens next; infinite if this is at the end of the cell or later."""
        if samples is None:
            return []
        waits = [jnp.maximum(time - begin, 0.0) for time in self._next(samples)]
        return [jnp.where(wait < rest - NEAR * self.grid.dt, wait, jnp.inf) for wait in waits]

    def due(self, samples: Samples | None, t: Any, arrives: Any) -> list[Any]:
        """What happens at the end of a step."""
        if samples is None:
            return []
        near = NEAR * self.grid.dt
        goes_on = arrives & (t < jnp.asarray(self.grid.t_end, self.tree.dtype) - near)
        return [goes_on & (time <= t + near) for time in self._next(samples)]

    def after(self, phase: Phase, t: Any, mode: Mode | None, due: list[Any], samples: Samples) -> tuple[Phase, Samples]:
        """The phase after the samples and the effects of commands that are due."""
        n = len(self.controllers)
        phase = jax.tree_util.tree_map(lambda x: jnp.asarray(x, self.tree.dtype), phase)
        phase = jax.lax.cond(
            any_of(due), lambda: self._sampled(phase, t, mode, due[:n], due[n:], samples), lambda: phase
        )
        following, release = (
            tuple(a + b for a, b in zip(x, y, strict=True))
            for x, y in ((samples.next, due[:n]), (samples.release, due[n:]))
        )
        return phase, Samples(following, release, samples.instants + any_of(due[:n]))

    def _sampled(
        self,
        phase: Phase,
        t: Any,
        mode: Mode | None,
        due: list[Any],
        released: list[Any],
        samples: Samples,
    ) -> Phase:
        s = self.tree.structure
        states = {p.name: x for p, x in zip(s.states, phase.states, strict=True)}
        shapes = {p.name: p.shape for p in s.states}
        for x, now in zip(self.delayed, released, strict=True):
            rest = states[f"{x.name}.commands"]
            for name in x.fixed.writes:
                own, rest = rest[: len(states[name])], rest[len(states[name]) :]
                states[name] = tuple(jnp.where(now, a, b) for a, b in zip(own, states[name], strict=True))
        phase = phase._replace(states=tuple(states[p.name] for p in s.states))
        tree = self.tree.remembering(phase.states)
        q, v, seen = tree.vector(phase.q), tree.vector(phase.v), Seen(self.flow, phase, t, mode)
        readings = {}
        for k, x in enumerate(s.sensors):
            normal = [ZERO] * x.element.draws
            if self.chance is not None and is_noisy(s, x):
                normal = self.chance.normal(k, samples.instants, x.element.draws, tree.dtype)
            readings[x.name] = x.element.reading(tree.values.of(x.name, x.element.numbers), seen.with_noise(normal))
        waiting = {x.name for x in self.delayed}
        for k, (x, now) in enumerate(zip(self.controllers, due, strict=True)):
            own = f"{x.name}.state"
            state = jnp.stack(list(states[own])) if own in states else None
            seen_by = {name: readings[name] for name in x.fixed.reads}
            key = jax.random.fold_in(self.keys[x.name], samples.next[k]) if x.name in self.keys else None
            given = tree.model, t, q, v, seen_by
            new, found = x.fixed.updated(f"controller {x.name!r}", shapes, state, given, key)
            if x.name in waiting:
                found = {f"{x.name}.commands": jnp.concatenate([jnp.ravel(found[name]) for name in x.fixed.writes])}
            if state is not None:
                found = {**found, own: new}
            for name, value in found.items():
                parts = jnp.ravel(jnp.asarray(value, tree.dtype))
                states[name] = tuple(jnp.where(now, a, b) for a, b in zip(parts, states[name], strict=True))
        return phase._replace(states=tuple(states[p.name] for p in s.states))


def _count(t: Any, first: Any, period: float) -> tuple[Any, Any]:
    """(whether one of the instants first, first + period, ... is at t, the number of the next one after t)."""
    cells = (t - first) / period
    near = jnp.round(cells)
    now = (jnp.abs(cells - near) < NEAR) & (near >= 0)
    following = jnp.where(now, near, jnp.maximum(jnp.ceil(cells), 0.0))  # `after` adds 1 to those that are due
    return now, following.astype(jnp.int32)


def reserved(structure: Structure, grid: Grid) -> int:
    """Most instants that are not at the end of a cell of a grid; each takes an iteration of its own."""
    total = 0
    for x in structure.controllers:
        cells = x.fixed.period / grid.dt
        first = structure.table[f"{x.name}.offset"][0].pattern == (0,) and grid.t0 == 0
        each = math.ceil(grid.steps * grid.dt / x.fixed.period) + 1
        if grid.points is not None or not first or abs(cells - round(cells)) > NEAR * cells:
            total += each
        total += each if f"{x.name}.commands" in structure.table else 0
    return total
