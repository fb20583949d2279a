"""Kernels for NVIDIA GPUs: the programs of `machine` as PTX, one row for each thread, compiled by the GPU's driver."""

from __future__ import annotations

import functools
import importlib.util

from jaxmbs.batching.gpu.calling import MOST_KEPT, call
from jaxmbs.batching.machine import host
from jaxmbs.batching.machine.operations import serves
from jaxmbs.batching.machine.segments import excluding
from jaxmbs.batching.targets import Target

PTX = Target(name="PTX", serves=serves, excludes=excluding(lambda rows: MOST_KEPT), call=call)


@functools.cache
def lacking() -> str:
    """Why PTX cannot be generated here; empty if it can."""
    if importlib.util.find_spec("llvmlite") is None:
        return "llvmlite is not installed: pip install llvmlite"
    return "" if host.llvm_version() >= 19 else "llvmlite is too old: pip install -U llvmlite"
