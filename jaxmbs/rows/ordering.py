"""The order of operations, and where kernels begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbs.rows.scalars import Operation, is_shared

_WEIGHTS = {"sin": 25, "cos": 25}


@dataclass(slots=True)
class Chunk:
    """Operations of one kernel, what they read from outside, and what they hand on."""

    operations: list[Operation]
    reads: list[Any]
    results: list[Operation]


def chunks(
    operations: Sequence[Operation], wanted: set[Operation], most_operations: int, most_columns: int
) -> list[Chunk]:
    """The operations in order, cut where a kernel would become too long or read and write too many arrays."""
    position: dict[Any, int] = {o: k for k, o in enumerate(operations)}
    last_use = {o: len(operations) if o in wanted else k for o, k in position.items()}
    for k, o in enumerate(operations):
        for x in o.operands:
            if not isinstance(x, np.generic) and x in position:
                last_use[x] = max(last_use[x], k)
    out: list[Chunk] = []
    first = size = 0
    reading: dict[Any, bool] = {}  # whether it is a column
    writing: set[Any] = set()

    def close(end: int) -> None:
        inside = list(operations[first:end])
        out.append(Chunk(inside, list(reading), [o for o in inside if last_use[o] >= end]))

    for k, o in enumerate(operations):
        weight = _WEIGHTS.get(o.primitive.name, 1)
        if size + weight > most_operations or (size > 100 and max(sum(reading.values()), len(writing)) > most_columns):
            close(k)
            first, size, reading, writing = k, 0, {}, set()
        size += weight
        for x in o.operands:
            if isinstance(x, np.generic):
                continue
            if position.get(x, -1) < first:
                reading[x] = not is_shared(x)
            elif last_use[x] == k:
                writing.discard(x)
        if last_use[o] > k:
            writing.add(o)
    close(len(operations))
    return out


def by_results(operations: Sequence[Operation], wanted: set[Operation]) -> list[Operation]:
    """The operations in another order: result after result, always the one that needs the fewest operations more.

    Where many results need much in common and little of one another, as the columns of a Jacobian do, fewer numbers
    wait at any time.
    """
    results = [o for o in operations if o in wanted]
    needed_by = dict.fromkeys(operations, 0)  # a bit for every result
    needed_by.update((o, 1 << k) for k, o in enumerate(results))
    for o in reversed(operations):
        for x in o.operands:
            if not isinstance(x, np.generic) and x in needed_by:
                needed_by[x] |= needed_by[o]
    groups: dict[int, list[int]] = {}
    for k, o in enumerate(operations):
        groups.setdefault(needed_by[o], []).append(k)
    shares = {mask: _bits(mask) for mask in groups}
    lacking = [0] * len(results)
    groups_of: list[list[int]] = [[] for _ in results]
    for mask, share in shares.items():
        for k in share:
            lacking[k] += len(groups[mask])
            groups_of[k].append(mask)
    left, out = set(range(len(results))), []
    while left:
        k = min(left, key=lambda k: (lacking[k], k))
        left.remove(k)
        now = [mask for mask in groups_of[k] if mask in groups]
        out += sorted(i for mask in now for i in groups[mask])
        for mask in now:
            size = len(groups.pop(mask))
            for other in shares[mask]:
                lacking[other] -= size
    return [operations[i] for i in out]


def _bits(mask: int) -> list[int]:
    return [k for k, digit in enumerate(reversed(f"{mask:b}")) if digit == "1"]
