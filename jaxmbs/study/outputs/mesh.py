"""Shapes from CAD programs: meshes, replaced by convex pieces that contain them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.geometry import Piece
from jaxmbs.geometry.decompose import Decomposition, cut, read
from jaxmbs.geometry.meshes import Triangles
from jaxmbs.model import solids
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Rows, Vector
from jaxmbs.study.outputs.shapes import Shape, edges_of


@element
class Mesh(Shape):
    """A body of any form, concave ones too: triangles from a CAD program, in a file (STL, OBJ, PLY, STEP with cascadio) or
    as arrays. In Python, a `jaxmbs.Mesh` in place of the file gives the scale, the error and the arrays too.

    It is cut once into convex pieces that contain it, and the surface of all of them is nowhere farther from it than
    `error`; CoACD chooses the cuts, and both properties are then computed from the triangles. The pieces are kept beside
    the file, in one whose name has a hash of the content. Needs trimesh and coacd: pip install 'jaxmbs[mesh]'. A mesh that
    is open, inside out, or of a size that does not fit the body's inertia is refused.

    >>> from jaxmbs.study.outputs import Mesh
    >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> faces = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
    >>> wedge = Mesh("stage", vertices=corners, triangles=faces)
    >>> len(wedge.pieces())
    1
    """

    file: str | os.PathLike[str] | solids.Mesh = field(Kind.TEXT, "", "mesh file beside this one", default="")
    scale: float = field(
        Kind.POSITIVE, "m", "length of the unit of the mesh: 0.001 if it is in mm", default=1.0, kw_only=True
    )
    position: Vector = field(
        Kind.VECTOR, "m", "of the origin of the mesh, in body axes", default=(0.0, 0.0, 0.0), kw_only=True
    )
    rotation: Vector | Rows = field(
        Kind.ROTATION, "", "from axes of the mesh to those of the body", default=(1.0, 0.0, 0.0, 0.0), kw_only=True
    )
    error: float | None = field(
        Kind.POSITIVE, "m", "how far the surface of the pieces may be from it; a hundredth of its size if there is none",
        default=None, kw_only=True,
    )  # fmt: skip
    vertices: Rows | np.ndarray | None = field(
        Kind.POINTS, "m", "without a file: its vertices, in units of `scale`", default=None, kw_only=True
    )
    triangles: Rows | np.ndarray | None = field(
        Kind.POINTS, "", "without a file: the numbers of three vertices each, from 0, counterclockwise from outside",
        default=None, kw_only=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.file, solids.Mesh):
            self._take(self.file)
        elif isinstance(self.file, os.PathLike):
            object.__setattr__(self, "file", os.fspath(self.file))
        for name in ("vertices", "triangles"):
            given = getattr(self, name)
            rows = given.tolist() if isinstance(given, np.ndarray) else given
            if isinstance(rows, list):  # tuples can be compared
                object.__setattr__(self, name, tuple(tuple(x) if isinstance(x, list) else x for x in rows))

    def _take(self, mesh: solids.Mesh) -> None:
        for name in ("scale", "error", "vertices", "triangles"):
            given, usual = getattr(self, name), getattr(Mesh, name)
            if given is not usual and (usual is None or given != usual):
                raise ModelError(f"mesh on {self.body!r}: {name} is that of its jaxmbs.Mesh; give it there")
            object.__setattr__(self, name, getattr(mesh, name))
        object.__setattr__(self, "file", mesh.file)

    @property
    def path(self) -> str:
        """Its file; empty for arrays."""
        return str(self.file)

    @property
    def called(self) -> str:
        """What messages call it."""
        return f'"{Path(self.path).name}"' if self.file else "the mesh"

    def faults(self) -> Iterator[tuple[str, str]]:
        if bool(self.file) == (self.vertices is not None) or (self.vertices is None) != (self.triangles is None):
            yield "file", "give a mesh either a file, or vertices and triangles"
            return
        key = "file" if self.file else "vertices"
        try:
            self.decomposition()
        except ModelError as error:
            yield key, f"{self.called} {error}"

    def size(self) -> float:
        """The longest side of the box about it along its own axes [m]. Raises ModelError."""
        return self._mesh().size * self.scale

    def said(self) -> str:
        """What replaces it, for readers."""
        d = self.decomposition()
        number = f"{len(d.points)} convex piece{'s' * (len(d.points) > 1)}"
        return f"{number}, nowhere farther from {self.called} than {1e3 * d.error * self.scale:.2g} mm"

    def files(self) -> dict[str, bytes]:
        """The content of its file and of the one with its pieces, by name; nothing for arrays. Raises ModelError."""
        if not self.file:
            return {}
        found, name = self._cut()
        return {Path(self.path).name: self._content(), name: found.to_bytes()}

    def decomposition(self) -> Decomposition:
        """The convex pieces, in units and axes of the mesh. Raises ModelError."""
        return self._cut()[0]

    def pieces(self) -> tuple[Piece, ...]:
        R, p = edges_of(self.rotation), np.asarray(self.position, float)
        d = self.decomposition()
        placed = [x * self.scale @ R + p for x in d.points]
        return tuple(Piece.of_points(x, float(m) * self.scale) for x, m in zip(placed, d.margins, strict=True))

    def _content(self) -> bytes:
        try:
            return Path(self.path).read_bytes()
        except OSError as error:
            raise ModelError(f"cannot be read: {error.strerror}") from error

    def _mesh(self) -> Triangles:
        if self.file:
            return read(self._content(), Path(self.path).name)
        return Triangles.of(self.vertices, self.triangles)

    def _cut(self) -> tuple[Decomposition, str]:
        return cut(self._mesh(), self.scale, self.error, Path(self.path) if self.file else None)
