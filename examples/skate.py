"""The skate and its bond graph [K]: python examples/skate.py [IMAGE]

The values of the source, 2 m/s and 2 rad/s without forces, give a circle of 1 m radius. Then a force F and a torque M
act as in the source's fig. 2, together with drag; the bond graph at that instant is written next to the image, as
GraphML and DOT.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as mbs
from jaxmbs.view import energy_flow

START = np.array([2.0, 0.0, 2.0])  # x', y' [m/s], phi' [rad/s]
LOADS = np.array([6.0, 3.0, 0.4])  # F_x, F_y [N], M [N m]
DRAG = 0.5  # [N s/m, N m s]


def skate(drag: float = 0.0) -> mbs.Model:
    """A rod of 2 kg and 1 m on smooth ice; x, y, phi are the coordinates of its joint. m and J are assumed."""
    mech = mbs.Mechanism("skate")
    mech.add_body("rod", mass=2.0, inertia=(0.0, 2.0 / 12, 2.0 / 12))
    mech.add_joint("ice", mbs.Planar(), "world", "rod")
    mech.add_constraint("blade", mbs.KnifeEdge("rod", point=(0, 0, 0), normal=(0, 1, 0)))
    if drag:
        mech.add_force("drag", mbs.Damper("ice", damping=drag))
    return mech.build()


def circle() -> tuple[mbs.Solution, float]:
    """One revolution, and the largest distance [m] of the path from the circle of 1 m about (0, 1)."""
    solution = mbs.simulate(skate(), np.zeros(3), START, t_end=math.pi, dt=math.pi / 800)
    path = np.asarray(solution.q)[:, :2]
    return solution, float(np.abs(np.linalg.norm(path - [0, 1], axis=1) - 1).max())


def main(image: Path) -> float:
    """Draw path and energy flow, export the graph; returns the largest distance from the circle [m]."""
    solution, distance = circle()
    k = int(np.argmin(np.abs(np.asarray(solution.t) - math.pi / 8)))
    graph = mbs.textbook.bond_graph(skate(DRAG), solution.q[k], solution.v[k], tau=LOADS)
    graph.graphml(image.with_suffix(".graphml"))
    graph.dot(image.with_suffix(".dot"))
    fig, (left, right) = plt.subplots(1, 2, figsize=(13, 5.5), width_ratios=(1, 1.6), layout="constrained")
    left.plot(*np.asarray(solution.q)[:, :2].T, color="tab:blue")
    for x, y, phi in np.asarray(solution.q)[:-1:50]:
        along = 0.12 * np.array([np.cos(phi), np.sin(phi)])
        left.plot([x - along[0], x + along[0]], [y - along[1], y + along[1]], color="black", linewidth=2)
    left.set(xlabel="x [m]", ylabel="y [m]", title="path of the centre of mass, F = M = 0", aspect="equal")
    left.grid(alpha=0.3)
    energy_flow(graph, right)
    right.set_title(f"power when F and M act, at t = {float(solution.t[k]):.2f} s")
    image.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(image, dpi=120)
    plt.close(fig)
    return distance


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/skate.png")
    print(f"{path}: the path leaves the circle of 1 m by at most {main(path):.1e} m")
