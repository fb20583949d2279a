"""A slide on a helical wire [Y fig. 1.4], with two degrees of freedom: python examples/curve_joint.py [IMAGE]

The joint is a `General` joint: z(q) runs along the curve, G(q) follows the tangent and turns about it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as mbs
from jaxmbs.library import helix_slide


def main(image: Path, t_end: float = 3.0) -> float:
    """Draw the path of the slide and its two coordinates; returns the largest energy error [J]."""
    model = helix_slide().build()
    solution = mbs.simulate(model, np.array([0.0, 0.8]), np.zeros(2), t_end=t_end, dt=1e-3)
    poses = jax.jit(jax.vmap(lambda q: mbs.body_poses(model, q)))(solution.q)
    wire = np.asarray(poses.position)[:, 0]
    centre = wire + np.asarray(poses.rotation)[:, 0] @ np.array([0, 0, -0.1])
    fig = plt.figure(figsize=(10, 4.5), layout="constrained")
    left, right = fig.add_subplot(1, 2, 1, projection="3d"), fig.add_subplot(1, 2, 2)
    left.plot(*wire.T, color="gray", label="wire")
    left.plot(*centre.T, color="tab:red", linewidth=0.9, label="centre of mass")
    left.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    left.legend()
    right.plot(solution.t, solution.q[:, 0], label="u, along the wire [rad of the helix]")
    right.plot(solution.t, solution.q[:, 1], label="angle about the tangent [rad]")
    right.set(xlabel="t [s]")
    right.grid(alpha=0.3)
    right.legend()
    image.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(image, dpi=120)
    plt.close(fig)
    return float(np.abs(solution.energy_error).max())


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/curve_joint.png")
    print(f"{path}: largest energy error {main(path):.1e} J")
