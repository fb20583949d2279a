"""python -m benchmarks.air [--keep]: what air costs, beside the motion of a free body.

A free body moves for a second in 100 steps of "rk4", without air and with aerodynamics from tables over Mach number and
angle of attack, 4,096 instances in one call of `mbs.jit`, in alternation. The forces are compared with those by an
interpolation of SciPy.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.interpolate
import typer

from benchmarks import made_from

RESULTS = Path(__file__).parent / "results" / "air.json"
ROUNDS, INSTANCES, STEPS = 9, 4096, 100
MACH, ALPHA = np.linspace(0.0, 3.0, 6), np.linspace(-0.4, 0.4, 8)


def body(atmosphere: Any = None, coefficients: tuple[str, ...] = ()) -> tuple[Any, dict[str, np.ndarray]]:
    """(the model of a free body, its tables)."""
    import jaxmbs as mbs

    mech, rng = mbs.Mechanism("body"), np.random.default_rng(0)
    mech.add_body("body", 5.0, (0.1, 0, 0), (0.5, 0.6, 0.7))
    mech.add_joint("flight", mbs.Free(), "world", "body")
    tables = {name: rng.normal(size=MACH.size * ALPHA.size) for name in coefficients}
    if atmosphere is not None:
        mech.set_environment(atmosphere=atmosphere)
        table = mbs.Coefficients(mach=tuple(MACH), alpha=tuple(ALPHA), **{k: tuple(x) for k, x in tables.items()})
        mech.add_force("air", mbs.Aerodynamics("body", area=0.01, length=0.3, coefficients=table))
    return mech.build(), tables


def check(model: Any, tables: dict[str, np.ndarray], q: np.ndarray, v: np.ndarray) -> float:
    """The largest relative error of the coefficients axial and normal, found from the forces on one instance."""
    import jaxmbs as mbs

    found = mbs.flight_condition(model, q, v, "body")
    force = np.asarray(mbs.element_forces(model, q, v)["air"].wrenches[0, 3:])
    at = [float(found.mach), float(found.angle_of_attack)]
    signs, worst = {"axial": (0, -1.0), "normal": (2, -1.0)}, 0.0
    for name, (axis, sign) in signs.items():
        if name in tables:
            grid = tables[name].reshape(MACH.size, ALPHA.size)
            wanted = scipy.interpolate.RegularGridInterpolator((MACH, ALPHA), grid)(at)[0]
            own = sign * force[axis] / float(found.dynamic_pressure * 0.01)
            worst = max(worst, abs(own / wanted - 1))
    return worst


def main(keep: Annotated[bool, typer.Option(help="Keep the figures.")] = False) -> None:
    """Measure all kinds of air, in alternation with no air."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jaxmbs as mbs

    thin, standard = mbs.ExponentialAtmosphere(), mbs.StandardAtmosphere()
    cases = {
        "no air": body(),
        "exponential, 1 table": body(thin, ("normal",)),
        "exponential, 3 tables": body(thin, ("axial", "normal", "pitch")),
        "standard, 1 table": body(standard, ("normal",)),
        "standard, 3 tables": body(standard, ("axial", "normal", "pitch")),
    }
    rng = np.random.default_rng(1)
    q, v = np.zeros((INSTANCES, 7)), 0.1 * rng.normal(size=(INSTANCES, 6))
    q[:, 2], q[:, 3], v[:, 3] = 3000.0, 1.0, 200.0
    runs, first, times = {}, {}, {name: [] for name in cases}
    for name, (model, _) in cases.items():
        runs[name] = mbs.jit(
            lambda q, v, model=model: mbs.simulate(model, q, v, 1.0, dt=1.0 / STEPS, save_every=None).q[-1], in_axes=0
        )
        start = time.perf_counter()
        runs[name](q, v).block_until_ready()
        first[name] = time.perf_counter() - start
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.perf_counter()
            run(q, v).block_until_ready()
            times[name].append(time.perf_counter() - start)
    plain = np.median(times["no air"])
    found = [
        {
            "air": name, "ns_per_step": np.median(times[name]) / INSTANCES / STEPS * 1e9,
            "times_without": np.median(times[name]) / plain, "first_call_s": first[name],
            "error": check(model, tables, q[0], v[0]) if tables else None,
        }
        for name, (model, tables) in cases.items()
    ]  # fmt: skip
    print(json.dumps(found, indent=1))
    if keep:
        made_from.keep(RESULTS, {"instances": INSTANCES, "steps": STEPS, "rows": found})


if __name__ == "__main__":
    typer.run(main)
