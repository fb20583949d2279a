"""The motions closest to the unconstrained ones in the metric of the mass matrix, under constraints and locks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constrained import saddle, saddle_arrays
from jaxmbs.dynamics.constrained.base import Metric
from jaxmbs.dynamics.constrained.order import LARGEST_UNROLLED
from jaxmbs.spatial import kernel
from jaxmbs.spatial.factorization import Matrix, product
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.linear import linear_solution
from jaxmbs.spatial.scalar import Scalar, either, is_number, total, vanishes, where


class MatrixMetric(Metric):
    """The equations from the mass matrix and the constraint Jacobian: in components (`saddle`), or as arrays
    (`saddle_arrays`) if they are large."""

    def __init__(
        self,
        A: Matrix,
        J: Matrix,
        dtype: Any,
        *,
        singular: bool = False,
        redundant: bool = False,
        lock: Any = None,
        prescribed: Any = None,
    ):
        self.n, self.m, self.dtype = len(A), len(J), dtype
        self.lock, self.prescribed = lock, prescribed
        # A + rho JᵀJ is definite even if A is definite only on the motions that the constraints allow
        self.weight: Scalar = _weight(A, J) if singular else ZERO
        A = _augmented(A, J, self.weight) if singular else A
        self.full_A, self.full_J = A, J
        if lock is not None:
            A = tuple(
                tuple(where(either(lock[i], lock[j]), 1.0 if i == j else 0.0, x) for j, x in enumerate(row))
                for i, row in enumerate(A)
            )
            J = tuple(tuple(where(lock[k], 0.0, x) for k, x in enumerate(row)) for row in J)
        self.eps = float(jnp.finfo(dtype).eps)
        self.unrolled = self.n <= LARGEST_UNROLLED[0] and self.m <= LARGEST_UNROLLED[1]
        self.algebra: Any = saddle if self.unrolled else saddle_arrays
        self.A, self.J = (self._given(x, self.n) for x in (A, J))
        self.held = jax.tree_util.tree_map(lambda x: x if is_number(x) else jax.lax.stop_gradient(x), (self.A, self.J))
        self.factors = self.algebra.factorized(*self.held, self.eps, redundant)

    def closest(self, force: Any, target: Any) -> tuple[list[Scalar], list[Scalar]]:
        force = (ZERO,) * self.n if force is None else force
        if not vanishes(self.weight):
            force = tuple(
                f + self.weight * total(*(row[k] * x for row, x in zip(self.full_J, target, strict=True)))
                for k, f in enumerate(force)
            )
        if self.lock is not None:
            given = self.prescribed if self.prescribed is not None else [ZERO] * self.n
            given = tuple(where(self.lock[k], given[k], 0.0) for k in range(self.n))
            carried = product(self.full_A, given)
            force = tuple(where(self.lock[k], given[k], force[k] - carried[k]) for k in range(self.n))
            target = tuple(t - x for t, x in zip(target, product(self.full_J, given), strict=True))
        right = self._given(force), self._given(target)
        a, multipliers = linear_solution(
            self.algebra.solve, self.algebra.multiply, self.factors, (self.A, self.J), right
        )
        return list(a), list(multipliers)

    def least_norm(self, multipliers: Any) -> list[Scalar]:
        if not self.m:
            return []
        nothing, given = self._given((ZERO,) * self.n), self._given(multipliers)
        none = self._given((ZERO,) * self.m)
        p = self.algebra.multiply_transposed(self.J, (given, nothing))[1]
        factors = (self.held[1], self.factors, self._ranked())
        found, _ = linear_solution(
            self.algebra.least_norm, self.algebra.multiply_transposed, factors, self.J, (none, p)
        )
        return list(found)

    def conditioning(self) -> tuple[Scalar, Scalar]:
        """With dense arrays (`saddle_arrays`), squares of singular values take the place of the pivots."""
        return self.algebra.conditioning(self._ranked()) if self.m else (1.0, 1.0)

    def _ranked(self) -> Any:
        return self.algebra.ranked(self.factors, self.eps)

    def _given(self, x: Any, columns: int | None = None) -> Any:
        return tuple(x) if self.unrolled else _array(x, columns, self.dtype)


def _array(x: Any, columns: int | None, dtype: Any) -> jax.Array:
    if columns is not None:
        return jnp.stack([_array(row, None, dtype) for row in x]) if x else jnp.zeros((0, columns), dtype)
    return jnp.stack([jnp.asarray(c, dtype) for c in x]) if x else jnp.zeros(0, dtype)


@kernel
def _weight(A: Matrix, J: Matrix) -> Scalar:
    """The weight rho at which both terms of A + rho JᵀJ are of the same order of magnitude."""
    size = total(*(x * x for row in J for x in row))
    return total(*(A[k][k] for k in range(len(A)))) / where(size > 0, size, 1.0)


@kernel
def _augmented(A: Matrix, J: Matrix, weight: Scalar) -> Matrix:
    n = len(A)
    return tuple(tuple(A[i][j] + weight * total(*(row[i] * row[j] for row in J)) for j in range(n)) for i in range(n))
