"""Bodies given as triangles: read from files, checked, and measured against the convex pieces that replace them."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbs.errors import ModelError

MOST = 2_000_000  # triangles times planes that are compared at once
NEEDS = "needs trimesh and coacd: pip install 'jaxmbs[mesh]'"


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles. vertices (n, 3); triangles (m, 3): indices of vertices, counterclockwise as seen from outside."""

    vertices: np.ndarray
    triangles: np.ndarray

    @classmethod
    def read(cls, content: bytes, name: str) -> Triangles:
        """The triangles of a file with this content, in the unit of the file; name: of the file, with the ending that tells
        its format. Raises ModelError."""
        try:
            import trimesh
        except ModuleNotFoundError as error:
            raise ModelError(NEEDS) from error
        kind = name.rpartition(".")[2].lower()
        if kind in ("step", "stp"):
            try:
                import cascadio  # noqa: F401  # pyright: ignore[reportMissingImports]  # trimesh reads STEP files with it
            except ModuleNotFoundError as error:
                raise ModelError("is a STEP file, which needs cascadio: pip install cascadio, or export STL") from error
        try:
            found: Any = trimesh.load(io.BytesIO(content), file_type=kind, force="mesh")
            vertices, triangles = np.asarray(found.vertices, float), np.asarray(found.faces, int)
        except Exception as error:  # readers of different formats raise different errors
            raise ModelError(f"cannot be read: {type(error).__name__}: {error}") from error
        return cls.of(vertices, triangles)

    @classmethod
    def of(cls, vertices: Any, triangles: Any) -> Triangles:
        """The triangles of arrays, with vertices at equal places merged, without triangles that have two corners at one
        place, and without unused vertices. Raises ModelError for arrays that do not describe triangles."""
        try:
            vertices, triangles = np.asarray(vertices, float), np.asarray(triangles, float)
        except (TypeError, ValueError) as error:
            raise ModelError("needs vertices and triangles as lists of three numbers each") from error
        if vertices.ndim != 2 or vertices.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3:
            raise ModelError(
                f"vertices {vertices.shape} and triangles {triangles.shape} must have 3 columns: x, y, z and three "
                "indices of vertices"
            )
        if not len(triangles):
            raise ModelError("has no triangles")
        if not len(vertices):
            raise ModelError("has no vertices")
        if not np.isfinite(vertices).all():
            raise ModelError(f"vertex {int(np.flatnonzero(~np.isfinite(vertices).all(1))[0])} is not finite")
        whole = np.where(np.abs(triangles) < 1e15, triangles, -1).astype(int)
        if (whole != triangles).any() or whole.min() < 0 or whole.max() >= len(vertices):
            raise ModelError(f"triangles must be indices of vertices, whole numbers from 0 to {len(vertices) - 1}")
        used, whole = np.unique(whole, return_inverse=True)
        vertices, whole = vertices[used], whole.reshape(-1, 3)
        size = np.ptp(vertices, axis=0).max()
        if not size > 0:
            raise ModelError("all of its vertices are at one place")
        _, first, merged = np.unique(np.round(vertices / (1e-9 * size)), axis=0, return_index=True, return_inverse=True)
        triangles = np.ravel(merged)[whole]
        a, b, c = triangles.T
        return cls(vertices[first], triangles[(a != b) & (b != c) & (c != a)])

    @property
    def size(self) -> float:
        """The longest edge of the box about it, with edges along the axes."""
        return float(np.ptp(self.vertices, axis=0).max())

    @property
    def corners(self) -> np.ndarray:
        """(m, 3, 3) the corners of each triangle."""
        return self.vertices[self.triangles]

    @property
    def volume(self) -> float:
        a, b, c = np.moveaxis(self.corners - self.vertices.mean(0), 1, 0)
        return float((a * np.cross(b, c)).sum() / 6)

    def fault(self) -> str:
        """Why it is not the surface of a body, with the remedy; "" if it is."""
        n = len(self.vertices)
        a, b = np.concatenate([self.triangles[:, [i, j]] for i, j in ((0, 1), (1, 2), (2, 0))]).T
        ends = np.minimum(a, b) * n + np.maximum(a, b)
        edges, of, count = np.unique(ends, return_inverse=True, return_counts=True)
        odd = edges[count % 2 == 1]
        if len(odd):
            i, j = divmod(int(odd[0]), n)
            at = ", ".join(f"{x:.4g}" for x in (self.vertices[i] + self.vertices[j]) / 2)
            return (
                f"is not the closed surface of a body: {len(odd)} of its {len(edges)} edges have an odd number of "
                f"triangles, one of them at ({at}); close it where it was made (as a solid, not as surfaces), or take the "
                "shape hull with its vertices"
            )
        ways = np.zeros(len(edges))  # in which the triangles of an edge run along it
        np.add.at(ways, of, np.sign(b - a))
        if ways.any():
            return (
                "has triangles that face inwards next to others that face outwards; let the program that made it (or "
                "trimesh.repair.fix_normals) turn them"
            )
        if self.is_flat:
            return "is flat; take the shape hull with its vertices"
        volumes = self._volumes()
        if (volumes < 0).all():
            return "is inside out: its triangles are clockwise as seen from outside; swap two indices of each"
        if (volumes < 0).any():
            return (
                f"has {len(volumes)} closed surfaces, and {int((volumes < 0).sum())} of them are inside out: leave out "
                "those of voids, which nothing can reach, and turn the others"
            )
        return ""

    @property
    def is_flat(self) -> bool:
        """Whether all of it is in one plane, to rounding."""
        extents = np.linalg.svd(self.vertices - self.vertices.mean(0), compute_uv=False)
        return bool(len(extents) < 3 or extents[2] <= 1e-9 * extents[0])

    def _volumes(self) -> np.ndarray:
        """Of each connected surface."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        n, (a, b, c) = len(self.vertices), self.triangles.T
        joined = coo_array((np.ones(2 * len(a)), (np.r_[a, b], np.r_[b, c])), shape=(n, n))
        _, surface = connected_components(joined, directed=False)
        p, q, r = np.moveaxis(self.corners - self.vertices.mean(0), 1, 0)
        return np.bincount(surface[a], (p * np.cross(q, r)).sum(1) / 6)

    def is_hull(self, cell: Cell) -> bool:
        """Whether it is the surface of this cell, the hull of its vertices, and nothing else."""
        from scipy.spatial import KDTree

        if abs(cell.volume - self.volume) > 1e-9 * cell.volume:
            return False
        rounding, (a, b, c) = 1e-9 * self.size, np.moveaxis(self.corners, 1, 0)
        across = np.cross(b - a, c - a)
        plane = KDTree(cell.normals).query(across / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300))[
            1
        ]
        beyond = (self.corners * cell.normals[plane][:, None]).sum(2) - cell.heights[plane][:, None]
        off = np.flatnonzero((np.abs(beyond) > rounding).any(1))  # normals of narrow triangles are inexact: try all
        return all(
            (np.abs(self.corners[k] @ cell.normals.T - cell.heights) <= rounding).all(1).any(-1).all()
            for k in _blocks(off, len(cell.normals))
        )


def _blocks(numbers: np.ndarray, planes: int) -> list[np.ndarray]:
    """Numbers of triangles, so many at a time that an array with all planes for each of them is of moderate size."""
    return np.array_split(numbers, max(1, math.ceil(len(numbers) * planes / MOST)))


@dataclass(frozen=True, eq=False)
class Cell:
    """A convex piece as corners (n, 3), the triangles (m, 3, 3) of its hull, and planes that it touches from within: normals
    (f, 3), heights (f,), those of its faces and, at sharp edges and their ends, others that keep `reach` small."""

    points: np.ndarray
    volume: float
    normals: np.ndarray
    heights: np.ndarray
    triangles: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray) -> Cell | None:
        """The hull of points; None if they are in one plane."""
        from scipy.spatial import ConvexHull, QhullError

        try:
            hull = ConvexHull(points)
        except (QhullError, ValueError):
            return None
        used, triangles = np.unique(hull.simplices, return_inverse=True)
        planes = hull.equations[np.unique(np.round(hull.equations, 9), axis=0, return_index=True)[1]]
        corners, n = points[used], hull.equations[:, :3]
        one, other = np.repeat(np.arange(len(n)), 3), hull.neighbors.ravel()
        sharp = ((n[one] * n[other]).sum(1) < 0) & (one < other)
        shared = [np.intersect1d(hull.simplices[i], hull.simplices[j]) for i, j in np.c_[one, other][sharp]]
        ends = points[np.unique(np.concatenate([np.zeros(0, int), *shared]))] - corners.mean(0)
        bevels = np.concatenate([n[one[sharp]] + n[other[sharp]], ends / np.linalg.norm(ends, axis=1, keepdims=True)])
        long = np.linalg.norm(bevels, axis=1)
        normals = np.concatenate([planes[:, :3], bevels[long > 1e-6] / long[long > 1e-6, None]])
        return cls(corners, hull.volume, normals, (corners @ normals.T).max(0), corners[triangles.reshape(-1, 3)])

    def reach(self, margin: float) -> float:
        """An upper bound on how far the body between its planes, each moved outwards by `margin`, reaches beyond it."""
        from scipy.spatial import HalfspaceIntersection

        inside = np.concatenate([self.normals, -(self.heights + margin)[:, None]], 1)
        ends = HalfspaceIntersection(inside, self.points.mean(0)).intersections
        return float(from_hull(ends, self.points).max())

    def beyond(self, points: np.ndarray) -> np.ndarray:
        """(m,) the largest distance of each point (m, 3) from a plane, towards the outside; at most 0 for those within."""
        return (points @ self.normals.T - self.heights).max(1)


def covered(mesh: Triangles, cells: list[Cell], margin: float) -> bool:
    """Whether the union of the cells, with their planes moved outwards by `margin`, contains the mesh."""
    return not len(_outside(mesh.corners, np.full(len(mesh.triangles), -1), cells, margin))


def _outside(triangles: np.ndarray, owner: np.ndarray, cells: list[Cell], margin: float) -> np.ndarray:
    """The parts of triangles (m, 3, 3) outside the cells, as triangles; the planes of the cells are moved outwards by
    `margin`. owner (m,): the cell of which a triangle is a face, which does not cut it; -1 if there is none."""
    low, high = triangles.min(1), triangles.max(1)
    inside, near = np.zeros(len(triangles), bool), []
    for k, cell in enumerate(cells):
        lowest, highest = cell.points.min(0) - margin, cell.points.max(0) + margin
        cut = set[int]()
        for close in _blocks(
            np.flatnonzero(((low <= highest) & (high >= lowest)).all(1) & (owner != k)), len(cell.normals)
        ):
            above = triangles[close] @ cell.normals.T - cell.heights > margin  # (triangles, corners, planes)
            inside[close] |= ~above.any((1, 2))
            cut.update(close[~above.all(1).any(-1)].tolist())
        near.append(cut)
    left = []
    for k in np.flatnonzero(~inside).tolist():
        polygons = [triangles[k]]
        for cell, others in zip(cells, near, strict=True):
            if k in others:
                polygons = [rest for polygon in polygons for rest in _without(polygon, cell, margin)]
        left += [(x[0], x[i], x[i + 1]) for x in polygons for i in range(1, len(x) - 1)]
    return np.array(left).reshape(-1, 3, 3)


def _without(polygon: np.ndarray, cell: Cell, margin: float) -> list[np.ndarray]:
    """The parts of a convex polygon (n, 3) outside a cell."""
    above = polygon @ cell.normals.T - cell.heights - margin
    if (above > 0).all(0).any():
        return [polygon]
    parts = []
    for k in np.flatnonzero((above > 0).any(0)).tolist():
        height = polygon @ cell.normals[k] - cell.heights[k] - margin
        outside, polygon = _halves(polygon, height)
        if len(outside) > 2:
            parts.append(outside)
        if len(polygon) < 3:
            break
    return parts


def _halves(polygon: np.ndarray, height: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts of a convex polygon above a plane and below it. height (n,): of its corners."""
    above, below = [], []
    for k in range(len(polygon)):
        p, q, h, g = polygon[k - 1], polygon[k], height[k - 1], height[k]
        if (h > 0) != (g > 0):
            crossing = p + (q - p) * (h / (h - g))
            above.append(crossing)
            below.append(crossing)
        (above if g > 0 else below).append(q)
    return np.array(above).reshape(-1, 3), np.array(below).reshape(-1, 3)


