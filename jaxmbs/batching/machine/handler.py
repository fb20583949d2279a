"""The function that XLA calls: it gives blocks of rows to the threads of XLA's pool and works on blocks itself.

Each thread takes the next block until none is left, so the result is right with a pool of any size, even a busy one. The
calling thread waits only for blocks that others have begun, never for a thread to start (in a forked process none does).
The last thread that uses the shared data frees them. How the text is written: see `interface`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from jaxmbs.batching.machine import interface

_TEXT = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @sched_yield()

define internal void @work(ptr %c) noinline nounwind {
  %rows = read i64 %c 0
  %each = read i64 %c 8
  %blocks = read i64 %c 16
  %next.at = getelementptr i8, ptr %c, i64 64
  %done.at = getelementptr i8, ptr %c, i64 128
  %arrays = getelementptr i8, ptr %c, i64 256
  br label %turn
turn:
  %k = atomicrmw add ptr %next.at, i64 1 monotonic
  %more = icmp slt i64 %k, %blocks
  br i1 %more, label %do, label %end
do:
  %first = mul i64 %k, %each
  %after = add i64 %first, %each
  %over = icmp sgt i64 %after, %rows
  %last = select i1 %over, i64 %rows, i64 %after
  call void @block(ptr %arrays, i64 %first, i64 %last)
  %finished = atomicrmw add ptr %done.at, i64 1 release
  br label %turn
end:
  ret void
}

define internal void @leave(ptr %c) noinline nounwind {
  %users.at = getelementptr i8, ptr %c, i64 192
  %users = atomicrmw sub ptr %users.at, i64 1 acq_rel
  %alone = icmp eq i64 %users, 1
  br i1 %alone, label %free, label %end
free:
  call void @free(ptr %c)
  br label %end
end:
  ret void
}

define internal void @task(ptr %c) nounwind {
  call void @work(ptr %c)
  call void @leave(ptr %c)
  ret void
}

define ptr @handler(ptr %call) nounwind {
ASKED
  %args = read ptr %call 72
  %results = read ptr %call 112
  %result = read ptr %results 0
  %dims = read ptr %result 40
  %rows = read i64 %dims 0
  %empty = icmp sle i64 %rows, 0
  br i1 %empty, label %nothing, label %some
some:
  %api = read ptr %call 16
  %context = read ptr %call 24
  %alone = icmp sle i64 %rows, FEW
  br i1 %alone, label %single, label %many
single:
  %local = alloca [ARRAYS x ptr], align 64
  call void @arrays(ptr %args, ptr %results, ptr %local)
  call void @block(ptr %local, i64 0, i64 %rows)
  ret ptr null
many:
  %threads.at = alloca i64
  store i64 1, ptr %threads.at
  %threads.args = alloca [4 x i64]
  write i64 32 %threads.args 0
  write ptr null %threads.args 8
  write ptr %context %threads.args 16
  write ptr %threads.at %threads.args 24
  %number = read ptr %api 144
  %unknown = call ptr %number(ptr %threads.args)
  call void @forget(ptr %api, ptr %unknown)
  %threads0 = load i64, ptr %threads.at
  %threads1 = call i64 @llvm.smax.i64(i64 %threads0, i64 1)
  %threads = call i64 @llvm.smin.i64(i64 %threads1, i64 256)
  %wide0 = add i64 %rows, LANES_LESS
  %groups = sdiv i64 %wide0, LANES
  %share0 = add i64 %groups, %threads
  %share1 = sub i64 %share0, 1
  %share2 = sdiv i64 %share1, %threads
  %share = mul i64 %share2, LANES
  %each = call i64 @llvm.SHARE.i64(i64 %share, i64 EACH)
  %up0 = add i64 %rows, %each
  %up1 = sub i64 %up0, 1
  %blocks = sdiv i64 %up1, %each
  %helpers0 = call i64 @llvm.smin.i64(i64 %blocks, i64 %threads)
  %helpers = sub i64 %helpers0, 1
  %c = call ptr @malloc(i64 BYTES)
  %lacking = icmp eq ptr %c, null
  br i1 %lacking, label %single, label %share.out
share.out:
  write i64 %rows %c 0
  write i64 %each %c 8
  write i64 %blocks %c 16
  write i64 0 %c 64
  write i64 0 %c 128
  %users = add i64 %helpers, 1
  write i64 %users %c 192
  %arrays = getelementptr i8, ptr %c, i64 256
  call void @arrays(ptr %args, ptr %results, ptr %arrays)
PAGES
  %task.args = alloca [5 x i64]
  write i64 40 %task.args 0
  write ptr null %task.args 8
  write ptr %context %task.args 16
  write ptr @task %task.args 24
  write ptr %c %task.args 32
  %schedule = read ptr %api 136
  br label %next
next:
  %h = phi i64 [%helpers, %share.out], [%h1, %scheduled]
  %enough = icmp sle i64 %h, 0
  br i1 %enough, label %self, label %hire
hire:
  %h1 = sub i64 %h, 1
  %refused = call ptr %schedule(ptr %task.args)
  %failed = icmp ne ptr %refused, null
  br i1 %failed, label %fewer, label %scheduled
fewer:
  call void @forget(ptr %api, ptr %refused)
  call void @leave(ptr %c)
  br label %scheduled
scheduled:
  br label %next
self:
  call void @work(ptr %c)
  br label %wait
wait:
  %done.at = getelementptr i8, ptr %c, i64 128
  br label %look
look:
  %done = load atomic i64, ptr %done.at acquire, align 8
  %all = icmp sge i64 %done, %blocks
  br i1 %all, label %end, label %patience
patience:
  %ignored = call i32 @sched_yield()
  br label %look
end:
  call void @leave(ptr %c)
  br label %nothing
nothing:
  ret ptr null
}

define internal void @forget(ptr %api, ptr %error) noinline nounwind {
  %there = icmp ne ptr %error, null
  br i1 %there, label %some, label %end
some:
  %a = alloca [3 x i64]
  write i64 24 %a 0
  write ptr null %a 8
  write ptr %error %a 16
  %destroy = read ptr %api 64
  call void %destroy(ptr %a)
  br label %end
end:
  ret void
}

define internal void @arrays(ptr %args, ptr %results, ptr %to) noinline nounwind {
COPIES
  ret void
}
"""


