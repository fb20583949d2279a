"""The work of a kernel as a tree: pieces of operations, fetching and storing of arrays, loops.

Numbers are held in a frame. Each of its slots holds one number for every row of the group that is computed at once. A number
is named by its `Operation`, or by an array and the index in it: (source, k).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jaxmbs.batching.ordering import Chunk, by_parts, by_results, chunks
from jaxmbs.batching.recorded import Joined, Step
from jaxmbs.batching.scalars import Entry, Operation, Source, dtype_of, entries, is_known, single

MOST_OPERATIONS = 700  # of one piece: in longer ones LLVM takes more time per operation
MOST_COLUMNS = 400
PLACES = 50  # at which a piece may end


@dataclass(eq=False)
class Place:
    """Where an array is: an argument, a result, a constant, or scratch memory. In scratch memory, the numbers with the
    same index in the rows of a group lie side by side; elsewhere, all numbers of a row do."""

    dtype: np.dtype
    size: int  # how many numbers a row has
    argument: int | None = None  # its index among the arguments
    result: int | None = None  # its index among the results, which are arguments too
    constant: np.ndarray | None = None
    offset: int = 0  # in scratch memory, in bytes per row
    shared: bool = False  # whether all rows share it
    begin: int = 0  # the index of its first number in a row of an argument or a result

    def part(self, first: int) -> Place:
        """The place of the numbers from the given one on."""
        if self.argument is None and self.result is None:
            return replace(self, offset=self.offset + first * self.dtype.itemsize)
        return replace(self, begin=self.begin + first)


@dataclass(eq=False)
class Fetch:
    """Loads numbers of an array into slots; turn: how many of them an iteration of a loop has, 0 outside loops."""

    place: Place
    source: Source
    turn: int = 0
    wanted: list[int] = field(default_factory=list)  # which numbers of an iteration


@dataclass(eq=False)
class Keep:
    """Stores numbers in an array; turn: how many of them an iteration of a loop has, 0 outside loops."""

    place: Place
    given: list[Any]
    turn: int = 0


@dataclass(eq=False)
class Copy:
    """Copies numbers into slots of other names; all are read before any is written."""

    pairs: list[tuple[Any, Any]]  # (from, to)
    begins: bool = False


@dataclass(eq=False)
class Piece:
    """A sequence of operations."""

    chunk: Chunk
    reads: list[Any] = field(default_factory=list)


@dataclass(eq=False)
class Multiply:
    """Multiplies vectors in scratch memory by a matrix that all rows share, see `recorded.Product`."""

    x: Place
    matrix: Place
    y: Place
    across: tuple[int, int]


@dataclass(eq=False)
class Turns:
    """A loop of `length` iterations. count: None, or the name of the number of iterations that are made; rest: nodes for
    each of the others; going: None, or the name of the truth value that says whether a row needs the next iteration."""

    length: int
    reverse: bool
    body: list[Any]
    count: Any = None
    rest: list[Any] = field(default_factory=list)
    going: Any = None


class Code:
    """The tree of a kernel that does the `items` of a program and stores the values `outputs`.

    moved: where operations and loop results of earlier kernels are now, each an entry of an array. inputs: the arrays
    that the kernel takes; once: fetches of shared arrays, before the first rows; body: what each group of rows needs.
    """

    def __init__(self, items: Sequence[Any], outputs: Sequence[Any], moved: dict[Any, Entry] | None = None):
        self.inputs: list[Source] = []
        self.alias: dict[Any, Any] = dict(moved or {})
        self.places: dict[Source, Place] = {}
        self.made: set[Source] = set()  # arrays that loops create
        self.scratch = 0
        self.used: dict[Source, set[int]] = {}
        self.fetches: list[Fetch] = []
        self.results = [Place(np.dtype(dtype_of(x)), math.prod(x.shape), result=k) for k, x in enumerate(outputs)]
        self.direct: dict[Source, list[Place]] = {}
        for x, place in zip(outputs, self.results, strict=True):
            if isinstance(x, Source):
                self.direct.setdefault(x, []).append(place)
        numbers = [(x, place) for x, place in zip(outputs, self.results, strict=True) if not isinstance(x, Source)]
        body = self._level(items, [x for x, _ in numbers], set(self.direct))
        body += [Keep(place, [self.name(e) for e in x.reshape(-1)]) for x, place in numbers]
        first = [self._fetch(self.places[s], s) for s in self.inputs]
        for fetch in self.fetches:
            fetch.wanted = sorted(self.used.get(fetch.source, ()))
        self.once = [fetch for fetch in first if fetch.place.shared]
        self.body = [fetch for fetch in first if not fetch.place.shared] + body

    def _fetch(self, place: Place, source: Source, turn: int = 0) -> Fetch:
        """A new fetch; its wanted numbers are filled in once everything that uses them is known."""
        self.fetches.append(Fetch(place, source, turn))
        return self.fetches[-1]

    def name(self, e: Any) -> Any:
        """The name of a number; a constant is its own name."""
        while isinstance(e, Entry) or e in self.alias:
            if not isinstance(e, Entry):
                e = self.alias[e]
                continue
            source, k = e.source, e.k
            while isinstance(self.alias.get(source), Source):
                source = self.alias[source]
            if source not in self.alias:
                self._place(source)
                self.used.setdefault(source, set()).add(k)
                return source, k
            e = self.alias[source]
        return e

    def _place(self, x: Source) -> Place | None:
        """Where an array is; None for numbers that loops leave only in slots."""
        while isinstance(self.alias.get(x), Source):
            x = self.alias[x]
        if x not in self.places and x not in self.made:
            self.places[x] = Place(np.dtype(x.dtype), math.prod(x.shape), argument=len(self.inputs), shared=not x.rows)
            self.inputs.append(x)
        return self.places.get(x)

    def _level(self, items: Sequence[Any], values: Sequence[Any], alive: set[Source]) -> list[Any]:
        """Nodes for the needed items; they leave the numbers of `values` in slots and store the arrays in `alive`."""
        needed = Needed(items, values, alive)
        self._targets(items, needed)
        nodes: list[Any] = []
        waiting: list[Operation] = []
        for item in items:
            if isinstance(item, Operation):
                if item in needed.operations:
                    waiting.append(item)
            elif item in needed.loops or item in needed.others:
                nodes += self._pieces(waiting, needed)
                waiting = []
                nodes += self._loop(item, needed) if item.loop else self._other(item, needed)
        return nodes + self._pieces(waiting, needed)

    def _pieces(self, operations: list[Operation], needed: Needed) -> list[Any]:
        if not operations:
            return []
        inside = set(operations)
        leaving = {o for o in operations if needed.users(o) - inside}
        short = len(operations) <= MOST_OPERATIONS
        orders = [operations] if short else [operations, by_results(operations, leaving), by_parts(operations, leaving)]
        plans = [chunks(o, leaving, MOST_OPERATIONS, MOST_COLUMNS, most_places=1 if short else PLACES) for o in orders]
        best = min(plans, key=lambda plan: sum(len(c.reads) + len(c.results) for c in plan))
        return [Piece(c, [self.name(x) for x in c.reads]) for c in best]

    def _targets(self, items: Sequence[Any], needed: Needed) -> None:
        """Decide where joined arrays are, and thus also the whole arrays in them, so that loops store these there."""
        for item in reversed(items):
            if item not in needed.others or item.joined is None:
                continue
            (y,) = item.outputs
            self.made.add(y)
            targets = self.direct.setdefault(y, [])
            if needed.reads(y):
                self.places[y] = self._scratch(np.dtype(y.dtype), math.prod(y.shape))
                targets.append(self.places[y])
            at = 0
            for x, first, count in item.joined.parts:
                if needed.stores(x, first, count):
                    self.direct.setdefault(x, []).extend(place.part(at) for place in targets)
                at += count

    def _other(self, step: Step, needed: Needed) -> list[Any]:
        return self._product(step) if step.joined is None else self._joined(step, step.joined, needed)

    def _joined(self, step: Step, joined: Joined, needed: Needed) -> list[Any]:
        nodes, at, (y,) = [], 0, step.outputs
        for x, first, count in joined.parts:
            for place in self.direct[y]:
                if not isinstance(x, Source):
                    nodes.append(Keep(place.part(at), [self.name(e) for e in x.reshape(-1)[first : first + count]]))
                elif not needed.stores(x, first, count):
                    nodes.append(self._copied(x, first, place.part(at), count))
            at += count
        return [*nodes, self._fetch(self.places[y], y)] if y in self.places else nodes

    def _copied(self, x: Source, first: int, to: Place, count: int) -> Turns:
        """A loop that copies numbers of an array."""
        place, each = self._place(x), max(k for k in range(1, 33) if count % k == 0)
        assert place is not None
        moved = Source((each,), x.dtype, True)
        self.made.add(moved)
        self.used[moved] = set(range(each))
        fetch = self._fetch(place.part(first), moved, each)
        return Turns(count // each, False, [fetch, Keep(to, [(moved, k) for k in range(each)], each)])

    def _product(self, step: Step) -> list[Any]:
        product, (y,) = step.product, step.outputs
        assert product is not None
        dtype = np.dtype(y.dtype)
        x, self.places[y] = self._scratch(dtype, product.x.size), self._scratch(dtype, math.prod(y.shape))
        self.made.add(y)
        matrix = self._place(product.matrix)
        assert matrix is not None
        given = Keep(x, [self.name(e) for e in product.x])
        nodes = [given, Multiply(x, matrix, self.places[y], product.across), self._fetch(self.places[y], y)]
        results = self.direct.get(y, ())
        return [*nodes, *(Keep(place, [self.name(e) for e in entries(y)]) for place in results)]

    def _loop(self, step: Step, needed: Needed) -> list[Any]:
        loop = step.loop
        assert loop is not None
        before: list[Any] = []
        count = None if loop.count is None else self.name(loop.count.item())
        for outer, inner in zip(loop.outside, loop.inside, strict=True):
            self.alias[inner] = outer if isinstance(outer, Source) else outer[()]
        live, ys = needed.loops[step]
        self.made.update(loop.carried, loop.turns, loop.ys)
        ends = [loop.program.outputs[k].item() for k in live]
        stacks = [(y, loop.program.outputs[len(loop.carried) + j]) for j, y in ys]
        begin = Copy([(self.name(loop.start[k].item()), (loop.carried[k], 0)) for k in live], begins=True)
        for k in live:
            self.alias[loop.after[k]] = loop.carried[k]
        fetches: list[Any] = []
        for x, turn in zip(loop.xs, loop.turns, strict=True):
            if turn in needed.turns[step]:
                place, filling = self._sequence(x)
                before += filling
                fetches.append(self._fetch(place, turn, math.prod(turn.shape)))
        body = self._level(loop.program.items, [*map(single, ends), *(entries(x) for _, x in stacks)], set())
        kept: list[Any] = []
        rest: list[Any] = []
        after: list[Any] = []
        for y, x in stacks:
            each = [self.name(e) for e in entries(x).reshape(-1)]
            places = list(self.direct.get(y, ()))
            if needed.reads(y):
                self.places[y] = self._scratch(np.dtype(y.dtype), loop.length * len(each))
                places.append(self.places[y])
                after.append(self._fetch(self.places[y], y))
            kept += [Keep(place, each, len(each)) for place in places]
            zeros = [np.dtype(y.dtype).type(0)] * len(each)
            rest += [Keep(place, zeros, len(each)) for place in places if count is not None]
        turn_end = Copy([(self.name(e), (loop.carried[k], 0)) for k, e in zip(live, ends, strict=True)])
        turn = [*fetches, *body, *kept, turn_end]
        going = None if loop.going is None else (loop.carried[loop.going], 0)
        return [*before, begin, Turns(loop.length, loop.reverse, turn, count, rest, going), *after]

    def _scratch(self, dtype: np.dtype, size: int) -> Place:
        place = Place(dtype, size, offset=self.scratch)
        self.scratch += -(-size * dtype.itemsize // 64) * 64
        return place

    def _sequence(self, x: Any) -> tuple[Place, list[Any]]:
        """The place of an array over which a loop runs, and the nodes that fill it."""
        if isinstance(x, Source):
            place = self._place(x)
            if place is not None:
                return place, []
            x = entries(x)
        dtype = np.dtype(dtype_of(x))
        if is_known(x):
            return Place(dtype, x.size, shared=True, constant=np.array(list(x.reshape(-1)), dtype)), []
        place = self._scratch(dtype, x.size)
        return place, [Keep(place, [self.name(e) for e in x.reshape(-1)])]


class Needed:
    """What is needed to compute values and arrays: operations with their users, products, joined arrays, and loops with
    their live parts."""

    def __init__(self, items: Sequence[Any], values: Sequence[Any], alive: set[Source]):
        self.operations: set[Operation] = set()
        self.loops: dict[Step, tuple[list[int], list[tuple[int, Source]]]] = {}
        self.turns: dict[Step, set[Source]] = {}
        self.others: set[Step] = set()  # products and joined arrays
        self.sources: set[Source] = set()  # from which something is read
        self._alive = alive
        self._stored = {y for x in items if isinstance(x, Step) and (x.loop or x.joined) for y in x.outputs if y.shape}
        self._users: dict[Operation, set[Any]] = {}
        for x in values:
            self._need(x, self)
        for item in reversed(items):
            if isinstance(item, Operation):
                if item in self.operations:
                    for e in item.operands:
                        self._number(e, item)
            else:
                self._step(item)

    def users(self, o: Operation) -> set[Any]:
        return self._users[o]

    def reads(self, y: Source) -> bool:
        """Whether something in the kernel reads an array that a loop creates."""
        return y in self.sources

    def stores(self, x: Any, first: int, count: int) -> bool:
        """Whether what creates an array stores it as a part of another one, so that it need not be copied."""
        return isinstance(x, Source) and x in self._stored and first == 0 and count == math.prod(x.shape)

    def _need(self, x: Any, user: Any) -> None:
        if isinstance(x, Source):
            self.sources.add(x)
        else:
            for e in x.reshape(-1):
                self._number(e, user)

    def _number(self, e: Any, user: Any) -> None:
        if isinstance(e, Operation):
            self.operations.add(e)
            self._users.setdefault(e, set()).add(user)
        elif isinstance(e, Entry):
            self.sources.add(e.source)

    def _step(self, step: Step) -> None:
        loop = step.loop
        wanted = self.sources | self._alive
        if step.product is not None and wanted.intersection(step.outputs):
            self.others.add(step)
            self._need(step.product.x, step)
            self._need(step.product.matrix, step)
        if step.joined is not None and wanted.intersection(step.outputs):
            self.others.add(step)
            for x, first, count in step.joined.parts:
                if self.stores(x, first, count):
                    self._alive.add(x)
                else:
                    self._need(x, step)
        if loop is None:
            return
        live = {k for k, x in enumerate(loop.after) if x in wanted}
        ys = [(j, y) for j, y in enumerate(loop.ys) if y in wanted]
        if not live and not ys:
            return
        if loop.going is not None:
            live.add(loop.going)
        outputs = loop.program.outputs
        while True:
            made = [outputs[k] for k in live] + [outputs[len(loop.carried) + j] for j, _ in ys]
            used = Needed(loop.program.items, [entries(x) for x in made], set()).sources
            more = {k for k, x in enumerate(loop.carried) if x in used} - live
            if not more:
                break
            live |= more
        self.loops[step], self.turns[step] = (sorted(live), ys), used
        for k in live:
            self._need(loop.start[k], step)
        if loop.count is not None:
            self._need(loop.count, step)
        for outer, inner in zip(loop.outside, loop.inside, strict=True):
            if inner in used:
                self._need(outer, step)
        for x, turn in zip(loop.xs, loop.turns, strict=True):
            if turn in used:
                self._need(x, step)
