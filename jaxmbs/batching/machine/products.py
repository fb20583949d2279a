"""Instructions that multiply a vector of each row by a matrix that all rows share."""

from __future__ import annotations

import numpy as np

from jaxmbs.batching.machine import host
from jaxmbs.batching.machine.movement import load, spread, store
from jaxmbs.batching.machine.text import Text

AT_ONCE = 8  # sums in registers: as many as it takes until the first addition is done and its result can be used


def multiply(
    text: Text, x: str, matrix: str, y: str, given: int, made: int, across: tuple[int, int], dtype: np.dtype,
    width: int,
) -> None:  # fmt: skip
    """y[j] = sum over i of x[i] matrix[i, j], i < given, j < made; x and y hold each number of a group of rows side by side.

    width: the number of these rows. across: by how many numbers the entries (i + 1, j) and (i, j + 1) of the matrix lie
    behind the entry (i, j).
    """
    whole = made - made % AT_ONCE
    if whole:
        _columns(text, x, matrix, y, given, 0, whole, AT_ONCE, across, dtype, width)
    if made > whole:
        _columns(text, x, matrix, y, given, whole, made, made - whole, across, dtype, width)


def _columns(
    text: Text, x: str, matrix: str, y: str, given: int, first: int, last: int, at_once: int,
    across: tuple[int, int], dtype: np.dtype, rows: int,
) -> None:  # fmt: skip
    """The sums for j from `first` to `last` - 1, `at_once` of them in each turn of a loop."""
    v, e, width = text.module.stored_vector(dtype), host.stored(dtype), rows * dtype.itemsize
    name = f"{first}_{last}"
    text.do(f"br label %enter{name}")
    text.lines += [f"enter{name}:", f"  br label %column{name}", f"column{name}:"]
    text.lines.append(f"  %j{name} = phi i64 [{first}, %enter{name}], [%nextj{name}, %done{name}]")
    along = text.add(f"mul i64 %j{name}, {across[1]}")
    column = text.add(f"getelementptr inbounds {e}, ptr {matrix}, i64 {along}")
    text.lines += [f"  br label %row{name}", f"row{name}:"]
    text.lines.append(f"  %i{name} = phi i64 [0, %column{name}], [%nexti{name}, %row{name}]")
    sums = [f"%sum{name}_{k}" for k in range(at_once)]
    begin = len(text.lines)
    at = text.add(f"mul i64 %i{name}, {width}")
    number = load(text, text.add(f"getelementptr inbounds i8, ptr {x}, i64 {at}"), dtype)
    down = text.add(f"mul i64 %i{name}, {across[0]}")
    row = text.add(f"getelementptr inbounds {e}, ptr {column}, i64 {down}")
    factors = [spread(text, row, k * across[1] * dtype.itemsize, dtype) for k in range(at_once)]
    totals = [text.fused(number, factor, s, dtype) for factor, s in zip(factors, sums, strict=True)]
    text.lines[begin:begin] = [
        f"  {s} = phi {v} [zeroinitializer, %column{name}], [{total}, %row{name}]"
        for s, total in zip(sums, totals, strict=True)
    ]
    text.lines.append(f"  %nexti{name} = add i64 %i{name}, 1")
    more = text.add(f"icmp slt i64 %nexti{name}, {given}")
    text.lines += [f"  br i1 {more}, label %row{name}, label %done{name}", f"done{name}:"]
    to = text.add(f"mul i64 %j{name}, {width}")
    out = text.add(f"getelementptr inbounds i8, ptr {y}, i64 {to}")
    for k, total in enumerate(totals):
        store(text, text.add(f"getelementptr inbounds i8, ptr {out}, i64 {k * width}"), total, dtype)
    text.lines.append(f"  %nextj{name} = add i64 %j{name}, {at_once}")
    again = text.add(f"icmp slt i64 %nextj{name}, {last}")
    text.lines += [f"  br i1 {again}, label %column{name}, label %end{name}", f"end{name}:"]
