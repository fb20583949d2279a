"""Bodies as unions of convex pieces, each the hull of discs and points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Piece:
    """The convex hull of discs, thickened by a ball: all points within `ball` of the hull.

    centers (k, 3), in body axes [m]; radii (k,) [m] and axes (k, 3), unit vectors across the discs. A disc of radius zero
    is a point. A cylinder is the hull of two discs, a cone that of a disc and a point, a box that of eight points.
    """

    centers: np.ndarray
    radii: np.ndarray
    axes: np.ndarray
    ball: float = 0.0

    @classmethod
    def of_points(cls, points: Any, ball: float = 0.0) -> Piece:
        points = np.asarray(points, float)
        return cls(points, np.zeros(len(points)), np.tile([0.0, 0.0, 1.0], (len(points), 1)), ball)

    @classmethod
    def of_discs(cls, centers: Any, radii: Any, axis: Any, ball: float = 0.0) -> Piece:
        """The hull of discs across one axis."""
        axis = np.asarray(axis, float)
        centers = np.asarray(centers, float)
        return cls(centers, np.asarray(radii, float), np.tile(axis / np.linalg.norm(axis), (len(centers), 1)), ball)

    def moved(self, position: Any, rotation: Any) -> Piece:
        """The same piece after a rotation by the matrix (3, 3) and a displacement."""
        R = np.asarray(rotation, float)
        return replace(self, centers=self.centers @ R.T + np.asarray(position, float), axes=self.axes @ R.T)

    def extent(self, directions: np.ndarray) -> np.ndarray:
        """How far it reaches in each of some directions (m, 3), unit vectors, from the origin of the body [m]."""
        across = np.sqrt(np.maximum(1 - (directions @ self.axes.T) ** 2, 0.0))
        return (directions @ self.centers.T + across * self.radii).max(1) + self.ball

    def seen(self, sides: int = 48) -> np.ndarray:
        """Points (n, 3) whose hull looks like it in a picture: its corners, with polygons of `sides` corners for circles."""
        turns = 2 * np.pi * np.arange(sides) / sides
        out = []
        for center, radius, axis in zip(self.centers, self.radii, self.axes, strict=True):
            u, w = two_across(axis)
            around = np.outer(np.cos(turns), u) + np.outer(np.sin(turns), w)
            out.append(center + radius * around if radius else center[None])
        points = np.concatenate(out)
        if self.ball <= 1e-3 * float(np.ptp(points, axis=0).max()):
            return points
        height = np.linspace(-np.pi / 2, np.pi / 2, sides // 2 + 1)[:, None]
        across, z = np.cos(height), np.broadcast_to(np.sin(height), (len(height), sides))
        ball = np.stack([across * np.cos(turns), across * np.sin(turns), z], -1).reshape(-1, 3)
        return (points[:, None] + self.ball * ball).reshape(-1, 3)

    def normals(self) -> np.ndarray:
        """(f, 3) unit vectors across the faces of a polyhedron, or the axes of discs."""
        if self.radii.any():
            return np.unique(np.concatenate([self.axes, -self.axes]), axis=0)
        from scipy.spatial import ConvexHull, QhullError

        try:
            found = ConvexHull(self.centers).equations[:, :3]
        except (QhullError, ValueError):  # flat, or fewer than four points
            return _across(self.centers)
        _, first = np.unique(np.round(found, 9), axis=0, return_index=True)
        return found[first]


def _across(points: np.ndarray) -> np.ndarray:
    """Both normals of a flat piece, or six directions about a segment or a point."""
    axes = np.linalg.svd(points - points.mean(0))[2]
    return np.concatenate([axes, -axes])


@dataclass(frozen=True, eq=False)
class Union:
    """The pieces of a body. boxes: about the pieces, in their order; parallel: likewise, all with the same edges; tree: of
    groups of pieces."""

    pieces: tuple[Piece, ...]
    boxes: Boxes
    parallel: Boxes
    tree: Tree

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Union:
        boxes = Boxes.of([[x] for x in pieces])
        return cls(tuple(pieces), boxes, Boxes.parallel(pieces), Tree.of(pieces, boxes))


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes: middles (n, 3), unit vectors along the edges (n, 3, 3), one per row, and halves of their lengths (n, 3)."""

    middles: np.ndarray
    edges: np.ndarray
    halves: np.ndarray

    @classmethod
    def of(cls, groups: Sequence[Sequence[Piece]]) -> Boxes:
        """Boxes about groups of pieces, with edges along the principal axes of their points or along those of the body,
        whichever is smaller."""
        return cls._padded(
            [min((_box(group, x) for x in _edges(group)), key=lambda x: x[2].prod()) for group in groups]
        )

    @classmethod
    def parallel(cls, pieces: Sequence[Piece]) -> Boxes:
        """Boxes about pieces, all with the same edges: of the principal axes of all points and those of the body, the ones
        that give smaller boxes."""
        found = [[_box([x], edges) for x in pieces] for edges in _edges(pieces)]
        return cls._padded(min(found, key=lambda boxes: sum(x[2].sum() for x in boxes)))

    @classmethod
    def _padded(cls, found: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Boxes:
        middles, edges, halves = (np.stack(x) for x in zip(*found, strict=True))
        return cls(middles, edges, halves * (1 + 1e-6) + 1e-6 * np.abs(middles).max())  # also after rounding to float32


@dataclass(frozen=True, eq=False)
class Tree:
    """Groups of pieces within groups, each before those within it. boxes: about them; after (n,): the group that follows
    if all within a group are passed over, n if none does; piece (n,): the piece that a group consists of, -1 if of more."""

    boxes: Boxes
    after: np.ndarray
    piece: np.ndarray

    @classmethod
    def of(cls, pieces: Sequence[Piece], boxes: Boxes) -> Tree:
        groups: list[np.ndarray] = []
        after: list[int] = []

        def add(group: np.ndarray) -> None:
            here = len(groups)
            groups.append(group)
            after.append(0)
            if len(group) > 1:
                middles = boxes.middles[group]
                along = middles[:, np.argmax(np.ptp(middles, axis=0))]
                order = group[np.argsort(along, kind="stable")]
                add(order[: len(order) // 2])
                add(order[len(order) // 2 :])
            after[here] = len(groups)

        add(np.arange(len(pieces)))
        of_groups = Boxes.of([[pieces[k] for k in group] for group in groups])
        return cls(of_groups, np.array(after), np.array([g[0] if len(g) == 1 else -1 for g in groups]))


def _edges(group: Sequence[Piece]) -> list[np.ndarray]:
    points = np.concatenate([x.centers for x in group])
    principal = np.linalg.svd(points - points.mean(0), full_matrices=True)[2] if len(points) > 1 else np.eye(3)
    discs = [x.axes[0] for x in group if x.radii.any()]
    turned = [np.stack([discs[0], *two_across(discs[0])])] if discs else []
    return [np.eye(3), principal, *turned]


def two_across(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors across a unit vector and across each other."""
    u = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    u = u / np.linalg.norm(u)
    return u, np.cross(axis, u)


def _box(group: Sequence[Piece], edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(middle, edges, halves) of the box about some pieces."""
    high = np.max([x.extent(edges) for x in group], axis=0)
    low = -np.max([x.extent(-edges) for x in group], axis=0)
    return edges.T @ ((high + low) / 2), edges, (high - low) / 2
