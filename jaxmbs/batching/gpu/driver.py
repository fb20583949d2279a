"""Launches PTX kernels with CUDA's driver, by a handler that XLA calls.

It needs documented interfaces alone: XLA's custom calls, `cuLibraryLoadData` and `cuLaunchKernel`. A kernel is loaded once
in a process, for all devices.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
from typing import Any

from jaxmbs.batching.gpu import emitting
from jaxmbs.batching.machine import compiling, interface
from jaxmbs.errors import ModelError

_LOCK = threading.Lock()
_KEPT: dict[str, Any] = {}  # what owns the code of handlers
_REPLAYED = 1  # a trait: each call launches the same, so that XLA may record it and replay the record
_PREFIX = "jaxmbs_ptx"  # of the names of handlers
_FAILED = 13  # XLA's code of an internal error

_TEXT = """
@format = private constant [40 x i8] c"CUDA could not launch a kernel: %s (%d)\\00"
@unknown = private constant [17 x i8] c"an unknown error\\00"
declare i32 @snprintf(ptr, i64, ptr, ...)

define ptr @handler(ptr %call) nounwind {
ASKED
  %api = read ptr %call 16
  %context = read ptr %call 24
  %args = read ptr %call 72
  %results = read ptr %call 112
  %attributes = read ptr %call 160
  %scalar = read ptr %attributes 0
  %value = read ptr %scalar 8
  %blocks = read i32 %value 0
  %wanted = alloca [4 x i64]
  write i64 32 %wanted 0
  write ptr null %wanted 8
  write ptr %context %wanted 16
  write ptr null %wanted 24
  %get = read ptr %api 80
  %refused = call ptr %get(ptr %wanted)
  %lacking = icmp ne ptr %refused, null
  br i1 %lacking, label %pass.on, label %launch
pass.on:
  ret ptr %refused
launch:
  %stream = read ptr %wanted 24
  %values = alloca [COUNT x ptr]
  %given = alloca [COUNT x ptr]
COPIES
  %kernel = inttoptr i64 KERNEL to ptr
  %status = call i32 inttoptr (i64 LAUNCH to ptr)(ptr %kernel, i32 %blocks, i32 1, i32 1, i32 BLOCK, i32 1, i32 1, i32 0,
    ptr %stream, ptr %given, ptr null)
  %wrong = icmp ne i32 %status, 0
  br i1 %wrong, label %error, label %end
error:
  %name.at = alloca ptr
  write ptr null %name.at 0
  %ignored = call i32 inttoptr (i64 NAME to ptr)(i32 %status, ptr %name.at)
  %name.told = read ptr %name.at 0
  %named = icmp ne ptr %name.told, null
  %name = select i1 %named, ptr %name.told, ptr @unknown
  %message = alloca [200 x i8]
  %length = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %message, i64 200, ptr @format, ptr %name, i32 %status)
  %told = alloca [4 x i64]
  write i64 32 %told 0
  write ptr null %told 8
  write ptr %message %told 16
  write i32 FAILED %told 24
  %create = read ptr %api 48
  %failure = call ptr %create(ptr %told)
  ret ptr %failure
end:
  ret ptr null
}
"""


def registered(text: str, block: int, arrays: int, results: int) -> str:
    """The name under which XLA calls the kernel with this PTX, with an attribute `blocks`, their number.

    Its arguments are the `arrays` and then the `results` of the call. block: threads of a block.
    """
    name = f"{_PREFIX}_{hashlib.sha256(f'{block} {arrays} {results} {text}'.encode()).hexdigest()[:32]}"
    with _LOCK:
        if name not in _KEPT:
            _KEPT[name] = compiling.handler(name, "CUDA", handler(_loaded(text), block, arrays, results))
    return name


def handler(kernel: int, block: int, arrays: int, results: int) -> str:
    """The text of the handler that launches a kernel; kernel: its handle in the driver."""
    copies = []
    for k in range(arrays + results):
        base, i = ("%args", k) if k < arrays else ("%results", k - arrays)
        copies.append(
            f"  %b{k} = read ptr {base} {8 * i}\n  %x{k} = read ptr %b{k} 24\n  write ptr %x{k} %values {8 * k}\n"
            f"  %at{k} = getelementptr i8, ptr %values, i64 {8 * k}\n  write ptr %at{k} %given {8 * k}"
        )
    known = {
        "ASKED": interface.asked(_REPLAYED), "COUNT": arrays + results, "COPIES": "\n".join(copies), "BLOCK": block,
        "LAUNCH": _address("cuLaunchKernel"), "NAME": _address("cuGetErrorName"), "KERNEL": kernel, "FAILED": _FAILED,
    }  # fmt: skip
    return interface.written(_TEXT, known)


@functools.cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise ModelError("CUDA's driver, libcuda.so.1, was not found: install it, or set JAXMBS_KERNELS=xla") from None


def _address(name: str) -> int:
    return ctypes.cast(getattr(_driver(), name), ctypes.c_void_p).value or 0


def _loaded(text: str) -> int:
    """The driver's kernel of a PTX text."""
    library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    status = _driver().cuLibraryLoadData(ctypes.byref(library), text.encode() + b"\0", None, None, 0, None, None, 0)
    if not status:
        status = _driver().cuLibraryGetKernel(ctypes.byref(kernel), library, emitting.NAME.encode())
    if status:
        name = ctypes.c_char_p()
        _driver().cuGetErrorName(status, ctypes.byref(name))
        raise ModelError(f"CUDA's driver cannot load a kernel: {(name.value or b'').decode()} ({status})")
    return kernel.value or 0
