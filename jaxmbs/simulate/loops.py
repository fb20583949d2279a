"""Loops over steps that store little for reverse mode: the states between segments; everything else is recomputed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.counted import counted_scan
from jaxmbs.dynamics.recursive.implicit import ACCELERATIONS
from jaxmbs.model import ModelError

_KEPT = jax.checkpoint_policies.save_only_these_names(ACCELERATIONS)


def levels_of(checkpoint: Any) -> int:
    """The number of checkpoint levels: 0 stores every stage; 1 the state before every step; k the states at the starts of k
    nested loops, each about as long as the k-th root of the number of steps."""
    if checkpoint is None or checkpoint is True:
        return 1
    if checkpoint is False:
        return 0
    if not isinstance(checkpoint, int) or not 1 <= checkpoint <= 8:
        raise ModelError(
            f"simulate: checkpoint is {checkpoint!r}; pass True, False, or a number of levels from 1 to 8, or None"
        )
    return checkpoint


def sizes(length: int, levels: int) -> list[int]:
    """Lengths of nested loops, the outermost first, whose product is at least `length`."""
    if levels <= 1:
        return [length]
    inner = max(1, math.ceil(length ** (1 / levels) - 1e-9))
    return [-(-length // inner ** (levels - 1)), *[inner] * (levels - 1)]


def shared(levels: int, groups: int, each: int) -> tuple[int, int]:
    """(levels of the loop over groups, levels of the loop over steps in a group); the longer loop gets all but one."""
    if levels == 0 or each == 1:
        return levels, 0
    if groups == 1 or levels == 1:
        return 0, levels
    return (levels - 1, 1) if groups >= each else (1, levels - 1)


def checkpointed(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn, the body of a loop, such that reverse mode stores only its arguments and accelerations: recomputing the rest takes
    no longer than storing and loading it."""
    return jax.checkpoint(fn, prevent_cse=False, policy=_KEPT)


def varied(x: Any, of: Any) -> Any:
    """x, the initial carry of a loop; if anything in `of` has a derivative, so has every number of x (zero if need be).

    Otherwise JAX differentiates the loop body again whenever it finds that another number of the carry varies: eight
    times if each of eight stages is passed on to the next.
    """

    def real(leaf: Any) -> bool:
        return jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)

    never = jnp.asarray(False)  # selecting with it changes no value, but gives the result a derivative
    some: Any = None
    for leaf in jax.tree_util.tree_leaves(of):
        if real(leaf) and jnp.size(leaf):
            first = jax.lax.index_in_dim(jnp.ravel(leaf), 0, keepdims=False)
            some = first if some is None else jax.lax.select(never, first.astype(some.dtype), some)

    def with_derivative(leaf: Any) -> Any:
        if some is None or not real(leaf):
            return leaf
        leaf = jnp.asarray(leaf)
        return jax.lax.select(never, jnp.broadcast_to(some.astype(leaf.dtype), leaf.shape), leaf)

    return jax.tree_util.tree_map(with_derivative, x)


def repeated(
    body: Callable[[Any, Any], Any], carry: Any, xs: Any, length: int, levels: int, count: Any = None
) -> tuple[Any, Any]:
    """`lax.scan` in nested segments; the first axis of xs and of the results is as long as the product of `sizes`.

    count: None, or how many iterations are made, without nested segments (`counted_scan`).
    """
    if length == 1:
        carry, row = body(carry, jax.tree_util.tree_map(lambda x: x[0], xs))
        return carry, jax.tree_util.tree_map(lambda x: x[None], row)
    if count is not None:
        return counted_scan(body, carry, xs, length, count)
    if levels == 0:
        return jax.lax.scan(body, carry, xs, length=length)
    nested = sizes(length, levels)
    shaped = jax.tree_util.tree_map(lambda x: x.reshape(*nested, *x.shape[1:]), xs)

    def loop(carry: Any, xs: Any, lengths: list[int]) -> Any:
        if len(lengths) == 1:
            return jax.lax.scan(checkpointed(body), carry, xs, length=lengths[0])
        inner = jax.checkpoint(lambda c, x: loop(c, x, lengths[1:]), prevent_cse=False)
        return jax.lax.scan(inner, carry, xs, length=lengths[0])

    carry, rows = loop(carry, shaped, nested)
    return carry, jax.tree_util.tree_map(lambda x: x.reshape(-1, *x.shape[len(nested) :]), rows)


class Packing:
    """Numbers of one dtype in one array, and back: reverse mode then stores one array for each step, which is faster than
    one for each number. example: a pytree of them."""

    def __init__(self, example: Any):
        self._leaves, self._tree = jax.tree_util.tree_flatten(example)

    def together(self, x: Any) -> Any:
        if not self._leaves:  # no joint moves
            return ()
        dtype = jnp.result_type(*self._leaves)
        parts = zip(self._tree.flatten_up_to(x), self._leaves, strict=True)
        return jnp.concatenate([jnp.broadcast_to(jnp.asarray(a, dtype), jnp.shape(b)).reshape(-1) for a, b in parts])

    def apart(self, array: Any) -> Any:
        ends = np.cumsum([np.size(x) for x in self._leaves])
        parts = zip(self._leaves, ends, strict=True)
        return self._tree.unflatten([array[end - np.size(x) : end].reshape(np.shape(x)) for x, end in parts])
