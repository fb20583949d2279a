"""Instructions that move numbers from arrays into slots and back.

In an array, all numbers of one row are contiguous; in a slot, one number of several rows is. Square blocks are
therefore transposed in registers. If fewer rows are left than there are lanes, the surplus lanes read the last row
again and are not written. The cache lines of later rows are prefetched, so that no operation waits for memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbs.batching.machine import host
from jaxmbs.batching.machine.text import Module, Text

AHEAD = 2  # number of groups of rows
MOST_AHEAD = 1 << 14  # bytes of a group: with longer rows the processor prefetches the next lines by itself
_LINE = 64


def address(text: Text, base: str, offset: int) -> str:
    return text.add(f"getelementptr inbounds i8, ptr {base}, i64 {offset}") if offset else base


def load_slot(text: Text, offset: int, dtype: np.dtype) -> str:
    """Load a number of a group of rows from its slot, in the form that operations take."""
    x = load(text, address(text, "%frame", offset), dtype)
    if dtype.kind == "b":
        return text.add(f"trunc {text.module.stored_vector(dtype)} {x} to {text.truth}")
    return x


def store_slot(text: Text, offset: int, x: str, dtype: np.dtype) -> None:
    if dtype.kind == "b":
        x = text.add(f"zext {text.truth} {x} to {text.module.stored_vector(dtype)}")
    store(text, address(text, "%frame", offset), x, dtype)


def alignment(module: Module, dtype: np.dtype) -> int:
    return min(module.lanes * dtype.itemsize, 64)


def load(text: Text, at: str, dtype: np.dtype) -> str:
    return text.add(f"load {text.module.stored_vector(dtype)}, ptr {at}, align {alignment(text.module, dtype)}")


def store(text: Text, at: str, x: str, dtype: np.dtype) -> None:
    text.do(f"store {text.module.stored_vector(dtype)} {x}, ptr {at}, align {alignment(text.module, dtype)}")


def spread(text: Text, at: str, offset: int, dtype: np.dtype) -> str:
    """Load a number that all rows share into every lane."""
    e, v = host.stored(dtype), text.module.stored_vector(dtype)
    x = text.add(f"load {e}, ptr {address(text, at, offset)}, align {dtype.itemsize}")
    first = text.add(f"insertelement {v} poison, {e} {x}, i64 0")
    return text.add(f"shufflevector {v} {first}, {v} poison, <{text.module.lanes} x i32> zeroinitializer")


def fetch_rows(text: Text, dtype: np.dtype, stride: int, wanted: dict[int, int]) -> None:
    """Fetch from an array at %at whose rows are `stride` numbers apart; wanted: slots by the index of a row's number."""
    lanes, module = text.module.lanes, text.module
    _if_all_lanes(text)
    if stride == 1:
        at = text.add(f"load {module.stored_vector(dtype)}, ptr %at, align {dtype.itemsize}")
        store(text, address(text, "%frame", wanted[0]), at, dtype)
    elif dtype.itemsize in (4, 8):
        for first in sorted({k // lanes * lanes for k in wanted}):
            here = {k - first: slot for k, slot in wanted.items() if first <= k < first + lanes}
            rows = _Rows(text, dtype, stride, first, max(here) + 1)
            for j, x in transposed(text, dtype, rows.load, sorted(here)):
                store(text, address(text, "%frame", here[j]), x, dtype)
    else:
        _each_fetched(text, dtype, stride, wanted)
    _otherwise(text)
    _each_fetched(text, dtype, stride, wanted)
    _end(text)


def ask_ahead(text: Text, dtype: np.dtype, stride: int, written: bool) -> None:
    """Prefetch the cache lines of a later group of rows, relative to %at; beyond the last row this has no effect."""
    group = text.module.lanes * stride * dtype.itemsize
    if group > MOST_AHEAD:
        return
    text.module.parts["llvm.prefetch.p0"] = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
    for offset in range(AHEAD * group, (AHEAD + 1) * group, _LINE):
        at = text.add(f"getelementptr i8, ptr %at, i64 {offset}")
        text.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 {int(written)}, i32 3, i32 1)")


def keep_rows(text: Text, dtype: np.dtype, stride: int, columns: list[Any]) -> None:
    """Store in an array at %at whose rows are `stride` numbers apart; columns: a slot or a constant for each number."""
    lanes, module = text.module.lanes, text.module
    _if_all_lanes(text)
    if stride == 1:
        x = _column(text, dtype, columns[0])
        text.do(f"store {module.stored_vector(dtype)} {x}, ptr %at, align {dtype.itemsize}")
    elif dtype.itemsize in (4, 8):
        for first in range(0, len(columns), lanes):
            here = columns[first : first + lanes]
            rows = _Rows(text, dtype, stride, first, len(here))
            loaded = {j: _column(text, dtype, c) for j, c in enumerate(here)}
            for r, x in transposed(text, dtype, lambda j, loaded=loaded: loaded.get(j, "poison"), range(lanes)):
                rows.store(r, x)
    else:
        _each_kept(text, dtype, stride, columns)
    _otherwise(text)
    _each_kept(text, dtype, stride, columns)
    _end(text)


def transposed(text: Text, dtype: np.dtype, given: Any, wanted: Any) -> list[tuple[int, str]]:
    """The wanted columns of the square matrix with rows given(0), given(1) ..., by exchanging ever larger blocks."""
    lanes, v = text.module.lanes, text.module.stored_vector(dtype)
    made: dict[tuple[int, int], str] = {}

    def row(width: int, i: int) -> str:
        """Row i after the exchange of blocks of half the width."""
        if (width, i) not in made:
            if width == 1:
                made[width, i] = given(i)
            else:
                half = width // 2
                a, b = row(half, i & ~half), row(half, i | half)
                upper = bool(i & half)
                mask = [
                    (j + half if upper else j) if not j & half else lanes + (j if upper else j - half)
                    for j in range(lanes)
                ]
                if a == b == "poison":
                    made[width, i] = "poison"
                else:
                    indices = ", ".join(f"i32 {m}" for m in mask)
                    made[width, i] = text.add(f"shufflevector {v} {a}, {v} {b}, <{lanes} x i32> <{indices}>")
        return made[width, i]

    return [(i, row(lanes, i)) for i in wanted]


class _Rows:
    """`count` numbers, from `first` on, of rows that are `stride` numbers apart; nothing outside a row is accessed."""

    def __init__(self, text: Text, dtype: np.dtype, stride: int, first: int, count: int):
        self.text, self.dtype, self.count = text, dtype, count
        self.lanes, self.v = text.module.lanes, text.module.stored_vector(dtype)
        self.offsets = [(r * stride + first) * dtype.itemsize for r in range(self.lanes)]
        bits = ", ".join(f"i1 {'true' if j < count else 'false'}" for j in range(self.lanes))
        self.mask = f"<{self.lanes} x i1> <{bits}>"

    def load(self, r: int) -> str:
        at = address(self.text, "%at", self.offsets[r])
        if self.count == self.lanes:
            return self.text.add(f"load {self.v}, ptr {at}, align {self.dtype.itemsize}")
        name = f"llvm.masked.load.{self.text.mark(self.dtype)}.p0"
        self._declare(name, f"declare {self.v} @{name}(ptr, i32, <{self.lanes} x i1>, {self.v})")
        return self.text.add(f"call {self.v} @{name}({self._aligned(at)}, {self.mask}, {self.v} poison)")

    def store(self, r: int, x: str) -> None:
        at = address(self.text, "%at", self.offsets[r])
        if self.count == self.lanes:
            self.text.do(f"store {self.v} {x}, ptr {at}, align {self.dtype.itemsize}")
            return
        name = f"llvm.masked.store.{self.text.mark(self.dtype)}.p0"
        self._declare(name, f"declare void @{name}({self.v}, ptr, i32, <{self.lanes} x i1>)")
        self.text.do(f"call void @{name}({self.v} {x}, {self._aligned(at)}, {self.mask})")

    def _aligned(self, at: str) -> str:
        """A pointer and its alignment, as LLVM before 22 takes it; later versions read it too."""
        return f"ptr {at}, i32 {self.dtype.itemsize}"

    def _declare(self, name: str, line: str) -> None:
        self.text.module.parts[name] = line


def _column(text: Text, dtype: np.dtype, column: Any) -> str:
    """A slot or a constant in the form that it has in memory."""
    if isinstance(column, np.generic):
        e = host.stored(dtype)
        return f"splat ({e} {int(column) if dtype.kind == 'b' else host.literal(column)})"
    return load(text, address(text, "%frame", column), dtype)


def _each_fetched(text: Text, dtype: np.dtype, stride: int, wanted: dict[int, int]) -> None:
    for k, slot in wanted.items():
        target, at = address(text, "%frame", slot), address(text, "%at", k * dtype.itemsize)
        text.do(f"call void @{_one_by_one(text.module, dtype, True)}(ptr {target}, ptr {at}, i64 {stride}, i64 %count)")


def _each_kept(text: Text, dtype: np.dtype, stride: int, columns: list[Any]) -> None:
    for k, column in enumerate(columns):
        at = address(text, "%at", k * dtype.itemsize)
        if isinstance(column, np.generic):
            store(text, "%room", _column(text, dtype, column), dtype)
        source = "%room" if isinstance(column, np.generic) else address(text, "%frame", column)
        text.do(
            f"call void @{_one_by_one(text.module, dtype, False)}(ptr {at}, ptr {source}, i64 {stride}, i64 %count)"
        )


def _one_by_one(module: Module, dtype: np.dtype, fetch: bool) -> str:
    """Name of a function that moves one number of each row; lanes beyond the last row read the last row again."""
    e = host.stored(dtype)
    name = f"{'fetch' if fetch else 'keep'}_each_{e}"
    turns = str(module.lanes) if fetch else "%count"
    if name not in module.parts:
        row = "%inside" if fetch else "%k"
        far, near = ("%b", "%a") if fetch else ("%a", "%b")
        source, target = ("%pf", "%pn") if fetch else ("%pn", "%pf")
        module.parts[name] = f"""
define internal void @{name}(ptr %a, ptr %b, i64 %stride, i64 %count) noinline nounwind {{
  %last = sub i64 %count, 1
  br label %turn
turn:
  %k = phi i64 [0, %0], [%next, %turn]
  %less = icmp slt i64 %k, %last
  %inside = select i1 %less, i64 %k, i64 %last
  %i = mul i64 {row}, %stride
  %pf = getelementptr inbounds {e}, ptr {far}, i64 %i
  %pn = getelementptr inbounds {e}, ptr {near}, i64 %k
  %x = load {e}, ptr {source}, align {dtype.itemsize}
  store {e} %x, ptr {target}, align {dtype.itemsize}
  %next = add i64 %k, 1
  %done = icmp sge i64 %next, {turns}
  br i1 %done, label %end, label %turn
end:
  ret void
}}
"""
    return name


def _if_all_lanes(text: Text) -> None:
    all_there = text.add(f"icmp eq i64 %count, {text.module.lanes}")
    text.do(f"br i1 {all_there}, label %whole, label %part")
    text.lines.append("whole:")


def _otherwise(text: Text) -> None:
    text.do("br label %end")
    text.lines.append("part:")


def _end(text: Text) -> None:
    text.do("br label %end")
    text.lines.append("end:")
