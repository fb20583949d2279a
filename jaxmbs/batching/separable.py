"""Decides whether the rows of a batch may be evaluated independently of one another without changing the result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

ClosedJaxpr: Any = core.ClosedJaxpr  # pyright: ignore[reportPrivateImportUsage]  (since JAX 0.12 the same as Jaxpr)
_CALLBACKS = frozenset(["pure_callback", "io_callback", "debug_callback", "debug_print"])
# These receive whole batches, or draw the random numbers of a batch from its first key.
_OF_BATCHES = frozenset(["custom_vmap_call", "rng_bit_generator", "rng_uniform", "shard_map", "xla_pmap"])


LARGEST = 1024  # an array with more entries than this is not taken apart


def inseparable(closed: Any) -> str:
    """Why the rows of a closed jaxpr cannot be evaluated independently, in words; empty if they can: it has no effects,
    returns no random keys and does not depend on the number of mapped rows."""
    if any(is_key(x) for x in closed.out_avals):
        return "it returns random keys"
    return next(filter(None, map(_inseparable, equations(closed.jaxpr))), "")


def size_of(closed: Any) -> int:
    """Number of scalar operations for one row if all small arrays are taken apart; loop bodies are counted once."""
    sizes = (math.prod(getattr(v.aval, "shape", ())) for e in equations(closed.jaxpr) for v in e.outvars)
    return sum(n for n in sizes if n <= LARGEST)


def _inseparable(eqn: Any) -> str:
    name = eqn.primitive.name
    if name in _CALLBACKS:
        return f"it calls Python while it runs ({name})"
    if name in _OF_BATCHES:
        return f"{name} depends on the batch as a whole"
    if eqn.effects:
        return f"{name} has effects"
    keys = [v.aval.dtype for v in (*eqn.invars, *eqn.outvars) if is_key(v.aval)]
    return "" if all(map(_by_counting, keys)) else "its random numbers depend on the batch as a whole"


def is_key(aval: Any) -> bool:
    """Whether an array holds random keys, which are not numbers."""
    return hasattr(aval, "dtype") and jnp.issubdtype(aval.dtype, jax.dtypes.extended)


def _by_counting(dtype: Any) -> bool:
    """Whether random numbers from keys of a dtype are the same in any batch (threefry)."""
    return "fry" in str(dtype)


def equations(jaxpr: Any) -> Iterator[Any]:
    """All equations of a jaxpr, including those of the jaxprs inside it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_of(eqn):
            yield from equations(inner)


def jaxprs_of(eqn: Any) -> list[Any]:
    """The jaxprs inside an equation."""
    found = jax.tree_util.tree_leaves(list(eqn.params.values()), is_leaf=_is_jaxpr)
    return [getattr(x, "jaxpr", x) for x in found if _is_jaxpr(x)]


def _is_jaxpr(x: Any) -> bool:
    return isinstance(x, (core.Jaxpr, ClosedJaxpr))
