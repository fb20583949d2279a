"""Eigenvalues and eigenvectors of real matrices that need not be symmetric, with their derivatives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


@jax.custom_jvp
def eigen(A: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(values (n,), right, left (n, n)): A right[:, k] = values[k] right[:, k], left[:, k]ᴴ A = values[k] left[:, k]ᴴ.

    They are ordered by magnitude; of a complex pair, the one with positive imaginary part comes first. Vectors have
    length 1, and their largest component is real. All are NaN if A is not finite. A simple eigenvalue and its vectors
    have derivatives of any order in both modes, d value = leftᴴ dA right / leftᴴ right, even if other eigenvalues are
    repeated. The derivatives of a repeated eigenvalue are not finite or, if it has as many vectors as repetitions,
    meaningless, because it has directional derivatives only. The mean over the repetitions, and the trace, are smooth.
    """
    fine = jnp.all(jnp.isfinite(A))
    values, left, right = jax.lax.linalg.eig(jnp.where(fine, A, 0.0))
    # LAPACK returns pairs with positive imaginary part first, and with bitwise equal magnitudes
    order = jnp.argsort(jnp.abs(values), stable=True)
    values, left, right = values[order], left[:, order], right[:, order]
    nan = jnp.where(fine, 0.0, jnp.nan).astype(A.dtype)
    return values + nan, _upright(right) + nan, _upright(left) + nan


def _upright(vectors: Any) -> Any:
    largest = jnp.take_along_axis(vectors, jnp.argmax(jnp.abs(vectors), axis=0)[None], axis=0)
    size = jnp.abs(largest)
    return vectors * jnp.where(size > 0, largest.conj() / jnp.where(size > 0, size, 1.0), 1.0)


@eigen.defjvp
def _eigen_jvp(primals: tuple[Any], tangents: tuple[Any]) -> Any:
    (A,), (dA,) = primals, tangents
    values, right, left = eigen(A)
    dA, A = dA.astype(right.dtype), A.astype(right.dtype)

    def one(value: Any, r: Any, y: Any) -> tuple[Any, Any, Any]:
        change = (y.conj() @ dA @ r) / (y.conj() @ r)
        dr = _turned(A, value, r, y, -(dA @ r - change * r))
        dy = _turned(A.conj().T, value.conj(), y, r, -(dA.conj().T @ y - change.conj() * y))
        return change, dr, dy

    changes, dr, dy = jax.vmap(one, (0, 1, 1), (0, 1, 1))(values, right, left)
    return (values, right, left), (changes, dr, dy)


def _turned(A: Any, value: Any, r: Any, other: Any, target: Any) -> Any:
    """The dr with (A - value) dr = target that preserves the length of r and keeps its largest component real.

    r, other: the right and left vectors of the eigenvalue; A - value, bordered by both, is nonsingular if it is simple.
    """
    n = A.shape[0]
    bordered = jnp.zeros((n + 1, n + 1), A.dtype)
    bordered = bordered.at[:n, :n].set(A - value * jnp.eye(n)).at[:n, n].set(other).at[n, :n].set(r.conj())
    dr = jnp.linalg.solve(bordered, jnp.concatenate([target, jnp.zeros(1, A.dtype)]))[:n]
    at = jnp.argmax(jnp.abs(r))
    return dr - 1j * (dr[at].imag / r[at].real) * r
