"""The features by which a union of pieces touches another one: its corners, edges and round parts, and its surface.

The surface is described by rows of numbers. Each row gives the depth of a point x below a part of the surface by the same
formula, see `FIELDS`, whether that part is a plane, the side of a cylinder or a cone, a ball, a capsule, an edge or a rim.
Machine code therefore reads them all from one table.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.geometry.pieces import Piece, two_across

SIDES = 32  # of the polygons that replace the circles of a shape where it touches another one
FAR = 1e30
MOST = 1e5  # points between the ends of edges
SHARP, CAPSULE, BALL = 0, 1, 2  # with faces; round about a segment; round about a point
# The depth is tilt (radius + slope z - side |x - center - axis clip(z, -half, half)|) with z = axis . (x - center), and for
# a rim minus the distance from the circle of this radius. within: the face lies in another piece and pushes nothing.
FIELDS = {
    "axis": 3, "center": 3, "radius": 1, "slope": 1, "tilt": 1, "side": 1, "half": 1, "rim": 1, "within": 1,
}  # fmt: skip
WIDTH = sum(FIELDS.values())
WITHIN = WIDTH - 1


@dataclass(frozen=True, eq=False)
class Features:
    """The features of a union of pieces. points (n, 5): x, y, z, radius, what kind of piece has it (SHARP, CAPSULE or BALL);
    edges (m, 8): the two ends, radius, kind. rows (r, WIDTH): of each piece its faces, then its edges and rims;
    starts (2 k + 1,): the first of the faces and of the edges of each piece, and the end. The pieces are in the order of
    their kinds; sharp, thin: how many are SHARP, and how many are not BALL. middle (3,), reach: of a ball about everything
    [m]."""

    points: np.ndarray
    edges: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    sharp: int
    thin: int
    middle: np.ndarray
    reach: float

    @property
    def of_faces(self) -> np.ndarray:
        """The numbers of the rows of faces."""
        spans = zip(self.starts[:-1:2], self.starts[1::2], strict=True)
        return np.concatenate([np.arange(a, b) for a, b in spans])

    @classmethod
    def of(cls, pieces: Sequence[Piece], spacing: float | None = None) -> Features:
        """The features of pieces. spacing [m]: edges that are longer are divided; None: no edge is. Raises ModelError for a
        piece without volume, and for too many points."""
        parts = sorted((_part(x) for x in pieces), key=lambda x: x.kind)
        for x, y in itertools.permutations(parts, 2):
            x.hide(y)
        size = max(float(np.ptp(np.concatenate([x.corners for x in parts]), axis=0).max()), *(x.thick for x in parts))
        every = [(x, [y for y in parts if y is not x]) for x in parts]
        points = _once([p for x, others in every for p in x.points if x.convex_corner(p, others, size)], size, 5)
        edges = _joined(
            [e for x, others in every for k, e in enumerate(x.edges) if x.convex_edge(k, others, size)], size
        )
        if spacing is not None:
            number = sum(float(np.linalg.norm(e[3:6] - e[:3])) for e in edges) / spacing
            if number > MOST:
                raise ModelError(
                    f"spacing = {spacing:g} makes more than {number:.0f} points of its edges; give a larger one"
                )
            divided = [_divided(e, spacing) for e in edges]
            edges = [e for some in divided for e in some]
            more = [np.array([*e[3:6], *e[6:]]) for some in divided for e in some[:-1]]
            points = np.concatenate([points, _once(more, size, 5)])
        rows = [y for x in parts for y in (*x.faces, *x.rims)]
        counts = [n for x in parts for n in (len(x.faces), len(x.rims))]
        everything = np.array([p[:4] for x in parts for p in x.points])
        middle = (everything[:, :3].max(0) + everything[:, :3].min(0)) / 2
        reach = (np.linalg.norm(everything[:, :3] - middle, axis=1) + everything[:, 3]).max()
        return cls(
            points, np.array(edges).reshape(-1, 8), np.array(rows),
            np.cumsum([0, *counts]), sum(x.kind == SHARP for x in parts),
            sum(x.kind != BALL for x in parts), middle, float(reach),
        )  # fmt: skip


class _Part:
    """A piece: corners (n, 3) of its core; thick: its radius if it is a ball or a capsule, else how far its faces are
    moved outwards; kind: SHARP, CAPSULE or BALL; samples: of each face, points that tell whether it lies in another piece,
    its middle last."""

    def __init__(self, corners: np.ndarray, thick: float, kind: int = 0):
        self.corners, self.thick, self.kind = corners, thick, kind
        self.faces: list[np.ndarray] = []
        self.rims: list[np.ndarray] = []
        self.samples: list[np.ndarray] = []
        self.points: list[np.ndarray] = []
        self.edges: list[np.ndarray] = []
        self.beside: list[tuple[np.ndarray, np.ndarray]] = []  # the normals of the faces on both sides of each edge

    def depth(self, x: np.ndarray) -> np.ndarray:
        """Of points (n, 3)."""
        return np.min([depth_in(row, x) for row in self.faces], axis=0)

    def hide(self, other: _Part) -> None:
        """Mark the faces that lie in or on another piece that extends beyond them."""
        for row, sample in zip(self.faces, self.samples, strict=True):
            if len(sample):
                size = float(np.ptp(sample, axis=0).max())
                beyond = sample[-1:] + 1e-6 * size * row[:3]
                if other.depth(beyond)[0] > 0 and (other.depth(sample) >= -1e-9 * size).all():
                    row[WITHIN] = 1.0

    def corner(self, x: np.ndarray) -> None:
        self.points.append(np.array([*x, self.thick, float(self.kind)]))

    def convex_corner(self, point: np.ndarray, others: Sequence[_Part], size: float) -> bool:
        """Whether a corner is one of the union: no other piece contains it, or continues one of its edges beyond it."""
        x = point[:3]
        ends = [(e[:3], e[3:6]) for e in self.edges]
        along = [(x - b) / np.linalg.norm(x - b) for a, b in (*ends, *((b, a) for a, b in ends)) if (a == x).all()]
        return bool(self.kind) or not _goes_on(x, along, others, size)

    def convex_edge(self, k: int, others: Sequence[_Part], size: float) -> bool:
        """Whether an edge is one of the union: no other piece contains its middle, or continues one of its two faces beyond
        it."""
        if self.kind:
            return True
        across = [b - a * (a @ b) for n, m in self.beside[k : k + 1] for a, b in ((n, m), (m, n))]
        middle = (self.edges[k][:3] + self.edges[k][3:6]) / 2
        return not _goes_on(middle, [x / np.linalg.norm(x) for x in across], others, size)

    def edge(self, x: np.ndarray, y: np.ndarray) -> None:
        self.edges.append(np.array([*x, *y, self.thick, float(self.kind)]))


def row(axis: np.ndarray, center: np.ndarray, **fields: float) -> np.ndarray:
    """A row, with the numbers of a plane across `axis` unless others are given."""
    usual = {"radius": 0.0, "slope": -1.0, "tilt": 1.0, "side": 0.0, "half": FAR, "rim": 0.0, "within": 0.0}
    return np.array([*axis, *center, *(usual | fields).values()], float)


def depth_in(row: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The depth of points (n, 3) by a row."""
    axis, center, (radius, slope, tilt, side, half, rim, _) = row[:3], row[3:6], row[6:]
    d = x - center
    z = d @ axis
    if rim:
        return -np.hypot(np.linalg.norm(d - z[:, None] * axis, axis=1) - radius, z)
    beside = np.linalg.norm(d - np.clip(z, -half, half)[:, None] * axis, axis=1)
    return tilt * (radius + slope * z - side * beside)


