"""Lines in the scene that move with the bodies: forces as arrows, and the gaps between shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics import body_poses, element_forces
from jaxmbs.model import Model

if TYPE_CHECKING:
    from jaxmbs.simulate import Solution

LEAST = 1e-6  # relative to the largest force of a motion: arrows of smaller forces are left out


@dataclass(frozen=True)
class Segment:
    """A line of one sample over time. kind: "force", an arrow whose length is drawn to scale, or "gap", from end to end;
    start (rows, 3), along (rows, 3): in world axes, in m and, of a force, in N; zero where there is none."""

    label: str
    kind: str
    sample: str
    start: np.ndarray
    along: np.ndarray


def of_forces(model: Model, sample: str, solution: Solution) -> list[Segment]:
    """Arrows of the force elements on all bodies in a motion."""
    modes = solution.mode_at(model, solution.t)

    def acting(t: Any, q: Any, v: Any, mode: Any, states: Any) -> Any:
        own = replace(model, overrides={**model.overrides, **states})
        return {n: x.wrenches for n, x in element_forces(own, q, v, t=t, mode=mode).items()}

    wrenches = jax.jit(jax.vmap(acting))(solution.t, solution.q, solution.v, modes, solution.states)
    positions = jax.vmap(lambda q, t: body_poses(model, q, t=t).position)(solution.q, solution.t)
    return list(arrows(model, sample, wrenches, np.asarray(positions)))


def arrows(model: Model, sample: str, wrenches: dict[str, Any], positions: np.ndarray) -> Iterator[Segment]:
    """Arrows from wrenches {element: (rows, bodies, 6)} about the bodies' origins, which are at positions (rows, bodies,
    3). An arrow stands on the line of action of its force, where this is nearest to the origin of the body."""
    whole = {name: np.asarray(x, float) for name, x in wrenches.items()}
    most = max((np.linalg.norm(x[..., 3:], axis=-1).max(initial=0.0) for x in whole.values()), default=0.0)
    for name, x in whole.items():
        for i, body in enumerate(model.body_names):
            torque, force = x[:, i, :3], x[:, i, 3:]
            squared = (force**2).sum(-1, keepdims=True)
            acts = squared > (LEAST * most) ** 2
            if not acts.any():
                continue
            arm = np.cross(force, torque) / np.where(acts, squared, 1.0)
            yield Segment(f"{name} on {body}", "force", sample, positions[:, i] + arm, np.where(acts, force, 0.0))


def gaps(points_a: Any, points_b: Any, label: str, sample: str) -> Segment:
    """The line between the nearest points (rows, 3) of two shapes."""
    a, b = (np.asarray(jnp.asarray(x), float) for x in (points_a, points_b))
    known = np.isfinite(a).all(-1, keepdims=True) & np.isfinite(b).all(-1, keepdims=True)
    return Segment(label, "gap", sample, np.where(known, a, 0.0), np.where(known, b - a, 0.0))
