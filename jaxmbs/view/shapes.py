"""The appearance of a mechanism: triangles on bodies, from its visuals or from its inertias and joints."""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.errors import ModelWarning
from jaxmbs.model import Model, get
from jaxmbs.model.visuals import Visual
from jaxmbs.view.deformed import FINE, Field, fields, finely

COLORS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b")
JOINT, WORLD_COLOR = "#5b6675", "#c3cad3"
THROUGH = 0.4  # opacity of a shape that is drawn over visuals
ROUND = 24  # number of sides of round shapes
MOST = 6000  # largest number of triangles of a mesh; if it has more, its vertices are merged on a grid

Triangles = tuple[np.ndarray, np.ndarray]  # vertices (n, 3), faces (m, 3)
Shapes = Mapping[str, Sequence[Triangles]]  # of bodies, by name


@dataclass(frozen=True)
class Drawn:
    """A shape on a body (-1: the world): triangles `key` of the library, placed in its frame by the matrix (4, 4).

    displacements (n, V, 3): of the V vertices, per unit of each of the n coordinates `modes` in q; None: it is rigid.
    """

    body: int
    key: str
    matrix: np.ndarray
    color: str
    opacity: float = 1.0
    modes: slice | None = None
    displacements: np.ndarray | None = None

    def vertices(self, library: Mapping[str, Triangles], q: np.ndarray) -> np.ndarray:
        """(V, 3), in the frame of the body, deformed as at q (nq,)."""
        x = library[self.key][0] @ self.matrix[:3, :3].T + self.matrix[:3, 3]
        return x if self.displacements is None else x + np.tensordot(q[self.modes], self.displacements, 1)


def scene_of(
    model: Model, shapes: Shapes | None = None, over_visuals: bool = False
) -> tuple[list[Drawn], dict[str, Triangles]]:
    """(all shapes to draw, {key: its triangles}).

    shapes: triangles in axes of a body or of the world, by its name; they are drawn where it has no visuals, and with
    over_visuals also where it has, half transparent. Bodies with neither are drawn as the ellipsoids of their inertia
    (solid and homogeneous, of the same mass), connected to their joints by rods, and flexible bodies as lines between
    their nodes; all shapes on flexible bodies have displacements. Meshes that cannot be read cause a ModelWarning.
    """
    s = model.structure
    out, meshes, lost = [], {}, []
    for visual in s.visuals:
        body = s.body_index[visual.body]
        color = visual.color or (COLORS[body % len(COLORS)] if body >= 0 else WORLD_COLOR)
        key = visual.file or visual.shape
        if visual.file:
            found = _mesh(visual.file)
            if isinstance(found, str):
                lost.append(f"{visual.file} ({found})")
                continue
            meshes[key] = found
        elif visual.shape == "mesh":
            vertices, faces = np.array(visual.vertices, float), np.array(visual.triangles, int)
            key = f"mesh {hashlib.sha256(vertices.tobytes() + faces.tobytes()).hexdigest()[:16]}"
            meshes[key] = coarse(vertices, faces)
        out.append(Drawn(body, key, _matrix(visual), color))
    seen = {d.body for d in out}
    for name, triangles in (shapes or {}).items():
        body = s.body_index[name]
        for k, x in enumerate(triangles if over_visuals or body not in seen else ()):
            meshes[key := f"{name} {k}"] = x
            color = COLORS[body % len(COLORS)] if body >= 0 else WORLD_COLOR
            out.append(Drawn(body, key, np.eye(4), color, THROUGH if body in seen else 1.0))
    if lost:
        names = list(dict.fromkeys(lost))
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        warnings.warn(f"meshes are not drawn: {', '.join(names[:3])}{more}", ModelWarning, stacklevel=3)
    seen = {d.body for d in out}
    size, bending = _size(model), {f.body: f for f in fields(model)}
    for i, field in bending.items():
        lines = field.lines() if i not in seen else ()
        rods = (_rod(i, a, b, 0.04 * size, COLORS[i % len(COLORS)]) for a, b in lines)
        out += [d for d in rods if d is not None]
    out = [_bent(d, bending[d.body], UNIT | meshes, meshes) if d.body in bending else d for d in out]
    for i, link in enumerate(s.links):
        if link.joint.elastic:  # the frame again, and rods to where nodes are at rest
            continue
        if i not in seen:
            if i not in bending:
                out += _ellipsoid(model, i, link.body, 0.15 * size, COLORS[i % len(COLORS)])
            out += _rods(model, i, 0.04 * size)
        out += _axis(model, i, 0.05 * size, 0.16 * size)
    keys = {d.key for d in out}
    return out, {k: v for k, v in (UNIT | meshes).items() if k in keys}


