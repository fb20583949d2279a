"""Writes a kernel's code as LLVM text for a GPU: a thread computes a row, and a block of threads moves its rows together.

All functions become parts of the kernel, so that the frame falls apart into registers. Arrays whose rows are short are
read and written by each thread; longer ones go through shared memory, a tile of columns at a time (`staging`). In scratch
memory the numbers of the rows of a block lie side by side, so that what a warp reads is contiguous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from jaxmbs.batching.gpu import staging
from jaxmbs.batching.machine import host
from jaxmbs.batching.machine.code import Code, Fetch, Keep, Place
from jaxmbs.batching.machine.emitting import Emitter
from jaxmbs.batching.machine.movement import address, load, load_slot, store
from jaxmbs.batching.machine.text import Module, Text

BLOCK = 128  # threads of a block, four warps: a multiple of 32
PROCESSOR = host.Processor(fuses=True, inlines=True, library="__nv_", flushes=False)
NAME = "kernel"


@dataclass(frozen=True)
class Kernel:
    """The LLVM text of a kernel and how it is called.

    Its arguments are pointers: to the arrays in their order, the sizes (int64), the results, and scratch memory if it
    takes any. The sizes are the number of rows, then for each repeated array the number of successive rows that share one
    of its rows or, if these are not successive, the number of its rows. scratch: bytes of a row.
    """

    text: str
    block: int
    scratch: int


def kernel(code: Code, repeats: Mapping[int, bool] = MappingProxyType({}), block: int = BLOCK) -> Kernel:
    """The text of a kernel; repeats: see `machine.emitting.kernel`."""
    return Kernel(_Emitter(code, repeats, block).text(), block, code.scratch)


class _Emitter(Emitter):
    def __init__(self, code: Code, repeats: Mapping[int, bool], block: int):
        super().__init__(code, Module(1, PROCESSOR), repeats)
        self.width, self.shared = block, 0

    def text(self) -> str:
        group = self.level(self.code.body, None)
        self.main = Text(self.module)
        once = self.level(self.code.once, None)
        given, made = len(self.code.inputs), len(self.code.results)
        pointers = [f"%p{k}" for k in range(given + made)]
        parts = []
        for k, p in enumerate(pointers):
            parts.append(f"  %to{k} = getelementptr i8, ptr %arrays, i64 {8 * k}\n  store ptr {p}, ptr %to{k}")
        for j in range(len(self.repeats)):
            k = given + made + j
            parts.append(
                f"  %from{k} = getelementptr i8, ptr %sizes, i64 {8 * (1 + j)}\n  %size{k} = load i64, ptr %from{k}\n"
                f"  %to{k} = getelementptr i8, ptr %arrays, i64 {8 * k}\n  store i64 %size{k}, ptr %to{k}"
            )
        params = [f"ptr noalias readonly align 16 {p}" for p in pointers[:given]]
        params += ["ptr noalias readonly align 8 %sizes", *(f"ptr noalias align 16 {p}" for p in pointers[given:])]
        params += ["ptr noalias align 64 %room"] if self.code.scratch else []
        outer = _OUTER.format(
            name=NAME, params=", ".join(params), frame=max(self.frame, 16), arrays=given + made + len(self.repeats) + 1,
            table="\n".join(parts), block=self.width, once="\n".join(once), group="\n".join(group),
            scratch="getelementptr i8, ptr %room, i64 %part" if self.code.scratch else "inttoptr i64 0 to ptr",
            part=self.code.scratch * self.width,
        )  # fmt: skip
        shared = f"@shared = internal addrspace(3) global [{max(self.shared, 16)} x i8] undef, align 16"
        return "\n".join([shared, *self.constants, str(self.module), *self.functions, outer])

    def is_one(self, place: Place) -> bool:
        return place.shared

    def address(self, text: Text, place: Place) -> str:
        base = super().address(text, place)
        if not self.in_scratch(place):
            return base
        offset = text.add(f"mul i64 {staging.thread(text)}, {place.dtype.itemsize}")
        return text.add(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")

    def rows(self, text: Text, node: Fetch | Keep) -> None:
        place = node.place
        directly = node.turn or place.argument in self.repeats or not staging.serves(place)
        if not directly:
            self.shared = max(self.shared, staging.room(place, self.width))
        if isinstance(node, Fetch):
            if directly:
                self._read(text, node)
            else:
                wanted = {k: self.slots[node.source, k] for k in node.wanted}
                staging.fetch(text, self.address(text, place), place, wanted, self.width)
        elif directly:
            self._write(text, node)
        else:
            given = [self._given(text, x, place.dtype) for x in node.given]
            staging.keep(text, self.address(text, place), place, given, self.width)

    def _read(self, text: Text, node: Fetch) -> None:
        at, dtype = self.at(text, node), node.place.dtype
        for k in node.wanted:
            x = load(text, address(text, at, k * dtype.itemsize), dtype)
            store(text, address(text, "%frame", self.slots[node.source, k]), x, dtype)

    def _write(self, text: Text, node: Keep) -> None:
        at, dtype = self.at(text, node), node.place.dtype
        given = [self._given(text, x, dtype) for x in node.given]
        with staging.for_rows(text):
            for k, x in enumerate(given):
                store(text, address(text, at, k * dtype.itemsize), x, dtype)

    def _given(self, text: Text, x: object, dtype: np.dtype) -> str:
        """A number to be kept, in the form that it has in memory."""
        loaded = text.splat(x) if isinstance(x, np.generic) else load_slot(text, self.slots[x], dtype)
        return (
            text.add(f"zext {text.truth} {loaded} to {self.module.stored_vector(dtype)}")
            if dtype.kind == "b"
            else loaded
        )


_OUTER = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier0() convergent nounwind

define internal void @group(ptr %frame, ptr %arrays, ptr %scratch, i64 %row, i64 %count) alwaysinline nounwind {{
{group}
  ret void
}}

define internal void @once(ptr %frame, ptr %arrays, ptr %scratch, i64 %row, i64 %count) alwaysinline nounwind {{
{once}
  ret void
}}

define ptx_kernel void @{name}({params}) convergent nounwind "nvvm.maxntid"="{block}" "nvvm.minctasm"="1" {{
  %frame = alloca [{frame} x i8], align 16
  %arrays = alloca [{arrays} x i64], align 16
{table}
  %rows = load i64, ptr %sizes
  %thread32 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %thread = zext i32 %thread32 to i64
  %number32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %number = zext i32 %number32 to i64
  %blocks32 = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %blocks = zext i32 %blocks32 to i64
  %part = mul i64 %number, {part}
  %scratch = {scratch}
  %begin = mul i64 %number, {block}
  %apart = mul i64 %blocks, {block}
  %some = icmp slt i64 %begin, %rows
  br i1 %some, label %enter, label %end
enter:
  call void @once(ptr %frame, ptr %arrays, ptr %scratch, i64 0, i64 1)
  br label %turn
turn:
  %first = phi i64 [%begin, %enter], [%next, %turn]
  %left = sub i64 %rows, %first
  %few = icmp slt i64 %left, {block}
  %count = select i1 %few, i64 %left, i64 {block}
  %last = sub i64 %count, 1
  %less = icmp slt i64 %thread, %last
  %mine = select i1 %less, i64 %thread, i64 %last
  %row = add i64 %first, %mine
  call void @group(ptr %frame, ptr %arrays, ptr %scratch, i64 %row, i64 %count)
  %next = add i64 %first, %apart
  %more = icmp slt i64 %next, %rows
  br i1 %more, label %turn, label %end
end:
  ret void
}}
"""
