"""Properties of the processor at hand, and how numbers are held in its registers and in memory."""

from __future__ import annotations

import functools
import platform
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

_FLOATS = {"float64": "double", "float32": "float"}
_BYTES = 64  # of the largest vector register


@functools.cache
def features() -> dict[str, bool]:
    """Features of the processor under LLVM's names, and whether it has them."""
    import llvmlite.binding as llvm

    return dict(llvm.get_host_cpu_features())


@functools.cache
def llvm_version() -> int:
    """The major version of LLVM."""
    import llvmlite.binding as llvm

    return llvm.llvm_version_info[0]


@functools.cache
def register_bytes() -> int:
    """Size of a vector register in bytes."""
    has = features().get
    return _BYTES if has("avx512f") and has("avx512dq") else 32 if has("avx2") else 16


@dataclass(frozen=True)
class Processor:
    """What the text of a kernel depends on, apart from the number of rows computed at once.

    fuses: whether the processor multiplies and adds with one rounding. inlines: whether all functions become parts of
    the kernel, with constants in its instructions, because numbers are held in registers alone. library: what the names
    of the functions of the mathematical library begin with. flushes: whether these get zeros for subnormal arguments.
    """

    fuses: bool
    inlines: bool = False
    library: str = ""
    flushes: bool = True

    @property
    def inlining(self) -> str:
        """The attribute of functions."""
        return "alwaysinline" if self.inlines else "noinline"


def processor() -> Processor:
    """The processor at hand."""
    return Processor(features().get("fma", platform.machine() not in ("x86_64", "AMD64")))


def lanes_for(dtypes: set[np.dtype]) -> int:
    """Number of rows computed at once: as many as a register holds of the widest floating-point numbers."""
    widest = max((t.itemsize for t in dtypes if t.kind == "f"), default=8)
    return register_bytes() // max(widest, 4)


def computes(dtype: Any) -> bool:
    """Whether kernels can calculate with a dtype; other dtypes are only moved."""
    return str(dtype) in _FLOATS or np.dtype(dtype).kind in "iub"


def holds(dtype: Any) -> bool:
    """Whether kernels can move numbers of a dtype."""
    return str(dtype) == "bfloat16" or (isinstance(dtype, np.dtype) and dtype.kind in "biufc")


def element(dtype: np.dtype) -> str:
    """LLVM's type of one number in a register."""
    if dtype.kind == "b":
        return "i1"
    return _FLOATS.get(str(dtype)) or f"i{8 * dtype.itemsize}"


def stored(dtype: np.dtype) -> str:
    """LLVM's type of one number in memory."""
    return "i8" if dtype.kind == "b" else element(dtype)


def literal(x: np.generic) -> str:
    """A number as LLVM writes it."""
    dtype = np.dtype(x.dtype)
    if dtype.kind == "b":
        return "true" if x else "false"
    if str(dtype) in _FLOATS:
        with np.errstate(all="ignore"):
            return "0x" + struct.pack(">d", float(x)).hex().upper()
    return str(int(x)) if dtype.kind in "iu" else str(int.from_bytes(x.tobytes(), "little"))
