"""python -m benchmarks.beside_mjx: forward dynamics of the arm beside MJX, in turns, both in float32, as MJX is used.

It is a process of its own, as JAX computes in float32 or float64 throughout a process. results/beside-mjx-DEVICE.json
keeps what was measured on a GPU.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from benchmarks import made_from, peers, suite

ROWS = (1024, 8192, 65_536)
REPEATS = 9


def measured(rows: int) -> dict[str, Any]:
    """Nanoseconds per evaluation of both, seconds of their first calls, and their largest relative difference."""
    model, case = suite.robot("arm7"), suite.Case(suite.FORWARD, "arm7", "float32", rows)
    arrays = suite.inputs(model, case)
    ours, peer = suite.own(model, case, arrays), peers.MJX(model, 1)
    given = [jnp.asarray(x, jnp.float32) for x in arrays]
    own, theirs = mbs.jit(ours.fn, in_axes=ours.in_axes), jax.jit(jax.vmap(peer.one))
    calls: dict[str, Callable[[], Any]] = {"jaxmbs": lambda: own(*ours.args), "MJX": lambda: theirs(*given)}
    first = {name: _timed(call) for name, call in calls.items()}
    a, b = (np.asarray(call()) for call in calls.values())
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, call in calls.items():
            jax.block_until_ready(call())
            times[name].append(_timed(call))
    per_evaluation = {name: float(np.median(x)) / rows * 1e9 for name, x in times.items()}
    return {
        "rows": rows,
        **per_evaluation,
        "first_call": first,
        "difference": float(np.abs(a - b).max() / np.abs(a).max()),
    }


def _timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def main() -> None:
    mbs.use_all_cores()
    machine, found = suite.machine(), []
    for rows in ROWS if jax.default_backend() != "cpu" else ROWS[:1]:
        found.append(measured(rows))
        print(found[-1], flush=True)
    if jax.default_backend() != "cpu":
        words = re.sub(r"[^a-z0-9]+", "-", machine["device"].lower()).strip("-")
        made_from.keep(suite.RESULTS / f"beside-mjx-{words}.json", {"machine": machine, "rows": found})


if __name__ == "__main__":
    main()
