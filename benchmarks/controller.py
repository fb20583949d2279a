"""python -m benchmarks.controller [--keep]: what a controller that samples costs, beside the motion without it.

A satellite with three reaction wheels moves for a second, in steps of 10, 5 and 1 ms of "rk4". Its controller reads an
attitude and a rate a hundred times a second, and commands the torques of the wheels. The same satellite without sensors and
controller moves beside it, in alternation, each batch in one call of `mbs.jit`. One motion is compared with a loop over
samples, in which a law in NumPy sets the torques of the satellite without controller.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import made_from, within_jax

RESULTS = Path(__file__).parent / "results" / "controller.json"
T_END, PERIOD = 1.0, 0.01  # [s]
STEPS, BATCHES = (0.01, 0.005, 0.001), (256, 1024)
STIFFNESS, DAMPING = 2.0, 8.0  # [N m/rad, N m s/rad]
WHEELS = ("wheel_x", "wheel_y", "wheel_z")


def satellite(sampled: bool) -> Any:
    """The model with or without its controller."""
    import jaxmbs as mbs

    mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    mech.add_body("bus", mass=50.0, com=(0.0, 0.0, 0.1), inertia=(4.0, 5.0, 3.0))
    mech.add_joint("flight", mbs.Free(), "world", "bus")
    for name, axis in zip(WHEELS, np.eye(3), strict=True):
        mech.add_force(name, mbs.ReactionWheel("bus", axis=axis, inertia=0.01, limit=0.5, friction=1e-5))
    if sampled:
        mech.add_sensor("tracker", mbs.StarTracker("bus"))
        mech.add_sensor("gyroscope", mbs.Imu("bus"))
        gains = {"stiffness": STIFFNESS, "damping": DAMPING, "axes": tuple(-np.eye(3).ravel())}
        writes = [f"{name}.torque" for name in WHEELS]
        law = mbs.Controller(
            mbs.laws.quaternion_feedback, PERIOD, reads=("tracker", "gyroscope"), writes=writes, parameters=gains
        )
        mech.add_controller("attitude", law)
    return mech.build()


def starts(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Attitudes up to half a radian from the target, and rates."""
    rng = np.random.default_rng(0)
    q = np.zeros((rows, 7))
    q[:, 3], q[:, 4:] = 1.0, 0.15 * rng.uniform(-1.0, 1.0, (rows, 3))
    return q / np.linalg.norm(q, axis=1, keepdims=True), 0.05 * rng.normal(size=(rows, 6))


def sample_by_sample(q: np.ndarray, v: np.ndarray, dt: float) -> np.ndarray:
    """(q, v) at the end of one motion, from runs of a period each, between which NumPy computes the torques."""
    import jaxmbs as mbs

    model, states = satellite(False), dict.fromkeys((f"{name}.momentum" for name in WHEELS), 0.0)
    for _ in range(round(T_END / PERIOD)):
        torque = STIFFNESS * 2.0 * np.sign(q[3]) * q[4:] / np.linalg.norm(q[3:]) + DAMPING * v[:3]
        held = states | {f"{name}.torque": x for name, x in zip(WHEELS, torque, strict=True)}
        run = mbs.simulate(mbs.set(model, held), q, v, PERIOD, dt, save_every=None)
        q, v = np.asarray(run.q[-1]), np.asarray(run.v[-1])
        states = {name: float(run.states[name][-1]) for name in states}
    return np.concatenate([q, v])


def measured(rows: int, dt: float, rounds: int) -> dict[str, Any]:
    """One row of the table: nanoseconds per step of an instance and seconds of the first call of both, their ratio, and the
    largest error of one motion with the controller."""
    import jax
    import jax.numpy as jnp

    import jaxmbs as mbs

    q, v = starts(rows)
    functions, first, results = [], [], []
    for sampled in (False, True):
        model = satellite(sampled)

        def motion(q: Any, v: Any, model: Any = model) -> Any:
            run = mbs.simulate(model, q, v, T_END, dt, save_every=None)
            return jnp.concatenate([run.q[-1], run.v[-1]])

        functions.append(mbs.jit(motion, in_axes=0))
        start = time.perf_counter()
        results.append(np.asarray(jax.block_until_ready(functions[-1](q, v))))
        first.append(time.perf_counter() - start)
    times: tuple[list[float], ...] = ([], [])
    for _ in range(rounds):
        for taken, function in zip(times, functions, strict=True):
            taken.append(within_jax.timed(function, (q, v)))
    without, sampled = (min(taken) / rows / (T_END / dt) * 1e9 for taken in times)
    return {
        "rows": rows, "dt_ms": 1e3 * dt, "without_ns": without, "sampled_ns": sampled, "ratio": sampled / without,
        "first_without_s": first[0], "first_sampled_s": first[1], "load": os.getloadavg()[0],
        "error": float(np.abs(results[1][0] - sample_by_sample(q[0], v[0], dt)).max()),
    }  # fmt: skip


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Timed rounds of both; the fastest counts.")] = 15,
    keep: Annotated[bool, typer.Option(help="Keep the figures.")] = False,
) -> None:
    """Measure all batches and steps."""
    from jaxmbs.cli.common import compute

    os.environ["JAXMBS_CACHE"] = "off"  # first calls compile
    compute("float64")
    found = []
    for rows in BATCHES:
        for dt in STEPS:
            found.append(measured(rows, dt, rounds))
            said = (
                "{rows:5} rows, {dt_ms:2.0f} ms: {sampled_ns:5.0f} ns a step, {without_ns:5.0f} without: {ratio:.2f}; first "
                "call {first_sampled_s:.1f} s, {first_without_s:.1f} s; error {error:.0e}"
            )
            print(said.format(**found[-1]), flush=True)
    if keep:
        made_from.keep(RESULTS, {"motions": found})


if __name__ == "__main__":
    typer.run(main)
