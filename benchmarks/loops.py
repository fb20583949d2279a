"""python -m benchmarks.loops [N ...]: rows of four-bar windows, whose motion is known, beside Pinocchio and MuJoCo in one
run; results/loops.json."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxmbs as mbs
from benchmarks import peers

RESULTS = Path(__file__).parent / "results" / "loops.json"
SIZES = (5, 20, 40, 200)
STEPS, STEP, ROWS, ANGLE, RATE = 100, 1e-3, 1024, 1.1, -1.0


def fastest(run: Callable[[], Any], rounds: int = 5) -> float:
    """Seconds of the fastest of some calls, after one more."""
    run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def measured(n: int) -> dict[str, Any]:
    """One row of the table: seconds until the first result, microseconds, errors of the accelerations."""
    start = time.perf_counter()
    model = mbs.library.four_bar_windows(n).build()
    built = time.perf_counter() - start
    sign = np.array([1.0 if name.startswith("foot") else -1.0 for name in model.joint_names])
    q, v = ANGLE * sign, RATE * sign
    exact = -9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n) * np.cos(ANGLE) * sign

    @jax.jit
    def motion(q: Any, v: Any) -> Any:
        return mbs.simulate(model, q, v, STEPS * STEP, STEP, save_every=None).q[-1]

    start = time.perf_counter()
    jax.block_until_ready(motion(q, v))
    row: dict[str, Any] = {"windows": n, "build_s": built, "first_result_s": time.perf_counter() - start}
    row["step_us"] = fastest(lambda: jax.block_until_ready(motion(q, v))) / STEPS * 1e6

    batch = mbs.jit(motion, in_axes=(0, 0))
    qs, vs = np.tile(q, (ROWS, 1)), np.tile(v, (ROWS, 1)) * np.linspace(0.5, 1.0, ROWS)[:, None]
    row["step_in_batch_us"] = fastest(lambda: jax.block_until_ready(batch(qs, vs)), 2) / STEPS / ROWS * 1e6

    accelerations = jax.jit(lambda q, v: mbs.constrained_dynamics(model, q, v)[0])
    row["jaxmbs"] = {
        "us": fastest(lambda: jax.block_until_ready(accelerations(q, v))) * 1e6,
        "error": float(np.abs(accelerations(q, v) - exact).max()),
    }
    for peer in (peers.Pinocchio, peers.MuJoCo):
        try:
            run, form = peer(model, 1).task("constrained dynamics", q[None], v[None], np.zeros((1, model.nv)))
            row[peer.name] = {"us": fastest(run) * 1e6}
            if form is not None:
                row[peer.name]["error"] = float(np.abs(form(run())[0] - exact).max())
            else:
                row[peer.name]["loops"] = "soft, so that no acceleration compares"
        except peers.Absent as reason:
            row[peer.name] = {"absent": str(reason)}
    return row


def main() -> None:
    """Measure, print and keep."""
    jax.config.update("jax_enable_x64", True)
    sizes = [int(x) for x in sys.argv[1:]] or SIZES
    versions = {x: peers.version_of(x) for x in ("jaxmbs", "jax", "pin", "mujoco")}
    busy = os.getloadavg()[0]
    found = {"machine": platform.processor(), "cores": os.cpu_count(), "load": busy, "versions": versions, "rows": []}
    for n in sizes:
        found["rows"].append(measured(n))
        print(json.dumps(found["rows"][-1]), flush=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