def _bent(d: Drawn, field: Field, library: Mapping[str, Triangles], added: dict[str, Triangles]) -> Drawn:
    """The shape with what the modes of its body displace; its triangles are added."""
    vertices, faces = library[d.key]
    placed = vertices @ d.matrix[:3, :3].T + d.matrix[:3, 3]
    longest = max(field.spread, np.ptp(placed, axis=0).max()) / FINE
    corners = finely(placed[faces], longest).reshape(-1, 3)
    points, which = np.unique(corners, axis=0, return_inverse=True)
    moved = field.at(points)
    key = f"bent {hashlib.sha256(corners.tobytes() + moved.tobytes()).hexdigest()[:16]}"
    added[key] = points, which.reshape(-1, 3)
    return replace(d, key=key, matrix=np.eye(4), modes=field.coordinates, displacements=moved)


# --- shapes of joints, and of bodies without visuals ------------------------------------------------------------------


def _ellipsoid(model: Model, i: int, body: str, size: float, color: str) -> list[Drawn]:
    """The ellipsoid of a body's inertia, a ball of the given size [m] for a point mass, nothing for a massless body."""
    mass, com, I = (np.asarray(get(model, f"{body}.{n}"), float) for n in ("mass", "com", "inertia"))
    if not mass:
        return []
    moments, axes = np.linalg.eigh(I)
    axes = axes * np.linalg.det(axes)
    half = np.sqrt(np.maximum(2.5 * (moments.sum() - 2 * moments) / mass, 0.0))
    half = np.maximum(half, 0.02 * half.max() if half.any() else size / 2)  # a thin rod gets some thickness
    return [Drawn(i, "sphere", _placed(com, axes * (2 * half)), color)]


def _rods(model: Model, i: int, width: float) -> list[Drawn]:
    """Rods from the body's inward joint to the joints that it carries, or to its centre of mass if it carries none."""
    s = model.structure
    here = _position(model, f"{s.links[i].name}.child_pose")
    ends = [_position(model, f"{s.links[k].name}.parent_pose") for k in s.children[i]]
    ends += [_position(model, f"{loop.name}.pose_a") for loop in s.loops if loop.body_a == s.links[i].body]
    ends += [_position(model, f"{loop.name}.pose_b") for loop in s.loops if loop.body_b == s.links[i].body]
    if not ends and get(model, f"{s.links[i].body}.mass"):
        ends = [np.asarray(get(model, f"{s.links[i].body}.com"), float)]
    color = COLORS[i % len(COLORS)]
    return [d for end in ends if (d := _rod(i, here, end, width, color)) is not None]


def _axis(model: Model, i: int, width: float, length: float) -> list[Drawn]:
    """A joint as a pin along its axis, or as a ball if it has no axis; nothing for rigid and free joints."""
    link = model.structure.links[i]
    if link.joint.rigid or link.joint.free:
        return []
    at, R = (
        _position(model, f"{link.name}.child_pose"),
        np.asarray(get(model, f"{link.name}.child_pose.rotation"), float),
    )
    name = f"{link.name}.{link.joint.turning_axis or 'axis'}"
    if name not in model.structure.table:
        return [Drawn(i, "sphere", _placed(at, np.eye(3) * 2 * width), JOINT)]
    along = R @ np.asarray(get(model, name), float) * length / 2
    pin = _rod(i, at - along, at + along, width, JOINT)
    return [pin] if pin is not None else []


def _rod(body: int, a: np.ndarray, b: np.ndarray, width: float, color: str) -> Drawn | None:
    length = float(np.linalg.norm(b - a))
    if length < 1e-9:
        return None
    z = (b - a) / length
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x = x / np.linalg.norm(x)
    return Drawn(
        body, "cylinder", _placed((a + b) / 2, np.stack([x, np.cross(z, x), z], 1) * [width, width, length]), color
    )


def _position(model: Model, pose: str) -> np.ndarray:
    return np.asarray(get(model, f"{pose}.position"), float)


def _size(model: Model) -> float:
    """A typical length of the mechanism [m]: mean distance of joints and centres of mass from the origins of the bodies."""
    s, found = model.structure, []
    for link in s.links:
        lengths = (_position(model, f"{link.name}.parent_pose"), np.asarray(get(model, f"{link.body}.com"), float))
        found += [float(np.linalg.norm(x)) for x in lengths]
    found = [x for x in found if x > 1e-9]
    return float(np.mean(found)) if found else 1.0


def _matrix(visual: Visual) -> np.ndarray:
    return _placed(np.asarray(visual.pose.position), np.asarray(visual.pose.rotation) * np.asarray(visual.size))


def _placed(position: np.ndarray, columns: np.ndarray) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = columns, position
    return out


