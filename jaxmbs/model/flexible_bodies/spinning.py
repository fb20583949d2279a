"""How fast flexible bodies spin, compared with their frequencies, in plain floats without a backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxmbs.model.structure import WORLD
from jaxmbs.spatial import IDENTITY, ZERO3, Transform, Vector3

if TYPE_CHECKING:
    from jaxmbs.model.model import Model

FAST = 0.2  # of the lowest frequency: there, tension raises that of a beam that flaps along the axis by 2 %


def spins(model: Model, q: np.ndarray, v: np.ndarray) -> dict[str, tuple[float, float]]:
    """{flexible body: (angular velocity of its frame [rad/s], its lowest circular frequency [rad/s])} at q (nq,), v (nv,)
    and time zero. Frequencies of zero do not count; a body that has no other is left out."""
    s = model.structure
    if not s.modes_of:
        return {}
    values = model.values()
    placed: dict[str, Transform] = {WORLD: IDENTITY}
    turning: dict[str, Vector3] = {WORLD: ZERO3}
    for i, link in enumerate(s.links):
        own_q, own_v = s.q_slices[link.parent if link.joint.follows else i], s.motion_v[i]
        numbers = values.of(link.name, link.joint.numbers)
        m = link.joint.motion(numbers, [float(x) for x in q[own_q]], [float(x) for x in v[own_v]], 0.0)
        parent = s.links[link.parent].body if link.parent >= 0 else WORLD
        W = placed[parent] @ values.pose(f"{link.name}.parent_pose") @ m.placement
        placed[link.body] = W @ values.pose(f"{link.name}.child_pose").inverse()
        turning[link.body] = turning[parent] + W.rotation @ m.velocity.angular
    found = {}
    for body, i in s.modes_of.items():
        frequency = np.asarray(values[f"{s.links[i].name}.frequency"], float)
        if (frequency > 0).any():
            lowest = 2 * np.pi * frequency[frequency > 0].min()
            found[body] = float(np.linalg.norm([float(x) for x in turning[body]])), float(lowest)
    return found


def spin_warnings(model: Model, q: np.ndarray, v: np.ndarray) -> list[str]:
    """One for each flexible body that spins fast while the stiffening by its tension is not included."""
    return [
        f"flexible body {body!r} spins at {rate:.3g} rad/s, {rate / lowest:.2g} of its lowest frequency; parts across the "
        "axis are stiffer in reality, because tension does not stiffen this flexible body: make a beam with "
        "foreshortening=True, or join several parts, or rigid pieces (mbs.library.beam), by joints"
        for body, (rate, lowest) in spins(model, q, v).items()
        if rate > FAST * lowest and not _stiffens(model, body)
    ]


def _stiffens(model: Model, body: str) -> bool:
    s, values = model.structure, model.values()
    i = s.modes_of[body]
    names = [f"{s.links[i].name}.moment_curvature", *(f"{s.links[k].name}.shortening" for k in s.children[i])]
    return any(np.any(np.asarray(values[name], float)) for name in names)
