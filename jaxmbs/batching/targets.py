"""Targets that run programs of scalars, and the evaluation of operations in kernels of a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.ordering import Chunk, by_parts, by_results, chunks
from jaxmbs.batching.scalars import Operation


@dataclass(frozen=True, kw_only=True)
class Target:
    """Runs programs of scalars on one kind of device.

    name: what it is called. granule: the number of rows has to be a multiple of it.
    serves(equation): whether the target can evaluate an equation entry by entry; None: it can, for every recorded one.
    excludes(step, rows): why a step cannot be part of a kernel, in words, empty if it can; None: no step can.
    """

    name: str
    granule: int = 1
    serves: Callable[[Any], bool] | None = None
    excludes: Callable[[Any, int], str] | None = None


@dataclass(frozen=True)
class Kernels(Target):
    """A target that runs programs in parts, one kernel for each.

    fuse(chunk, operands, rows): returns the columns (rows,) of the chunk's results. Each operand is a column (rows,) that
    the chunk reads, or a number () that all rows share.
    most_operations, most_columns: limits of one kernel.
    """

    fuse: Callable[[Chunk, Sequence[Any], int], list[Any]]
    most_operations: int
    most_columns: int


@dataclass(frozen=True)
class Whole(Target):
    """A target that runs whole programs; execute(program, given, setting) returns what `execution.execute` returns."""

    execute: Callable[..., list[Any]]


def evaluate(
    operations: Sequence[Operation],
    wanted: set[Operation],
    column: Callable[[Any], Any],
    rows: int,
    target: Kernels,
) -> dict[Operation, Any]:
    """The columns (rows,) of the wanted operations.

    column(operand): the column of an operand that is not among the operations.
    """
    plans = [
        chunks(order, wanted, target.most_operations, target.most_columns)
        for order in (operations, by_results(operations, wanted), by_parts(operations, wanted))
    ]
    found: dict[Operation, Any] = {}
    for chunk in min(plans, key=lambda plan: sum(len(c.reads) + len(c.results) for c in plan)):
        if chunk.results:
            operands = [found[x] if x in found else column(x) for x in chunk.reads]
            found.update(zip(chunk.results, target.fuse(chunk, operands, rows), strict=True))
    return {o: found[o] for o in operations if o in wanted}


def run(chunk: Chunk, operands: Sequence[Any], shape: tuple[int, ...]) -> list[Any]:
    """The results of a chunk for operands of one `shape`, a block of rows."""
    values: dict[Any, Any] = dict(zip(chunk.reads, operands, strict=True))

    def operand(x: Any, dtype: Any) -> Any:
        value = np.asarray(x, dtype)[()] if isinstance(x, np.generic) else values[x]
        return value if np.shape(value) == shape else jnp.broadcast_to(value, shape)

    for o in chunk.operations:
        dtypes = [x.dtype if isinstance(x, np.generic) else values[x].dtype for x in o.operands]
        given = [operand(x, t) for x, t in zip(o.operands, dtypes, strict=True)]
        values[o] = o.primitive.bind(*given, **o.params)
    return [values[o] for o in chunk.results]
