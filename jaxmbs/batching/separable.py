"""Whether a function may be run on some rows of a batch apart from the others, and what it does be kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

# These are given whole batches, or draw the numbers of a batch from its first key.
_OF_BATCHES = frozenset([
    "custom_vmap_call", "pure_callback", "io_callback", "debug_callback", "debug_print", "rng_bit_generator",
    "rng_uniform", "shard_map", "xla_pmap",
])  # fmt: skip


LARGEST = 1024  # entries of an array that is still taken apart


def separable(closed: Any) -> bool:
    """Whether nothing in a closed jaxpr has an effect or depends on how many rows are mapped together."""
    outputs = any(_is_key(x) for x in closed.out_avals)
    return not outputs and all(map(_is_separable, _equations(closed.jaxpr)))


def size_of(closed: Any) -> int:
    """Scalar operations of one row, bodies of loops counted once, if all small arrays are taken apart."""
    sizes = (math.prod(getattr(v.aval, "shape", ())) for e in _equations(closed.jaxpr) for v in e.outvars)
    return sum(n for n in sizes if n <= LARGEST)


def _is_separable(eqn: Any) -> bool:
    keys = [v.aval.dtype for v in (*eqn.invars, *eqn.outvars) if _is_key(v.aval)]
    return not eqn.effects and eqn.primitive.name not in _OF_BATCHES and all(_by_counting(x) for x in keys)


def _is_key(aval: Any) -> bool:
    return hasattr(aval, "dtype") and jnp.issubdtype(aval.dtype, jax.dtypes.extended)


def _by_counting(dtype: Any) -> bool:
    """Whether random numbers of a key are the same in any batch."""
    return "fry" in str(dtype)


def _equations(jaxpr: Any) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jax.tree_util.tree_leaves(list(eqn.params.values()), is_leaf=_is_jaxpr):
            if _is_jaxpr(inner):
                yield from _equations(getattr(inner, "jaxpr", inner))


def _is_jaxpr(x: Any) -> bool:
    return isinstance(x, (core.Jaxpr, core.ClosedJaxpr))
