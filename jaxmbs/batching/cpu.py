"""Kernels on a CPU: one vectorised loop over the rows.

The loop is a `reduce_window` over the rows whose window holds one row. Its reducer takes the entries of the row and
returns any number of results, so that all intermediate values stay in registers. XLA:CPU compiles it to one vectorised
loop, whereas separate arrays would become one loop each. The reducer is applied once per row, to the starting values and
the row: numbers that all rows share come from the former, the entries of the row from the latter.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmbs.batching import trigonometry
from jaxmbs.batching.ordering import Chunk
from jaxmbs.batching.scalars import is_shared
from jaxmbs.batching.targets import Kernels, run


def fuse(chunk: Chunk, operands: Sequence[Any], rows: int) -> tuple[list[Any], Any]:
    """Evaluates a chunk in one loop over the rows, as `Kernels.fuse` says.

    The loop has slots, each of which reads one column and writes one: a slot without a column to read reads zeros, one
    without a result writes what it has read. A number that all rows share is the starting value of a slot.
    """
    slots = _Slots()
    for i, (x, value) in enumerate(zip(chunk.reads, operands, strict=True)):
        slots.add("shared" if is_shared(x) else "read", i, value.dtype)
    for i, o in enumerate(chunk.results):
        slots.add("write", i, o.dtype)
    sines = any(trigonometry.computes(o) for o in chunk.operations)
    if sines:
        slots.add("write", len(chunk.results), np.dtype(bool))
    if len(slots.all) == 1:  # XLA would treat a loop with a single operand as an ordinary sum or maximum
        slots.all.append(_Slot(slots.all[0].dtype))
    zeros = {s.dtype: jnp.zeros(rows, s.dtype) for s in slots.all if s.read is None}
    columns = tuple(zeros[s.dtype] if s.read is None else operands[s.read] for s in slots.all)
    starts = tuple(jnp.zeros((), s.dtype) if s.shared is None else operands[s.shared] for s in slots.all)

    def reducer(start: Sequence[Any], row: Sequence[Any]) -> tuple[Any, ...]:
        given: list[Any] = [None] * len(operands)
        for s, number, entry in zip(slots.all, start, row, strict=True):
            if s.read is not None:
                given[s.read] = entry
            if s.shared is not None:
                given[s.shared] = number
        large: list[Any] = []
        out = run(chunk, given, large=large)
        if sines:
            out.append(functools.reduce(lax.bitwise_or, large))
        return tuple(x if s.write is None else out[s.write] for s, x in zip(slots.all, row, strict=True))

    done = lax.reduce_window(columns, starts, reducer, (1,), (1,), "VALID")
    written = {s.write: x for s, x in zip(slots.all, done, strict=True) if s.write is not None}
    return [written[i] for i in range(len(chunk.results))], written.get(len(chunk.results))


@dataclass(slots=True)
class _Slot:
    """One operand of the loop: indices of the column that it reads, of the one that it writes, and of its shared number."""

    dtype: Any
    read: int | None = None
    write: int | None = None
    shared: int | None = None


class _Slots:
    def __init__(self) -> None:
        self.all: list[_Slot] = []
        self.free: dict[tuple[str, Any], int] = {}

    def add(self, use: str, index: int, dtype: Any) -> None:
        """Put an index into the first slot of the dtype that has no index for this use yet."""
        k = self.free.get((use, dtype), 0)
        while k < len(self.all) and self.all[k].dtype != dtype:
            k += 1
        if k == len(self.all):
            self.all.append(_Slot(dtype))
        setattr(self.all[k], use, index)
        self.free[use, dtype] = k + 1


# Measured: beyond 2500 operations the compiler no longer inlines but recomputes; beyond 250 columns, read and written
# together, the loop is not vectorised. A column costs 1.4 ns per row on one core: 0.4 in the loop, which writes as many
# columns as it reads, and 1 to gather it from an array whose rows are contiguous.
# Beyond 450 numbers that all rows share, constants or not, LLVM needs minutes and gigabytes to compile the loop.
CPU = Kernels(fuse, name="XLA loops", most_operations=2300, most_columns=110, most_shared=200, own_sines=True)
