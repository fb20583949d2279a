"""A chunk of operations done one after another on whole columns: little code to compile, slow to run.

For the rare rows that a kernel does not serve. Compiled is one loop with a branch for every kind of operation: each turn
takes the columns of the operands by their numbers and puts the result into a column that is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmbs.batching.ordering import Chunk


class _Registers:
    """The columns of one dtype: which number is in which."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype
        self.first: list[Any] = [0]  # what they hold at the start; the first one takes what nobody needs
        self.free: list[int] = []
        self.place: dict[Any, int] = {}

    def given(self, x: Any, value: Any) -> None:
        if x not in self.place:
            self.place[x] = len(self.first)
            self.first.append(value)

    def made(self, x: Any) -> int:
        if not self.free:
            self.free.append(len(self.first))
            self.first.append(0)
        self.place[x] = self.free.pop()
        return self.place[x]


@dataclass
class Columns:
    """Results in arrays (n, rows), one for each dtype: which array each is in, and at which place."""

    arrays: list[Any]
    places: dict[Any, tuple[int, int]]

    def __getitem__(self, x: Any) -> Any:
        array, place = self.places[x]
        return self.arrays[array][place]

    def together(self, xs: Sequence[Any]) -> Any:
        """(rows, n) of results of one dtype."""
        array = self.arrays[self.places[xs[0]][0]]
        return array[np.array([self.places[x][1] for x in xs])].T


def stepwise(chunk: Chunk, operands: Sequence[Any], rows: int) -> Columns:
    """The results of a chunk, each operation by the primitive itself."""
    last = {_name(x): k for k, o in enumerate(chunk.operations) for x in o.operands}
    last.update(dict.fromkeys(chunk.results, len(chunk.operations)))
    groups: list[_Registers] = []
    group_of: dict[Any, int] = {}

    def group(x: Any, dtype: Any) -> _Registers:
        numbers = [g.dtype for g in groups]
        if dtype not in numbers:
            groups.append(_Registers(np.dtype(dtype)))
        group_of[x] = [g.dtype for g in groups].index(dtype)
        return groups[group_of[x]]

    for o in chunk.operations:
        for x in o.operands:
            if isinstance(x, np.generic):
                group(_name(x), x.dtype).given(_name(x), x)
        group(o, o.dtype)
    for x, value in zip(chunk.reads, operands, strict=True):
        group(x, value.dtype).given(x, value)
    kinds: dict[Any, tuple[int, Any]] = {}
    turns = []
    for k, o in enumerate(chunk.operations):
        names = [_name(x) for x in o.operands]
        reads = [groups[group_of[x]].place[x] for x in names]
        kind = o.primitive.name, str(o.params), group_of[o], *(group_of[x] for x in names)
        number, _ = kinds.setdefault(kind, (len(kinds), (o, [group_of[x] for x in names])))
        for x in dict.fromkeys(names):
            if last[x] == k and x in group_of and not isinstance(x, tuple):
                groups[group_of[x]].free.append(groups[group_of[x]].place[x])
        turns.append((number, reads, group_of[o], groups[group_of[o]].made(o)))
        if o not in last:
            groups[group_of[o]].free.append(groups[group_of[o]].place[o])
    most = max(len(reads) for _, reads, _, _ in turns)
    table = np.array([[n, *r, *[0] * (most - len(r)), *(k if g == i else 0 for i in range(len(groups)))]
                      for n, r, g, k in turns], np.int32)  # fmt: skip

    def branch(o: Any, of: list[int]) -> Any:
        def apply(given: list[list[Any]]) -> list[Any]:
            result = o.primitive.bind(*(given[g][i] for i, g in enumerate(of)), **o.params)
            return [result if i == group_of[o] else x[0] for i, x in enumerate(given)]

        return apply

    branches = [branch(*found) for _, found in kinds.values()]
    numbers = jnp.asarray(table)

    def turn(k: Any, columns: list[Any]) -> list[Any]:
        row = numbers[k]
        given = [[lax.dynamic_index_in_dim(x, row[1 + i], keepdims=False) for i in range(most)] for x in columns]
        made = lax.switch(row[0], branches, given)
        places = [row[1 + most + i] for i in range(len(columns))]
        return [lax.dynamic_update_index_in_dim(x, y, at, 0) for x, y, at in zip(columns, made, places, strict=True)]

    def start(group: _Registers) -> Any:
        reads = [k for k, x in enumerate(group.first) if isinstance(x, jax.Array)]
        columns = jnp.asarray([0 if isinstance(x, jax.Array) else x for x in group.first], group.dtype)
        columns = jnp.broadcast_to(columns[:, None], (len(group.first), rows))
        if not reads:
            return columns
        given = jnp.stack([jnp.broadcast_to(group.first[k], (rows,)) for k in reads])
        return lax.dynamic_update_slice_in_dim(columns, given, reads[0], 0)

    end = lax.fori_loop(0, len(turns), turn, [start(g) for g in groups])
    return Columns(end, {o: (group_of[o], groups[group_of[o]].place[o]) for o in chunk.results})


def _name(x: Any) -> Any:
    """Equal for equal constants."""
    return (x.dtype.char, x.tobytes()) if isinstance(x, np.generic) else x
