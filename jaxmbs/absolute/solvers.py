"""The linear system of absolute coordinates, solved in three ways [Y 2.7].

    [ M   Q' ] [  X"     ]   [ F ]
    [ Q   -C ] [ -lambda ] = [ b ]

C is zero, except for a 1 in the rows that are switched off, so that their multipliers are zero. "dense": Gauss elimination
of the whole matrix; "schur": lambda = (Q M^-1 Q')^-1 (b - Q M^-1 F) [Y 2.54]; "ldl": block LDL' along the tree, linear in
the number of bodies [Y 2.60, 2.61]. If equations depend on one another, the multipliers have least norm (with "ldl",
only those of the loops).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.absolute.factors import Factors, vertices
from jaxmbs.absolute.system import System

Solution = tuple[jax.Array, jax.Array]  # X" (n, k), lambda (arcs, k)


def dense(s: System) -> Solution:
    """Gauss elimination of the whole matrix with pivoting [Y 2.50]."""
    M, Q, C = s.M, s.Q, _switches(s)
    H = jnp.block([[M, Q.T], [Q, -C]])
    x = _solved(s, H, jnp.concatenate([s.F, s.b]))
    return _parts(s, x[: len(M)], -x[len(M) :])


def schur(s: System) -> Solution:
    """Multipliers first [Y 2.54], then X" = M^-1 (F + Q' lambda) [Y 2.52]."""
    M, Q, F, b = s.M, s.Q, s.F, s.b
    if s.singular:
        # M_i of a body without inertia has no inverse; M + rho Q'Q has one, and the solution with Q X" = b is the same
        rho = jnp.trace(M) / (Q * Q).sum()
        M, F = M + rho * Q.T @ Q, F + rho * Q.T @ b
    factor = jax.scipy.linalg.cho_factor(M, lower=True)
    Y = jax.scipy.linalg.cho_solve(factor, jnp.concatenate([Q.T, F[:, None]], axis=1))
    multipliers = _solved(s, Q @ Y[:, :-1] + _switches(s), b - Q @ Y[:, -1])
    return _parts(s, Y[:, -1] + Y[:, :-1] @ multipliers, multipliers)


def ldl(s: System) -> Solution:
    """Block LDL' of the tree [Y 2.55-2.61]; the equations of loops border the tree and use their Schur complement."""
    n, k = s.force.shape
    border = [a for a, (i, _) in enumerate(s.ends) if a >= n or i < 0]
    rows = [(a, r) for a in border for r in range(s.counts[a])]
    a, r = np.asarray(rows, int).reshape(-1, 2).T
    columns = jnp.zeros((n + 1, k, len(rows)), s.force.dtype)
    ends, e = np.asarray(s.ends, int), np.arange(len(rows))
    for side, column in ((s.near, 0), (s.far, 1)):
        columns = columns.at[ends[a, column], :, e].add(side[a, r])
    Q = columns[:n]
    tree = Factors.of(vertices(s, border))
    on = jnp.asarray([x not in border for x in range(n)])[:, None]
    b = jnp.where(on, s.target[:n], 0.0)
    right = jnp.concatenate([Q, s.force[..., None]], axis=2)
    below = jnp.concatenate([jnp.zeros((n, k, len(rows)), b.dtype), b[..., None]], axis=2)
    X, negative = tree.solve(right, below)
    multipliers = jnp.zeros_like(s.target)
    if rows:
        S = jnp.einsum("ike,ikf->ef", Q, X[..., :-1]) + jnp.diag(jnp.where(s.on[a, r], 0.0, 1.0).astype(b.dtype))
        found = _solved(s, S, s.target[a, r] - jnp.einsum("ike,ik->e", Q, X[..., -1]))
        weights = jnp.concatenate([found, jnp.ones(1, b.dtype)])
        X, negative = X @ weights, negative @ weights
        multipliers = multipliers.at[a, r].set(found)
    else:
        X, negative = X[..., 0], negative[..., 0]
    return X, multipliers.at[:n].add(jnp.where(on, -negative, 0.0))


SOLVERS: dict[str, Callable[[System], Solution]] = {"dense": dense, "schur": schur, "ldl": ldl}


def with_known(s: System, known: Mapping[int, jax.Array]) -> System:
    """The system in which some bodies (by index) have a given acceleration (k,) [Y 2.3].

    Their columns move to the right-hand side. Equations between such bodies, or such a body and the world, either hold
    already or cannot hold; they are switched off, so that their multipliers are zero. Arcs that end on such a body then
    end on the world.
    """
    if not known:
        return s
    n, k = s.force.shape
    at = np.asarray(list(known), int)
    given = jnp.zeros((n + 1, k), s.force.dtype).at[at].set(jnp.stack(list(known.values())))
    target, sides, ends = s.target, [], []
    for side, end in zip((s.near, s.far), np.asarray(s.ends, int).T, strict=True):
        target = target - jnp.einsum("ark,ak->ar", side, given[end])
        fixed = np.asarray(np.isin(end, at))
        sides.append(jnp.where(fixed[:, None, None], 0.0, side))
        ends.append(np.where(fixed, -1, end))
    on = s.on & jnp.asarray(np.maximum(*ends) >= 0)[:, None]
    return replace(
        s,
        inertia=s.inertia.at[at].set(jnp.eye(k, dtype=s.force.dtype)), force=s.force.at[at].set(given[at]),
        near=sides[0], far=sides[1], target=jnp.where(on, target, 0.0), on=on,
        ends=tuple((int(i), int(j)) for i, j in zip(*ends, strict=True)),
    )  # fmt: skip


def _solved(s: System, A: jax.Array, right: jax.Array) -> jax.Array:
    """Solution x of A x = right with symmetric A; of least norm if equations of the system depend on one another."""
    if s.redundant:
        return jnp.linalg.pinv(A, rtol=float(jnp.finfo(A.dtype).eps) ** 0.8, hermitian=True) @ right
    return jnp.linalg.solve(A, right)


def _switches(s: System) -> jax.Array:
    return jnp.diag(jnp.where(s.on[s.rows], 0.0, 1.0).astype(s.force.dtype))


def _parts(s: System, X: jax.Array, multipliers: jax.Array) -> Solution:
    return X.reshape(s.force.shape), jnp.zeros_like(s.target).at[s.rows].set(multipliers)
