"""The symplectic step: stationary action over the step, in momenta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.recursive import energies, rnea
from jaxmbs.dynamics.recursive.accelerations import accelerations
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.state import Inertial
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.model.joints import Joint
from jaxmbs.model.structure import Structure
from jaxmbs.simulate.manifold import normalised
from jaxmbs.simulate.steppers.base import Flow, Phase, Stepper, Trial
from jaxmbs.simulate.steppers.charts import (
    DERIVATIVE,
    EXPONENTIAL,
    INVERSE_DERIVATIVE,
    no_group,
    per_configuration,
    transposed,
)
from jaxmbs.spatial import kernel
from jaxmbs.spatial.scalar import Scalar, add, mul, sub


@dataclass(frozen=True)
class Variational(Stepper):
    """The variational midpoint rule on the group of motions [Marsden, West 2001]: order 2, symplectic, symmetric.

    The energy of a conservative mechanism stays within a band over any number of steps, momenta of symmetries stay to
    rounding. Dissipation and driving forces act at the midpoint. iterations: of the simplified Newton method per step,
    each of two evaluations; they suffice to rounding while the step is below some tenth of the shortest period. Serves
    trees; loops and constraints are refused with a ModelError.

    >>> model = mbs.library.double_pendulum().build()
    >>> run = mbs.simulate(model, [2.0, 0.0], [0.0, 0.0], 20.0, dt=0.01, method="symplectic")
    >>> bool(np.ptp(run.energy_error[1000:]) < 1.5 * np.ptp(run.energy_error[:1000]))
    True
    """

    iterations: int = 8

    @property
    def order(self) -> int:
        return 2

    def obstacle(self, structure: Structure) -> str | None:
        if structure.constrained:
            return "it serves trees; loops and constraints need another method"
        if structure.rheonomic:
            return "a joint that moves by itself in time needs another method"
        return no_group(structure)

    def step(self, flow: Flow, phase: Phase, t: Scalar, h: Scalar, mode: Mode | None, estimate: bool) -> Trial:
        tree = flow.tree
        q, v, work = phase
        half, middle = h / 2, t + h / 2
        p = _momentum(tree, q, v)

        def acting(w: Any) -> tuple[Any, Any, Any, Any]:
            """Momentum and force in body axes at the midpoint, its configuration, and the power."""
            here = per_configuration(tree, q, _times(half, w))
            (rates, a, power), state = flow.derivative((here, w, work), middle, mode)
            one = (jax.tree_util.tree_map(lambda x: jnp.asarray(x, tree.dtype), x) for x in (rates, a))
            momentum, change = jax.jvp(lambda q, v: _momentum(tree, q, v), (here, w), tuple(one))
            return momentum, change, power, state

        def iteration(w: Any, _: Any) -> tuple[Any, None]:
            momentum, change, _, state = acting(w)
            lacking = _flat_map(sub, _start(tree, h, w, momentum, change), p)
            return _flat_map(sub, w, _velocity(tree, state.q, lacking, mode)), None

        w, _ = jax.lax.scan(iteration, v, None, length=self.iterations)
        momentum, change, power, _ = acting(w)
        end = normalised(tree, per_configuration(tree, q, _times(h, w)))
        v = _velocity(tree, end, _end(tree, h, w, momentum, change), mode)
        kinetic = jnp.asarray(energies.kinetic(State(tree, *phase[:2], t, mode)), tree.dtype)
        return Trial((end, v, work + h * power), kinetic, None)


def _momentum(tree: Tree, q: Any, v: Any) -> Any:
    """A(q) v."""
    return _arrays(tree, rnea.inverse_dynamics(Inertial(tree, q, _times(0.0, v)), v))


def _velocity(tree: Tree, q: Any, p: Any, mode: Mode | None) -> Any:
    """v with A(q) v = p in the freedoms that are not locked, zero in those that are."""
    lock = None if mode is None or mode.lock is None else Mode(mode.lock, None, None)
    return _arrays(tree, accelerations(Inertial(tree, q, _times(0.0, p), 0.0, lock), p))


def _start(tree: Tree, h: Scalar, w: Any, momentum: Any, change: Any) -> Any:
    """The momentum at the start of the step, that of the first of its two ends: -D1 of the discrete action."""
    return _per_joint(tree, _at_start, h, w, momentum, change)


def _end(tree: Tree, h: Scalar, w: Any, momentum: Any, change: Any) -> Any:
    """The momentum at the end: D2 of the discrete action."""
    return _per_joint(tree, _at_end, h, w, momentum, change)


def _per_joint(tree: Tree, fn: Any, h: Scalar, w: Any, momentum: Any, change: Any) -> Any:
    slices = tree.structure.v_slices
    parts = zip(tree.blocks, *(tree.split(x, slices) for x in (w, momentum, change)), strict=True)
    return _arrays(tree, tree.flat([fn(b.joint, h, *(tuple(x) for x in part)) for b, *part in parts]))


@kernel
def _at_start(joint: Joint, h: Scalar, w: Any, momentum: Any, change: Any) -> tuple[Scalar, ...]:
    if not joint.gives("bracket"):
        return tuple(sub(m, mul(h / 2, c)) for m, c in zip(momentum, change, strict=True))
    x, half, force = _turn(joint, h, w, momentum, change)
    carried = transposed(EXPONENTIAL, joint, [mul(-1, y) for y in half], force)
    return tuple(
        sub(a, mul(h, b))
        for a, b in zip(
            transposed(INVERSE_DERIVATIVE, joint, x, _middle(joint, h, half, momentum, force)), carried, strict=True
        )
    )


@kernel
def _at_end(joint: Joint, h: Scalar, w: Any, momentum: Any, change: Any) -> tuple[Scalar, ...]:
    if not joint.gives("bracket"):
        return tuple(add(m, mul(h / 2, c)) for m, c in zip(momentum, change, strict=True))
    x, half, force = _turn(joint, h, w, momentum, change)
    return transposed(INVERSE_DERIVATIVE, joint, [mul(-1, y) for y in x], _middle(joint, h, half, momentum, force))


def _turn(joint: Joint, h: Scalar, w: Any, momentum: Any, change: Any) -> tuple[Any, Any, Any]:
    """(h w, h w / 2, force): the force is what changes the momentum beyond its being carried along."""
    carried = transposed((0.0, 1.0), joint, w, momentum)
    force = [sub(c, x) for c, x in zip(change, carried, strict=True)]
    return [mul(h, x) for x in w], [mul(h / 2, x) for x in w], force


def _middle(joint: Joint, h: Scalar, half: Any, momentum: Any, force: Any) -> list[Scalar]:
    pushed = transposed(DERIVATIVE, joint, [mul(-1, y) for y in half], force)
    return [add(m, mul(h / 2, f)) for m, f in zip(momentum, pushed, strict=True)]


def _times(factor: Any, x: Any) -> Any:
    return jax.tree_util.tree_map(lambda y: factor * y, x)


def _flat_map(fn: Any, *x: Any) -> Any:
    return jax.tree_util.tree_map(fn, *x)


def _arrays(tree: Tree, x: Any) -> Any:
    return jax.tree_util.tree_map(lambda y: jnp.asarray(y, tree.dtype), x)
