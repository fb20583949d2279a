"""Kernels for NVIDIA GPUs: PTX, and a description of how it is launched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jaxmbs.batching.gpu import emitting, ptx
from jaxmbs.errors import ModelError
from jaxmbs.exporting.program import Array, Program
from jaxmbs.exporting.shared import beside, placed


def written(program: Program, path: Path, where: str) -> list[Path]:
    """Write the PTX of a kernel, and its launch description (JSON) beside it."""
    if program.code is None or any(kind != "kernel" for kind, _ in program.origins):
        raise ModelError(f"{where}: a result is an argument or a constant, which needs no kernel; leave it out")
    kernel = emitting.kernel(program.code)
    said = json.dumps(description(program, kernel, path.name), indent=2, allow_nan=False) + "\n"
    return placed({path: ptx.ptx(kernel.text).encode("ascii"), beside(path, ".json", where): said.encode()})


def description(program: Program, kernel: emitting.Kernel, file: str) -> dict[str, Any]:
    """How the kernel is launched: its parameters are pointers to memory of the device, in this order."""
    given = [
        {"argument": program.arguments[x].name, **_described(program.arguments[x])}
        if isinstance(x, int)
        else {"constant": [_listed(v) for v in x.reshape(-1).tolist()], "dtype": str(x.dtype), "shape": list(x.shape)}
        for x in program.inputs
    ]
    order = sorted(zip([k for _, k in program.origins], program.results, strict=True), key=lambda pair: pair[0])
    made = [{"result": x.name, **_described(x)} for _, x in order]
    room = [{"scratch": "uint8", "bytes_per_block": kernel.scratch * kernel.block}] if kernel.scratch else []
    return {
        "file": file,
        "function": emitting.NAME,
        "architecture": ptx.ARCHITECTURE,
        "parameters": [*given, {"rows": "int64", "shape": [1]}, *made, *room],
        "block": [kernel.block, 1, 1],
        "grid": f"any number of blocks; with (rows + {kernel.block - 1}) / {kernel.block} each thread computes one row",
        "shared_memory_bytes": 0,
        "note": "arrays are contiguous, with the rows first, at addresses that are multiples of 16",
    }


def _described(x: Array) -> dict[str, Any]:
    return {"dtype": str(x.dtype), "shape": ["rows", *x.shape]}


def _listed(x: Any) -> Any:
    """A number as JSON has it, floating-point numbers in hexadecimal, to the last bit."""
    return x.hex() if isinstance(x, float) else x
