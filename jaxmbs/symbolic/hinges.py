"""Angles that add up: the angles of hinges with parallel axes that follow one another in the tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxmbs.model import Model

PARALLEL = 1e-12  # tolerance on the cosine between two axes
Sum = tuple[tuple[int, int], ...]  # ((index in q, +1 or -1), ...)


@dataclass(frozen=True)
class Angles:
    """groups: {index in q of an angle: its group of parallel hinges}; sums: the integer combinations of angles of one
    group that occur between two bodies."""

    groups: dict[int, int]
    sums: set[Sum]


def angles_of(model: Model) -> Angles:
    """The angles of the hinges of a model; quaternions have none."""
    values, s = model.values(), model.structure
    # For each link that rotates relative to its base about a fixed axis, this axis in the axes of the body.
    axes: list[np.ndarray | None] = []
    turned: list[tuple[int, dict[int, int]]] = []  # group, angle from the group's root to the link
    found = Angles({}, set())

    def rotation(name: str) -> np.ndarray:
        return np.asarray(list(values[name]), float).reshape(3, 3)

    for i, link in enumerate(s.links):
        k, base = s.q_slices[i].start, link.parent
        axis, here, inherited = None, (-1, {}), None
        if base >= 0 and axes[base] is not None:
            inherited = rotation(f"{link.name}.parent_pose.rotation").T @ axes[base]
        if link.joint.rigid and inherited is not None:
            axis = rotation(f"{link.name}.child_pose.rotation") @ inherited
            here = turned[base]
        elif link.joint.turning_axis is not None:
            own = np.asarray(list(values[f"{link.name}.{link.joint.turning_axis}"]), float)
            outward = own
            cosine = 0.0 if inherited is None else float(inherited @ own)
            if abs(abs(cosine) - 1) < PARALLEL:
                group, angle = turned[base]
                here = (group, angle | {k: 1 if cosine > 0 else -1})
                outward = own if cosine > 0 else -own  # all angles of a group are positive about the same direction
            else:
                here = (k, {k: 1})
            axis = rotation(f"{link.name}.child_pose.rotation") @ outward
            found.groups[k] = here[0]
            path = list(here[1].items())
            found.sums.update(tuple(path[j:]) for j in range(len(path)))
        else:
            for angle in (k + i for i, c in enumerate(link.joint.coordinates()) if c.unit == "rad"):
                found.groups[angle] = angle
                found.sums.add(((angle, 1),))
        axes.append(axis)
        turned.append(here)
    return found