# --- triangles ----------------------------------------------------------------------------------------------------------


def _revolved(profile: list[tuple[float, float]]) -> Triangles:
    """A surface of revolution about z with a profile of (radius, height), closed where the radius is zero."""
    angle = 2 * np.pi * np.arange(ROUND) / ROUND
    rings = [np.stack([r * np.cos(angle), r * np.sin(angle), np.full(ROUND, z)], 1) for r, z in profile]
    faces = []
    for k in range(len(profile) - 1):
        i = np.arange(ROUND)
        j = (i + 1) % ROUND
        a, b, c, d = k * ROUND + i, k * ROUND + j, (k + 1) * ROUND + i, (k + 1) * ROUND + j
        faces += [np.stack([a, b, d], 1)] if profile[k][0] else []
        faces += [np.stack([a, d, c], 1)] if profile[k + 1][0] else []
    return np.concatenate(rings), np.concatenate(faces)


def _box() -> Triangles:
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return corners, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])


def _half(profile: list[tuple[float, float]]) -> Triangles:
    """The half y >= 0 of a surface of revolution about z, whose profile is closed, with both cut faces."""
    n, angle = len(profile), np.pi * np.arange(ROUND + 1) / ROUND
    rings = [[(r * np.cos(a), r * np.sin(a), z) for r, z in profile] for a in angle]
    faces = []
    for k in range(ROUND):
        for i in range(n):
            j = (i + 1) % n
            a, b, c, d = k * n + i, (k + 1) * n + i, (k + 1) * n + j, k * n + j
            faces += [(a, b, c), (a, c, d)]
    last = ROUND * n
    for i in range(1, n - 1):
        faces += [(0, i, i + 1), (last, last + i + 1, last + i)]
    return np.array(rings).reshape(-1, 3), np.array(faces)


_WALL = 0.02  # thickness of a wall, relative to the width of the shape
_PIPE = [(0.5, -0.5), (0.5, 0.5), (0.5 - _WALL, 0.5), (0.5 - _WALL, -0.5)]
_NOZZLE = [(0.5, -0.5), (0.2, 0.5), (0.2 - _WALL, 0.5), (0.5 - _WALL, -0.5)]
_LATITUDES = np.linspace(-np.pi / 2, np.pi / 2, ROUND // 2 + 1)
UNIT: dict[str, Triangles] = {
    "box": _box(),
    "cylinder": _revolved([(0, -0.5), (0.5, -0.5), (0.5, 0.5), (0, 0.5)]),
    "cone": _revolved([(0, -0.5), (0.5, -0.5), (0, 0.5)]),
    "pipe": _revolved([*_PIPE, _PIPE[0]]),
    "nozzle": _revolved([*_NOZZLE, _NOZZLE[0]]),
    "half_pipe": _half(_PIPE),
    "half_nozzle": _half(_NOZZLE),
    "sphere": _revolved([(0.5 * np.cos(a) if abs(a) < 1.57 else 0.0, 0.5 * np.sin(a)) for a in _LATITUDES]),
}


@functools.lru_cache(maxsize=64)
def _mesh(file: str) -> Triangles | str:
    """Triangles of a mesh file, or the reason why there are none."""
    try:
        import trimesh  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        return "reading meshes needs trimesh: pip install 'jaxmbs[view]'"
    if not Path(file).is_file():
        return "there is no such file"
    try:
        found: Any = trimesh.load(file, force="mesh")
        vertices, faces = np.asarray(found.vertices, float), np.asarray(found.faces, int)
    except Exception as error:  # readers of different formats raise different errors
        return f"{type(error).__name__}: {error}"
    return coarse(vertices, faces) if len(faces) else "it has no triangles"


def coarse(vertices: np.ndarray, faces: np.ndarray) -> Triangles:
    """The triangles; if there are more than MOST, the vertices in each cell of a grid are merged at their mean."""
    cells = 64
    while len(faces) > MOST:
        low, span = vertices.min(0), np.ptp(vertices, axis=0).max() or 1.0
        _, cell = np.unique(np.floor((vertices - low) / span * cells).astype(int), axis=0, return_inverse=True)
        cell, n = np.ravel(cell), int(np.max(cell)) + 1
        merged = np.stack([np.bincount(cell, vertices[:, k], n) for k in range(3)], 1) / np.bincount(cell)[:, None]
        joined = cell[faces]
        real = (joined[:, 0] != joined[:, 1]) & (joined[:, 1] != joined[:, 2]) & (joined[:, 2] != joined[:, 0])
        if len(joined[real]) <= MOST or cells < 8:
            return merged, np.unique(joined[real], axis=0)
        cells = cells * 3 // 4
    return vertices, faces