def _part(piece: Piece) -> _Part:
    centers, radii = piece.centers, piece.radii
    if radii.any():
        return _frustum(piece)
    if len(centers) <= 2 and piece.ball:
        part = _Part(centers, piece.ball, CAPSULE if len(centers) == 2 else BALL)
        part.faces.append(_segment(centers[0], centers[-1], piece.ball))
        part.samples.append(np.empty((0, 3)))
        for x in centers:
            part.corner(x)
        if len(centers) == 2:
            part.edge(*centers)
        return part
    return _polyhedron(piece)


def _segment(x: np.ndarray, y: np.ndarray, radius: float) -> np.ndarray:
    length = float(np.linalg.norm(y - x))
    axis = (y - x) / length if length else np.array([0.0, 0.0, 1.0])
    return row(axis, (x + y) / 2, radius=radius, slope=0.0, side=1.0, half=length / 2)


def _polyhedron(piece: Piece) -> _Part:
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(piece.centers)
    except (QhullError, ValueError):
        raise ModelError("has a piece without volume, in which nothing can be deep; give it a thickness") from None
    part = _Part(piece.centers[hull.vertices], piece.ball)
    size = float(np.ptp(part.corners, axis=0).max())
    planes: list[np.ndarray] = []
    of: list[int] = []  # the plane of each triangle
    for plane in hull.equations:
        same = [k for k, x in enumerate(planes) if np.abs((x - plane) / [1, 1, 1, size]).max() < 1e-7]
        of.append(same[0] if same else len(planes))
        planes += [] if same else [plane]
    for k, plane in enumerate(planes):
        n, points = plane[:3], piece.centers[np.unique(hull.simplices[np.array(of) == k])]
        part.faces.append(row(n, n * (piece.ball - plane[3])))
        halves = (points[:, None] + points[None]).reshape(-1, 3) / 2
        part.samples.append(np.concatenate([halves, points.mean(0)[None]]) + piece.ball * n)
    ends = set()
    for t, (corners, beside) in enumerate(zip(hull.simplices, hull.neighbors, strict=True)):
        for k, other in enumerate(beside):
            if t < other and of[t] != of[other]:
                i, j = np.delete(corners, k)
                ends |= {int(i), int(j)}
                part.edge(piece.centers[i], piece.centers[j])
                part.beside.append((planes[of[t]][:3], planes[of[other]][:3]))
                part.rims.append(_segment(piece.centers[i], piece.centers[j], piece.ball))
    for k in sorted(ends):
        part.corner(piece.centers[k])
    return part


