"""What XLA calls: it gives blocks of rows to the threads of XLA's pool, and works on them itself.

Written against XLA's C interface for custom calls (`c_api.h` in `jax.ffi.include_dir()`), by byte offsets. Any thread takes
the next block until none is left, so that a pool of any size, or one that is busy, is right; who calls waits for blocks that
others have begun, never for a thread to begin. What threads share is freed by the last that looks at it.
"""

from __future__ import annotations

import sys

MAJOR, MINOR = 0, 1  # of the interface: what is used here was there from then on

_TEXT = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @sched_yield()

define internal void @work(ptr %c) noinline nounwind {
  %rows = load i64, ptr %c
  %each.at = getelementptr i8, ptr %c, i64 8
  %each = load i64, ptr %each.at
  %blocks.at = getelementptr i8, ptr %c, i64 16
  %blocks = load i64, ptr %blocks.at
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
  %extension.at = getelementptr i8, ptr %call, i64 8
  %extension = load ptr, ptr %extension.at
  %asked = icmp ne ptr %extension, null
  br i1 %asked, label %asking, label %start
asking:
  %kind.at = getelementptr i8, ptr %extension, i64 8
  %kind = load i32, ptr %kind.at
  %version = icmp eq i32 %kind, 1
  br i1 %version, label %answer, label %start
answer:
  %metadata.at = getelementptr i8, ptr %extension, i64 24
  %metadata = load ptr, ptr %metadata.at
  %major.at = getelementptr i8, ptr %metadata, i64 24
  store i32 MAJOR, ptr %major.at
  %minor.at = getelementptr i8, ptr %metadata, i64 28
  store i32 MINOR, ptr %minor.at
  ret ptr null
start:
  %args.at = getelementptr i8, ptr %call, i64 72
  %args = load ptr, ptr %args.at
  %results.at = getelementptr i8, ptr %call, i64 112
  %results = load ptr, ptr %results.at
  %first_result = load ptr, ptr %results
  %dims.at = getelementptr i8, ptr %first_result, i64 40
  %dims = load ptr, ptr %dims.at
  %rows = load i64, ptr %dims
  %empty = icmp sle i64 %rows, 0
  br i1 %empty, label %nothing, label %some
nothing:
  ret ptr null
some:
  %api.at = getelementptr i8, ptr %call, i64 16
  %api = load ptr, ptr %api.at
  %context.at = getelementptr i8, ptr %call, i64 24
  %context = load ptr, ptr %context.at
  %alone = icmp sle i64 %rows, EACH
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
  store i64 32, ptr %threads.args
  %ta1 = getelementptr i8, ptr %threads.args, i64 8
  store ptr null, ptr %ta1
  %ta2 = getelementptr i8, ptr %threads.args, i64 16
  store ptr %context, ptr %ta2
  %ta3 = getelementptr i8, ptr %threads.args, i64 24
  store ptr %threads.at, ptr %ta3
  %number.at = getelementptr i8, ptr %api, i64 144
  %number = load ptr, ptr %number.at
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
  br i1 %lacking, label %single2, label %share.out
single2:
  %local2 = alloca [ARRAYS x ptr], align 64
  call void @arrays(ptr %args, ptr %results, ptr %local2)
  call void @block(ptr %local2, i64 0, i64 %rows)
  ret ptr null
share.out:
  store i64 %rows, ptr %c
  %c1 = getelementptr i8, ptr %c, i64 8
  store i64 %each, ptr %c1
  %c2 = getelementptr i8, ptr %c, i64 16
  store i64 %blocks, ptr %c2
  %c3 = getelementptr i8, ptr %c, i64 64
  store i64 0, ptr %c3
  %done.at = getelementptr i8, ptr %c, i64 128
  store i64 0, ptr %done.at
  %users.at = getelementptr i8, ptr %c, i64 192
  %users = add i64 %helpers, 1
  store i64 %users, ptr %users.at
  %c4 = getelementptr i8, ptr %c, i64 256
  call void @arrays(ptr %args, ptr %results, ptr %c4)
PAGES
  %task.args = alloca [5 x i64]
  store i64 40, ptr %task.args
  %sa1 = getelementptr i8, ptr %task.args, i64 8
  store ptr null, ptr %sa1
  %sa2 = getelementptr i8, ptr %task.args, i64 16
  store ptr %context, ptr %sa2
  %sa3 = getelementptr i8, ptr %task.args, i64 24
  store ptr @task, ptr %sa3
  %sa4 = getelementptr i8, ptr %task.args, i64 32
  store ptr %c, ptr %sa4
  %schedule.at = getelementptr i8, ptr %api, i64 136
  %schedule = load ptr, ptr %schedule.at
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
  %done = load atomic i64, ptr %done.at acquire, align 8
  %all = icmp sge i64 %done, %blocks
  br i1 %all, label %end, label %patience
patience:
  %ignored = call i32 @sched_yield()
  br label %wait
end:
  call void @leave(ptr %c)
  ret ptr null
}

define internal void @forget(ptr %api, ptr %error) noinline nounwind {
  %there = icmp ne ptr %error, null
  br i1 %there, label %some, label %end
some:
  %a = alloca [3 x i64]
  store i64 24, ptr %a
  %a1 = getelementptr i8, ptr %a, i64 8
  store ptr null, ptr %a1
  %a2 = getelementptr i8, ptr %a, i64 16
  store ptr %error, ptr %a2
  %destroy.at = getelementptr i8, ptr %api, i64 64
  %destroy = load ptr, ptr %destroy.at
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
_HUGE = 1 << 21  # bytes of a large page: the system clears one of them in less time than 512 small ones


def text(arguments: int, widths: list[int], lanes: int, each: int, long: bool) -> str:
    """The handler of a kernel.

    arguments: how many arrays it reads; widths: bytes of a row of each result; each: rows that are worth a thread; long: a
    block for each thread.
    """
    results = len(widths)
    large = sys.platform == "linux"  # the system is asked for large pages for results
    pages = [
        f"  %result{k}.bytes = mul i64 %rows, {width}\n  %result{k}.at = getelementptr ptr, ptr %c4, i64 {arguments + k}\n"
        f"  %result{k} = load ptr, ptr %result{k}.at\n  call void @pages(ptr %result{k}, i64 %result{k}.bytes)"
        for k, width in enumerate(widths)
    ]
    copies = []
    for k in range(arguments + results):
        base, i = ("%args", k) if k < arguments else ("%results", k - arguments)
        copies.append(f"""  %p{k} = getelementptr ptr, ptr {base}, i64 {i}
  %b{k} = load ptr, ptr %p{k}
  %d{k} = getelementptr i8, ptr %b{k}, i64 24
  %x{k} = load ptr, ptr %d{k}
  %t{k} = getelementptr ptr, ptr %to, i64 {k}
  store ptr %x{k}, ptr %t{k}""")
    known = {
        "MAJOR": MAJOR, "MINOR": MINOR, "LANES_LESS": lanes - 1, "LANES": lanes, "EACH": each,
        "ARRAYS": arguments + results, "BYTES": 256 + 8 * (arguments + results),
        "SHARE": "smax" if long else "smin", "COPIES": "\n".join(copies), "PAGES": "\n".join(pages * large),
        "HUGE_LESS": _HUGE - 1, "HUGE": _HUGE,
    }  # fmt: skip
    out = _TEXT + _PAGES * large
    for name, value in known.items():
        out = out.replace(name, str(value))
    return out
