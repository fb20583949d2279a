"""Dynamics under constraints by elimination of dependent velocities [K 6].

The rows J a + drift = 0 are solved for as many dependent accelerations as their rank, which gives a = N y + p. The
equations of motion are projected onto the independent accelerations y:

    Nᵀ A N y = Nᵀ (tau - bias - A p)

If the constraints are nonholonomic, these are Voronets' equations. The independent coordinates are chosen by complete
pivoting at every state, so that the choice cannot become singular along a motion. The accelerations do not depend on
the choice.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constrained.base import Constraints
from jaxmbs.dynamics.constrained.constraints import constraints
from jaxmbs.dynamics.recursive import crba, rnea
from jaxmbs.dynamics.state import State
from jaxmbs.spatial.factorization import solve

UNROLLED = 16  # coordinates; beyond them the projected equations are solved by LAPACK


def constrained_dynamics(state: State, tau: Any, prescribed: Any = None) -> tuple[jax.Array, jax.Array, Constraints]:
    """(accelerations, multipliers of least norm, constraints) at the state."""
    tree, nv = state.tree, state.tree.structure.nv
    found = constraints(state)
    J = found.jacobian()
    A = crba.mass_matrix(state)
    force = (0 if tau is None else tau) - tree.vector(list(rnea.inverse_dynamics(state, None)))
    target = -tree.vector(list(found.drift))

    given = jnp.zeros(nv, tree.dtype)
    open_ = jnp.ones(nv, bool)  # accelerations that the constraints may determine
    if state.lock is not None:
        open_ = ~state.lock
        given = jnp.where(open_, 0.0, given if prescribed is None else prescribed)
        target = target - J @ given
    scale = 1 / jnp.sqrt(jnp.maximum(jnp.diagonal(A), jnp.finfo(tree.dtype).tiny))
    scale = jnp.where(jnp.diagonal(A) > 0, scale, 1.0)  # a coordinate that moves no mass is not scaled
    reduced, dependent, operations = eliminate(J, open_, scale)

    free = jnp.where(open_ & (jnp.sum(dependent, 0) == 0), 1.0, 0.0)
    p = given + dependent.T @ (operations @ target)
    N = jnp.diag(free) - dependent.T @ (reduced * free[None, :])
    projected = N.T @ A @ N + jnp.diag(1 - free)
    y = _solved(projected, N.T @ (force - A @ p))
    a = N @ y + p
    basic = operations.T @ (dependent @ (A @ a - force))
    return a, _of_least_norm(basic, operations, dependent), found


def eliminate(J: jax.Array, open_: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Gauss-Jordan elimination with complete pivoting: (reduced, dependent, operations).

    J (m, n); open_ (n,): whether each column may become dependent; scale (n,): weight of each column when pivots are
    compared. dependent (m, n) has a 1 where a row determines a column. reduced = operations @ J with operations (m, m);
    its dependent columns are columns of the unit matrix. Rows that depend on others become zero.
    """
    m, n = J.shape
    size = jnp.sqrt(jnp.sum(jnp.square(J * (scale * open_)[None, :]), axis=1))
    rows = jax.lax.stop_gradient(jnp.where(size > 0, 1 / jnp.where(size > 0, size, 1.0), 0.0))
    scale = jax.lax.stop_gradient(scale)
    tolerance = float(jnp.finfo(J.dtype).eps) ** (2 / 3)
    reduced, operations = J, jnp.eye(m, dtype=J.dtype)
    dependent = jnp.zeros((m, n), J.dtype)
    for _ in range(min(m, n)):
        left = (jnp.sum(dependent, 1) == 0)[:, None] & (jnp.sum(dependent, 0) == 0)[None, :] & open_[None, :]
        worth = jnp.where(left, jnp.abs(reduced) * rows[:, None] * scale[None, :], 0.0)
        at = jnp.argmax(worth)
        found = jnp.max(worth) > tolerance
        row = jnp.where(found & (jnp.arange(m) == at // n), 1.0, 0.0).astype(J.dtype)
        column = jnp.where(found & (jnp.arange(n) == at % n), 1.0, 0.0).astype(J.dtype)
        pivot = jnp.where(found, row @ reduced @ column, 1.0)
        change = (reduced @ column - row) / pivot  # multiple of the pivot row that is subtracted from each row
        reduced = reduced - jnp.outer(change, row @ reduced)
        operations = operations - jnp.outer(change, row @ operations)
        dependent = dependent + jnp.outer(row, column)
    return reduced, dependent, operations


def _solved(A: jax.Array, b: jax.Array) -> jax.Array:
    n = len(b)
    if n > UNROLLED:
        return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(A, lower=True), b)
    x = solve([[A[i, j] for j in range(n)] for i in range(n)], [b[i] for i in range(n)])
    return jnp.stack(x) if x else b


def _of_least_norm(multipliers: jax.Array, operations: jax.Array, dependent: jax.Array) -> jax.Array:
    """The multipliers without the part that has no effect on the motion.

    That part is a combination of the rows of `operations` whose product with J is zero.
    """
    m = len(multipliers)
    if not m:
        return multipliers
    idle = (jnp.sum(dependent, 1) == 0).astype(multipliers.dtype)
    Z = operations * idle[:, None]
    return multipliers - Z.T @ _solved(Z @ Z.T + jnp.diag(1 - idle), Z @ multipliers)
