"""Evaluation of operations in kernels, the way that a target asks for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbs.batching import trigonometry
from jaxmbs.batching.ordering import Chunk, by_parts, by_results, chunks
from jaxmbs.batching.scalars import Operation


@dataclass(frozen=True, kw_only=True)
class Target:
    """What runs programs of scalars on a kind of device.

    granule: the number of rows is a multiple of it.
    own_sines: sines and cosines are those of `trigonometry`.
    serves: whether it can do an equation on the numbers of arrays; None: any that is recorded so.
    embeds(step, rows): whether a step can be part of a kernel; None: none can.
    """

    granule: int = 1
    own_sines: bool = False
    serves: Callable[[Any], bool] | None = None
    embeds: Callable[[Any, int], bool] | None = None


@dataclass(frozen=True)
class Kernels(Target):
    """A target to which programs are given in parts.

    fuse(chunk, operands, rows): columns (rows,) of the chunk's results from those of what it reads, () where all rows
    share a number; and (rows,) in which rows these are wrong since an angle is too large, None if there cannot be such.
    most_operations, most_columns, most_shared (numbers that are the same for all rows): of one kernel.
    """

    fuse: Callable[[Chunk, Sequence[Any], int], tuple[list[Any], Any]]
    most_operations: int
    most_columns: int
    most_shared: int = sys.maxsize


@dataclass(frozen=True)
class Whole(Target):
    """A target that runs whole programs; execute(program, given, setting): what `execution.execute` returns."""

    execute: Callable[..., tuple[list[Any], Any]]


def evaluate(
    operations: Sequence[Operation],
    wanted: set[Operation],
    column: Callable[[Any], Any],
    rows: int,
    target: Kernels,
) -> tuple[dict[Operation, Any], Any]:
    """Columns (rows,) of the wanted operations; `column` gives those of operands that are not among the operations.

    And in which rows these are wrong, as `Kernels.fuse` says.
    """
    plans = [
        chunks(order, wanted, target.most_operations, target.most_columns, target.most_shared)
        for order in (operations, by_results(operations, wanted), by_parts(operations, wanted))
    ]
    found: dict[Operation, Any] = {}
    beyond = None
    for chunk in min(plans, key=lambda plan: sum(len(c.reads) + len(c.results) for c in plan)):
        if chunk.results:
            operands = [found[x] if x in found else column(x) for x in chunk.reads]
            columns, too_large = target.fuse(chunk, operands, rows)
            found.update(zip(chunk.results, columns, strict=True))
            beyond = either(beyond, too_large)
    return {o: found[o] for o in operations if o in wanted}, beyond


def either(a: Any, b: Any) -> Any:
    """In which rows one of two says so, or None."""
    return b if a is None else a if b is None else a | b


def run(
    chunk: Chunk, operands: Sequence[Any], shape: tuple[int, ...] = (), large: list[Any] | None = None
) -> list[Any]:
    """The results of a chunk for operands of one shape: scalars in a reducer, blocks of rows elsewhere.

    large: None, or a list to which it is added where an argument of a sine or cosine is too large for `trigonometry`.
    """
    values: dict[Any, Any] = dict(zip(chunk.reads, operands, strict=True))

    def operand(x: Any, dtype: Any) -> Any:
        value = np.asarray(x, dtype)[()] if isinstance(x, np.generic) else values[x]
        return value if np.shape(value) == shape else jnp.broadcast_to(value, shape)

    checked = set()
    for o in chunk.operations:
        dtypes = [x.dtype if isinstance(x, np.generic) else values[x].dtype for x in o.operands]
        given = [operand(x, t) for x, t in zip(o.operands, dtypes, strict=True)]
        if large is not None and trigonometry.computes(o):
            values[o] = trigonometry.OWN[o.primitive.name](given[0])
            if o.operands[0] not in checked:
                checked.add(o.operands[0])
                large.append(trigonometry.too_large(given[0]))
        else:
            values[o] = o.primitive.bind(*given, **o.params)
    return [values[o] for o in chunk.results]
