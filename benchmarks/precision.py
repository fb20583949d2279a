"""python -m benchmarks.precision: errors of float32 against float64, for each function.

Errors are relative to the largest number of the result at a state; shown are the median and the worst of 1000 random states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from benchmarks import suite

STATES = 1000
Function = Callable[[Any, Any, Any], Any]


def functions(model: mbs.Model) -> dict[str, Function]:
    def forward(q: Any, v: Any, tau: Any) -> Any:
        return mbs.forward_dynamics(model, q, v, tau)

    out: dict[str, Function] = {
        "body poses": lambda q, v, tau: mbs.body_poses(model, q).position,
        "mass matrix": lambda q, v, tau: mbs.mass_matrix(model, q),
        "inverse dynamics": lambda q, v, tau: mbs.inverse_dynamics(model, q, v, tau),
        "forward dynamics": forward,
        "energy": lambda q, v, tau: jnp.stack(mbs.energy(model, q, v)),
    }
    if model.nv <= 30:
        out["vector-Jacobian product"] = lambda q, v, tau: jax.vjp(forward, q, v, tau)[1](tau)[0]
        out["motion of 0.1 s at 1 ms"] = lambda q, v, tau: mbs.simulate(model, q, v, 0.1, 1e-3, save_every=None).q[-1]
    return out


def errors(model: mbs.Model, fn: Function) -> np.ndarray:
    """The relative error at every state."""
    case = suite.Case(suite.FORWARD, model.name, "float32", STATES)
    arrays = suite.inputs(model, case)  # numbers that float32 holds exactly
    coarse, fine = (
        np.asarray(mbs.jit(fn, in_axes=0)(*(jnp.asarray(x, dtype) for x in arrays)), float).reshape(STATES, -1)
        for dtype in ("float32", "float64")
    )
    return np.abs(coarse - fine).max(axis=1) / np.abs(fine).max(axis=1)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    mbs.use_all_cores()
    print("| function | robot | median | worst |", "|---|---|---|---|", sep="\n")
    for robot in ("arm7", "humanoid30", "chain100"):
        model = suite.robot(robot)
        for name, fn in functions(model).items():
            found = errors(model, fn)
            print(f"| {name} | {robot} | {np.median(found):.0e} | {found.max():.0e} |", flush=True)


if __name__ == "__main__":
    main()
