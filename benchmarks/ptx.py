"""What the kernels for a GPU are, without one: registers, spilled bytes and instructions by NVIDIA's assembler.

`python -m benchmarks.ptx` prints a table and with `--keep` saves it as results/ptx.json. It needs `ptxas` (and for
instructions `nvdisasm`): pip install -e '.[gpu-check]'. The last column is an estimate, not a measurement: the least time
of an H100 at 1.755 GHz that is issuing one instruction of a warp in each of its quarters at every clock, computing float64
at half that rate, or moving the spilled numbers and those of the arrays; whichever takes longest.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from benchmarks import made_from, suite
from jaxmbs.batching import over_rows
from jaxmbs.batching.gpu import PTX, emitting, ptx

RESULT = Path(__file__).parent / "results" / "ptx.json"
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
STEPS = 1000
CORES, CLOCK, MEMORY = 132, 1.755e9, 3.35e12  # of an H100: multiprocessors, Hz, bytes per second
FIRST_CACHE = 128  # bytes that the first-level cache of a multiprocessor moves in a clock


@dataclass(frozen=True)
class Row:
    """Of one kernel, per thread. instructions: without those in loops counted again; ns: the estimate, per row or step."""

    function: str
    dtype: str
    architecture: str
    registers: int
    stored: int
    loaded: int
    instructions: int
    ns: float


def functions(dtype: Any) -> dict[str, tuple[Callable[..., Any], list[Any], int]]:
    """{name: (function of one row, arguments with rows, how often its loop is repeated)}."""

    def forward(robot: str) -> tuple[Any, list[Any]]:
        model = suite.robot(robot)
        shapes = [jax.ShapeDtypeStruct((128, n), dtype) for n in (model.nq, model.nv, model.nv)]
        return lambda q, v, tau: mbs.forward_dynamics(model, q, v, tau), shapes

    def motion(q: Any, v: Any, tau: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            q, v = state
            return (q + 0.001 * v, v + 0.001 * arm(q, v, tau)), None

        return jax.lax.scan(step, (q, v), None, STEPS)[0]

    (arm, given), (humanoid, more) = forward("arm7"), forward("humanoid30")
    found = {"forward dynamics, arm of 7": (arm, given, 1), "forward dynamics, humanoid of 30": (humanoid, more, 1)}
    found["gradient of the arm"] = (lambda q, v, tau: jax.vjp(arm, q, v, tau)[1](tau), given, 1)
    found[f"{STEPS} steps of the arm"] = (motion, given, STEPS)
    return found


def kernels(fn: Callable[..., Any], shapes: list[Any]) -> list[emitting.Kernel]:
    """The kernels that a function of one row becomes."""
    found = []

    def call(code: Any, given: Any, repeats: Any, rows: int, results: Any) -> Any:
        found.append(emitting.kernel(code, repeats))
        return [jnp.zeros(x.shape, x.dtype) for x in results]

    jax.eval_shape(over_rows(fn, on=replace(PTX, call=call)), *shapes)
    return found


def tool(name: str) -> str | None:
    """Where a program of CUDA is, in a wheel or on the path."""
    wheels = [p for q in sys.path for p in sorted(Path(q).glob(f"nvidia/*/bin/{name}"), reverse=True)]
    return str(wheels[0]) if wheels else shutil.which(name)


def assembled(text: str, architecture: str) -> tuple[int, int, int, int, int]:
    """(registers, spilled bytes stored, loaded, instructions, of them for float64) of a kernel."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(text, encoding="utf-8")
        run = subprocess.run(
            [str(tool("ptxas")), "-v", f"-arch={architecture}", str(source), "-o", str(made)],
            capture_output=True, encoding="utf-8", check=True,
        )  # fmt: skip
        entry = run.stderr[run.stderr.index(f"Compiling entry function '{emitting.NAME}'") :]
        registers = int(re.search(r"Used (\d+) registers", entry)[1])  # pyright: ignore[reportOptionalSubscript]
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", entry)
        listed = ""
        if tool("nvdisasm"):
            listed = subprocess.check_output([str(tool("nvdisasm")), "-c", str(made)], encoding="utf-8")
        own = listed[listed.find(f".text.{emitting.NAME}:") :]
        names = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", own, re.M)
        names = [x for x in names if x != "NOP"]
        wide = sum(x in ("DFMA", "DADD", "DMUL", "DSETP") for x in names)
        return registers, int(spills[1]), int(spills[2]), len(names), wide  # pyright: ignore[reportOptionalSubscript]


def rows(architectures: tuple[str, ...] = ARCHITECTURES) -> list[Row]:
    out = []
    for dtype in (np.float32, np.float64):
        for name, (fn, shapes, times) in functions(dtype).items():
            (kernel,) = kernels(fn, shapes)
            text = ptx.ptx(kernel.text)
            results = jax.tree.leaves(jax.eval_shape(jax.vmap(fn), *shapes))
            moved = sum(x.size * x.dtype.itemsize for x in (*shapes, *results)) / 128 / times
            for architecture in architectures:
                registers, stored, loaded, count, wide = assembled(text, architecture)
                issue = (count + wide) / (4 * 32 * CORES * CLOCK)
                spilled = (stored + loaded) / (FIRST_CACHE * CORES * CLOCK)
                ns = 1e9 * max(issue, spilled, moved / MEMORY)
                out.append(
                    Row(name, np.dtype(dtype).name, architecture, registers, stored, loaded, count, round(ns, 4))
                )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="save the table")
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    found = rows()
    print("| function | dtype | GPU | registers | spilled: stored, loaded (B) | instructions | estimate (ns) |")
    print("|---|---|---|---|---|---|---|")
    for x in found:
        spills = f"{x.stored:,}, {x.loaded:,}"
        print(
            f"| {x.function} | {x.dtype} | {x.architecture} | {x.registers} | {spills} | {x.instructions:,} | {x.ns} |"
        )
    if given.keep:
        made_from.keep(RESULT, {"kernels": [asdict(x) for x in found]})


if __name__ == "__main__":
    main()
