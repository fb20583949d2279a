"""Writes a kernel's code as LLVM text: functions for the pieces and the movements of arrays, and those that call them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxmbs.batching.machine import contraction, handler, host
from jaxmbs.batching.machine.code import Code, Copy, Fetch, Keep, Multiply, Piece, Place, Turns
from jaxmbs.batching.machine.frame import all_nodes, slots
from jaxmbs.batching.machine.movement import (
    address,
    ask_ahead,
    fetch_rows,
    keep_rows,
    load,
    load_slot,
    spread,
    store,
    store_slot,
)
from jaxmbs.batching.machine.operations import OPERATIONS
from jaxmbs.batching.machine.products import multiply
from jaxmbs.batching.machine.text import Module, Text
from jaxmbs.batching.scalars import Operation

WORK = 40_000  # vector operations of a block: about five microseconds
MOST_MOVED = 400  # numbers moved by one function: in longer ones LLVM takes more time for each number
WORTH_A_THREAD = 8  # number of such blocks: fewer are finished before another thread has woken up


def kernel(code: Code, rows: int = 2, repeats: Mapping[int, bool] = MappingProxyType({})) -> str:
    """The text of a kernel, whose function `handler` XLA calls; rows: 1 if it serves only a single row.

    repeats: the arguments of which several rows are one row in memory: successive rows if True, otherwise rows that are as
    far apart as the argument has rows. The number of successive rows, or of rows of the argument, is a multiple of the
    rows computed at once.
    """
    return Emitter(code, Module(1 if rows == 1 else _lanes(code)), repeats).text()


def block(code: Code) -> str:
    """The text of a kernel without a handler: its function `block` (arrays, first row, last row) is called directly."""
    return Emitter(code, Module(_lanes(code)), {}).block()


def _lanes(code: Code) -> int:
    """The number of rows computed at once."""
    return host.lanes_for(
        {dtype_of(x) for x in _names(code)} | {p.dtype for p in (*code.places.values(), *code.results)}
    )


def dtype_of(name: Any) -> np.dtype:
    """The dtype of the number with a name."""
    return np.dtype(name[0].dtype if isinstance(name, tuple) else name.dtype)


def _names(code: Code) -> list[Any]:
    return [o for node in all_nodes(code.body) if isinstance(node, Piece) for o in node.chunk.operations]


class Emitter:
    """The text of a kernel for a CPU, and what those for other processors have in common with it.

    width: the number of rows whose numbers lie side by side in scratch memory.
    """

    def __init__(self, code: Code, module: Module, repeats: Mapping[int, bool]):
        self.code, self.module, self.lanes, self.repeats = code, module, module.lanes, repeats
        self.width = self.lanes
        self.slots, self.frame = slots(code, lambda x: self.lanes * dtype_of(x).itemsize)
        self.functions: list[str] = []
        self.constants: list[str] = []
        self.main = Text(module)
        self.loops = 0

    def text(self) -> str:
        scratch = self.code.scratch * self.lanes
        work = max(1, _operations(self.code.body))
        each, few = (max(1, blocks * WORK // work) * self.lanes for blocks in (1, WORTH_A_THREAD))
        widths = [place.size * place.dtype.itemsize for place in self.code.results]
        called = handler.text(len(self.code.inputs), widths, self.lanes, each, few, bool(scratch), self.repeats)
        return "\n".join([self.block(handler.asking("%claimed", scratch)), called])

    def block(self, ask: str = "") -> str:
        """The text of the function `block`, which computes the rows from one to another; ask: a line after the claim of
        scratch memory."""
        group = self.level(self.code.body, None)
        self.main = Text(self.module)
        once = self.level(self.code.once, None)
        scratch = self.code.scratch * self.lanes
        outer = _OUTER.format(
            frame=max(self.frame, 64), once="\n".join(once), group="\n".join(group), lanes=self.lanes,
            claim=f"call ptr @malloc(i64 {scratch + 64})" if scratch else "inttoptr i64 0 to ptr", ask=ask,
            release="  call void @free(ptr %claimed)" if scratch else "",
        )  # fmt: skip
        return "\n".join([*self.constants, str(self.module), *self.functions, outer])

    def level(self, nodes: list[Any], turn: str | None) -> list[str]:
        """Instructions for some nodes; turn: the index of the loop's iteration, None outside loops."""
        for plain, group in itertools.groupby((x for x in nodes if _size(x)), self._is_plain):
            for node in _bunches(group) if plain else group:
                if isinstance(node, Turns):
                    self._loop(node)
                elif isinstance(node, Piece):
                    self._call(self._function(lambda text, node=node: self._piece(text, node)), turn)
                elif isinstance(node, Multiply):
                    self._call(self._function(lambda text, node=node: self._multiply(text, node)), turn)
                elif isinstance(node, list):
                    self._call(self._function(lambda text, node=node: self._moves(text, node)), turn)
                else:
                    self._call(self._function(lambda text, node=node: self.rows(text, node)), turn)
        return self.main.lines

    def _is_plain(self, node: Any) -> bool:
        """Whether a node moves numbers that need no transposing; one function does many such moves."""
        if isinstance(node, (Fetch, Keep)):
            return self.in_scratch(node.place) or self.is_one(node.place)
        return isinstance(node, Copy)

    def is_one(self, place: Place) -> bool:
        """Whether the rows computed at once share one row of an array."""
        return place.shared or (place.argument is not None and self.repeats.get(place.argument, False))

    def _loop(self, node: Turns) -> None:
        if node.going is not None:
            self._while(node)
            return
        if node.count is None:
            self._turns(node.body, "0", str(node.length), node.reverse)
            return
        made = self._made(node)
        self._turns(node.body, "0", made)
        if node.rest:
            self._turns(node.rest, made, str(node.length))

    def _turns(self, body: list[Any], begin: str, end: str, reverse: bool = False) -> None:
        """A loop over the integers from begin to end, which is excluded; reverse: in the reverse order."""
        main, k = self.main, self.loops
        self.loops += 1
        some = main.add(f"icmp slt i64 {begin}, {end}")
        main.do(f"br i1 {some}, label %before{k}, label %after{k}")
        main.lines += [f"before{k}:", f"  br label %loop{k}", f"loop{k}:"]
        main.lines.append(f"  %i{k} = phi i64 [{begin}, %before{k}], [%n{k}, %last{k}]")
        turn = main.add(f"sub i64 {int(end) - 1}, %i{k}") if reverse else f"%i{k}"
        self.level(body, turn)
        main.lines += [f"  br label %last{k}", f"last{k}:", f"  %n{k} = add i64 %i{k}, 1"]
        more = main.add(f"icmp slt i64 %n{k}, {end}")
        main.lines += [f"  br i1 {more}, label %loop{k}, label %after{k}", f"after{k}:"]

    def _while(self, node: Turns) -> None:
        """A loop that ends when no row of the group needs another iteration."""
        main, k = self.main, self.loops
        self.loops += 1
        main.do(f"br i1 {self._any(node.going)}, label %loop{k}, label %after{k}")
        main.lines.append(f"loop{k}:")
        self.level(node.body, None)
        main.do(f"br i1 {self._any(node.going)}, label %loop{k}, label %after{k}")
        main.lines.append(f"after{k}:")

    def _any(self, name: Any) -> str:
        """Whether a truth value is true for any row of the group."""
        values = load_slot(self.main, self.slots[name], np.dtype(bool))
        return self.main.add(f"call i1 @{self.main.needs_any()}({self.main.truth} {values})")

    def _made(self, node: Turns) -> str:
        """The number of iterations that a loop makes, from 0 to its length."""
        main, length = self.main, node.length
        if isinstance(node.count, np.generic):
            return str(min(max(int(node.count), 0), length))
        e = host.stored(dtype_of(node.count))
        one = main.add(f"load {e}, ptr {address(main, '%frame', self.slots[node.count])}")
        wide = main.add(f"sext {e} {one} to i64")
        least = main.add(f"select i1 {main.add(f'icmp slt i64 {wide}, 0')}, i64 0, i64 {wide}")
        return main.add(f"select i1 {main.add(f'icmp slt i64 {least}, {length}')}, i64 {least}, i64 {length}")

    def _call(self, name: str, turn: str | None) -> None:
        self.main.do(f"call void @{name}(ptr %frame, ptr %arrays, ptr %scratch, i64 %row, i64 %count, i64 {turn or 0})")

    def _multiply(self, text: Text, node: Multiply) -> None:
        x, matrix, y = (self.address(text, place) for place in (node.x, node.matrix, node.y))
        multiply(text, x, matrix, y, node.x.size, node.y.size, node.across, node.y.dtype, self.width)

    def at(self, text: Text, node: Fetch | Keep) -> str:
        """The address of an array's part for the current rows and iteration."""
        place, base = node.place, self.address(text, node.place)
        if not node.turn:
            return base
        width = self.width if self.in_scratch(place) else 1
        offset = text.add(f"mul i64 %turn, {node.turn * place.dtype.itemsize * width}")
        return text.add(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")

    def address(self, text: Text, place: Place) -> str:
        """The address of an array for the current rows."""
        if place.constant is not None:
            base = self._constant(place)
        elif place.argument is not None or place.result is not None:
            number = place.argument if place.argument is not None else len(self.code.inputs) + (place.result or 0)
            base = text.add(f"load ptr, ptr {address(text, '%arrays', 8 * number)}")
            if not place.shared:
                offset = text.add(f"mul i64 {self._row(text, place)}, {place.size * place.dtype.itemsize}")
                base = text.add(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")
            base = address(text, base, place.begin * place.dtype.itemsize)
        else:
            base = address(text, "%scratch", place.offset * self.width)
        return base

    def _row(self, text: Text, place: Place) -> str:
        """The index of the current row in an array."""
        k = place.argument
        if k is None or k not in self.repeats:
            return "%row"
        after = len(self.code.inputs) + len(self.code.results) + list(self.repeats).index(k)
        number = text.add(f"load i64, ptr {address(text, '%arrays', 8 * after)}")
        return text.add(f"{'sdiv' if self.repeats[k] else 'srem'} i64 %row, {number}")

    def in_scratch(self, place: Place) -> bool:
        return place.argument is None and place.result is None and place.constant is None

    def _constant(self, place: Place) -> str:
        e = host.stored(place.dtype)
        values = (
            (place.constant if place.dtype.kind != "b" else place.constant.astype(np.uint8))
            if place.constant is not None
            else ()
        )
        name = f"@constant{len(self.constants)}"
        listed = ", ".join(f"{e} {host.literal(x)}" for x in values)
        self.constants.append(f"{name} = private constant [{place.size} x {e}] [{listed}], align 64")
        return name

    def _function(self, fill: Any) -> str:
        text = Text(self.module)
        fill(text)
        name = f"part{len(self.functions)}"
        body = "\n".join(text.lines)
        self.functions.append(
            f"define internal void @{name}(ptr noalias %frame, ptr noalias %arrays, ptr noalias %scratch, i64 %row, "
            f"i64 %count, i64 %turn) {self.module.processor.inlining} nounwind {{\n"
            f"{body}\n  ret void\n}}"
        )
        return name

    def _piece(self, text: Text, piece: Piece) -> None:
        names = dict(zip(piece.chunk.reads, piece.reads, strict=True))
        results = set(piece.chunk.results)
        values: dict[Any, str] = {}

        def value(x: Any) -> str:
            if isinstance(x, np.generic):
                return text.splat(x)
            if x not in values:
                name = names[x]
                values[x] = load_slot(text, self.slots[name], dtype_of(name))
            return values[x]

        sums = contraction.absorbed(piece.chunk.operations, results)
        products = set(sums.values())
        for o in piece.chunk.operations:
            if o in products:
                continue
            if o in sums:
                values[o] = contraction.emit(text, o, sums[o], value)
            else:
                dtype = _operand_dtype(o, names)
                values[o] = OPERATIONS[o.primitive.name][1](text, o, [value(x) for x in o.operands], dtype)
            if o in results:
                store_slot(text, self.slots[o], values[o], np.dtype(o.dtype))

    def _moves(self, text: Text, nodes: Sequence[Fetch | Keep | Copy]) -> None:
        for node in nodes:
            if isinstance(node, Copy):
                self._copy(text, node)
            elif isinstance(node, Fetch):
                self._fetch(text, node)
            else:
                self._keep(text, node)

    def _copy(self, text: Text, node: Copy) -> None:
        loaded = [
            text.splat(x) if isinstance(x, np.generic) else load_slot(text, self.slots[x], dtype_of(x))
            for x, _ in node.pairs
        ]
        for (_, to), x in zip(node.pairs, loaded, strict=True):
            store_slot(text, self.slots[to], x, dtype_of(to))

    def _fetch(self, text: Text, node: Fetch) -> None:
        at, dtype = self.at(text, node), node.place.dtype
        for k in node.wanted:
            if self.is_one(node.place):
                x = spread(text, at, k * dtype.itemsize, dtype)
            else:
                x = load(text, address(text, at, k * dtype.itemsize * self.width), dtype)
            store(text, address(text, "%frame", self.slots[node.source, k]), x, dtype)

    def _keep(self, text: Text, node: Keep) -> None:
        at, dtype = self.at(text, node), node.place.dtype
        for k, x in enumerate(node.given):
            loaded = text.splat(x) if isinstance(x, np.generic) else load_slot(text, self.slots[x], dtype)
            if dtype.kind == "b":
                loaded = text.add(f"zext {text.truth} {loaded} to {self.module.stored_vector(dtype)}")
            store(text, address(text, at, k * dtype.itemsize * self.width), loaded, dtype)

    def rows(self, text: Text, node: Fetch | Keep) -> None:
        """Moves numbers of an array in which those of a row are contiguous."""
        place, dtype = node.place, node.place.dtype
        text.do(f"%at = getelementptr i8, ptr {self.at(text, node)}, i64 0")
        if not node.turn:
            ask_ahead(text, dtype, place.size, isinstance(node, Keep))
        if isinstance(node, Fetch):
            fetch_rows(text, dtype, place.size, {k: self.slots[node.source, k] for k in node.wanted})
        else:
            text.do(f"%room = alloca {self.module.stored_vector(dtype)}, align 64")
            columns = [x if isinstance(x, np.generic) else self.slots[x] for x in node.given]
            keep_rows(text, dtype, place.size, columns)


def _size(node: Any) -> int:
    """How many numbers a node moves; 1 for other nodes."""
    moved = {Fetch: "wanted", Keep: "given", Copy: "pairs"}.get(type(node))
    return len(getattr(node, moved)) if moved else 1


def _bunches(moves: Iterable[Any]) -> Iterator[list[Any]]:
    """Successive moves in groups, so that no function becomes too long."""
    bunch: list[Any] = []
    for node in moves:
        if bunch and sum(map(_size, bunch)) + _size(node) > MOST_MOVED:
            yield bunch
            bunch = []
        bunch.append(node)
    yield bunch


def _operand_dtype(o: Operation, names: dict[Any, Any]) -> np.dtype:
    x = o.operands[0]
    return np.dtype(x.dtype) if isinstance(x, (np.generic, Operation)) else dtype_of(names[x])


def _operations(nodes: list[Any]) -> int:
    """Roughly how many operations are needed for each group of rows."""
    total = 0
    for node in nodes:
        if isinstance(node, Turns):
            total += node.length * _operations(node.body)
        elif isinstance(node, Piece):
            total += sum(20 if o.primitive.name in ("sin", "cos") else 1 for o in node.chunk.operations)
        elif isinstance(node, Multiply):
            total += node.x.size * node.y.size
        elif isinstance(node, (Fetch, Keep)):
            total += 5 * len(node.wanted if isinstance(node, Fetch) else node.given)
    return total


_OUTER = """
define internal void @group(ptr %frame, ptr %arrays, ptr %scratch, i64 %row, i64 %count) noinline nounwind {{
{group}
  ret void
}}

define internal void @once(ptr %frame, ptr %arrays, ptr %scratch, i64 %row, i64 %count) noinline nounwind {{
{once}
  ret void
}}

define internal void @block(ptr %arrays, i64 %first, i64 %last) noinline nounwind {{
  %frame = alloca [{frame} x i8], align 64
  %claimed = {claim}
{ask}
  %number = ptrtoint ptr %claimed to i64
  %up = add i64 %number, 63
  %even = and i64 %up, -64
  %scratch = inttoptr i64 %even to ptr
  call void @once(ptr %frame, ptr %arrays, ptr %scratch, i64 0, i64 {lanes})
  br label %turn
turn:
  %row = phi i64 [%first, %0], [%next, %turn]
  %left = sub i64 %last, %row
  %few = icmp slt i64 %left, {lanes}
  %count = select i1 %few, i64 %left, i64 {lanes}
  call void @group(ptr %frame, ptr %arrays, ptr %scratch, i64 %row, i64 %count)
  %next = add i64 %row, {lanes}
  %done = icmp sge i64 %next, %last
  br i1 %done, label %end, label %turn
end:
{release}
  ret void
}}
"""
