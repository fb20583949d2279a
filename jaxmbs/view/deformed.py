"""How flexible bodies are drawn: what each of their modes displaces.

The displacement between the nodes of a body is that of the smooth field that interpolates their displacements and
rotations, with cubic radial functions, which on a line are cubic splines. Rotations are given to it as displacements of
points beside the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.model import Model, get

BESIDE = 0.05  # distance of the points beside a node, relative to the least distance between nodes
NONE = 1e-6  # relative to the largest momentum that a mode can have: a smaller one counts as zero
FINE = 20  # number of edges along a body, so that straight shapes bend smoothly


@dataclass(frozen=True, eq=False)
class Field:
    """The displacements of a flexible body: those of its N nodes, and of its floating frame if it is held there.

    body, modes: indices of the link of the floating frame and of that with the modes; coordinates: of the modes, in q;
    positions (N, 3) [m]; displacements, rotations (N, 3, n): of each mode. In the axes of the body.
    """

    body: int
    modes: int
    coordinates: slice
    positions: np.ndarray
    displacements: np.ndarray
    rotations: np.ndarray

    @property
    def spread(self) -> float:
        """Largest extent of the nodes [m]."""
        return float(np.ptp(self.positions, axis=0).max())

    def at(self, points: np.ndarray) -> np.ndarray:
        """(n, V, 3): displacement of points (V, 3) for each mode. Exact for rotations and translations of the whole."""
        from scipy.interpolate import RBFInterpolator

        x, gaps = self.positions, np.linalg.norm(self.positions[:, None] - self.positions[None], axis=-1)
        steps = BESIDE * gaps[gaps > 0].min() * np.eye(3)
        beside = [self.displacements + np.cross(self.rotations, step[None, :, None], axis=1) for step in steps]
        values = np.concatenate([self.displacements, *beside]).reshape(4 * len(x), -1)
        field = RBFInterpolator(np.concatenate([x, *(x + step for step in steps)]), values, kernel="cubic", degree=1)
        return np.moveaxis(field(points).reshape(len(points), 3, -1), 2, 0)

    def lines(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The ends of lines that connect all nodes, as short as can be."""
        from scipy.sparse.csgraph import minimum_spanning_tree

        gaps = np.linalg.norm(self.positions[:, None] - self.positions[None], axis=-1)
        tree = minimum_spanning_tree(gaps).tocoo()
        return [(self.positions[i], self.positions[j]) for i, j in zip(tree.row, tree.col, strict=True)]


def fields(model: Model) -> list[Field]:
    """The field of every flexible body that has two or more places whose displacement is known."""
    s, found = model.structure, []
    for i in s.modes_of.values():
        link, n = s.links[i], s.links[i].joint.nv
        x, u, w = [], [], []
        if _is_held(model, s.links[link.parent].body, link.name):
            x, u, w = [np.zeros(3)], [np.zeros((3, n))], [np.zeros((3, n))]
        for node in (s.links[k] for k in s.children[i]):
            at, R = (
                np.asarray(get(model, f"{node.name}.parent_pose.{name}"), float) for name in ("position", "rotation")
            )
            if any(np.linalg.norm(at - other) < 1e-9 * (np.linalg.norm(at) + 1e-3) for other in x):
                continue
            x.append(at)
            for own, name in ((u, "displacement"), (w, "rotation")):
                own.append(R @ np.asarray(get(model, f"{node.name}.{name}"), float).reshape(n, 3).T)
        if len(x) > 1:
            found.append(Field(link.parent, i, s.q_slices[i], np.array(x), np.array(u), np.array(w)))
    return found


def _is_held(model: Model, body: str, modes: str) -> bool:
    """Whether a body is held at its floating frame: only then do its modes, which have unit modal mass, have momentum."""
    mass, com, inertia = (np.asarray(get(model, f"{body}.{name}"), float) for name in ("mass", "com", "inertia"))
    whole = {"momentum": mass, "angular_momentum": np.trace(inertia) + mass * (com @ com)}
    return any(np.abs(get(model, f"{modes}.{name}")).max() > NONE * np.sqrt(most) for name, most in whole.items())


def finely(triangles: np.ndarray, length: float) -> np.ndarray:
    """Triangles (k, 3, 3), halved at their longest edges until no edge is longer than `length`; they remain joined."""
    while True:
        sizes = np.linalg.norm(triangles - np.roll(triangles, -1, axis=1), axis=2)
        longest = sizes.argmax(1)
        split = sizes.max(1, initial=0.0) > length
        if not split.any():
            return triangles
        a, b, c = (triangles[split, (longest[split] + k) % 3] for k in range(3))
        middle = (a + b) / 2
        halves = [np.stack([a, middle, c], 1), np.stack([middle, b, c], 1)]
        triangles = np.concatenate([triangles[~split], *halves])


def enlarged(model: Model, q: np.ndarray, scale: float) -> np.ndarray:
    """q (..., nq) with the coordinates of the modes times `scale`, so that bodies at nodes remain attached."""
    out = np.array(q, float)
    for i in model.structure.modes_of.values():
        out[..., model.structure.q_slices[i]] *= scale
    return out


def said(model: Model, scale: float, where: str) -> str:
    """What a picture states about the scale of deformations: nothing if the scale is 1. Raises ModelError for a scale that
    is negative or not finite."""
    if not (np.isfinite(scale) and scale >= 0):
        raise ModelError(f"{where}: deformation_scale is {scale!r}; pass a number of zero or more, such as 20")
    return f", deformation \u00d7 {scale:g}" if scale != 1 and model.structure.flexible else ""
