"""Decides whether the rows of a batch may be evaluated independently of one another without changing the result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

# These receive whole batches, or draw the random numbers of a batch from its first key.
_OF_BATCHES = frozenset([
    "custom_vmap_call", "pure_callback", "io_callback", "debug_callback", "debug_print", "rng_bit_generator",
    "rng_uniform", "shard_map", "xla_pmap",
])  # fmt: skip


LARGEST = 1024  # an array with more entries than this is not taken apart


def separable(closed: Any) -> bool:
    """Whether a closed jaxpr has no effects, returns no random keys and does not depend on the number of mapped rows."""
    outputs = any(_is_key(x) for x in closed.out_avals)
    return not outputs and all(map(_is_separable, equations(closed.jaxpr)))


def size_of(closed: Any) -> int:
    """Number of scalar operations for one row if all small arrays are taken apart; loop bodies are counted once."""
    sizes = (math.prod(getattr(v.aval, "shape", ())) for e in equations(closed.jaxpr) for v in e.outvars)
    return sum(n for n in sizes if n <= LARGEST)


def _is_separable(eqn: Any) -> bool:
    keys = [v.aval.dtype for v in (*eqn.invars, *eqn.outvars) if _is_key(v.aval)]
    return not eqn.effects and eqn.primitive.name not in _OF_BATCHES and all(_by_counting(x) for x in keys)


def _is_key(aval: Any) -> bool:
    return hasattr(aval, "dtype") and jnp.issubdtype(aval.dtype, jax.dtypes.extended)


def _by_counting(dtype: Any) -> bool:
    """Whether random numbers from keys of a dtype are the same in any batch (threefry)."""
    return "fry" in str(dtype)


def equations(jaxpr: Any) -> Iterator[Any]:
    """All equations of a jaxpr, including those of the jaxprs inside it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jax.tree_util.tree_leaves(list(eqn.params.values()), is_leaf=_is_jaxpr):
            if _is_jaxpr(inner):
                yield from equations(getattr(inner, "jaxpr", inner))


def _is_jaxpr(x: Any) -> bool:
    return isinstance(x, (core.Jaxpr, core.ClosedJaxpr))
