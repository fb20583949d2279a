"""Operations on scalars, evaluated for all rows in one loop.

The loop is a `reduce_window` over the rows whose window holds one row: its reducer takes the entries of the row and
returns any number of results, so that everything between stays in registers. XLA:CPU compiles it to one vectorised loop,
where separate arrays would become one loop each. The reducer is applied once, to the starting value and the row: it
takes the row's entries from the second and numbers that all rows share from the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmbs.rows import trigonometry
from jaxmbs.rows.scalars import Operation, is_shared

MOST_OPERATIONS = 1200  # of one kernel; measured: beyond 2500 the compiler no longer inlines, and recomputes
MOST_COLUMNS = 110  # that a kernel reads, or writes; measured: beyond 250 together the loop is not vectorised
_WEIGHTS = {"sin": 25, "cos": 25}
_OWN = {"sin": trigonometry.sin, "cos": trigonometry.cos}


def evaluate(
    operations: Sequence[Operation], wanted: set[Operation], column: Callable[[Any], Any], rows: int
) -> dict[Operation, Any]:
    """Columns (rows,) of the wanted operations; `column` gives those of operands that are not among the operations."""
    found: dict[Operation, Any] = {}
    position = {o: k for k, o in enumerate(operations)}
    last_use = {o: len(operations) if o in wanted else k for o, k in position.items()}
    for o in operations:
        for x in o.operands:
            if x in position:
                last_use[x] = max(last_use[x], position[o])
    for chunk in _chunks(operations, position, last_use):
        first, last = position[chunk[0]], position[chunk[-1]]
        outside = {
            x: None
            for o in chunk
            for x in o.operands
            if not (isinstance(x, np.generic) or position.get(x, -1) >= first)
        }
        results = [o for o in chunk if last_use[o] > last]
        if results:
            operands = [found[x] if x in found else column(x) for x in outside]
            found.update(zip(results, _kernel(chunk, list(outside), operands, results, rows), strict=True))
    return {o: found[o] for o in operations if o in wanted}


def _chunks(
    operations: Sequence[Operation], position: dict[Any, int], last_use: dict[Operation, int]
) -> list[list[Operation]]:
    """The operations in order, cut where a kernel would become too long or read and write too many arrays."""
    chunks: list[list[Operation]] = [[]]
    first = size = 0
    reading: set[Any] = set()
    writing: set[Any] = set()
    for k, o in enumerate(operations):
        weight = _WEIGHTS.get(o.primitive.name, 1)
        if size + weight > MOST_OPERATIONS or (size > 100 and max(len(reading), len(writing)) > MOST_COLUMNS):
            chunks.append([])
            first, size, reading, writing = k, 0, set(), set()
        chunks[-1].append(o)
        size += weight
        for x in o.operands:
            if isinstance(x, np.generic) or is_shared(x):
                continue
            if position.get(x, -1) < first:
                reading.add(x)
            elif last_use[x] == k:
                writing.discard(x)
        if last_use[o] > k:
            writing.add(o)
    return chunks


def run(operations: Sequence[Operation], given: dict[Any, Any], results: Sequence[Operation]) -> list[Any]:
    """The operations applied to any arrays that broadcast together (scalars in a reducer, blocks in a GPU kernel)."""
    values = dict(given)
    for o in operations:
        dtypes = _operand_dtypes(o, values)
        operands = [
            np.asarray(x, t)[()] if isinstance(x, np.generic) else values[x]
            for x, t in zip(o.operands, dtypes, strict=True)
        ]
        own = _OWN.get(o.primitive.name)
        if own and trigonometry.available(o.dtype) and isinstance(operands[0], jax.Array):
            values[o] = own(operands[0])
        else:
            values[o] = o.primitive.bind(*operands, **o.params)
    return [values[o] for o in results]


def _operand_dtypes(o: Operation, values: dict[Any, Any]) -> list[Any]:
    return [x.dtype if isinstance(x, np.generic) else values[x].dtype for x in o.operands]


def _kernel(
    operations: Sequence[Operation],
    outside: Sequence[Any],
    values: Sequence[Any],
    results: Sequence[Operation],
    rows: int,
) -> list[Any]:
    """One loop over the rows.

    The loop takes a slot for each column that it reads or writes; a slot that needs only one of the two is filled up. A
    number that all rows share takes the place of a slot's starting value.
    """
    slots = _Slots()
    for i, (x, value) in enumerate(zip(outside, values, strict=True)):
        slots.add("shared" if is_shared(x) else "read", i, value.dtype)
    for i, o in enumerate(results):
        slots.add("write", i, o.dtype)
    if len(slots.all) == 1:  # a single operand would be taken for an ordinary sum or maximum
        slots.all.append(_Slot(slots.all[0].dtype))
    zeros = {s.dtype: jnp.zeros(rows, s.dtype) for s in slots.all if s.read is None}
    operands = [zeros[s.dtype] if s.read is None else values[s.read] for s in slots.all]
    starts = [jnp.zeros((), s.dtype) if s.shared is None else values[s.shared] for s in slots.all]

    def reducer(start: Sequence[Any], row: Sequence[Any]) -> tuple[Any, ...]:
        given = {outside[s.read]: x for s, x in zip(slots.all, row, strict=True) if s.read is not None}
        given |= {outside[s.shared]: x for s, x in zip(slots.all, start, strict=True) if s.shared is not None}
        out = run(operations, given, results)
        return tuple(x if s.write is None else out[s.write] for s, x in zip(slots.all, row, strict=True))

    columns = lax.reduce_window(tuple(operands), tuple(starts), reducer, (1,), (1,), "VALID")
    written = {s.write: x for s, x in zip(slots.all, columns, strict=True)}
    return [written[i] for i in range(len(results))]


@dataclass(slots=True)
class _Slot:
    """One operand of the loop: which column it reads, which it writes, which shared number it starts from."""

    dtype: Any
    read: int | None = None
    write: int | None = None
    shared: int | None = None


class _Slots:
    def __init__(self) -> None:
        self.all: list[_Slot] = []
        self.free: dict[tuple[str, Any], int] = {}

    def add(self, use: str, index: int, dtype: Any) -> None:
        """Put an index into the first slot of the dtype that has no such use yet."""
        k = self.free.get((use, dtype), 0)
        while k < len(self.all) and self.all[k].dtype != dtype:
            k += 1
        if k == len(self.all):
            self.all.append(_Slot(dtype))
        setattr(self.all[k], use, index)
        self.free[use, dtype] = k + 1
