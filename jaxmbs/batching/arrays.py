"""Rules for equations of a jaxpr that only move entries, or that reduce or multiply arrays.

The rules are applied to the entries while recording. A rule takes a function that creates an operation, the entries of
the operands and the equation; it returns the entries of the results, or None where it does not apply.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmbs.batching.scalars import is_shared

MOST_PRODUCTS = 4096  # a matrix product that needs more scalar products than this is not written out
MOST_SHARED = 128  # with more factors than this that all rows share, one product over the whole batch is faster

Rule = Callable[[Callable[..., Any], list[np.ndarray], Any], list[np.ndarray] | None]


def _moved(fn: Callable[..., np.ndarray]) -> Rule:
    return lambda scalar, x, eqn: [fn(*x, **eqn.params)]


def _part(x: np.ndarray, slices: Sequence[slice]) -> np.ndarray:
    return x[(*slices, ...)]  # with the ellipsis, a single number remains an array


def _slice(x: np.ndarray, start_indices: Any, limit_indices: Any, strides: Any) -> np.ndarray:
    steps = strides or (1,) * x.ndim
    return _part(x, [slice(*s) for s in zip(start_indices, limit_indices, steps, strict=True)])


def _broadcast(x: np.ndarray, shape: Any, broadcast_dimensions: Any, **_: Any) -> np.ndarray:
    lifted = [1] * len(shape)
    for size, axis in zip(x.shape, broadcast_dimensions, strict=True):
        lifted[axis] = size
    return np.broadcast_to(x.reshape(lifted), shape)


def _reshape(x: np.ndarray, new_sizes: Any, dimensions: Any = None, **_: Any) -> np.ndarray:
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


def _at_its_own_precision(scalar: Any, x: list[np.ndarray], eqn: Any) -> list[np.ndarray] | None:
    """Rule for `reduce_precision` to the precision that the numbers already have: it leaves them unchanged.
    `jax.checkpoint` applies it to values that it saves by name."""
    own = jnp.finfo(eqn.outvars[0].aval.dtype)
    return x if (eqn.params["exponent_bits"], eqn.params["mantissa_bits"]) == (own.nexp, own.nmant) else None


def _split(scalar: Any, x: list[np.ndarray], eqn: Any) -> list[np.ndarray]:
    return np.split(x[0], np.cumsum(eqn.params["sizes"])[:-1], axis=eqn.params["axis"])


def _unstack(scalar: Any, x: list[np.ndarray], eqn: Any) -> list[np.ndarray]:
    axis = eqn.params["axis"]
    return [
        part.reshape(v.aval.shape) for part, v in zip(np.split(x[0], x[0].shape[axis], axis), eqn.outvars, strict=True)
    ]


def _pad(scalar: Any, x: list[np.ndarray], eqn: Any) -> list[np.ndarray] | None:
    array, filler = x
    config = eqn.params["padding_config"]
    if any(low < 0 or high < 0 for low, high, _ in config):
        return None
    out = np.broadcast_to(filler, eqn.outvars[0].aval.shape).copy()
    where = [
        slice(low, low + (size - 1) * (inner + 1) + 1 if size else low, inner + 1)
        for (low, _, inner), size in zip(config, array.shape, strict=True)
    ]
    _part(out, where)[...] = array
    return [out]


def _starts(indices: list[np.ndarray], limits: Any) -> list[int] | None:
    """Constant start indices, clamped as JAX clamps them; None if they are not constant."""
    if not all(isinstance(i.reshape(-1)[0], np.generic) for i in indices):
        return None
    return [min(max(int(i.reshape(-1)[0]), 0), m) for i, m in zip(indices, limits, strict=True)]


def _dynamic_slice(scalar: Any, x: list[np.ndarray], eqn: Any) -> list[np.ndarray] | None:
    sizes = eqn.params["slice_sizes"]
    start = _starts(x[1:], [n - m for n, m in zip(x[0].shape, sizes, strict=True)])
    if start is None:
        return None
    return [_part(x[0], [slice(s, s + m) for s, m in zip(start, sizes, strict=True)])]


def _dynamic_update_slice(scalar: Any, x: list[np.ndarray], eqn: Any) -> list[np.ndarray] | None:
    start = _starts(x[2:], [n - m for n, m in zip(x[0].shape, x[1].shape, strict=True)])
    if start is None:
        return None
    out = x[0].copy()
    _part(out, [slice(s, s + m) for s, m in zip(start, x[1].shape, strict=True)])[...] = x[1]
    return [out]


def _dot(scalar: Any, x: list[np.ndarray], eqn: Any) -> list[np.ndarray] | None:
    (over_a, over_b), (batch_a, batch_b) = eqn.params["dimension_numbers"]
    a, b = x
    aval = eqn.outvars[0].aval
    if any(v.aval.dtype != aval.dtype for v in eqn.invars) or not summable(aval.dtype):
        return None
    free_a = [i for i in range(a.ndim) if i not in (*over_a, *batch_a)]
    free_b = [i for i in range(b.ndim) if i not in (*over_b, *batch_b)]
    groups = math.prod(a.shape[i] for i in batch_a)
    inner = math.prod(a.shape[i] for i in over_a)
    if math.prod(aval.shape) * inner > MOST_PRODUCTS or inner == 0:
        return None
    if sum(_is_shared_factor(e) for array in x for e in array.reshape(-1)) > MOST_SHARED:
        return None
    a = a.transpose([*batch_a, *free_a, *over_a]).reshape(groups, -1, inner)
    b = b.transpose([*batch_b, *free_b, *over_b]).reshape(groups, -1, inner)
    out = np.empty((groups, a.shape[1], b.shape[1]), object)
    for g, i, j in np.ndindex(*out.shape):
        products = [scalar(lax.mul_p, [a[g, i, k], b[g, j, k]], aval.dtype) for k in range(inner)]
        out[g, i, j] = functools.reduce(lambda s, t: scalar(lax.add_p, [s, t], aval.dtype), products)
    return [out.reshape(aval.shape)]


def summable(dtype: Any) -> bool:
    """Whether XLA sums numbers of a dtype as they are; it sums half precision in float32 and truth values not at all."""
    return jnp.issubdtype(dtype, jnp.integer) or (jnp.issubdtype(dtype, jnp.inexact) and jnp.finfo(dtype).bits >= 32)


def _is_shared_factor(e: Any) -> bool:
    """Whether a number is the same for all rows and a product with it has to be computed."""
    return is_shared(e) or (isinstance(e, np.generic) and e not in (0, 1, -1))


def _reduction(primitive: Any) -> Rule:
    def rule(scalar: Any, x: list[np.ndarray], eqn: Any) -> list[np.ndarray] | None:
        axes, dtype, array = eqn.params["axes"], eqn.outvars[0].aval.dtype, x[0]
        if primitive in (lax.add_p, lax.mul_p) and not summable(dtype):
            return None
        kept = [i for i in range(array.ndim) if i not in axes]
        rows = array.transpose([*kept, *axes]).reshape(math.prod(array.shape[i] for i in kept), -1)
        if rows.shape[1] == 0:
            return None
        out = np.empty(len(rows), object)
        out[:] = [functools.reduce(lambda s, t: scalar(primitive, [s, t], dtype), row) for row in rows]
        return [out.reshape(eqn.outvars[0].aval.shape)]

    return rule


def _place_of(better: Any) -> Rule:
    """Rule for the index of the largest or smallest number (`better`: > or <), or of the first NaN."""

    def rule(scalar: Any, x: list[np.ndarray], eqn: Any) -> list[np.ndarray] | None:
        (axis,), dtype, given = eqn.params["axes"], eqn.outvars[0].aval.dtype, eqn.invars[0].aval.dtype
        truth = np.dtype(bool)
        rows = np.moveaxis(x[0], axis, -1).reshape(-1, x[0].shape[axis])
        out = np.empty(len(rows), object)
        for i, row in enumerate(rows):
            best, at = row[0], np.asarray(0, dtype)[()]
            for k, e in enumerate(row[1:], 1):
                wins = scalar(better, [e, best], truth)
                if jnp.issubdtype(given, jnp.inexact):
                    none, some = scalar(lax.ne_p, [e, e], truth), scalar(lax.eq_p, [best, best], truth)
                    first_none = scalar(lax.and_p, [none, some], truth)
                    wins = scalar(lax.or_p, [wins, first_none], truth)
                best = scalar(lax.select_n_p, [wins, best, e], given)
                at = scalar(lax.select_n_p, [wins, at, np.asarray(k, dtype)[()]], dtype)
            out[i] = at
        return [out.reshape(eqn.outvars[0].aval.shape)]

    return rule


RULES: dict[str, Rule] = {
    "name": _moved(lambda x, name: x),  # marks what `jax.checkpoint` saves
    "reduce_precision": _at_its_own_precision,
    "slice": _moved(_slice),
    "squeeze": _moved(lambda x, dimensions: x.reshape([n for i, n in enumerate(x.shape) if i not in dimensions])),
    "expand_dims": lambda scalar, x, eqn: [np.expand_dims(x[0], eqn.params["dimensions"])],
    "reshape": _moved(_reshape),
    "transpose": _moved(lambda x, permutation: x.transpose(permutation)),
    "rev": _moved(
        lambda x, dimensions: _part(x, [slice(None, None, -1 if i in dimensions else 1) for i in range(x.ndim)])
    ),
    "broadcast_in_dim": lambda scalar, x, eqn: [_broadcast(x[0], **eqn.params)] if len(x) == 1 else None,
    "concatenate": _moved(lambda *x, dimension: np.concatenate(x, dimension)),
    "stack": _moved(lambda *x, axis: np.stack(x, axis)),
    "unstack": _unstack,
    "split": _split,
    "pad": _pad,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "dot_general": _dot,
    "reduce_sum": _reduction(lax.add_p),
    "reduce_prod": _reduction(lax.mul_p),
    "reduce_max": _reduction(lax.max_p),
    "reduce_min": _reduction(lax.min_p),
    "reduce_or": _reduction(lax.or_p),
    "reduce_and": _reduction(lax.and_p),
    "argmax": _place_of(lax.gt_p),
    "argmin": _place_of(lax.lt_p),
}