def _frustum(piece: Piece) -> _Part:
    """A cylinder or a cone."""
    if len(piece.centers) != 2:
        raise ModelError("is a disc without thickness, in which nothing can be deep; pass a short Tube")
    (a, b), (r, s) = piece.centers, piece.radii
    length = float(np.linalg.norm(b - a))
    axis, slope = (b - a) / length, (s - r) / length
    part = _Part(piece.centers, 0.0)
    turns = 2 * np.pi * np.arange(SIDES) / SIDES
    u, w = two_across(axis)
    around = np.outer(np.cos(turns), u) + np.outer(np.sin(turns), w)
    part.faces.append(row(axis, a, radius=r, slope=slope, tilt=1 / np.hypot(1, slope), side=1.0))
    part.samples.append(np.empty((0, 3)))
    rings = []
    for center, radius, out in ((a, r, -axis), (b, s, axis)):
        part.rims.append(row(axis, center, radius=radius, rim=1.0))
        ring = center + radius * around if radius else np.tile(center, (SIDES, 1))
        rings.append(ring)
        for x in ring if radius else ring[:1]:
            part.corner(x)
        if radius:
            part.faces.append(row(out, center))
            part.samples.append(np.concatenate([ring, center[None]]))
            for x, y in itertools.pairwise([*ring, ring[0]]):
                part.edge(x, y)
    for x, y in zip(*rings, strict=True):
        part.edge(x, y)
    return part


def _goes_on(x: np.ndarray, along: Sequence[np.ndarray], others: Sequence[_Part], size: float) -> bool:
    """Whether another piece contains a point, or what is beside it in one of these directions."""
    beside = np.array([x + 1e-6 * size * d for d in along]).reshape(-1, 3)
    return any(other.depth(x[None])[0] > 1e-9 * size or (other.depth(beside) >= -1e-9 * size).any() for other in others)


def _joined(edges: Sequence[np.ndarray], size: float) -> list[np.ndarray]:
    """Each edge once; edges of sharp pieces that overlap or meet on one line are joined into one."""
    lines: dict[tuple[float, ...], list[tuple[float, float]]] = {}
    numbers = {}
    for e in edges:
        d = (e[3:6] - e[:3]) / np.linalg.norm(e[3:6] - e[:3])
        d = d if next(c for c in d if abs(c) > 1e-7) > 0 else -d
        foot = e[:3] - (e[:3] @ d) * d
        of_capsule = e if e[7] else []
        key = tuple(np.round(np.concatenate([d, foot / size, of_capsule, e[6:]]) * 1e7).tolist())
        ends = float(e[:3] @ d), float(e[3:6] @ d)
        numbers.setdefault(key, (foot, d, e[6:]))
        lines.setdefault(key, []).append((min(ends), max(ends)))
    found = []
    for key, spans in lines.items():
        foot, d, rest = numbers[key]
        merged: list[tuple[float, float]] = []
        for low, high in sorted(spans):
            if merged and low <= merged[-1][1] + 1e-8 * size:
                merged[-1] = merged[-1][0], max(high, merged[-1][1])
            else:
                merged.append((low, high))
        found += [np.array([*(foot + low * d), *(foot + high * d), *rest]) for low, high in merged]
    return found


def _divided(edge: np.ndarray, spacing: float) -> list[np.ndarray]:
    x, y = edge[:3], edge[3:6]
    number = max(1, int(np.ceil(np.linalg.norm(y - x) / spacing * (1 - 1e-12))))
    ends = x + np.linspace(0, 1, number + 1)[:, None] * (y - x)
    return [np.array([*p, *q, *edge[6:]]) for p, q in itertools.pairwise(ends)]


def _once(found: Sequence[np.ndarray], size: float, width: int) -> np.ndarray:
    """The rows as an array (n, width), each only once, even if several pieces have it."""
    if not found:
        return np.empty((0, width))
    rows = np.array(found)
    _, first = np.unique(np.round(rows / (1e-8 * size)), axis=0, return_index=True)
    return rows[np.sort(first)]
