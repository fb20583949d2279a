"""The samples of controllers, at which a run ends a step; their commands and states are held in between."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state import State
from jaxmbs.model import Mode
from jaxmbs.model.forces.base import WORLD, Scene
from jaxmbs.model.structure import Structure
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.locating import any_of
from jaxmbs.simulate.steppers.base import Flow, Phase
from jaxmbs.spatial import Matrix3, Vector3

NEAR = 1e-9  # share of a cell of the grid within which a sample is at the end of a step


class Seen:
    """The motion at one instant (`jaxmbs.model.control.sensors.Motion`)."""

    def __init__(self, flow: Flow, phase: Phase, t: Any, mode: Mode | None):
        self.flow, self.phase, self.t, self.mode = flow, phase, t, mode
        self.scene = State(flow.tree.remembering(phase.states), phase.q, phase.v, t, mode).scene

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


class Sampling:
    """The controllers of a run."""

    def __init__(self, flow: Flow, grid: Grid):
        self.flow, self.tree, self.grid = flow, flow.tree, grid
        self.controllers = flow.tree.structure.controllers
        values, dtype = flow.tree.values, flow.tree.dtype
        self.period = [x.fixed.period for x in self.controllers]
        self.offset = [jnp.asarray(values[f"{x.name}.offset"], dtype) for x in self.controllers]

    def start(self, phase: Phase, t: Any, mode: Mode | None) -> tuple[Phase, tuple[Any, ...]]:
        """(the phase after the samples at the start, the number of the next sample of each controller)."""
        if not self.controllers:
            return phase, ()
        due = [offset <= t for offset in self.offset]
        counts = [
            jnp.where(now, jnp.floor((t - offset) / period + NEAR), -1).astype(jnp.int32) + 1
            for now, offset, period in zip(due, self.offset, self.period, strict=True)
        ]
        return self.after(phase, t, mode, due), tuple(counts)

    def _next(self, counts: tuple[Any, ...]) -> list[Any]:
        """Time [s] of the next sample of each controller."""
        return [offset + n * period for offset, n, period in zip(self.offset, counts, self.period, strict=True)]

    def waits(self, counts: tuple[Any, ...], begin: Any, rest: Any) -> list[Any]:
        """For each controller, the time [s] until its next sample; infinite if this is at the end of the cell or later."""
        waits = [jnp.maximum(time - begin, 0.0) for time in self._next(counts)]
        return [jnp.where(wait < rest - NEAR * self.grid.dt, wait, jnp.inf) for wait in waits]

    def due(self, counts: tuple[Any, ...], t: Any, arrives: Any) -> list[Any]:
        """Whether each controller samples at the end of a step."""
        return [arrives & (time <= t + NEAR * self.grid.dt) for time in self._next(counts)]

    def after(self, phase: Phase, t: Any, mode: Mode | None, due: list[Any]) -> Phase:
        """The phase after the samples that are due."""
        phase = jax.tree_util.tree_map(lambda x: jnp.asarray(x, self.tree.dtype), phase)
        return jax.lax.cond(any_of(due), lambda: self._sampled(phase, t, mode, due), lambda: phase)

    def _sampled(self, phase: Phase, t: Any, mode: Mode | None, due: list[Any]) -> Phase:
        s, tree = self.tree.structure, self.tree.remembering(phase.states)
        q, v, seen = tree.vector(phase.q), tree.vector(phase.v), Seen(self.flow, phase, t, mode)
        shapes = {p.name: p.shape for p in s.states}
        readings = {x.name: x.element.reading(tree.values.of(x.name, x.element.numbers), seen) for x in s.sensors}
        states = {p.name: x for p, x in zip(s.states, phase.states, strict=True)}
        for x, now in zip(self.controllers, due, strict=True):
            own = f"{x.name}.state"
            state = jnp.stack(list(states[own])) if own in states else None
            seen_by = {name: readings[name] for name in x.fixed.reads}
            new, found = x.fixed.updated(f"controller {x.name!r}", shapes, state, tree.model, t, q, v, seen_by)
            if state is not None:
                found = {**found, own: new}
            for name, value in found.items():
                parts = jnp.ravel(jnp.asarray(value, tree.dtype))
                states[name] = tuple(jnp.where(now, a, b) for a, b in zip(parts, states[name], strict=True))
        return phase._replace(states=tuple(states[p.name] for p in s.states))


def reserved(structure: Structure, grid: Grid) -> int:
    """Most samples that are not at the end of a cell of a grid; each takes an iteration of its own."""
    total = 0
    for x in structure.controllers:
        cells = x.fixed.period / grid.dt
        first = structure.table[f"{x.name}.offset"][0].pattern == (0,) and grid.t0 == 0
        if grid.points is not None or not first or abs(cells - round(cells)) > NEAR * cells:
            total += math.ceil(grid.steps * grid.dt / x.fixed.period) + 1
    return total
