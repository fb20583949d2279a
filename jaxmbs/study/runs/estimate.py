"""Estimates the disk space, memory and time that a study needs, before anything is allocated."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.folder.storage import is_address

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study

MOST_SAMPLES = 2**32  # an index has 32 bits
MOST_STEPS = 100_000_000  # as in `jaxmbs.simulate`, which is not imported for this number alone
STEP_BYTES = 40  # memory of one step in the table of a run's steps
LEAST_TIME = 2e-9  # [s] per step and degree of freedom on one core: a tenth of the time measured
MOST_TIME = 365 * 86400.0  # [s]
OTHERS = 3  # numbers of a sample in addition to outputs, draws and events, of 8 bytes at most


@dataclass(frozen=True)
class Estimate:
    """What a study needs. steps: of each sample; disk, memory: [byte]; time: a lower bound on these cores [s]."""

    samples: int
    steps: float
    disk: float
    memory: float
    time: float


def estimate(study: Study, n: int, block_rows: int = 0, precision: str = "float64") -> Estimate:
    """What n samples of a study need; the disk space is that before compression, without what is recorded of events.
    block_rows: samples of a block, 0 for the usual number; precision: "float64" or "float32"."""
    from jaxmbs.study.samples.batch import BLOCK_ROWS, most_blocks

    size = 4 if precision == "float32" else 8
    draws = sum(d.k for d in study.dispersions.items) if study.dispersions else 0
    sample = size * (len(study.outputs) + draws + OTHERS)
    steps = study.simulation.t_end / study.simulation.dt
    cores = os.cpu_count() or 1
    rows = block_rows or BLOCK_ROWS
    together = min(n, cores * most_blocks(rows) * rows)
    memory = 3 * sample * together + STEP_BYTES * steps
    return Estimate(n, steps, float(sample) * n, memory, LEAST_TIME * steps * n * max(study.model.nv, 1) / cores)


def check(study: Study, n: int, block_rows: int = 0, precision: str = "float64", folder: Path | None = None) -> None:
    """Raises InputError, with figures, if a study cannot be computed on this machine."""
    e = estimate(study, n, block_rows, precision)
    problems = list(_steps(e))
    if n > MOST_SAMPLES:
        problems.append(Problem("n", f"{n:,} samples; a study has {MOST_SAMPLES:,} at most"))
    free = free_disk(folder or Path())
    if e.disk > free:
        said = f"{n:,} samples need {_bytes(e.disk)} of disk, and {_bytes(free)} are free"
        problems.append(Problem("n", f"{said}; take fewer samples or another folder"))
    available = psutil.virtual_memory().available
    if e.memory > available:
        said = f"{n:,} samples of {_count(e.steps)} steps need {_bytes(e.memory)} of memory"
        problems.append(Problem("n", f"{said}, and {_bytes(available)} are free; take fewer samples or steps"))
    if e.time > MOST_TIME:
        said = f"{n:,} samples of {_count(e.steps)} steps take {_time(e.time)} at the very least on these cores"
        problems.append(Problem("n", f"{said}; take a larger simulation.dt, or fewer samples"))
    if problems:
        raise InputError(problems)


def check_disk(runs: Sequence[tuple[Study, int]], folder: Path) -> None:
    """Raises InputError, with figures, if the results of several runs together do not fit into a folder. runs: for each
    run, its study and the number of samples that are still to be computed."""
    need = sum(estimate(study, n).disk for study, n in runs)
    free = free_disk(folder)
    if need > free:
        count, samples = sum(n > 0 for _, n in runs), sum(n for _, n in runs)
        said = f"{count:,} runs with {samples:,} samples need {_bytes(need)} of disk, and {_bytes(free)} are free"
        raise InputError(Problem("n", f"{said}; take fewer samples, fewer designs or another folder"))


def free_disk(folder: Path) -> float:
    """Free disk space where a folder is or will be [byte]; infinite for a bucket."""
    if is_address(folder):
        return math.inf
    return shutil.disk_usage(next((p for p in (folder, *folder.absolute().parents) if p.exists()), Path("/"))).free


def check_history(study: Study) -> None:
    """Raises InputError, with figures, if a motion has too many steps or takes too long, or if its history does not fit
    into memory."""
    e = estimate(study, 1)
    problems = list(_steps(e))
    row = 8 * (study.model.nq + study.model.nv + 2 * len(study.outputs) + 4)
    need, available = 2 * row * e.steps + STEP_BYTES * e.steps, psutil.virtual_memory().available
    if need > available:
        said = f"{_count(e.steps)} steps need {_bytes(need)} of memory, and {_bytes(available)} are free"
        problems.append(Problem("simulation.dt", f"{said}; take a larger dt, or a shorter t_end"))
    if e.time > MOST_TIME:
        said = f"{_count(e.steps)} steps take {_time(e.time)} at the very least"
        problems.append(Problem("simulation.dt", f"{said}; take a larger dt, or a shorter t_end"))
    if problems:
        raise InputError(problems)


def _steps(e: Estimate):
    if e.steps > MOST_STEPS:
        message = f"t_end / dt makes {_count(e.steps)} steps, and {MOST_STEPS:,} is the most; take a larger dt"
        yield Problem("simulation.dt", message)


def _count(x: float) -> str:
    return f"{x:,.0f}" if x < 1e15 else f"{x:.3g}"


def _bytes(x: float) -> str:
    for unit in ("byte", "kB", "MB", "GB", "TB"):
        if x < 1000 or unit == "TB":
            return f"{x:,.3g} {unit}" if x < 1000 else f"{_count(x)} {unit}"
        x /= 1000
    raise AssertionError


def _time(x: float) -> str:
    for unit, length in (("years", 365 * 86400.0), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if x >= length:
            return f"{x / length:,.1f} {unit}" if x < 1000 * length else f"{_count(x / length)} {unit}"
    return f"{x:,.1f} s"
