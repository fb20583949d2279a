"""python -m benchmarks.on_gpu: the first measurements on a GPU. First the bits of its results are compared with those of
the same kernels run on the CPU instruction by instruction; then come blocks of 32, 64 and 128 threads, with several calls
in flight; kernels that spill with fewer threads at a time on each multiprocessor, so that the caches hold what they spill;
and a million samples of two studies. results/on-DEVICE.json keeps them. On a CPU, the same program runs machine code, with
few rows."""

from __future__ import annotations

import functools
import re
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import numpy as np

import jaxmbs as mbs
from benchmarks import made_from, suite
from benchmarks.ptx import PROCESSORS
from jaxmbs.batching import over_rows
from jaxmbs.batching.gpu import PTX, calling
from jaxmbs.batching.mapped_program import chosen_target
from tests.batching.gpu.emulated import EMULATED

COMPARED = 300  # rows: three blocks, the last one not full
IN_FLIGHT = 10  # calls between two waits, so that the device does not wait for the processor
MINUTE = 60.0  # seconds after which a function is not measured any further
CASES = [
    suite.Case(f, r, d, COMPARED)
    for d in ("float32", "float64")
    for f, r in (
        (suite.FORWARD, "arm7"), (suite.VJP, "arm7"), (suite.ROLLOUT, "arm7"), (suite.CONSTRAINED, "windows1"),
        (suite.CONSTRAINED, "windows6"), (suite.FORWARD, "humanoid30"), (suite.VJP, "humanoid30"),
    )
]  # fmt: skip
SPILLING = [suite.Case(f, "humanoid30", "float64", 262_144) for f in (suite.FORWARD, suite.VJP)]
STUDIES = ((suite.STUDY, "stage_separation"), (suite.EVENTS, "solar_array_deployment"))


@dataclass(frozen=True)
class Compared:
    """The results of a function on the device and in emulation. difference: the largest, relative to the largest number."""

    function: str
    robot: str
    dtype: str
    same_bits: bool
    difference: float


def compared(case: suite.Case) -> Compared:
    model = suite.robot(case.robot)
    ours = suite.own(model, case, suite.inputs(model, case))
    here = jax.tree.leaves(jax.jit(jax.vmap(mbs.rows(ours.fn), ours.in_axes))(*ours.args))
    with jax.default_device(jax.devices("cpu")[0]):
        args = jax.device_put(ours.args, jax.devices("cpu")[0])
        there = jax.tree.leaves(jax.jit(over_rows(ours.fn, ours.in_axes, EMULATED))(*args))
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(here, there, strict=True)]
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
    apart = max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300)) for a, b in pairs)
    return Compared(case.function, case.robot, case.dtype, same, apart)


def in_blocks(case: suite.Case) -> dict[str, Any]:
    """Nanoseconds per evaluation with blocks of 32, 64 and 128 threads, the device busy all the time."""
    return _row(case, {str(block): {"block": block} for block in (32, 64, 128)})


def resident(case: suite.Case) -> dict[str, Any]:
    """The same with 32, 64 and 128 threads at a time on a multiprocessor; registers allow 256."""
    return _row(case, {f"{n} at a time": {"block": n, "most_blocks": PROCESSORS} for n in (32, 64, 128)})


def _row(case: suite.Case, options: dict[str, dict[str, int]]) -> dict[str, Any]:
    model = suite.robot(case.robot)
    ours = suite.own(model, case, suite.inputs(model, case))
    found: dict[str, Any] = {"function": case.function, "robot": case.robot, "dtype": case.dtype, "rows": case.batch}
    for name, option in options.items():
        target = replace(PTX, call=functools.partial(calling.call, **option))
        run = jax.jit(over_rows(ours.fn, ours.in_axes, target))
        seconds = median(lambda run=run: [run(*ours.args) for _ in range(IN_FLIGHT)][-1], 5) / IN_FLIGHT
        found[name] = seconds / case.batch / suite.evaluations_of(case) * 1e9
    return found


def median(run: Any, repeats: int = 9) -> float:
    """Seconds of a call, after one that is not timed."""
    jax.block_until_ready(run())
    times: list[float] = []
    while len(times) < repeats and sum(times) < MINUTE:
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def samples(function: str, name: str, number: int) -> dict[str, Any]:
    """Seconds of a study's samples, from draws to statistics' input, without its files."""
    start = time.perf_counter()
    run = suite.study(suite.Case(function, name, "float64", number))
    jax.block_until_ready(run())
    first = time.perf_counter() - start
    return {"study": name, "samples": number, "first_call": first, "seconds": median(run, 3)}


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    mbs.use_all_cores()
    machine, gpu = suite.machine(), jax.default_backend() != "cpu"
    on, why = chosen_target()
    print(f"{machine['device']}: {on.name if on else why}")
    words = re.sub(r"[^a-z0-9]+", "-", machine["device"].lower()).strip("-")
    path, found = suite.RESULTS / f"on-{words}.json", {"machine": machine, "compared": [], "blocks": [], "studies": []}

    def keep(part: str, row: dict[str, Any]) -> None:
        print(part, row, flush=True)
        found[part].append(row)
        if gpu:
            made_from.keep(path, found)

    for case in CASES:
        keep("compared", asdict(compared(case)))
    if gpu:
        for case in CASES:
            for rows in (256, 65_536, 1_000_000) if case.robot == "arm7" else (65_536,):
                keep("blocks", in_blocks(replace(case, batch=rows)))
        for case in SPILLING:
            keep("blocks", resident(case))
    for function, name in STUDIES:
        keep("studies", samples(function, name, 1_000_000 if gpu else 640))


if __name__ == "__main__":
    main()
