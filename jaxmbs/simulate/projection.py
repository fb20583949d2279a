"""Projection of positions and velocities onto the constraints, in the metric of the mass matrix."""

from __future__ import annotations

import operator
from typing import Any

import jax.numpy as jnp

from jaxmbs.dynamics.constrained.constraints import constraints
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.dynamics.state.vectors import each
from jaxmbs.model import Mode
from jaxmbs.simulate.manifold import moved
from jaxmbs.spatial.scalar import Scalar


def projected(tree: Tree, q: Any, v: Any, t: Scalar, mode: Mode | None) -> tuple[Any, Any, Any]:
    """The nearest (q, v) in the metric of the mass matrix that satisfies the constraints, and `Metric.conditioning`.

    One iteration of Newton's method corrects the positions: it squares the error of a step. Then the velocities are
    projected. Differentiating the iteration gives the implicit derivative.
    """
    state = State(tree, q, v, t, mode)
    held = constraints(state).of_positions()
    if held.holonomic.any():
        q = moved(state, held.metric().closest(None, each(operator.neg, held.residual))[0])
    found = constraints(State(tree, q, v, t, mode))
    metric = found.metric()
    change, _ = metric.closest(None, each(operator.neg, found.rate))
    return q, each(operator.add, v, change), metric.conditioning()


def violation(tree: Tree, q: Any, v: Any, t: Scalar, mode: Mode | None) -> Any:
    """Largest residual: of the position [m, rad] for holonomic rows, of the velocity [m/s, rad/s] for others."""
    found = constraints(State(tree, q, v, t, mode)).violation
    return jnp.max(jnp.abs(tree.vector(found)), initial=0.0) if len(found) else jnp.zeros((), tree.dtype)
