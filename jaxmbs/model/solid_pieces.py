"""The convex pieces of solids."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.geometry import Piece
from jaxmbs.geometry.decompose import cut, read
from jaxmbs.geometry.forms import corners_of, flat_panels
from jaxmbs.geometry.meshes import Triangles
from jaxmbs.model import compounds, solids, walls
from jaxmbs.model.errors import ModelError

Z = np.array([0.0, 0.0, 1.0])
ERROR = 1e-3  # how far the flat panels that replace a curved one may be from it [m], as in clearances


def pieces_of(solid: solids.Solid) -> tuple[Piece, ...]:
    """The pieces of a solid in its own axes. Raises ModelError for a mesh that cannot be cut, and for a class without known
    pieces."""
    if isinstance(solid, compounds.Compound):
        pairs: Any = solid.parts
        return tuple(x.moved(pose.position, pose.rotation) for part, pose in pairs for x in pieces_of(part))
    if isinstance(solid, solids.Ball):
        return (Piece.of_points([np.zeros(3)], solid.radius),)
    if isinstance(solid, solids.Box):
        return (Piece.of_points(np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * np.asarray(solid.size)),)
    if isinstance(solid, solids.Tube):
        return (Piece.of_discs(_ends(solid.length), (solid.radius, solid.radius), Z),)
    if isinstance(solid, solids.Capsule):
        return (Piece.of_points(_ends(solid.length)[: 2 if solid.length else 1], solid.radius),)
    if isinstance(solid, walls.Cone):
        return (Piece.of_discs(_ends(solid.length), (solid.radius, solid.end_radius), Z),)
    if isinstance(solid, walls.Disc):
        return (Piece.of_discs([np.zeros(3)], (solid.radius,), Z),)
    if isinstance(solid, walls.Panel):
        ends = (solid.radius, solid.end_radius)
        size = (solid.length, solid.thickness, solid.angle)
        return flat_panels(-Z * solid.length / 2, Z, np.array([1.0, 0.0, 0.0]), ends, *size, ERROR)
    if isinstance(solid, walls.Hull):
        return (Piece.of_points(corners_of(np.asarray(solid.points, float))),)
    if isinstance(solid, solids.Mesh):
        return tuple(map(Piece.of_points, _cells(solid)))
    raise ModelError(f"{solid!r} has no known pieces; pass a solid such as mbs.Box(...)")


def without_files(solid: solids.Solid) -> solids.Solid:
    """The same solid, with hulls of the pieces of meshes in their place."""
    if isinstance(solid, compounds.Compound):
        pairs: Any = solid.parts
        return compounds.Compound([(without_files(part), pose) for part, pose in pairs])
    if not isinstance(solid, solids.Mesh):
        return solid
    hulls = [walls.Hull(x) for x in _cells(solid)]
    return hulls[0] if len(hulls) == 1 else compounds.Compound(hulls)


def triangles_in(content: bytes, name: str) -> dict[str, list[list[float]]]:
    """The vertices and the triangles in a file with this content, whose name tells its format. Raises ModelError if it
    cannot be read."""
    found = read(content, name)
    return {"vertices": found.vertices.tolist(), "triangles": found.triangles.tolist()}


def _ends(length: float) -> np.ndarray:
    return np.array([-Z, Z]) * length / 2


def _cells(mesh: solids.Mesh) -> list[np.ndarray]:
    """The corners of the convex pieces of a mesh."""
    path = Path(mesh.file) if mesh.file else None
    try:
        found = Triangles.of(mesh.vertices, mesh.triangles) if path is None else read(path.read_bytes(), path.name)
        pieces, _ = cut(found, mesh.scale, mesh.error, path)
    except OSError as error:
        raise ModelError(f'"{mesh.file}" cannot be read: {error.strerror}') from error
    except ModelError as error:
        raise ModelError(f"{mesh.file or 'the mesh'} {error}") from error
    return [x * mesh.scale for x in pieces.points]
