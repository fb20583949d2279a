"""Absolute coordinates [Y 2]: python examples/absolute_coordinates.py [IMAGE]

A double pendulum, a crank-slider (9 equations of motion, 8 constraints) and a solar array on a linkage (12 and 10) move.
Along the motion, their accelerations from absolute coordinates in a plane, by the block factorisation along the tree, are
compared with those from generalized coordinates, and the force in one joint, a multiplier, is drawn.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import jaxmbs as mbs
from jaxmbs import library

# mechanism, q, v (loops closed), duration [s], joint whose force is drawn, outlines: points to connect in each body's frame
CASES = {
    "double pendulum": (
        library.chain(2, axes=((0, 1, 0),)), (1.2, 0.8), (0.0, 0.0), 2.0, "hinge_2",
        {"link_1": [(0, 0, 0), (0, 0, -0.5)], "link_2": [(0, 0, 0), (0, 0, -0.5)]},
    ),
    "crank-slider": (
        library.crank_slider(), (0.0, 0.0, 0.0), (45.0, -60.0, 0.0), 0.6, "pin",
        {
            "crank": [(0, 0, 0), (0.1, 0, 0)], "rod": [(0, 0, 0), (0.3, 0, 0)],
            "slider": [(-0.03, -0.02, 0), (0.03, -0.02, 0), (0.03, 0.02, 0), (-0.03, 0.02, 0), (-0.03, -0.02, 0)],
        },
    ),
    "solar array": (
        library.solar_array_linkage(), (0.0,) * 4, (0.0,) * 4, 12.0, "clevis",
        {
            "inner": [(0, 0, 0), (0, 1, 0)], "outer": [(0, 0, 0), (0, -1, 0)],
            "lever": [(0, 0, 0), (-0.1, 0.2, 0)], "rod": [(0, 0, 0), (0.2, 0.2, 0)],
        },
    ),
}  # fmt: skip


def motion(name: str, share: float = 1.0) -> tuple[mbs.Model, mbs.Solution, np.ndarray, float]:
    """(model, solution, force [N] in the joint over time, largest relative difference between the formulations)."""
    mechanism, q, v, t_end, joint, _ = CASES[name]
    model = mechanism.build()
    q, v = jnp.array(q), jnp.array(v)
    solution = mbs.simulate(model, q, v, t_end=share * t_end, dt=2e-3)

    def compared(q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        X, multipliers = mbs.absolute.accelerations(model, q, v, planar=True, solver="ldl")
        turning = _angular(model, mbs.forward_dynamics(model, q, v))
        off = jnp.max(jnp.abs(X[:, 2] - turning)) / (1 + jnp.max(jnp.abs(turning)))
        return jnp.linalg.norm(multipliers[mbs.absolute.rows(model, planar=True)[joint]]), off

    force, off = jax.jit(jax.vmap(compared))(solution.q, solution.v)
    return model, solution, np.asarray(force), float(off.max())


def _angular(model: mbs.Model, a: jax.Array) -> jax.Array:
    """Angular accelerations of the bodies about the common axis of the revolute joints, from joint accelerations."""
    out: dict[int, jax.Array] = {-1: jnp.zeros(())}
    for i, link in enumerate(model.structure.links):
        own = a[model.structure.v_slices[i].start] if isinstance(link.joint, mbs.Revolute) else 0.0
        out[i] = out[link.parent] + own
    return jnp.stack([out[i] for i in range(len(model.body_names))])


def draw(axes: Axes, name: str, model: mbs.Model, solution: mbs.Solution) -> None:
    """Draw configurations, from light (early) to dark (late)."""
    outlines = CASES[name][-1]
    across = (0, 2) if name == "double pendulum" else (0, 1)
    picked = np.linspace(0, len(solution.t) - 1, 9).astype(int)
    poses = jax.vmap(lambda q: mbs.body_poses(model, q))(solution.q[picked])
    for k, shade in enumerate(np.linspace(0.2, 1, len(picked))):
        for c, (body, points) in enumerate(outlines.items()):
            i = model.body_names.index(body)
            line = np.array(points) @ np.asarray(poses.rotation[k, i]).T + np.asarray(poses.position[k, i])
            axes.plot(*line[:, across].T, color=f"C{c}", alpha=shade, linewidth=1.5)
    axes.set(title=name, aspect="equal", xlabel="x [m]", ylabel=f"{'xyz'[across[1]]} [m]")


def main(image: Path, share: float = 1.0) -> float:
    """Draw the motions and the joint forces; returns the largest relative difference between the formulations."""
    fig, rows = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
    worst = 0.0
    for (upper, lower), name in zip(rows.T, CASES, strict=True):
        model, solution, force, off = motion(name, share)
        draw(upper, name, model, solution)
        lower.plot(solution.t, force)
        lower.set(xlabel="t [s]", ylabel="force [N]", title=f'joint "{CASES[name][4]}"')
        lower.grid(alpha=0.3)
        worst = max(worst, off)
    image.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(image, dpi=120)
    plt.close(fig)
    return worst


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/absolute_coordinates.png")
    print(f"{path}: the formulations differ by at most {main(path):.1e}")
