"""The order of operations, and where kernels begin and end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbs.batching.scalars import Operation, is_shared

_WEIGHTS = {"sin": 25, "cos": 25}
_PLACES = 200  # number of places at which a kernel may end: limits the time for planning long programs
_OF_A_KERNEL = 10.0  # the fixed cost of a kernel, in columns


@dataclass(slots=True)
class Chunk:
    """The operations of one kernel, what they read from outside, and the results that they pass on."""

    operations: list[Operation]
    reads: list[Any]
    results: list[Operation]


def chunks(
    operations: Sequence[Operation],
    wanted: set[Operation],
    most_operations: int,
    most_columns: int,
    most_places: int = _PLACES,
) -> list[Chunk]:
    """The operations in order, cut into kernels that are not too long and read and write the fewest columns.

    wanted: the operations whose values are used afterwards; most_places: number of places at which a kernel may end;
    there are more if they would otherwise be further apart than a quarter of most_operations.
    """
    n = len(operations)
    position: dict[Any, int] = {o: k for k, o in enumerate(operations)}
    operands = [[x for x in o.operands if not isinstance(x, np.generic)] for o in operations]
    last_use = [n if o in wanted else k for k, o in enumerate(operations)]
    for k, given in enumerate(operands):
        for x in given:
            if x in position:
                last_use[position[x]] = max(last_use[position[x]], k)

    # for speed, the loops below use numbers in place of operations; numbers from n on are operands from outside
    numbers = dict(position)
    needs = [list(dict.fromkeys(numbers.setdefault(x, len(numbers)) for x in given)) for given in operands]
    column = [not is_shared(x) for x in numbers]
    weights = [_WEIGHTS.get(o.primitive.name, 1) for o in operations]

    step = max(1, min(-(-n // most_places), most_operations // 4))
    places = {*range(0, n, step), n}
    read_from = [-1] * len(numbers)  # beginning of the kernel that last counted it

    def ends(first: int) -> Iterator[tuple[int, int]]:
        """The places where a kernel that begins at `first` may end, with how many columns it then reads and writes."""
        size = columns = writing = 0
        for k in range(first, n):
            size += weights[k]
            for x in needs[k]:
                if first <= x < n:
                    writing -= last_use[x] == k
                elif read_from[x] != first:
                    read_from[x] = first
                    columns += column[x]
            writing += last_use[k] > k
            if k + 1 in places:
                fits = size <= most_operations and columns <= most_columns
                if k - first < step or (fits and writing <= most_columns):
                    yield k + 1, columns + writing
                if not fits:
                    return

    fewest = {0: (0.0, 0)}  # cost of the best kernels up to each place, and where the last of them begins
    for first in sorted(places - {n}):
        before = fewest[first][0] + _OF_A_KERNEL
        for end, columns in ends(first):
            fewest[end] = min(fewest.get(end, (math.inf, 0)), (before + columns, first))
    out: list[Chunk] = []
    end = n
    while end:
        first = fewest[end][1]
        inside = list(operations[first:end])
        reads = dict.fromkeys(x for given in operands[first:end] for x in given if position.get(x, -1) < first)
        out.append(Chunk(inside, list(reads), [operations[k] for k in range(first, end) if last_use[k] >= end]))
        end = first
    return out[::-1]


def by_parts(operations: Sequence[Operation], wanted: set[Operation]) -> list[Operation]:
    """The operations reordered: each part of the recorded function in one piece, just before the part that needs it.

    For a tree of bodies this means limb after limb, instead of all bodies outwards and then all inwards.
    """
    members: dict[int, list[Operation]] = {}
    for o in operations:
        members.setdefault(o.part, []).append(o)
    inside = set(operations)
    waiting = list(dict.fromkeys(o.part for o in operations if o in wanted))[::-1]
    opened: set[int] = set()
    out: list[Operation] = []
    while waiting:  # depth first; an opened part stays on the stack below the parts that it needs
        part = waiting[-1]
        if part in opened:
            out += members.pop(waiting.pop(), ())
            continue
        opened.add(part)
        needed = dict.fromkeys(x.part for o in members[part] for x in o.operands if x in inside)
        waiting += [x for x in needed if x not in opened]
    return out


def by_results(operations: Sequence[Operation], wanted: set[Operation]) -> list[Operation]:
    """The operations reordered: result after result, each time the one that needs the fewest further operations.

    If many results share operations but hardly need one another, like the columns of a Jacobian, fewer numbers have to
    be held at any time.
    """
    results = [o for o in operations if o in wanted]
    needed_by = dict.fromkeys(operations, 0)  # bit k is set if result k needs it
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
