"""Checks that a motion starts consistent with its constraints and locks, in positions and velocities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained.constraints import constraints, row_counts
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode


def violated(tree: Tree, q: Any, v: Any, t: Any, mode: Mode | None) -> Any:
    """Mask (constraints,), ordered as model.constraint_names, of those that the state violates by more than rounding.

    A holonomic row is violated by its residual [m, rad] or by the velocity along it [m/s, rad/s], a nonholonomic row by the
    velocity. Velocities are compared with 1 + the largest rate. Rows that a run leaves out because they depend on
    others are checked as well.
    """
    s = tree.structure
    if not s.constrained:
        return jnp.zeros(0, bool)
    if s.with_all_rows is not s:
        whole = replace(tree.model, structure=s.with_all_rows)
        tree = Tree(whole, tree.dtype, unrolled=0 if tree.rolled else len(s.links))
    state = State(tree, q, v, t, mode)
    found = constraints(state)
    rounding = float(jnp.finfo(tree.dtype).eps) ** 0.5
    moving = rounding * (1 + jnp.max(jnp.abs(tree.vector(v)), initial=0.0))
    place, rate = tree.vector(found.residual), tree.vector(found.rate)
    fine = (jnp.abs(place) <= rounding) & (jnp.abs(rate) <= moving)
    counts = row_counts(state)
    ends = np.cumsum(counts, dtype=int)  # slices: with a gather, no simulation of the mechanism would be a row program
    each = [jnp.any(~fine[end - n : end]) for n, end in zip(counts, ends, strict=True)]
    return jnp.stack(each) if each else jnp.zeros(0, bool)


def moved_apart(tree: Tree, before: Any, after: Any) -> Any:
    """Whether the projection changed coordinates by more than rounding. No time passes in an impact: coordinates then change
    only if a constraint was not satisfied."""
    old, new = jax.lax.stop_gradient((tree.vector(before), tree.vector(after)))
    eps = float(jnp.finfo(tree.dtype).eps)
    return ~(jnp.max(jnp.abs(new - old)) <= eps**0.375 + 64 * eps * jnp.max(jnp.abs(old)))


def locks_hold(tree: Tree, v: Any, mode: Mode | None) -> Any:
    """Whether the locked degrees of freedom are at rest, to rounding."""
    if mode is None or mode.lock is None:
        return jnp.asarray(True)
    still = jnp.abs(tree.vector(v)) <= float(jnp.finfo(tree.dtype).eps) ** 0.5
    return jnp.all(~mode.lock | still)
