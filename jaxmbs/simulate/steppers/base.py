"""The interface of integration methods, and the differential equation that a run passes to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constrained.multipliers import accelerations as constrained_accelerations
from jaxmbs.dynamics.recursive import aba, energies
from jaxmbs.dynamics.state import State, memory
from jaxmbs.dynamics.state.state import Struck
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.model.structure import Structure
from jaxmbs.simulate.loops import varied
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar

Flat = Any  # a list of scalars, or an array for trees with rolled blocks


class Phase(NamedTuple):
    """What a step advances. work: of the non-conservative effects [J]; states: those of the elements that have memory,
    the components of each, in the order of `Structure.states`."""

    q: Flat
    v: Flat
    work: Scalar
    states: Any = ()


class Trial(NamedTuple):
    """A step that may be refused. phase: at its end; kinetic: kinetic energy [J] at its start; error: (q, v,
    states) minus those of the embedded method, or None."""

    phase: Phase
    kinetic: Any
    error: tuple[Flat, Flat, Any] | None


@dataclass(frozen=True)
class Flow:
    """The differential equation of a tree. tau: None, a vector (nv,), or a function (model, t, q, v); baumgarte: see
    `simulate`.

    impulse: None, or (now, jumps, before). If `now` is true, the step is an impact: q stays as it is, and the
    velocities jump from `before`. jumps: those of locked degrees of freedom, which are prescribed. In place of dv/dt,
    `derivative` then returns the jump, the same at every point of the step (`Stepper.impulses`).
    """

    tree: Tree
    tau: Any
    baumgarte: Any = None
    impulse: tuple[Any, Any, Any] | None = None

    def force(self, tree: Tree, t: Scalar, q: Flat, v: Flat) -> Any:
        """tau at time t: a vector (nv,) or None."""
        return self.tau(tree.model, t, tree.vector(q), tree.vector(v)) if callable(self.tau) else self.tau

    @property
    def works(self) -> bool:
        """Whether something may add or remove energy, judged by the structure alone."""
        return self.tau is not None or bool(self.tree.structure.forces) or self.tree.structure.rheonomic

    def varied(self, phase: Phase, of: Any) -> Phase:
        """The phase at the start of a loop, with a derivative for each number that will have one (`loops.varied`)."""
        q, v, states = varied((phase.q, phase.v, phase.states), of)
        return Phase(q, v, varied(phase.work, of) if self.works else phase.work, states)

    def derivative(self, phase: Phase, t: Scalar, mode: Mode | None) -> tuple[Phase, State]:
        """(the rates of a phase, the state at which they were computed)."""
        q, v, tree = phase.q, phase.v, self.tree.remembering(phase.states)
        tau, jumps = self.force(tree, t, q, v), None
        driven: Scalar = ZERO
        if self.impulse is None:
            state = State(tree, q, v, t, mode)
        else:
            now, jumps, before = self.impulse
            state = Struck(tree, q, v, t, mode, now, before)
            tau = None if tau is None else [state.unless(tau[k]) for k in range(tree.structure.nv)]
        if tree.structure.constrained:
            a, multipliers, found = constrained_accelerations(state, tau, jumps, self.baumgarte)
            # constraints that move in time do work: lambda . (J v) = -lambda . free
            driven = found.power(multipliers)
        else:
            a = aba.forward_dynamics(state, tau, jumps)
        rates, changes = tree.flat([m.rates for m in state.motions]), memory.rates(state)
        power = energies.power(state, tau, a) + driven + memory.power(energies.total_energy, state, changes)
        if isinstance(state, Struck):
            power, changes = state.unless((power, changes))
        return Phase(rates, a, power, changes), state


class Stepper:
    """An integration method: a frozen dataclass, compared by its fields, with the method `step`.

    order: that of the method; error_order: that of its embedded method, None if it has none and therefore takes no
    tolerance.
    """

    @property
    def order(self) -> int:
        raise NotImplementedError

    @property
    def error_order(self) -> int | None:
        return None

    def impulses(self, tree: Tree) -> bool:
        """Whether `step` uses the impulse of a flow (`Flow.impulse`); otherwise impacts are computed separately."""
        return False

    def amplification(self, z: complex) -> complex | None:
        """The factor by which a step h multiplies x for x' = a x, with z = a h; None for a method that is stable wherever
        the motion is."""
        return None

    def obstacle(self, structure: Structure) -> str | None:
        """Why the method cannot integrate a mechanism, or None if it can."""
        return None

    def step(self, flow: Flow, phase: Phase, t: Scalar, h: Scalar, mode: Mode | None, estimate: bool) -> Trial:
        """One step of length h [s], which may be zero, from the phase at the time t in a mode. flow: the differential
        equation (`Flow.derivative`); estimate: whether the error is needed."""
        raise NotImplementedError


Field = Callable[[Phase, Scalar], tuple[Phase, State]]


def along(x: Any, slope: Any, h: Scalar) -> Any:
    """x + h slope."""
    return jax.tree_util.tree_map(lambda a, b: a + h * b, x, slope)


def arrays(x: Any, dtype: Any) -> Any:
    """x with its structural numbers converted to arrays, as the carry of a loop requires."""
    return jax.tree_util.tree_map(lambda a: jnp.asarray(a, dtype), x)
