"""Loops whose number of iterations is an operand of the program, up to a number that is part of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend import core
from jax.interpreters import batching, mlir

counted_p = core.Primitive("counted")


def _counted(count: Any, *, length: int) -> Any:
    return jnp.arange(length) < count


@counted_p.def_abstract_eval
def _abstract(count: Any, *, length: int) -> Any:
    return ShapedArray((length,), bool)


def _batched(args: Any, axes: Any, *, length: int) -> tuple[Any, int]:
    return jax.vmap(lambda n: _counted(n, length=length), axes)(*args), 0


counted_p.def_impl(jax.jit(_counted, static_argnames="length"))
batching.primitive_batchers[counted_p] = _batched
mlir.register_lowering(counted_p, mlir.lower_fun(_counted, multiple_results=False))


def counted_scan(
    body: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any, length: int, count: Any
) -> tuple[Any, Any]:
    """`jax.lax.scan` of which only the first `count` iterations, at most `length`, are made.

    The others stack zeros. For JAX it is a scan with a condition in each iteration, so that every transformation of a scan
    applies. In machine code the loop ends after `count` iterations and has no condition, if `count` is the same for all
    rows and the loop runs forwards (`recording`).
    """
    carry = jax.tree_util.tree_map(_strong, carry)
    one = jax.tree_util.tree_map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), xs)
    closed, shapes = jax.make_jaxpr(body, return_shape=True)(carry, one)
    tree = jax.tree_util.tree_structure(shapes)

    def made(carry: Any, x: Any) -> Any:
        out = core.jaxpr_as_fun(closed)(*jax.tree_util.tree_leaves((carry, x)))
        return jax.tree_util.tree_map(_strong, tree.unflatten(out))

    def skipped(carry: Any, x: Any) -> Any:
        return carry, jax.tree_util.tree_map(lambda a: jnp.zeros(a.shape, a.dtype), shapes[1])

    def turn(carry: Any, x: Any) -> Any:
        return jax.lax.cond(x[0], made, skipped, carry, x[1])

    return jax.lax.scan(turn, carry, (counted_p.bind(jnp.asarray(count, jnp.int32), length=length), xs), length=length)


def _strong(x: Any) -> jax.Array:
    """x as an array whose dtype is not a weak type."""
    return jnp.asarray(x, jnp.result_type(x))
