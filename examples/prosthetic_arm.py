"""The prosthetic arm on a moving trunk [Wi, example 5.2]: python examples/prosthetic_arm.py [IMAGE]

The trunk walks: it sways, bobs and turns as a given function of time. The arm hangs on it by a spherical joint (Bryant
angles), an elbow and a universal wrist. The accelerations are computed in two ways, which must agree: with the motion
of the trunk built into the shoulder, a joint that depends on time (articulated bodies), and with a moving body 0
(augmented bodies, A and B of [Wi 5.97]).
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
from jaxmbs.library import prosthetic_arm
from jaxmbs.library.prosthetic_arm import bryant

STEP = 2 * np.pi * 0.9  # angular frequency of a stride [rad/s]


def position(t: jax.Array) -> jax.Array:
    """Position of the trunk [m]: forward at 1.2 m/s with a jerk at each step, sideways, up and down."""
    forward = 1.2 * t + 0.02 * jnp.sin(2 * STEP * t)
    return jnp.stack([forward, 0.03 * jnp.sin(STEP * t), 0.025 * jnp.cos(2 * STEP * t)])


def rotation(t: jax.Array) -> jax.Array:
    """Rotation of the trunk: it rolls, leans forward and twists about the vertical."""
    return bryant(jnp.stack([0.05 * jnp.sin(STEP * t), 0.08 + 0.02 * jnp.cos(2 * STEP * t), 0.15 * jnp.sin(STEP * t)]))


TRUNK = mbs.textbook.MovingBase(position, rotation)
START = np.array([0.1, -0.2, 0.0, -0.6, 0.0, 0.1])


def motion(t_end: float = 3.0) -> tuple[mbs.Solution, np.ndarray, float]:
    """Solution, hinge reactions (rows, joints, 6), and the largest difference between the two ways [rad/s²]."""
    carried, arm = prosthetic_arm(TRUNK).build(), prosthetic_arm().build()
    solution = mbs.simulate(carried, START, np.zeros(6), t_end=t_end, dt=2e-3)

    def compared(t: jax.Array, q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        own = mbs.textbook.moving_base_dynamics(arm, q, v, base=TRUNK, t=t, method="barycentric")
        other = mbs.forward_dynamics(carried, q, v, t=t)
        reactions = mbs.joint_reactions(arm, q, v, base=TRUNK, t=t, method="barycentric")
        return reactions, jnp.abs(own - other).max()

    reactions, difference = jax.jit(jax.vmap(compared))(solution.t, solution.q, solution.v)
    return solution, np.asarray(reactions), float(difference.max())


def main(image: Path, t_end: float = 3.0) -> float:
    """Draw the angles, hinge forces and hinge torques; returns the largest difference between the two ways [rad/s²]."""
    solution, reactions, difference = motion(t_end)
    fig, (top, middle, bottom) = plt.subplots(3, 1, figsize=(9, 9), sharex=True, layout="constrained")
    names = ("shoulder about x", "about y", "about z", "elbow", "wrist about x", "wrist about y")
    for name, angle in zip(names, np.degrees(solution.q).T, strict=True):
        top.plot(solution.t, angle, label=name)
    for name, rows in zip(("shoulder", "elbow", "wrist"), np.moveaxis(reactions, 1, 0), strict=True):
        middle.plot(solution.t, np.linalg.norm(rows[:, 3:], axis=1), label=name)
        bottom.plot(solution.t, np.linalg.norm(rows[:, :3], axis=1), label=name)
    top.set(ylabel="angle [deg]", title="prosthetic arm on a walking trunk")
    middle.set(ylabel="hinge force |X| [N]")
    bottom.set(ylabel="hinge moment |Y| [N m]", xlabel="t [s]")
    for ax in (top, middle, bottom):
        ax.grid(alpha=0.3)
        ax.legend(ncols=3, fontsize="small")
    image.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(image, dpi=120)
    plt.close(fig)
    return difference


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/prosthetic_arm.png")
    print(f"{path}: accelerations of the two formulations differ by at most {main(path):.1e} rad/s²")