def excess(mesh: Triangles, cells: list[Cell], margin: float, resolution: float) -> float:
    """An upper bound on how far the surface of the union of the cells is from the mesh. It exceeds the true value by at most
    `resolution` or 5 %, if the nearest triangle of the mesh is always among those that are compared. A gap between cells
    that is no wider than `margin` is not part of the surface.

    Triangles of the cells are divided until the bound on each is as close as this. The distance from one triangle of the
    mesh is a convex function, so that on a triangle it is largest at a corner. What is within another cell is not on the
    surface.
    """
    nearest = _Nearest(mesh, resolution)
    owner = np.repeat(np.arange(len(cells)), [len(cell.triangles) for cell in cells])
    here = _outside(np.concatenate([cell.triangles for cell in cells]), owner, cells, margin)
    least = most = 0.0
    while len(here):
        middle = here.mean(1)
        radius = np.linalg.norm(here - middle[:, None], axis=2).max(1)
        at_middle, at_corners = nearest(middle, here)
        bound = np.minimum(at_middle + radius, at_corners)
        least = max(least, float(at_middle.max()))
        divided = bound > max(resolution, 1.05 * least)
        most = max(most, float(bound[~divided].max(initial=0.0)))
        here = _quarters(here[divided])
    return most


def _quarters(triangles: np.ndarray) -> np.ndarray:
    a, b, c = np.moveaxis(triangles, 1, 0)
    d, e, f = (a + b) / 2, (b + c) / 2, (c + a) / 2
    return np.stack([[a, d, f], [d, b, e], [f, e, c], [d, e, f]]).transpose(2, 0, 1, 3).reshape(-1, 3, 3)


