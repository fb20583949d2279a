"""What the kernels for a GPU are, without one: registers, spilled bytes and instructions by NVIDIA's assembler.

`python -m benchmarks.ptx` prints a table of the functions of `suite`, and with `--keep` saves it as results/ptx.json. It
needs `ptxas` (and for instructions `nvdisasm`): pip install -e '.[gpu-check]'. The last columns are estimates, not
measurements: the time per evaluation of an H100 or H200 at 1.755 GHz that is issuing one instruction of a warp in
each of its quarters at every clock, computing float64 at half that rate, or moving the spilled numbers and those of the
arrays; whichever takes longest. Spilled numbers are moved by the smallest cache that holds those of all threads at work, and
those for which the second-level cache has no room by the memory. The body of a loop counts as often as it is repeated.
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

from benchmarks import limits, made_from, peers, suite
from jaxmbs.batching import over_rows
from jaxmbs.batching.gpu import PTX, emitting, ptx
from jaxmbs.batching.gpu.emitting import BLOCK

RESULT = Path(__file__).parent / "results" / "ptx.json"
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
PROCESSORS, CLOCK = 132, 1.755e9  # of an H100 and an H200: multiprocessors, Hz
STAGES = 4  # of a step, a loop inside that of the steps
AT_WORK = 256  # threads on a multiprocessor, if each has all registers that it can have
FIRST_CACHE, FIRST_RATE = 220e3, 128 * CLOCK  # of a multiprocessor, bytes and bytes per second
SECOND_CACHE, SECOND_RATE = 50e6, 5.5e12


@dataclass(frozen=True)
class Row:
    """Of one kernel, per thread. instructions: those of loops once; h100, h200: the estimates in ns per evaluation."""

    function: str
    robot: str
    dtype: str
    architecture: str
    registers: int
    stored: int
    loaded: int
    instructions: int
    h100: float
    h200: float


@dataclass(frozen=True)
class Function:
    """fn(*args) of one row, mapped over in_axes; repeats: how often the body of its loop runs; evaluations: in a row."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    in_axes: Any
    repeats: int = 1
    evaluations: int = 1


def function(case: suite.Case) -> Function:
    if case.function in (suite.STUDY, suite.EVENTS):
        return _sample(case)
    model = suite.robot(case.robot)
    ours = suite.own(model, case, suite.inputs(model, case))
    repeats = STAGES * peers.ROLLOUT_STEPS if case.function in suite.ROLLOUTS else 1
    return Function(ours.fn, ours.args, ours.in_axes, repeats, suite.evaluations_of(case))


def _sample(case: suite.Case) -> Function:
    from jaxmbs.study.problem.study import read
    from jaxmbs.study.samples.batch import instances, sample_of

    study = read(suite.ROOT / "examples" / f"{case.robot}.toml")
    draws = jnp.zeros((BLOCK, len(study.dispersions.inputs)), case.dtype)
    model, axes, q, v = instances(study, draws, np.dtype(case.dtype))
    steps = round(study.simulation.t_end / study.simulation.dt)
    return Function(sample_of(study, np.dtype(case.dtype)), (model, q, v), (axes, 0, 0), STAGES * steps)


def kernels(found: Function) -> tuple[list[emitting.Kernel], int]:
    """The kernels that a function becomes, and the bytes of the arrays of a row."""
    made, moved = [], []

    def call(code: Any, given: Any, repeats: Any, rows: int, results: Any) -> Any:
        made.append(emitting.kernel(code, repeats))
        moved.extend(x for x in (*given, *results) if x.shape[:1] == (rows,))
        return [jnp.zeros(x.shape, x.dtype) for x in results]

    jax.eval_shape(over_rows(found.fn, found.in_axes, replace(PTX, call=call)), *found.args)
    return made, sum(x.size // x.shape[0] * x.dtype.itemsize for x in moved)


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


def row(case: suite.Case, architectures: tuple[str, ...] = ARCHITECTURES) -> list[Row]:
    """The rows of a case, one for each architecture."""
    found = function(case)
    made, moved = kernels(found)
    texts, out = [ptx.ptx(k.text) for k in made], []
    for architecture in architectures:
        parts = [assembled(text, architecture) for text in texts]
        registers = max(x[0] for x in parts)
        stored, loaded, count, wide = (sum(x[k] for x in parts) for k in range(1, 5))
        issued = (count + wide) / (4 * 32 * PROCESSORS * CLOCK)
        ns = []
        for memory in (limits.DEVICES[name]["copy"]["0"] for name in ("H100", "H200")):
            computing = found.repeats * max(issued, spilling(stored, loaded, memory))
            ns.append(round(1e9 / found.evaluations * max(computing, moved / memory), 4))
        out.append(Row(case.function, case.robot, case.dtype, architecture, registers, stored, loaded, count, *ns))
    return out


def spilling(stored: int, loaded: int, memory: float) -> float:
    """Seconds for the spilled bytes of a thread; memory: bytes per second that the device's memory moves."""
    held, moved = AT_WORK * stored, stored + loaded
    if held <= FIRST_CACHE:
        return moved / (FIRST_RATE * PROCESSORS)
    outside = max(0.0, 1 - SECOND_CACHE / (held * PROCESSORS))
    return max(moved / SECOND_RATE, outside * moved / memory)


def cases(words: str = "") -> list[suite.Case]:
    """One of each function, robot and precision."""
    found = {(c.function, c.robot, c.dtype): replace(c, batch=BLOCK) for c in suite.CASES}
    return [c for c in found.values() if words in f"{c.function} {c.robot} {c.dtype}" and "chain" not in c.robot]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose function, robot and precision contain this")
    parser.add_argument("--keep", action="store_true", help="save the table")
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(
        "| function | robot | dtype | GPU | registers | spilled: stored, loaded (B) | instructions | H100, H200 (ns) |"
    )
    print("|" + "---|" * 8)
    found = []
    for case in cases(given.only):
        for x in row(case):
            print(
                f"| {x.function} | {x.robot} | {x.dtype} | {x.architecture} | {x.registers} | {x.stored:,}, {x.loaded:,} "
                f"| {x.instructions:,} | {x.h100}, {x.h200} |",
                flush=True,
            )
            found.append(x)
    if given.keep:
        made_from.keep(RESULT, {"kernels": [asdict(x) for x in found]})


if __name__ == "__main__":
    main()
