"""python -m benchmarks.rare_failure [-n 1e7] [--keep]: brute force and importance sampling against a closed form.

Two springs push a payload along a rail, each with its own initial force; a sample fails if the payload leaves too slowly.
The payload's energy is the work of the springs, so that its speed is known, and, with normally distributed forces, the
probability of a failure as well.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks import made_from, rail

RESULTS = Path(__file__).parent / "results" / "rare_failure.json"
STIFFNESS, PRELOAD, STROKE, MASS, SPREAD, SLOWEST = 300.0, 80.0, 0.1, 4.0, 0.03, 2.4034
SPRING = """
[[mechanism.forces]]
name = "spring_{0}"
type = "pusher"
body_a = "world"
body_b = "payload"
point_a = [0.0, 0.0, 0.0]
point_b = [0.0, 0.0, 0.0]
direction = [1.0, 0.0, 0.0]
stiffness = {STIFFNESS}
preload = {PRELOAD}
stroke = {STROKE}
[dispersions."spring_{0}.preload"]
distribution = "normal"
apply = "multiply"
std = {SPREAD}
"""


def written() -> str:
    """The text of the study file."""
    found = rail.study("two springs", f"speed > {SLOWEST} m/s", t_end=0.12, dt=0.02, mass=MASS)
    return found + "".join(SPRING.format(k, **globals()) for k in (1, 2))


def exact() -> float:
    """Probability that the two forces together give less energy than the slowest acceptable payload has."""
    from scipy.stats import norm

    least = (MASS * SLOWEST**2 / 2 + STIFFNESS * STROKE**2) / STROKE
    return float(norm.cdf((least - 2 * PRELOAD) / (np.sqrt(2) * SPREAD * PRELOAD)))


def main(
    n: Annotated[float, typer.Option("-n", help="Samples of the brute force.")] = 1e7,
    keep: Annotated[bool, typer.Option(help="Keep the figures.")] = False,
) -> None:
    """Compute both estimates, with their intervals and times."""
    from jaxmbs.cli.common import compute
    from jaxmbs.study import rare, read, run
    from jaxmbs.study.statistics.summary import summarize

    compute("float64")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "two_springs.toml"
        path.write_text(written(), encoding="utf-8")
        study = read(path)
        begin, used = time.perf_counter(), time.process_time()
        store = run(study, int(n), Path(place) / "run")
        v = summarize(study, store).verdicts[0]
        found = {
            "exact": exact(), "samples": v.of, "brute_force": 1 - v.probability, "low": 1 - v.high, "high": 1 - v.low,
            "time_s": time.perf_counter() - begin, "cpu_s": time.process_time() - used,
        }  # fmt: skip
        begin, used = time.perf_counter(), time.process_time()
        told = rare(study)
        sampled = {e["method"]: e for e in told["estimates"]}["importance sampling"]
        found["rare"] = {
            "probability": sampled["probability"], "low": sampled["low"], "high": sampled["high"],
            "simulations": told["simulations"], "time_s": time.perf_counter() - begin,
            "cpu_s": time.process_time() - used,
        }  # fmt: skip
    print(json.dumps(found, indent=1))
    if keep:
        made_from.keep(RESULTS, found)


if __name__ == "__main__":
    typer.run(main)
