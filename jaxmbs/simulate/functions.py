"""The functions that every run uses, with or without events."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxmbs.dynamics.recursive import energies
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.simulate.advance import Advanced, advance
from jaxmbs.simulate.balance import Balance
from jaxmbs.simulate.consistency import locks_hold
from jaxmbs.simulate.impacts import Impact
from jaxmbs.simulate.mode_changes import Changes, whole_mode
from jaxmbs.simulate.projection import violation
from jaxmbs.simulate.status import Status
from jaxmbs.simulate.steppers import Flow, Stepper
from jaxmbs.simulate.steppers.base import Phase


class Functions(NamedTuple):
    """The equations of motion of one tree, the method that integrates them, and what a run computes from the motion."""

    flow: Flow
    stepper: Stepper
    tolerance: Any  # None: the steps are those of the grid
    trials: tuple[int, Any]  # largest number of trial steps of a run with a tolerance: (room for it, see `Grid.count`)
    most: int  # how often a repeating event may happen
    levels: int  # checkpoint levels, see `repeated`
    changes: Changes | None  # None: any lock or switch may change
    fold: Any  # fn(in_fold, carry, model, t, q, v, ...), None: nothing is folded
    in_fold: Any
    samples: int  # the most instants of samples that lie within cells of the grid
    chance: Any  # the random numbers of the run (`Chance`), None: there are none
    sees: int  # number of arguments that the fold takes after the state: the mode, the event

    @property
    def tree(self) -> Tree:
        return self.flow.tree

    def advance(
        self, phase: Phase, t: Any, h: Any, mode: Mode | None, impact: Impact | None = None, to: Any = None
    ) -> Advanced:
        """A step of the motion (`advance`)."""
        return advance(self.flow, self.stepper, phase, t, h, mode, to=to, impact=impact, tolerance=self.tolerance)

    def energy(self, t: Any, phase: Phase, mode: Mode | None) -> tuple[Any, Any]:
        """(kinetic, potential) [J]."""
        state, dtype = State(self.tree.remembering(phase.states), phase.q, phase.v, t, mode), self.tree.dtype
        return jnp.asarray(energies.kinetic(state), dtype), jnp.asarray(energies.potential(state), dtype)

    def error(self, t: Any, phase: Phase, mode: Mode | None) -> Any:
        """The largest residual of the constraints."""
        tree = self.tree.remembering(phase.states)
        return violation(tree, phase.q, phase.v, t, mode) if tree.structure.constrained else jnp.zeros((), tree.dtype)

    def states(self, phase: Phase) -> dict[str, Any]:
        """The states of elements by name."""
        found = zip(self.tree.structure.states, phase.states, strict=True)
        return {p.name: self.tree.vector(list(x)).reshape(p.shape) for p, x in found}

    def folded(self, carry: Any, t: Any, phase: Phase, mode: Mode | None, event: Any = -1) -> Any:
        """The carry of the fold after one more instant."""
        if self.fold is None:
            return carry
        tree, q, v = self.tree.remembering(phase.states), phase.q, phase.v
        model = tree.model
        now = (whole_mode(model, mode or Mode(None, None, None)), jnp.asarray(event, jnp.int32))[: self.sees]
        return self.fold(self.in_fold, carry, model, t, tree.vector(q), tree.vector(v), *now)

    def status(
        self, phase: Phase, broken: Any, v0: Any, mode: Mode | None, least: Any, balance: Balance, error: Any,
        potential: Any, *stopped: tuple[Any, Status],
    ) -> Any:  # fmt: skip
        """How the run ended. phase: at its end; broken: which constraints were violated; v0, mode, potential:
        velocities, mode and potential energy [J] at the start; least: smallest conditioning; error: of the energy [J];
        stopped: further reasons, as (whether it applies, its status)."""
        tree, eps = self.tree, float(jnp.finfo(self.tree.dtype).eps)
        return Status.of(
            (~finite(tree, phase), Status.NOT_FINITE),
            (jnp.any(broken) | ~locks_hold(tree, v0, mode), Status.INCONSISTENT),
            *stopped,
            (~(least >= eps ** (2 / 3)), Status.SINGULAR),
            (~balance.holds(error, potential), Status.COARSE),
        )


def finite(tree: Tree, phase: Phase) -> Any:
    """Whether q, v and the states of elements are finite."""
    numbers = (phase.q, phase.v, [x for own in phase.states for x in own])
    return functools.reduce(jnp.logical_and, [jnp.all(jnp.isfinite(tree.vector(x))) for x in numbers])
