"""python -m benchmarks.loops [N ...]: rows of four-bar windows, whose motion is known, compared with Pinocchio, MuJoCo and
Exudyn in one run; results/loops.json."""

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
from scipy.integrate import solve_ivp

import jaxmbs as mbs
from benchmarks import made_from, peers
from benchmarks.windows import Exudyn

RESULTS = Path(__file__).parent / "results" / "loops.json"
SIZES = (5, 20, 40, 200)
STEPS, STEP, ROWS, ANGLE, RATE = 100, 1e-3, 1024, 1.1, -1.0
MOTION, ERROR = 0.5, 1e-6  # duration [s]; error of the angle at its end [rad]
Motion = Callable[[], float]  # a run that returns the final angle of the first post


def fastest(run: Callable[[], Any], rounds: int = 5, least: float = 0.2) -> float:
    """Seconds of the fastest of `rounds` calls or more, which take at least `least` seconds together, after one that is not
    timed. The first of many short calls are slow: of 50 us, five calls measure 120 to 150."""
    run()
    times: list[float] = []
    while len(times) < rounds or sum(times) < least:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def measured(n: int) -> dict[str, Any]:
    """One row of the table: seconds until the first result, microseconds per step and per call, errors of the
    accelerations, and motions."""
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
    row["motion"] = motions(n, model, q, v)
    return row


def motions(n: int, model: mbs.Model, q: Any, v: Any) -> dict[str, Any]:
    """For each solver the steps, milliseconds and error of a motion with an error below ERROR. Processor time is given in
    addition to wall time, because it says more on a busy machine."""
    inertia, weight = (n + 1) / 3 + n, ((n + 1) / 2 + n) * 9.81
    exact = solve_ivp(
        lambda t, y: [y[1], -weight * np.cos(y[0]) / inertia], (0, MOTION), [ANGLE, RATE], "DOP853", rtol=1e-13, atol=1e-13
    ).y[0, -1]  # fmt: skip

    def own(steps: int) -> Motion:
        run = jax.jit(lambda q, v: mbs.simulate(model, q, v, MOTION, MOTION / steps, save_every=None).q[-1, 0])
        return lambda: float(run(q, v))

    out: dict[str, Any] = {"t_end": MOTION, "load": os.getloadavg()[0], "jaxmbs": reached(own, exact, 8)}
    try:
        peer = Exudyn(n, ANGLE, RATE)
        for index in (3, 2):
            out[f"Exudyn, index {index}"] = reached(
                lambda steps, index=index: peer.motion(MOTION, steps, index), exact, 400
            )
    except peers.Absent as reason:
        out["Exudyn"] = {"absent": str(reason)}
    return out


def reached(runs: Callable[[int], Motion], exact: float, steps: int) -> dict[str, float]:
    """The motion with the number of steps doubled until the error is below ERROR, or the steps are more than 20,000."""
    while True:
        run = runs(steps)
        error = abs(run() - exact)
        if error < ERROR or steps > 20_000:
            break
        steps *= 2
    start = time.process_time()
    for _ in range(3):
        run()
    busy = (time.process_time() - start) / 3
    return {"steps": steps, "ms": fastest(run, 3) * 1e3, "processor_ms": busy * 1e3, "error": error}


def main() -> None:
    """Measure, print and save."""
    jax.config.update("jax_enable_x64", True)
    sizes = [int(x) for x in sys.argv[1:]] or SIZES
    versions = {x: peers.version_of(x) for x in ("jaxmbs", "jax", "pin", "mujoco", "exudyn")}
    busy = os.getloadavg()[0]
    found = {"machine": platform.processor(), "cores": os.cpu_count(), "load": busy, "versions": versions, "rows": []}
    for n in sizes:
        found["rows"].append(measured(n))
        print(json.dumps(found["rows"][-1]), flush=True)
    made_from.keep(RESULTS, found)


if __name__ == "__main__":
    main()
