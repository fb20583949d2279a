"""A recorded program, and a plan of which of its parts are needed, and when.

A program is a list of items. An `Operation` acts on scalars (additions, sines, comparisons ...) and is not computed until a
step needs it. A `Step` is anything else (a loop, a factorization, a call) and runs on arrays of all rows. A value of the
program is a `Source` or an object array of numbers, entries and operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxmbs.batching.scalars import Entry, Operation, Source


@dataclass(eq=False)
class Loop:
    """A loop: the program of one iteration, and how its values are connected to those around the loop.

    outside, inside: what the loop uses from outside, as values of the surrounding program and as arrays of its own; start,
    carried, after: the numbers that it carries, before the loop, within an iteration and after the loop; xs, turns: the
    arrays over which it runs, and the part of each in one iteration; ys: the arrays that it stacks; length, reverse: the
    number of iterations and their direction; count: None, or how many iterations are made, at most `length`, a value ()
    that is the same for all rows; going: None, or which of the carried numbers says whether a row needs the next
    iteration: the loop then ends when none does, and `length` is a guess. The outputs of the program are the carried
    numbers, one by one, and the parts of ys.
    """

    program: Recording
    outside: list[Any]
    inside: list[Source]
    start: list[Any]
    carried: list[Source]
    after: list[Source]
    xs: list[Any]
    turns: list[Source]
    ys: list[Source]
    length: int
    reverse: bool
    count: Any = None
    going: int | None = None

    @property
    def kept(self) -> int:
        """Bytes of a row in the arrays that the loop stacks."""
        return sum(math.prod(y.shape) * np.dtype(y.dtype).itemsize for y in self.ys)


@dataclass(eq=False)
class Product:
    """A product of a vector of each row with a matrix that all rows share: y[j] is the sum over i of x[i] matrix[i, j].

    x: the vector; matrix: an array that has the number (i, j) at the place across[0] i + across[1] j.
    """

    x: Any
    matrix: Source
    across: tuple[int, int]


@dataclass(eq=False)
class Joined:
    """An array that consists of successive numbers of others: parts (array, the first of its numbers, how many)."""

    parts: list[tuple[Any, int, int]]


@dataclass(eq=False)
class Step:
    """Something that runs on whole arrays.

    run(setting, *inputs) -> an array for each output. name: of the primitive.
    """

    run: Callable[..., Sequence[Any]]
    inputs: list[Any]
    outputs: list[Source]
    fused: bool  # whether it is the same for all rows or a loop of scalar operations
    name: str
    loop: Loop | None = None
    product: Product | None = None
    joined: Joined | None = None

    @property
    def shared(self) -> bool:
        """Whether the step is the same for all rows."""
        return self.fused and self.loop is None


@dataclass(eq=False)
class Recording:
    """The recorded items in their order, and the outputs."""

    items: list[Step | Operation] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    @property
    def fused(self) -> bool:
        return all(item.fused for item in self.items if isinstance(item, Step))

    def plan(self) -> tuple[list[Step], dict[Operation, int], set[Operation]]:
        """The steps whose results are used, the number of the step before which each operation must be done, and the
        operations whose values leave their kernel."""
        steps: list[Step] = []  # from the last to the first
        alive: set[Source] = set()
        due: dict[Operation, int] = {}  # counted from the end: 0 is the outputs
        leaving: set[Operation] = set()

        def need(x: Any, when: int) -> None:
            if isinstance(x, Source):
                alive.add(x)
                return
            for e in x.reshape(-1):
                if isinstance(e, Entry):
                    alive.add(e.source)
                elif isinstance(e, Operation):
                    due[e] = max(due.get(e, 0), when)
                    leaving.add(e)

        for x in self.outputs:
            need(x, 0)
        for item in reversed(self.items):
            if isinstance(item, Step):
                if alive.intersection(item.outputs):
                    steps.append(item)
                    for x in item.inputs:
                        need(x, len(steps))
            elif item in due:
                for e in item.operands:
                    if isinstance(e, Entry):
                        alive.add(e.source)
                    elif isinstance(e, Operation):
                        due[e] = max(due.get(e, 0), due[item])
        for item, when in due.items():
            for e in item.operands:
                if isinstance(e, Operation) and due[e] != when:
                    leaving.add(e)
        return steps[::-1], {o: len(steps) - k for o, k in due.items()}, leaving
