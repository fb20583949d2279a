"""Derivatives of the solutions of linear systems by the implicit function theorem, for components and arrays alike; and
functions for the derivative rules of other solutions."""

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
    found, whole = arrays_of((factors, matrix, right))
    if not any(isinstance(x, jax.Array) for x in found):
        return solve(factors, right)
    dtype = jnp.result_type(*(x for x in found if _is_real(x)))

    kept: dict[str, Any] = {}  # how the unknown numbers of the solution and its known ones are put together

    @jax.custom_jvp
    def solution(*arrays: Any) -> list[Any]:
        factors, _, right = whole(arrays)
        unknown, kept["together"] = arrays_of(solve(factors, right))
        return [jnp.asarray(x, dtype) for x in unknown]

    def rule(arrays: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        unknown = solution(*arrays)
        x = kept["together"](unknown)
        factors, matrix, _ = whole(arrays)
        _, change, moved = whole([_tangent(y) for y in tangents], ZERO)
        rest = jax.tree_util.tree_map(lambda a, b: a - b, moved, multiply(change, x))
        changes = linear_solution(solve, multiply, factors, matrix, rest)
        pairs = zip(*map(jax.tree_util.tree_leaves, (x, changes)), strict=True)
        return unknown, [_changes(*pair) for pair in pairs if not is_number(pair[0])]

    solution.defjvp(rule, symbolic_zeros=True)
    unknown = solution(*found)
    return kept["together"](unknown)


def arrays_of(tree: Any) -> tuple[list[Any], Callable[..., Any]]:
    """The arrays of a pytree, and whole(arrays, number=None), the pytree with other arrays in their places; structural
    numbers are no arrays, and stay as they are or are replaced by `number`."""
    leaves, treedef = jax.tree_util.tree_flatten(tree)
    fixed = [is_number(x) for x in leaves]

    def whole(arrays: Sequence[Any], number: Any = None) -> Any:
        rest = iter(arrays)
        numbers = leaves if number is None else [number] * len(leaves)
        return treedef.unflatten([x if n else next(rest) for x, n in zip(numbers, fixed, strict=True)])

    return [x for x, n in zip(leaves, fixed, strict=True) if not n], whole


def change(fn: Callable[[Sequence[Any]], Any], arrays: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The change of fn(arrays) along the tangents, where arrays with symbolic zeros do not change; None if none does."""
    moving = [k for k, x in enumerate(tangents) if not isinstance(x, SymbolicZero)]

    def at(*moved: Any) -> Any:
        here = list(arrays)
        for k, x in zip(moving, moved, strict=True):
            here[k] = x
        return fn(here)

    return jax.jvp(at, tuple(arrays[k] for k in moving), tuple(tangents[k] for k in moving))[1] if moving else None


def _is_real(x: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jnp.floating)


def _tangent(x: Any) -> Any:
    """The tangent; a symbolic zero of a scalar becomes a structural zero."""
    if not isinstance(x, SymbolicZero):
        return x
    aval: Any = x.aval
    return ZERO if aval.shape == () else jnp.zeros(aval.shape, aval.dtype)


def _changes(x: Any, tangent: Any) -> Any:
    """The tangent of x; a structural zero becomes a symbolic zero. Reverse mode through `jax.checkpoint` fails at tangents
    that no other tangent determines, such as zeros in arrays."""
    return SymbolicZero(jax.typeof(x).to_tangent_aval()) if is_number(tangent) else jnp.asarray(tangent, x.dtype)
