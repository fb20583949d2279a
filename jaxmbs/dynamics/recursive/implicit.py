"""Derivatives of the accelerations from those of the inverse dynamics: A da = dtau - d(A a + bias) at constant a.

The articulated-body recursion, whose inertias change with every coordinate, is not differentiated. The Newton-Euler
recursion is differentiated instead: it is linear in the links' inertias, which do not depend on the coordinates. The
rule is ordinary JAX code, so that forward mode, reverse mode and higher derivatives follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from jaxmbs.spatial import kernel
from jaxmbs.spatial.factorization import solve
from jaxmbs.spatial.linear import arrays_of, change
from jaxmbs.spatial.scalar import Scalar, either, total, where

ACCELERATIONS = "accelerations"  # the name under which `jax.checkpoint` stores them

Vector = tuple[Scalar, ...]
Matrix = tuple[Vector, ...]


def implicit(
    value: Callable[[Any], Sequence[Scalar]],
    residual: Callable[[Any, Sequence[Scalar]], Sequence[Scalar]],
    matrix: Callable[[Any], tuple[Matrix, Vector]],
    data: Any,
    dtype: Any,
) -> list[Scalar]:
    """a = value(data), differentiated as the solution of residual(data, a) = 0.

    matrix(data): (A, lock), with A the derivative of the residual with respect to a, and lock the mask of the rows that
    state a = prescribed instead (() for none). data is a pytree of scalars; its structural numbers stay plain numbers.
    """
    found, whole = arrays_of(data)

    @jax.custom_jvp
    def solution(*arrays: Any) -> list[Any]:
        return [jnp.asarray(x, dtype) for x in value(whole(arrays))]

    def rule(arrays: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        # saved by the checkpoints of `jaxmbs.simulate.loops`, as one array
        a = list(checkpoint_name(jnp.stack(solution(*arrays)), ACCELERATIONS))

        def at(arrays: Sequence[Any]) -> list[Any]:
            return [jnp.asarray(x, dtype) for x in residual(whole(arrays), a)]

        right = tuple(-x for x in change(at, arrays, tangents))
        A, lock = matrix(whole(arrays))
        if lock:
            A, right = _with_locks(A, right, lock)
        return a, [jnp.asarray(x, dtype) for x in solve(A, right)]

    solution.defjvp(rule, symbolic_zeros=True)
    return list(solution(*found))


@kernel
def _with_locks(A: Matrix, right: Vector, lock: Vector) -> tuple[Matrix, Vector]:
    """(A, right) with locked rows replaced by a = right, and their known values moved to the right side of the
    others."""
    known = [where(on, x, 0.0) for on, x in zip(lock, right, strict=True)]
    carried = [total(*(a * x for a, x in zip(row, known, strict=True))) for row in A]
    right = tuple(where(on, x, x - c) for on, x, c in zip(lock, right, carried, strict=True))
    rows = [
        tuple(where(either(lock[i], lock[j]), 1.0 if i == j else 0.0, x) for j, x in enumerate(row))
        for i, row in enumerate(A)
    ]
    return tuple(rows), right