_PAGES = """
declare i32 @madvise(ptr, i64, i32)

define internal void @pages(ptr %array, i64 %bytes) noinline nounwind {
  %first = ptrtoint ptr %array to i64
  %end = add i64 %first, %bytes
  %up = add i64 %first, HUGE_LESS
  %begin = and i64 %up, -HUGE
  %stop = and i64 %end, -HUGE
  %some = icmp sgt i64 %stop, %begin
  br i1 %some, label %ask, label %end.here
ask:
  %at = inttoptr i64 %begin to ptr
  %length = sub i64 %stop, %begin
  %ignored = call i32 @madvise(ptr %at, i64 %length, i32 14)
  br label %end.here
end.here:
  ret void
}
"""
LARGE_PAGES = sys.platform == "linux"  # whether to ask the system for them, for results and scratch memory
_HUGE = 1 << 21  # bytes of a large page: the system clears one in less time than 512 small ones


def asking(array: str, size: int) -> str:
    """A line that asks for large pages for an array of `size` bytes; empty if there are none or the array is small."""
    return f"  call void @pages(ptr {array}, i64 {size})" if LARGE_PAGES and size >= 2 * _HUGE else ""


def text(
    arguments: int, widths: list[int], lanes: int, each: int, few: int, long: bool, repeats: Mapping[int, bool]
) -> str:
    """The text of a kernel's handler. After the arrays, their table has a number for each repeated one (`emitting.kernel`).

    arguments: how many arrays it reads; widths: bytes of a row of each result; few: up to so many rows, the calling
    thread works alone; each: the most rows of a block or, if `long`, the fewest, with no more blocks than threads.
    """
    results = len(widths)
    pages = [
        f"  %result{k}.bytes = mul i64 %rows, {width}\n  %result{k} = read ptr %arrays {8 * (arguments + k)}\n"
        f"  call void @pages(ptr %result{k}, i64 %result{k}.bytes)"
        for k, width in enumerate(widths)
    ]
    copies = []
    for k in range(arguments + results):
        base, i = ("%args", k) if k < arguments else ("%results", k - arguments)
        copies.append(f"  %b{k} = read ptr {base} {8 * i}\n  %x{k} = read ptr %b{k} 24\n  write ptr %x{k} %to {8 * k}")
    for j, (k, successive) in enumerate(repeats.items()):
        copies.append(f"  %d{k} = read ptr %b{k} 40\n  %own{k} = read i64 %d{k} 0")
        if successive:
            copies.append(f"  %dr{k} = read ptr %b{arguments} 40\n  %all{k} = read i64 %dr{k} 0")
            copies.append(f"  %each{k} = sdiv i64 %all{k}, %own{k}")
        copies.append(f"  write i64 %{'each' if successive else 'own'}{k} %to {8 * (arguments + results + j)}")
    table = arguments + results + len(repeats)
    known = {
        "ASKED": interface.asked(), "LANES_LESS": lanes - 1, "LANES": lanes, "EACH": each, "FEW": few,
        "ARRAYS": table, "BYTES": 256 + 8 * table,
        "SHARE": "smax" if long else "smin", "COPIES": "\n".join(copies), "PAGES": "\n".join(pages * LARGE_PAGES),
        "HUGE_LESS": _HUGE - 1, "HUGE": _HUGE,
    }  # fmt: skip
    return interface.written(_TEXT + _PAGES * LARGE_PAGES, known)
