"""Instructions that move the rows of a block of threads between arrays and registers, through shared memory.

The numbers of a row lie side by side. If each thread read its own row, a warp would touch 32 separate places in memory for
each number; so the threads of a block copy a tile of some columns of all their rows in the order of memory, and each takes
its own row from there. Rows of a tile are an odd number of columns apart, so that the threads of a warp use different banks.
In the functions, %row is the thread's row, %count how many rows the block has; threads without a row take the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jaxmbs.batching.machine import host
from jaxmbs.batching.machine.code import Place
from jaxmbs.batching.machine.movement import address, store
from jaxmbs.batching.machine.text import Text

TILE = 128  # bytes of a row of a tile: what a warp reads at once, in four sectors of 32
SHORT = 2  # numbers of a row that each thread moves by itself
_SHARED = "ptr addrspace(3)"


def serves(place: Place) -> bool:
    """Whether an array goes through shared memory."""
    return place.size > SHORT and place.dtype.itemsize <= 8


def _tile(place: Place) -> tuple[int, int]:
    """(columns of a tile, how many columns apart its rows are)."""
    columns = min(place.size, TILE // place.dtype.itemsize)
    return columns, columns | 1


def room(place: Place, block: int) -> int:
    """Bytes of shared memory that an array takes."""
    return _tile(place)[1] * place.dtype.itemsize * block


def thread(text: Text) -> str:
    """The thread's number in its block."""
    return text.add(f"zext i32 {text.add('call i32 @llvm.nvvm.read.ptx.sreg.tid.x()')} to i64")


def _mine(text: Text) -> str:
    """The number of the thread's row in its block."""
    last, number = text.add("sub i64 %count, 1"), thread(text)
    less = text.add(f"icmp slt i64 {number}, {last}")
    return text.add(f"select i1 {less}, i64 {number}, i64 {last}")


@contextmanager
def for_rows(text: Text) -> Iterator[None]:
    """Instructions for the threads that have a row of their own, at the end of a function."""
    own = text.add(f"icmp slt i64 {thread(text)}, %count")
    text.do(f"br i1 {own}, label %own, label %end")
    text.lines.append("own:")
    yield
    text.do("br label %end")
    text.lines.append("end:")


def fetch(text: Text, base: str, place: Place, wanted: dict[int, int], block: int) -> None:
    """Fetch numbers of an array into the frame. base: the address of the thread's row; wanted: slots in the frame by the
    index of a row's number; block: threads of a block."""
    columns, stride = _tile(place)
    mine, last = _mine(text), max(wanted) + 1
    for first in range(0, last, columns):
        here = {k - first: slot for k, slot in wanted.items() if first <= k < first + columns}
        if here:
            _barrier(text)
            _copy(text, base, place, first, min(columns, last - first), mine, block, fetches=True)
            _barrier(text)
            at = _of_row(text, mine, stride, place)
            for k, slot in here.items():
                x = text.add(f"load {_vector(text, place)}, {_SHARED} {_along(text, at, k, place)}")
                store(text, address(text, "%frame", slot), x, place.dtype)


def keep(text: Text, base: str, place: Place, given: list[str], block: int) -> None:
    """Store numbers in a result. base: the address of the thread's row; given: its numbers; block: threads of a block."""
    columns, stride = _tile(place)
    mine = _mine(text)
    for first in range(0, len(given), columns):
        _barrier(text)
        at = _of_row(text, thread(text), stride, place)  # threads without a row write what nobody reads
        for k, x in enumerate(given[first : first + columns]):
            text.do(f"store {_vector(text, place)} {x}, {_SHARED} {_along(text, at, k, place)}")
        _barrier(text)
        _copy(text, base, place, first, min(columns, len(given) - first), mine, block, fetches=False)


def _copy(text: Text, base: str, place: Place, first: int, columns: int, mine: str, block: int, fetches: bool) -> None:
    """Copy columns of the rows of a block from the array into shared memory (`fetches`) or back, by all threads."""
    size, e, name = place.dtype.itemsize, host.stored(place.dtype), text.count
    begin = text.add(f"mul i64 {mine}, {-place.size * size}")
    start = text.add(f"getelementptr i8, ptr {address(text, base, first * size)}, i64 {begin}")
    total, number = text.add(f"mul i64 %count, {columns}"), thread(text)
    some = text.add(f"icmp slt i64 {number}, {total}")
    text.do(f"br i1 {some}, label %enter{name}, label %done{name}")
    text.lines += [f"enter{name}:", f"  br label %move{name}", f"move{name}:"]
    text.lines.append(f"  %k{name} = phi i64 [{number}, %enter{name}], [%more{name}, %move{name}]")
    row = text.add(f"udiv i64 %k{name}, {columns}")
    column = text.add(f"urem i64 %k{name}, {columns}")
    far = text.add(f"add i64 {text.add(f'mul i64 {row}, {place.size}')}, {column}")
    near = text.add(f"add i64 {text.add(f'mul i64 {row}, {_tile(place)[1]}')}, {column}")
    array = text.add(f"getelementptr {e}, ptr {start}, i64 {far}")
    tile = text.add(f"getelementptr {e}, {_SHARED} @shared, i64 {near}")
    if fetches:
        text.do(f"store {e} {text.add(f'load {e}, ptr {array}')}, {_SHARED} {tile}")
    else:
        text.do(f"store {e} {text.add(f'load {e}, {_SHARED} {tile}')}, ptr {array}")
    text.lines.append(f"  %more{name} = add i64 %k{name}, {block}")
    again = text.add(f"icmp slt i64 %more{name}, {total}")
    text.do(f"br i1 {again}, label %move{name}, label %done{name}")
    text.lines.append(f"done{name}:")


def _vector(text: Text, place: Place) -> str:
    return text.module.stored_vector(place.dtype)


def _of_row(text: Text, row: str, stride: int, place: Place) -> str:
    offset = text.add(f"mul i64 {row}, {stride * place.dtype.itemsize}")
    return text.add(f"getelementptr i8, {_SHARED} @shared, i64 {offset}")


def _along(text: Text, at: str, k: int, place: Place) -> str:
    return text.add(f"getelementptr i8, {_SHARED} {at}, i64 {k * place.dtype.itemsize}") if k else at


def _barrier(text: Text) -> None:
    text.do("call void @llvm.nvvm.barrier0() convergent")
