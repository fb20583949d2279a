"""Dynamics under constraints: accelerations and multipliers of the index-1 equations [Y 3.190].

    A a + bias = tau + Jᵀ lambda,    J a + drift = 0

by the Schur complement J A⁻¹ Jᵀ, in components for small systems. Where rows depend on one another, at a singular
configuration or by the values of the numbers, the motion is unique all the same; the multipliers are then those of
least norm, with 1 N m weighing as much as 1 N.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constrained.constraints import Constraints, constraints, velocities
from jaxmbs.dynamics.recursive import crba, rnea
from jaxmbs.dynamics.state import State
from jaxmbs.spatial import kernel
from jaxmbs.spatial.factorization import Matrix, Vector, expand, factorize, product, reduce, solve_semidefinite
from jaxmbs.spatial.scalar import Scalar, add, div, mul, sub, total, where

LARGEST_UNROLLED = (16, 12)  # coordinates, rows; beyond them compilation takes too long in components


def constrained_dynamics(
    state: State, tau: Any, prescribed: Any = None, baumgarte: Any = None
) -> tuple[list[Scalar], list[Scalar], Constraints]:
    """Accelerations, multipliers and the constraints at the state.

    baumgarte [rad/s]: pulls violations back, g'' + 2 w g' + w² g = 0 instead of g'' = 0 (None: not at all).
    """
    nv = state.tree.structure.nv
    found = constraints(state)
    bias = rnea.inverse_dynamics(state, None)
    force = [sub(0 if tau is None else tau[k], bias[k]) for k in range(nv)]
    metric = Metric.of(state, found, prescribed)
    drift = found.drift if baumgarte is None else _stabilised(found, velocities(state, found), baumgarte)
    a, multipliers = metric.closest(force, tuple(mul(-1, x) for x in drift))
    return list(a), list(multipliers), found


@kernel
def _stabilised(found: Constraints, rates: Vector, w: Scalar) -> Vector:
    """Drift with the terms of Baumgarte; a nonholonomic row is damped with the rate w alone."""
    out = []
    for drift, rate, g, on in zip(found.drift, rates, found.residual, found.holonomic, strict=True):
        pull = add(mul(mul(2, w), rate), mul(mul(w, w), g)) if on else mul(w, rate)
        out.append(add(drift, pull))
    return tuple(out)


class Metric:
    """The mass matrix and the constraint Jacobian, factorised once for several right-hand sides.

    conditioning: after `closest`, the smallest pivot of the constraints used over the largest entry of J A⁻¹ Jᵀ; near 0
    they almost depend on one another.
    """

    def __init__(
        self, A: Matrix, J: Matrix, dtype: Any, *, singular: bool = False, lock: Any = None, prescribed: Any = None
    ):
        self.n, self.m, self.dtype = len(A), len(J), dtype
        self.lock, self.prescribed = lock, prescribed
        # A + rho JᵀJ is definite where A is so only on the motions that the constraints leave
        self.weight: Scalar = _weight(A, J) if singular else 0
        A = _augmented(A, J, self.weight) if singular else A
        self.full_A, self.full_J = A, J
        if lock is not None:
            A = tuple(
                tuple(where(lock[i] | lock[j], 1.0 if i == j else 0.0, x) for j, x in enumerate(row))
                for i, row in enumerate(A)
            )
            J = tuple(tuple(where(lock[k], 0.0, x) for k, x in enumerate(row)) for row in J)
        self.A, self.J = A, J
        eps = float(jnp.finfo(dtype).eps)
        self.tolerance = eps ** (2 / 3)
        self.conditioning: Scalar = 1.0
        self.unrolled = self.n <= LARGEST_UNROLLED[0] and self.m <= LARGEST_UNROLLED[1]
        if self.unrolled:
            self.U, self.inverse = factorize(A)
            self.Z = tuple(reduce(self.U, row) for row in J)
            self.S = _schur(self.Z, self.inverse)

    @staticmethod
    def of(state: State, found: Constraints, prescribed: Any = None) -> Metric:
        nv = state.tree.structure.nv
        A = crba.mass_matrix(state)
        rows = tuple(tuple(A[i, j] for j in range(nv)) for i in range(nv))
        lock = None if state.mode is None else state.mode.lock
        singular = state.tree.structure.singular
        return Metric(rows, found.J, state.tree.dtype, singular=singular, lock=lock, prescribed=prescribed)

    def closest(self, force: Any, target: Vector) -> tuple[Vector, Vector]:
        """(a, lambda) with A a = force + Jᵀ lambda and J a = target."""
        force = tuple(
            add(f, mul(self.weight, total(*(mul(row[k], x) for row, x in zip(self.full_J, target, strict=True)))))
            for k, f in enumerate(force)
        )
        if self.lock is not None:
            given = self.prescribed if self.prescribed is not None else [0.0] * self.n
            given = tuple(where(self.lock[k], given[k], 0.0) for k in range(self.n))
            carried = product(self.full_A, given)
            force = tuple(where(self.lock[k], given[k], sub(force[k], carried[k])) for k in range(self.n))
            target = tuple(sub(t, x) for t, x in zip(target, product(self.full_J, given), strict=True))
        if not self.unrolled:
            return self._by_arrays(force, target)
        z = reduce(self.U, force)
        if not self.m:
            return expand(self.U, self.inverse, z), ()
        multipliers, self.conditioning = solve_semidefinite(
            self.S, _missing(self.Z, self.inverse, z, target), self.tolerance
        )
        return expand(self.U, self.inverse, _driven(z, self.Z, multipliers)), multipliers

    def _by_arrays(self, force: Vector, target: Vector) -> tuple[Vector, Vector]:
        A, J = (_array(x, self.dtype) for x in (self.A, self.J))
        f, g = _array(force, self.dtype), _array(target, self.dtype)
        factor = jax.scipy.linalg.cho_factor(A, lower=True)
        Y = jax.scipy.linalg.cho_solve(factor, jnp.concatenate([J.T, f[:, None]], axis=1))
        S = J @ Y[:, :-1]
        scale = jnp.sqrt(jnp.maximum(jnp.diagonal(S), jnp.finfo(self.dtype).tiny))
        scaled = S / scale[:, None] / scale[None, :]
        inverse = jnp.linalg.pinv(scaled, rtol=self.tolerance, hermitian=True)
        sizes = jnp.linalg.eigvalsh(S)
        kept = jnp.where(sizes > self.tolerance * sizes[-1], sizes, sizes[-1])
        self.conditioning = jnp.min(kept) / jnp.where(sizes[-1] > 0, sizes[-1], 1.0)
        basic = (inverse @ ((g - J @ Y[:, -1]) / scale)) / scale
        # least norm in N and N m: less what lies in the null space of Jᵀ
        multipliers = jnp.linalg.pinv(S, rtol=self.tolerance, hermitian=True) @ (S @ basic)
        return tuple(Y[:, -1] + Y[:, :-1] @ multipliers), tuple(multipliers)


def _array(x: Any, dtype: Any) -> jax.Array:
    if x and isinstance(x[0], tuple):
        return jnp.stack([_array(row, dtype) for row in x])
    return jnp.stack([jnp.asarray(c, dtype) for c in x])


@kernel
def _weight(A: Matrix, J: Matrix) -> Scalar:
    """rho of the size of A over that of JᵀJ."""
    size = total(*(mul(x, x) for row in J for x in row))
    return div(total(*(A[k][k] for k in range(len(A)))), where(size > 0, size, 1.0))


@kernel
def _augmented(A: Matrix, J: Matrix, weight: Scalar) -> Matrix:
    n = len(A)
    return tuple(
        tuple(add(A[i][j], mul(weight, total(*(mul(row[i], row[j]) for row in J)))) for j in range(n)) for i in range(n)
    )


@kernel
def _schur(Z: Matrix, inverse: Vector) -> Matrix:
    """Lower triangle of J A⁻¹ Jᵀ."""
    scaled = tuple(tuple(mul(x, d) for x, d in zip(z, inverse, strict=True)) for z in Z)
    return tuple(
        tuple(total(*(mul(x, y) for x, y in zip(Z[i], scaled[j], strict=True))) for j in range(i + 1))
        for i in range(len(Z))
    )


@kernel
def _missing(Z: Matrix, inverse: Vector, z: Vector, target: Vector) -> Vector:
    """target - J A⁻¹ force."""
    free = tuple(mul(x, d) for x, d in zip(z, inverse, strict=True))
    return tuple(
        sub(t, total(*(mul(x, y) for x, y in zip(row, free, strict=True)))) for t, row in zip(target, Z, strict=True)
    )


@kernel
def _driven(z: Vector, Z: Matrix, multipliers: Vector) -> Vector:
    return tuple(
        add(x, total(*(mul(row[k], f) for row, f in zip(Z, multipliers, strict=True)))) for k, x in enumerate(z)
    )
