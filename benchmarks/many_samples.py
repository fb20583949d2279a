"""python -m benchmarks.many_samples [-n 1e8] [--keep]: memory that the statistics of so many samples of one output need.

The run is artificial: normally distributed numbers in place of simulations, in the store that a run would have. A separate
process reads it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import made_from, rail
from jaxmbs.study.problem.study import read
from jaxmbs.study.reports.plots import histogram
from jaxmbs.study.results.arrays import lay_out
from jaxmbs.study.results.store import Store
from jaxmbs.study.samples.batch import BLOCK_ROWS
from jaxmbs.study.statistics.summary import converging, document, extremes, summarize, worst

RESULTS = Path(__file__).parent / "results" / "many_samples.json"
LIMIT = 5.5  # standard deviations: one in fifty million lies beyond
STUDY = f"""{rail.study("many samples", f"speed < {LIMIT} m/s in 99.9999 %", t_end=0.01, dt=0.01)}
[dispersions."initial.rail.v"]
distribution = "normal"
std = 1.0
"""


def made_up(folder: Path, n: int) -> Store:
    """The store of n samples, with only those arrays written that their statistics read."""
    study, store = opened(folder, n)
    lay_out(study, store, str(folder / "results.zarr"))
    arrays, rows = store.arrays(), 64 * store.chunk_rows
    for first in range(0, n, rows):
        size = min(rows, n - first)
        arrays["speed"][first : first + size] = np.random.default_rng(first).normal(size=size)
        arrays["energy_error"][first : first + size] = 0.0
        arrays["status"][first : first + size] = 0
    return store


def opened(folder: Path, n: int) -> tuple[Any, Store]:
    """The study and its store, which may still be empty."""
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    record = {"n": n, "chunk_rows": 256 * BLOCK_ROWS, "block_rows": BLOCK_ROWS, "precision": "float64"}
    return read(folder / "study.toml").of_size(n), Store(folder, record)


def summarised(folder: Path, n: int) -> dict[str, Any]:
    """Everything that a report says about the outputs, with the peak memory before and after [MB], and the time [s]."""
    study, store = opened(folder, n)
    before, begin = peak(), time.perf_counter()
    summary = summarize(study, store)
    told = document(study, store, summary)
    worst(study, summary), converging(study, summary)
    picked = extremes(study, summary, study.criteria[0])
    histogram(summary.outputs["speed"], "speed", study.shown["speed"], study.criteria)
    return {
        "samples": n, "peak_before_MB": before, "peak_MB": peak(), "time_s": time.perf_counter() - begin,
        "cpu_s": time.process_time(), "criterion": told["criteria"][0], "quantiles": told["outputs"]["speed"]["quantiles"],
        "worst_median_best": picked,
    }  # fmt: skip


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(
    n: Annotated[float, typer.Option("-n")] = 1e8,
    folder: Annotated[Path | None, typer.Option(help="Where a made-up run is already.")] = None,
    keep: Annotated[bool, typer.Option(help="Keep the figures.")] = False,
) -> None:
    """Make an artificial run, and summarise it in another process."""
    if folder is not None:
        print(json.dumps(summarised(folder, int(n))))
        return
    with tempfile.TemporaryDirectory() as place:
        made_up(Path(place), int(n))
        command = [sys.executable, "-m", "benchmarks.many_samples", "-n", str(n), "--folder", place]
        text = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout
    print(text)
    if keep:
        made_from.keep(RESULTS, json.loads(text))


if __name__ == "__main__":
    typer.run(main)
