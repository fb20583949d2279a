"""The triple pendulum of the method of separate bodies [Y 3.5]: python examples/triple_pendulum.py [IMAGE]

The motion with the values of `init.m`, from 0 to 5 s, and the energies of fig. 3.21.
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

import jaxmbs as mbs
from jaxmbs.library import triple_pendulum


def motion(t_end: float = 5.0) -> tuple[mbs.Solution, np.ndarray, np.ndarray]:
    """Solution from rest along x, and kinetic and potential energy [J] at its times."""
    model = triple_pendulum().build()
    solution = mbs.simulate(model, jnp.zeros(3), jnp.zeros(3), t_end=t_end, dt=1e-3)
    kinetic, potential = jax.jit(jax.vmap(lambda q, v: mbs.energy(model, q, v)))(solution.q, solution.v)
    return solution, np.asarray(kinetic), np.asarray(potential)


def main(image: Path, t_end: float = 5.0) -> float:
    """Draw the motion and the energies; returns the largest change of the total energy [J]."""
    solution, kinetic, potential = motion(t_end)
    angles = np.cumsum(solution.q, axis=1)  # from the x axis, as in the program of the source
    rods = 2 * np.stack([np.cos(angles), np.sin(angles)], axis=2)
    joints = np.concatenate([np.zeros((len(rods), 1, 2)), np.cumsum(rods, axis=1)], axis=1)
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    picked = np.linspace(0, len(joints) - 1, 26).astype(int)
    for shade, row in zip(np.linspace(0.15, 1, len(picked)), joints[picked], strict=True):
        left.plot(*row.T, "-o", color=plt.cm.Blues(shade), linewidth=1.5, markersize=2.5)
    left.plot(*joints[:, -1].T, color="tab:red", linewidth=0.8)
    left.set(xlabel="x [m]", ylabel="y [m]", title="configurations, and the path of the tip", aspect="equal")
    for values, name in ((kinetic, "kinetic"), (potential, "potential"), (kinetic + potential, "total")):
        right.plot(solution.t, values, label=name)
    right.set(xlabel="t [s]", ylabel="energy [J]", title="energy (fig. 3.21 of the source)")
    right.legend()
    right.grid(alpha=0.3)
    image.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(image, dpi=120)
    plt.close(fig)
    return float(np.abs(kinetic + potential - (kinetic + potential)[0]).max())


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/triple_pendulum.png")
    print(f"{path}: the total energy changes by at most {main(path):.1e} J")
