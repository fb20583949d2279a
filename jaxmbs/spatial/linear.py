"""Solutions of linear systems with derivatives by the implicit function theorem, for components and arrays alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import is_number


def linear_solution(
    solve: Callable[[Any, Any], Any], multiply: Callable[[Any, Any], Any], factors: Any, matrix: Any, right: Any
) -> Any:
    """x = solve(factors, right), differentiated as the solution of multiply(matrix, x) = right.

    multiply is bilinear and returns a pytree like right; factors: what solve needs of the matrix, such as its
    factorization; it is not differentiated. All are pytrees of scalars or arrays, in which known numbers remain known.
    Each derivative, of any order and in both modes, costs one more solution with the same factors.
    """
    leaves, treedef = jax.tree_util.tree_flatten((factors, matrix, right))
    if not any(isinstance(x, jax.Array) for x in leaves):
        return solve(factors, right)
    number = [is_number(x) for x in leaves]
    dtype = jnp.result_type(*(x for x, n in zip(leaves, number, strict=True) if not n and _is_real(x)))

    def whole(arrays: Sequence[Any], numbers: Sequence[Any] = leaves) -> Any:
        rest = iter(arrays)
        return treedef.unflatten([x if n else next(rest) for x, n in zip(numbers, number, strict=True)])

    def in_arrays(x: Any) -> Any:
        return jax.tree_util.tree_map(lambda leaf: jnp.asarray(leaf, dtype), x)

    @jax.custom_jvp
    def solution(*arrays: Any) -> Any:
        factors, _, right = whole(arrays)
        return in_arrays(solve(factors, right))

    def rule(arrays: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        x = solution(*arrays)
        factors, matrix, _ = whole(arrays)
        _, change, moved = whole([_tangent(y) for y in tangents], [ZERO] * len(leaves))
        rest = jax.tree_util.tree_map(lambda a, b: a - b, moved, multiply(change, x))
        return x, in_arrays(linear_solution(solve, multiply, factors, matrix, rest))

    solution.defjvp(rule, symbolic_zeros=True)
    return solution(*(x for x, n in zip(leaves, number, strict=True) if not n))


def _is_real(x: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jnp.floating)


def _tangent(x: Any) -> Any:
    """The tangent; a symbolic zero of a scalar becomes a structural zero."""
    if not isinstance(x, SymbolicZero):
        return x
    aval: Any = x.aval
    return ZERO if aval.shape == () else jnp.zeros(aval.shape, aval.dtype)
