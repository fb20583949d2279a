"""The differential equation of a tree and one Runge-Kutta step of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constrained import constraints
from jaxmbs.dynamics.constrained.multipliers import accelerations as constrained_accelerations
from jaxmbs.dynamics.recursive import energies
from jaxmbs.dynamics.recursive.accelerations import accelerations
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.simulate.manifold import normalised
from jaxmbs.spatial.scalar import Scalar, add

Flat = Any  # a list of scalars, or an array for trees with rolled blocks
Phase = tuple[Flat, Flat, Scalar]  # q, v, work of what is not conservative

_STAGES = ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6))  # (fraction of the step, weight)


def derivative(tree: Tree, phase: Phase, t: Scalar, tau: Any, mode: Mode | None, baumgarte: Any) -> tuple[Phase, State]:
    """d(q, v, work)/dt, and the state it belongs to; tau is None, a vector, or a function (model, t, q, v)."""
    q, v, _ = phase
    state = State(tree, q, v, t, mode)
    if callable(tau):
        tau = tau(tree.model, t, tree.vector(q), tree.vector(v))
    driven: Scalar = 0
    if tree.structure.constrained:
        a, multipliers, found = constrained_accelerations(state, tau, baumgarte=baumgarte)
        # constraints that move in time do work: lambda . (J v) = -lambda . free
        driven = constraints.power(found, tuple(multipliers))
    else:
        a = accelerations(state, tau)
    rates = tree.flat([m.rates for m in state.motions])
    return (rates, a, add(energies.power(state, tau, a), driven)), state


def runge_kutta_4(
    tree: Tree, phase: Phase, t: Scalar, h: Scalar, tau: Any, mode: Mode | None, baumgarte: Any = None
) -> tuple[Phase, Any]:
    """One classical step of length h [s], and the kinetic energy before it; unit quaternions are restored at its end.

    The stages work in the ambient coordinates: a quaternion off the unit sphere means q/|q|, and its rate keeps |q|,
    so that the order is four on the manifold too.
    """
    zero = jax.tree_util.tree_map(jnp.zeros_like, phase)

    def stage(carry: tuple[Phase, Phase], coefficients: tuple[Scalar, Scalar]) -> tuple[tuple[Phase, Phase], Any]:
        slope, total = carry
        fraction, weight = coefficients
        here = _along(phase, slope, fraction * h)
        found, state = derivative(tree, here, t + fraction * h, tau, mode, baumgarte)
        slope = _arrays(found, tree.dtype)
        return (slope, _along(total, slope, weight)), jnp.asarray(energies.kinetic(state), tree.dtype)

    fractions, weights = (jnp.asarray(c, tree.dtype) for c in zip(*_STAGES, strict=True))
    (_, mean), kinetic = jax.lax.scan(stage, (zero, zero), (fractions, weights))
    q, v, work = _along(phase, mean, h)
    return (normalised(tree, q), v, work), kinetic[0]


def _along(x: Any, slope: Any, h: Scalar) -> Any:
    return jax.tree_util.tree_map(lambda a, b: a + h * b, x, slope)


def _arrays(x: Any, dtype: Any) -> Any:
    return jax.tree_util.tree_map(lambda a: jnp.asarray(a, dtype), x)
