"""Kernels as machine code: programs of scalars, with their loops, compiled by LLVM. README.md shows the stages."""

from __future__ import annotations

import functools
import importlib.util
import sys

from jaxmbs.batching.machine.calling import call
from jaxmbs.batching.machine.operations import serves
from jaxmbs.batching.machine.segments import excluding
from jaxmbs.batching.targets import Target

# 64 MiB for each thread, which computes at most 16 rows at once
MACHINE = Target(
    name="machine code",
    serves=serves,
    excludes=excluding(lambda rows: (64 << 20) // (1 if rows == 1 else 16)),
    call=call,
)


@functools.cache
def lacking() -> str:
    """Why machine code cannot be generated here; empty if it can."""
    if sys.platform not in ("linux", "darwin"):
        return f"machine code is made on Linux and macOS only, not on {sys.platform}"
    if importlib.util.find_spec("llvmlite") is None:
        return "llvmlite is not installed: pip install llvmlite"
    from jaxmbs.batching.machine import compiling

    return compiling.lacking()


def compiler() -> str:
    """The compiler and its version."""
    import llvmlite.binding as llvm

    return f"LLVM {'.'.join(map(str, llvm.llvm_version_info))}"
