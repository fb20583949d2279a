"""As `saddle`, with arrays and LAPACK. It serves systems that cannot be eliminated joint by joint (`order`), such as those
with constraints that are functions of all coordinates, and that are too large to be written out in components, where
compile time grows with the cube of the size."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from jaxmbs.dynamics.constrained.saddle import raised, smallest

Pair = tuple[jax.Array, jax.Array]

_STEPS = 3  # more than in `saddle`: rounding grows with the size, so that the diagonal is raised by more


class Factors(NamedTuple):
    """A = L Lᵀ; Z = J L⁻ᵀ; Z Zᵀ, with raised diagonal, = V Vᵀ."""

    L: jax.Array
    Z: jax.Array
    V: jax.Array


class OfRedundant(Factors):
    """As in `saddle`."""


class Ranked(NamedTuple):
    """Singular value decomposition, left diag(sizes) right, of Z with its rows scaled to unit length, or set to 0 if
    they are only rounding. scale: the factors of the rows; used: 1 or 0, whether each column of left counts; Z: without
    scaling."""

    left: jax.Array
    sizes: jax.Array
    right: jax.Array
    scale: jax.Array
    used: jax.Array
    Z: jax.Array


def factorized(A: jax.Array, J: jax.Array, eps: float, redundant: bool = False) -> Factors:
    L = jnp.linalg.cholesky(A)
    Z = solve_triangular(L, J.T, lower=True).T
    S = Z @ Z.T
    diagonal = jnp.diagonal(S)
    floor = smallest(eps) * jnp.max(diagonal, initial=0.0)
    least = diagonal * (raised(eps, redundant) + 4 * sum(J.shape) * eps) + jnp.where(floor > 0, floor, 1.0)
    return (OfRedundant if redundant else Factors)(L, Z, jnp.linalg.cholesky(S + jnp.diag(least)))


def multiply(matrix: Pair, x: Pair) -> Pair:
    """(A a - Jᵀ lambda, J a)."""
    (A, J), (a, multipliers) = matrix, x
    return A @ a - J.T @ multipliers, J @ a


def solve(factors: Factors, right: Pair) -> Pair:
    """(a, lambda) of right = (force, target)."""
    L, Z, V = factors
    force, target = right
    z, multipliers = solve_triangular(L, force, lower=True), jnp.zeros_like(target)
    for _ in range(_STEPS + isinstance(factors, OfRedundant)):
        change = jax.scipy.linalg.cho_solve((V, True), target - Z @ z)
        z, multipliers = z + Z.T @ change, multipliers + change
    return solve_triangular(L, z, lower=True, trans=1), multipliers


def _count(sizes: jax.Array) -> jax.Array:
    return sizes > float(jnp.finfo(sizes.dtype).eps) ** 0.75 * sizes[0]


def ranked(factors: Factors, eps: float) -> Ranked:
    """The singular values, and which of them count, for `least_norm` and `conditioning`."""
    length = jnp.sqrt(jnp.sum(jnp.square(factors.Z), axis=1))
    counts = length > smallest(eps) ** 0.5 * jnp.max(length)
    scale = jnp.where(counts, 1 / jnp.where(counts, length, 1.0), 1.0)
    left, sizes, right = jnp.linalg.svd(jnp.where(counts[:, None], factors.Z * scale[:, None], 0.0))
    used = _count(sizes).astype(left.dtype)
    return Ranked(left, sizes, right, scale, jnp.zeros(len(left), left.dtype).at[: len(sizes)].set(used), factors.Z)


def conditioning(rows: Ranked) -> Pair:
    """The square of (smallest singular value that counts) / (largest): for unscaled rows, and for rows of length 1."""
    return _ratio(jnp.linalg.svd(rows.Z, compute_uv=False)), _ratio(rows.sizes)


def _ratio(sizes: jax.Array) -> jax.Array:
    largest = jnp.where(sizes[0] > 0, sizes[0], 1.0)
    return jnp.min(jnp.where(_count(sizes), jnp.square(sizes / largest), 1.0))


def multiply_transposed(J: jax.Array, x: Pair) -> Pair:
    """(lambda - J w, Jᵀ lambda) of x = (lambda, w): the equations of `least_norm`."""
    multipliers, w = x
    return multipliers - J @ w, J.T @ multipliers


def least_norm(factors: tuple[jax.Array, Factors, Ranked], right: Pair) -> Pair:
    """(lambda, w) of right = (b, p): the lambda closest to b with Jᵀ lambda = p, and w with lambda = b + J w."""
    J, of_matrix, rows = factors
    b, p = right
    count = len(rows.sizes)
    used = rows.used[:count]
    z = rows.right[:count] @ solve_triangular(of_matrix.L, p - J.T @ b, lower=True)
    own = rows.scale * (rows.left[:, :count] @ (used * z / jnp.where(used > 0, rows.sizes, 1.0)))
    idle = rows.scale[:, None] * rows.left * (1 - rows.used)[None, :]
    own = own - idle @ jnp.linalg.solve(idle.T @ idle + jnp.diag(rows.used), idle.T @ own)
    return b + own, solve(of_matrix, (jnp.zeros_like(p), own))[0]
