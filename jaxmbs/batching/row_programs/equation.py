"""The primitive `rows`: an equation holds the jaxpr of ONE instance, and computes it for one instance or for all rows.

Its parameters are jaxpr; mapped: for each operand, whether it has the rows on its first axis, or a `Repeat` of the rows
that it has; rows: their number, None for one instance; mode: see `Mode`. JAX transforms such an equation into equations
of the same kind.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core
from jax.interpreters import batching
from jax.sharding import PartitionSpec

from jaxmbs.batching.repeated import Repeat, expanded
from jaxmbs.batching.row_programs.instance import Mode, forward, results_of

LANES = 16  # the most rows that machine code computes at once: rows are repeated in multiples of it

rows_p = core.Primitive("rows")
rows_p.multiple_results = True


def axes_of(x: Any) -> frozenset[str]:
    """The axes of a surrounding `shard_map` along which a value varies, as far as JAX keeps account of them."""
    return getattr(getattr(jax.typeof(x), "mat", None), "varying", frozenset())


def bind(*xs: Any, jaxpr: Any, mapped: tuple[bool | Repeat, ...], rows: int | None, mode: Mode) -> list[Any]:
    """The results of an equation; its operands are made to vary over the same axes of a surrounding `shard_map`."""
    varying = list(map(axes_of, xs))
    if len(set(varying)) > 1:
        every = frozenset().union(*varying)
        xs = tuple(
            jax.lax.pcast(x, tuple(every - own), to="varying") if every - own else x
            for x, own in zip(xs, varying, strict=True)
        )
    return rows_p.bind(*xs, jaxpr=jaxpr, mapped=mapped, rows=rows, mode=mode)


@rows_p.def_abstract_eval
def _abstract(*avals: Any, jaxpr: Any, mapped: tuple[bool | Repeat, ...], rows: int | None, mode: Mode) -> list[Any]:
    like = next((a for a, m in zip(avals, mapped, strict=True) if m is True), None)
    example = like if like is not None else avals[0] if avals else jax.typeof(jnp.float32(0))
    lead = () if rows is None else (rows,)
    along = example.sharding.spec[0] if like is not None and example.sharding.spec else None

    def result(a: Any) -> Any:
        spec = PartitionSpec(*([along] if lead else []), *[None] * len(a.shape))
        sharding = example.sharding.update(spec=spec)
        return example.update(shape=(*lead, *a.shape), dtype=a.dtype, weak_type=a.weak_type, sharding=sharding)

    return [result(a) for a in results_of(jaxpr, mode)]


@functools.lru_cache(256)  # each takes megabytes
def _eager(params: tuple[tuple[str, Any], ...]) -> Any:
    return jax.jit(functools.partial(rows_p.bind, **dict(params)))


@rows_p.def_impl
def _eagerly(*xs: Any, **params: Any) -> Any:
    return _eager(tuple(params.items()))(*xs)


def halves(params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the equation that computes the values alone, and of the one that computes the slopes alone."""
    f, mode = params["jaxpr"], params["mode"]
    mapped = params["mapped"][: len(f.in_avals)]
    values = {**params, "jaxpr": forward(f, mode.moving), "mapped": mapped, "mode": Mode(True, False)}
    return values, {**params, "mode": mode._replace(values=False)}


def _batched(xs: Any, axes: Any, **params: Any) -> tuple[list[Any], list[Any]]:
    """The rule of `jax.vmap`: the first batch axis becomes the rows; further ones are merged with them."""
    jaxpr, mapped, rows, mode = params["jaxpr"], params["mapped"], params["rows"], params["mode"]
    n = len(jaxpr.in_avals)
    if mode.values and mode.slopes and all(a is None for a in axes[:n]):  # jacfwd: only tangents have the axis
        values, slopes = halves(params)
        y = bind(*xs[:n], **values)
        dy, along = _batched(xs, axes, **slopes)
        return [*y, *dy], [*[None] * len(y), *along]
    if any(isinstance(m, Repeat) for m in mapped):  # a third axis

        def whole(*xs: Any) -> list[Any]:
            every, now = expanded(xs, mapped)
            return bind(*every, **{**params, "mapped": now})

        out = jax.vmap(whole, axes)(*xs)
        return out, [0] * len(out)
    size = next(x.shape[a] for x, a in zip(xs, axes, strict=True) if a is not None)
    first = [x if a is None else jnp.moveaxis(x, a, 0) for x, a in zip(xs, axes, strict=True)]
    now = tuple(a is not None or m for a, m in zip(axes, mapped, strict=True))
    if rows is None:
        out = bind(*first, **{**params, "mapped": now, "rows": size})
        return out, [0] * len(out)

    joined, both = [], []
    for x, a, m in zip(first, axes, mapped, strict=True):
        joined.append(x.reshape(size * rows, *x.shape[2:]) if a is not None and m else x)
        # mapped along only one of the two axes: repeated along the other
        both.append(m if (a is None) is not m else Repeat(1, size) if a is None else Repeat(rows, 1))
    if rows % LANES or jax.device_count() > 1 or not all(math.prod(x.shape) for x in joined):
        joined, both = expanded(joined, both)
    out = bind(*joined, **{**params, "mapped": tuple(both), "rows": size * rows})
    return [x.reshape(size, rows, *x.shape[1:]) for x in out], [0] * len(out)


batching.primitive_batchers[rows_p] = _batched
