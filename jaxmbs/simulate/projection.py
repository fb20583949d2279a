"""Projection of positions and velocities onto the constraints, in the metric of the mass matrix."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxmbs.dynamics.constrained.constraints import Constraints, constraints, residuals, velocities
from jaxmbs.dynamics.constrained.metric import Metric
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.simulate.manifold import moved
from jaxmbs.spatial.scalar import Scalar


def projected(tree: Tree, q: Any, v: Any, t: Scalar, mode: Mode | None, iterations: int = 1) -> tuple[Any, Any, Any]:
    """The nearest (q, v) in the metric of the mass matrix that satisfies the constraints, and `Metric.conditioning`.

    Newton's method corrects the positions (one iteration after a step of an integrator, whose error it squares), then
    the velocities are projected. Differentiating the last iteration gives the implicit derivative.
    """
    if tree.rolled:
        return _projected(tree, q, v, t, mode, iterations)
    for _ in range(iterations):
        state = State(tree, q, v, t, mode)
        found = constraints(state)
        held = _holonomic(found)
        if held.J:
            change, _ = Metric.of(state, held).closest([0.0] * len(v), tuple(-g for g in held.residual))
            q = moved(state, change)
    state = State(tree, q, v, t, mode)
    found = constraints(state)
    target = tuple(-rate for rate in velocities(state, found))
    metric = Metric.of(state, found)
    change, _ = metric.closest([0.0] * len(v), target)
    return q, [a + b for a, b in zip(v, change, strict=True)], metric.conditioning()


def _projected(tree: Tree, q: Any, v: Any, t: Scalar, mode: Mode | None, iterations: int) -> tuple[Any, Any, Any]:
    """`projected` for a rolled tree, whose q and v are arrays."""
    for _ in range(iterations):
        state = State(tree, q, v, t, mode)
        held = constraints(state).of_positions()
        q = moved(state, Metric.of(state, held).closest(jnp.zeros_like(v), -held.residual)[0])
    state = State(tree, q, v, t, mode)
    found = constraints(state)
    metric = Metric.of(state, found)
    return q, v + metric.closest(jnp.zeros_like(v), -found.rate)[0], metric.conditioning()


def _holonomic(found: Constraints) -> Constraints:
    rows = [k for k, on in enumerate(found.holonomic) if on]

    def pick(x: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(x[k] for k in rows)

    parts = (found.J, found.drift, found.free, found.residual, found.holonomic)
    return Constraints(*(pick(x) for x in parts))


def violation(tree: Tree, q: Any, v: Any, t: Scalar, mode: Mode | None) -> Any:
    """Largest residual: of the position [m, rad] for holonomic rows, of the velocity [m/s, rad/s] for others."""
    state = State(tree, q, v, t, mode)
    found = residuals(state, constraints(state))
    return jnp.max(jnp.abs(tree.vector(found)), initial=0.0) if len(found) else jnp.zeros((), tree.dtype)
