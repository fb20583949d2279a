"""Convex pieces that together contain a mesh, with a bound on how far their surface is from it."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.batching.folder import folder
from jaxmbs.errors import ModelError
from jaxmbs.geometry.meshes import NEEDS, Cell, Triangles, covered, excess, from_hull

TRIES = 4
GAPS = 5e-5  # of the mesh's size: gaps between CoACD's parts, which are rounded, are not wider
FEW = 16  # corners: a piece that has no more keeps them all
MANY = 64  # corners of a convex mesh: one that has no more keeps them all
VERSION = 2  # of what is computed here; pieces that another version has stored are computed again


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Convex pieces that contain a mesh: the hulls of `points`, each thickened by one of `margins`. error: the surface of
    their union is nowhere farther from the mesh than this. All in the unit of the mesh."""

    points: tuple[np.ndarray, ...]
    margins: np.ndarray
    error: float

    def to_bytes(self) -> bytes:
        """As a file of NumPy's (.npz), always the same bytes for the same pieces."""
        arrays = {
            "points": np.concatenate(self.points), "ends": np.cumsum([len(x) for x in self.points]),
            "margins": self.margins, "error": self.error, "version": VERSION,
        }  # fmt: skip
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name, x in arrays.items():
                entry = io.BytesIO()
                np.lib.format.write_array(entry, np.asarray(x))
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), entry.getvalue())  # without a date
        return out.getvalue()

    @classmethod
    def of_bytes(cls, content: bytes) -> Decomposition | None:
        """The pieces in a file that `to_bytes` wrote; None if it is not such a file, or one of another version."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as f:
                if int(f["version"]) != VERSION:
                    return None
                points = tuple(np.split(f["points"], f["ends"][:-1]))
                return cls(points, f["margins"], float(f["error"]))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None


def decompose(mesh: Triangles, error: float) -> Decomposition:
    """Pieces whose union contains the mesh, and has a surface nowhere farther from it than `error` [unit of the mesh].

    CoACD (MIT licence) chooses the cuts; whether the pieces contain the mesh, and how far their surface is from it, is then
    computed here from the triangles. Corners that hardly matter are left out, and the piece thickened instead. Raises
    ModelError for what is not the surface of a body, and if the error cannot be reached.
    """
    if fault := mesh.fault():
        raise ModelError(fault)
    whole = Cell.of(mesh.vertices)
    if whole is None:
        raise ModelError("is flat; take the shape hull with its vertices")
    if mesh.is_hull(whole):
        return _of_hull(whole, 1e-9 * mesh.size, error)
    threshold, reached = 2 * error, []
    for _ in range(TRIES):
        cells, margin = _cells(mesh, threshold), min(GAPS * mesh.size, error / 4)
        while margin <= error and not covered(mesh, cells, margin):
            margin *= 2
        if margin > error:  # a part is missing, or CoACD gave none
            threshold /= 2
            continue
        margins = np.array([cell.reach(margin) for cell in cells])
        found = excess(mesh, cells, margin, error / 4) + float(margins.max())
        if found <= error:
            fewer = [_fewer(x.points, min(error / 4, error - found)) for x in cells]
            more = np.array([x for _, x in fewer])
            return Decomposition(tuple(x for x, _ in fewer), margins + more, found + float(more.max()))
        reached.append((found, len(cells)))
        threshold *= 0.7 * error / found
    if not reached:
        raise ModelError(
            "cannot be cut into convex pieces that contain it; look for surfaces that cross or lie in one another"
        )
    best, number = min(reached)
    raise ModelError(
        f"{number} convex pieces come within {best:.3g} of it, and error = {error:.3g} is asked; allow a larger error, or "
        "leave out small details of the mesh"
    )


def _of_hull(cell: Cell, rounding: float, error: float) -> Decomposition:
    """The single piece of a convex mesh. If the mesh has many corners, as a dome has, some of them are enough."""
    if len(cell.points) <= MANY:
        return Decomposition((cell.points,), np.array([cell.reach(rounding)]), cell.reach(rounding))
    points, more = _fewer(cell.points, error / 2)
    # the hull of all corners contains the mesh as it is: its planes need not be moved
    return Decomposition((points,), np.array([more + rounding]), more + rounding)


_known: dict[str, Decomposition] = {}


def kept(mesh: Triangles, error: float, folder: Path | None, stem: str) -> tuple[Decomposition, str]:
    """The pieces of a mesh, and the name of the file in which a folder keeps them: read from there, or computed and
    written there if that is possible. The name has a hash of everything that they depend on. Raises ModelError as
    `decompose` does."""
    found = hashlib.sha256(repr((VERSION, f"{error:.9g}")).encode())
    found.update(np.ascontiguousarray(mesh.vertices).tobytes() + np.ascontiguousarray(mesh.triangles).tobytes())
    key = found.hexdigest()[:16]
    name = f"{stem}-{key}.pieces.npz"
    computed = False
    if key not in _known:
        stored = None
        with suppress(OSError):
            stored = Decomposition.of_bytes((folder / name).read_bytes()) if folder else None
        _known[key], computed = stored or decompose(mesh, error), stored is None
    if folder and (computed or not (folder / name).exists()):
        with suppress(OSError):  # a folder that cannot be written, as that of a run in a bucket
            folder.mkdir(parents=True, exist_ok=True)
            part = folder / f"{name}.{os.getpid()}"
            part.write_bytes(_known[key].to_bytes())
            part.replace(folder / name)
    return _known[key], name


@functools.lru_cache(32)
def read(content: bytes, name: str) -> Triangles:
    """The mesh in a file with this content, whose name tells its format. Raises ModelError."""
    return Triangles.read(content, name)


def cut(mesh: Triangles, scale: float, error: float | None, path: Path | None) -> tuple[Decomposition, str]:
    """`kept` in the folder of the mesh's file or, for arrays (path is None), in the folder "pieces" beside the user's
    compiled programs. scale [m]: the unit of the mesh; error [m]: None for a hundredth of the size of the mesh."""
    allowed = mesh.size / 100 if error is None else error / scale
    if path is not None:
        return kept(mesh, allowed, path.parent, path.stem)
    programs = folder()
    return kept(mesh, allowed, programs and programs.with_name("pieces"), "mesh")


def _cells(mesh: Triangles, threshold: float) -> list[Cell]:
    try:
        import coacd
    except ModuleNotFoundError as error:
        raise ModelError(NEEDS) from error
    coacd.set_log_level("error")
    given: Any = coacd.Mesh(mesh.vertices, mesh.triangles)
    parts = coacd.run_coacd(given, threshold=threshold, preprocess_mode="off", real_metric=True, seed=1)
    found = [Cell.of(np.asarray(points, float)) for points, _ in parts]
    return [x for x in found if x is not None]


def _fewer(points: np.ndarray, tolerance: float) -> tuple[np.ndarray, float]:
    """Some of the corners (n, 3) of a hull, and how far the others are from the hull of these, at most `tolerance`."""
    if len(points) <= FEW:
        return points, 0.0
    directions = np.concatenate([np.eye(3), -np.eye(3)])
    kept = np.unique((points @ directions.T).argmax(0)).tolist()
    while len(kept) < len(points):
        cell = Cell.of(points[kept])
        rest = np.setdiff1d(np.arange(len(points)), kept)
        if cell is None:
            kept.append(int(rest[0]))
            continue
        beyond = cell.beyond(points[rest])
        if beyond.max() <= 0.7 * tolerance:
            farthest = from_hull(points[rest], points[kept])
            if farthest.max() <= tolerance:
                return points[kept], float(farthest.max())
            beyond = farthest
        kept.append(int(rest[beyond.argmax()]))
    return points, 0.0
