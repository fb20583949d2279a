"""python -m benchmarks.workers [-n 1e5] [--keep]: samples per second of a study on one, two and four worker processes.

The study is the stage separation of the examples, on Dask workers on this machine, each of which may use all cores. Counting
begins when all workers have compiled. The result is the best of several rounds, in which the numbers of workers alternate;
the load of the machine is given with it.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from benchmarks import made_from

RESULTS = Path(__file__).parent / "results" / "workers.json"
EXAMPLE = Path(__file__).parents[1] / "examples" / "stage_separation.toml"
WORKERS = (1, 2, 4)
_BEFORE = 4  # chunks of each worker that are not counted: programs are compiled, memory pages are touched


def measured(n: int, workers: int) -> dict[str, Any]:
    """Samples per second of wall time, processor time of all processes per sample [us], and the load."""
    from jaxmbs.study import read, run

    marks: list[tuple[float, float, int]] = []

    def told(stage: str, done: int, n: int) -> None:
        if stage == "run":
            marks.append((time.perf_counter(), used(), done))

    with tempfile.TemporaryDirectory() as place:
        run(read(EXAMPLE), n, Path(place) / "run", progress=told, cluster=f"local:{workers}")
    (begin, before, there), (end, after, done) = marks[_BEFORE * workers], marks[-1]
    samples = done - there
    return {
        "workers": workers, "samples": samples, "per_second": samples / (end - begin),
        "cpu_us": 1e6 * (after - before) / samples, "load": os.getloadavg()[0],
    }  # fmt: skip


def used() -> float:
    """Processor time of this process and its children [s]."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True)) if process.is_running()]
    return sum(t.user + t.system for t in times)


def main(
    n: Annotated[float, typer.Option("-n", help="Samples of each run.")] = 1e5,
    rounds: Annotated[int, typer.Option(min=1)] = 2,
    keep: Annotated[bool, typer.Option(help="Keep the figures.")] = False,
) -> None:
    """Measure all numbers of workers, in alternation."""
    from jaxmbs.cli.common import compute

    compute("float64")
    runs = [measured(int(n), workers) for _ in range(rounds) for workers in WORKERS]
    best = [max((x for x in runs if x["workers"] == k), key=lambda x: x["per_second"]) for k in WORKERS]
    found = {"cores": os.cpu_count(), "runs": best}
    print(json.dumps(found, indent=1))
    if keep:
        made_from.keep(RESULTS, found)


if __name__ == "__main__":
    typer.run(main)