class _Nearest:
    """Upper bounds on distances from a mesh, from some of its triangles that are near."""

    def __init__(self, mesh: Triangles, resolution: float) -> None:
        from scipy.spatial import KDTree

        self.triangles = mesh.corners
        parts, of = self.triangles, np.arange(len(self.triangles))
        middles, belongs = [], []  # of parts of the triangles that are no longer than `most`
        most = max(4 * resolution, mesh.size / 40)
        while len(parts):
            small = np.linalg.norm(parts - np.roll(parts, 1, 1), axis=2).max(1) <= most
            middles.append(parts[small].mean(1))
            belongs.append(of[small])
            parts, of = _quarters(parts[~small]), np.repeat(of[~small], 4)
        self.tree, self.belongs = KDTree(np.concatenate(middles)), np.concatenate(belongs)

    def __call__(self, middle: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Upper bounds on the distances from the mesh of points (m, 3), and of the triangles (m, 3, 3) around them."""
        number = min(12, len(self.belongs))
        near = self.belongs[self.tree.query(middle, number)[1].reshape(len(middle), number)]
        at_middle, at_corners = np.full(len(middle), np.inf), np.full(len(middle), np.inf)
        for k in range(number):
            triangle = np.moveaxis(self.triangles[near[:, k]], 1, 0)
            at_middle = np.minimum(at_middle, _from_triangle(middle, *triangle))
            each = [_from_triangle(corners[:, j], *triangle) for j in range(3)]
            at_corners = np.minimum(at_corners, np.max(each, axis=0))
        return at_middle, at_corners


def _from_triangle(p: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Distances of points from triangles, one each."""
    normal = np.cross(b - a, c - a)
    square = np.maximum((normal * normal).sum(1), 1e-300)

    def signed(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return (np.cross(v - u, p - u) * normal).sum(1)

    over = (signed(a, b) >= 0) & (signed(b, c) >= 0) & (signed(c, a) >= 0)
    plane = np.abs(((p - a) * normal).sum(1)) / np.sqrt(square)
    edges = np.min([_from_segment(p, u, v) for u, v in ((a, b), (b, c), (c, a))], axis=0)
    return np.where(over, plane, edges)


def _from_segment(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    along = b - a
    share = ((p - a) * along).sum(1) / np.maximum((along * along).sum(1), 1e-300)
    return np.linalg.norm(p - a - np.clip(share, 0, 1)[:, None] * along, axis=1)


def from_hull(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Upper bounds on the distances of points from the hull of corners: those from the nearest convex combinations of the
    corners."""
    from scipy.optimize import nnls

    scale = 1e3 * max(float(np.ptp(corners, axis=0).max()), 1e-300)  # of the equation that the weights sum to 1
    A = np.vstack([corners.T, np.full(len(corners), scale)])
    out = []
    for p in points:
        weights = nnls(A, np.append(p, scale))[0]
        out.append(np.linalg.norm(corners.T @ (weights / weights.sum()) - p))
    return np.array(out)
