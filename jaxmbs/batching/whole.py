"""Equations of arrays that loops have stacked, for programs that keep these whole.

Taken apart, a motion with a thousand saved rows would be thousands of operations outside its loop, which take seconds to
compile. Parts and joins of such arrays are moves of successive numbers; what treats their rows alike is a loop over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmbs.batching.arrays import summable
from jaxmbs.batching.scalars import ELEMENTWISE, Source, entries, is_known

FEW = 64  # arrays with no more entries are taken apart: their operations run faster without a loop

_SAME_NUMBERS = frozenset(["reshape", "squeeze", "expand_dims", "broadcast_in_dim", "name"])
# how two numbers are combined, and the result for no numbers (None: the limit of the dtype, for the largest and smallest)
_REDUCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "reduce_sum": (lax.add, 0), "reduce_prod": (lax.mul, 1), "reduce_max": (lax.max, None), "reduce_min": (lax.min, None),
    "reduce_or": (lax.bitwise_or, False), "reduce_and": (lax.bitwise_and, True),
}  # fmt: skip


def parts_of(eqn: Any, inputs: Sequence[Any]) -> list[tuple[Any, int, int]] | None:
    """The result of an equation as successive numbers of its operands: (operand, the first number, how many); None if it
    is small, or anything else."""
    name, params = eqn.primitive.name, eqn.params
    given, (made, *more) = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    if made.size <= FEW or more:
        return None
    if name in _SAME_NUMBERS and len(given) == 1:
        same = (made.size == given[0].size and params.get("dimensions") is None) or name in ("squeeze", "expand_dims")
        return [(inputs[0], 0, made.size)] if same else None
    if name == "slice":
        start, each = params["start_indices"], math.prod(made.shape[1:])
        plain = not params["strides"] or set(params["strides"]) == {1}
        return [(inputs[0], start[0] * each, made.size)] if plain and made.shape[1:] == given[0].shape[1:] else None
    if name == "concatenate" and math.prod(made.shape[: params["dimension"]]) == 1:
        return [(x, 0, a.size) for x, a in zip(inputs, given, strict=True)]
    return None


def along_rows(eqn: Any, inputs: Sequence[Any]) -> tuple[Any, list[Any]] | None:
    """(closed jaxpr of a scan over the rows, i.e. the first axis, that replaces an equation; its operands); None if the
    equation is small, or neither treats the rows alike nor reduces them."""
    (made, *more), given = [v.aval for v in eqn.outvars], [v.aval for v in eqn.invars]
    if more or max(a.size for a in (made, *given)) <= FEW:
        return None
    if eqn.primitive.name in _REDUCTIONS and 0 in eqn.params["axes"]:
        possible = made.dtype == bool or summable(made.dtype)
        return (jax.make_jaxpr(_reduced(eqn))(_like(given[0])), list(inputs)) if possible else None
    found = _of_a_row(eqn)
    if found is None:
        return None
    row, has_rows = found
    operands, shapes, along = [], [], []
    for x, a, on in zip(inputs, given, has_rows, strict=True):
        same = on and not isinstance(x, Source) and x.strides[0] == 0  # its rows are one row, repeated
        if on and not same and not isinstance(x, Source) and not is_known(x):
            return None
        operands.append(entries(x)[0] if same else x)
        shapes.append(jax.ShapeDtypeStruct(a.shape[1:] if same else a.shape, a.dtype))
        along.append(on and not same)

    def run(*xs: Any) -> Any:
        def turn(none: Any, rows: Any) -> Any:
            rest = iter(rows)
            return none, row(*(next(rest) if on else x for x, on in zip(xs, along, strict=True)))

        return lax.scan(turn, None, [x for x, on in zip(xs, along, strict=True) if on], made.shape[0])[1]

    return jax.make_jaxpr(run)(*shapes), operands


def _like(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _of_a_row(eqn: Any) -> tuple[Callable[..., Any], list[bool]] | None:
    """(what an equation does to each row, for each operand whether it has rows); None if it does not treat rows alike."""
    name, params, shape = eqn.primitive.name, dict(eqn.params), eqn.outvars[0].aval.shape
    has_rows = [v.aval.shape[:1] == shape[:1] for v in eqn.invars]
    if name == "broadcast_in_dim" and shape and len(has_rows) == 1:
        axes = params["broadcast_dimensions"]
        has_rows = [axes[:1] == (0,)]
        if has_rows[0] and eqn.invars[0].aval.shape[0] != shape[0]:
            return None
        params |= {"shape": shape[1:], "broadcast_dimensions": tuple(k - 1 for k in axes if k > 0)}
    elif not shape or not all(on or not v.aval.shape for on, v in zip(has_rows, eqn.invars, strict=True)):
        return None
    elif name == "slice":
        params = {k: x and x[1:] for k, x in params.items()}
    elif name == "concatenate" and params["dimension"] > 0:
        params["dimension"] -= 1
    elif name in _REDUCTIONS:
        params["axes"] = tuple(k - 1 for k in params["axes"])
    elif name not in ELEMENTWISE:
        return None
    return lambda *x: eqn.primitive.bind(*x, **params), has_rows


def _reduced(eqn: Any) -> Callable[..., Any]:
    """A reduction of the first and perhaps other axes, as a loop over the first one."""
    combine, none = _REDUCTIONS[eqn.primitive.name]
    aval, axes = eqn.outvars[0].aval, tuple(k - 1 for k in eqn.params["axes"] if k > 0)
    if none is None:
        limits = jnp.iinfo(aval.dtype) if jnp.issubdtype(aval.dtype, jnp.integer) else None
        least, most = (limits.min, limits.max) if limits else (-np.inf, np.inf)
        none = least if combine is lax.max else most

    def turn(found: Any, row: Any) -> Any:
        return combine(found, eqn.primitive.bind(row, **{**eqn.params, "axes": axes}) if axes else row), None

    return lambda x: lax.scan(turn, jnp.full(aval.shape, none, aval.dtype), x)[0]
