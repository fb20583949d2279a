"""Forms of bodies without the bodies: one family for pictures, contact, clearances and the collision shapes of robots."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from jaxmbs.geometry.meshes import Triangles
from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind, checked
from jaxmbs.model.fields import Element, declared, element, field
from jaxmbs.model.given import Rows, Vector
from jaxmbs.model.pose import HERE, Pose

Arrays = tuple[Rows | np.ndarray, Rows | np.ndarray]  # vertices (n, 3), triangles (m, 3)


class Outline(NamedTuple):
    """A part of a form as a shape for pictures: what it is, its extents [m], and its pose in the form.

    A mesh has a file, or vertices and triangles; its size is their scale.
    """

    shape: str
    size: tuple[float, ...]
    file: str = ""
    vertices: Rows | None = None
    triangles: Rows | None = None
    pose: Pose = HERE


@element
class Solid(Element):
    """Base of the forms. The origin is in their middle; round forms have their axis along z."""

    def __post_init__(self) -> None:
        for d in declared(type(self)):
            value = getattr(self, d.name)
            if d.kind.is_number and value is not None:
                x = checked(d.kind, value, f"{type(self).__name__}: {d.name}")
                object.__setattr__(self, d.name, tuple(x.tolist()) if x.ndim else float(x))

    def outlines(self) -> tuple[Outline, ...]:
        """The parts that are drawn."""
        raise NotImplementedError


@element
class Ball(Solid):
    """A sphere; a form without a body: `Mechanism.add_visual` draws it on a body, a `ShapeContact` lets it touch another
    form, and `mbs.study.outputs.shape_on` fixes it to a body for clearances.

    >>> mbs.Ball(0.5) == mbs.Ball(radius=0.5)
    True
    """

    radius: float = field(Kind.POSITIVE, "m", "radius")

    def outlines(self) -> tuple[Outline, ...]:
        return (Outline("sphere", (2 * self.radius,) * 3),)


@element
class Box(Solid):
    """A box; a form without a body, used like `Ball`.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_visual("upper", mbs.Box((0.1, 0.1, 1.0)), pose=mbs.Pose((0, 0, -0.5)))
    """

    size: Vector = field(Kind.VECTOR, "m", "lengths of its edges along x, y and z, more than zero")

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.size) <= 0:
            raise ModelError(f"Box: size: {list(self.size)}: the lengths of edges must be more than zero")

    def outlines(self) -> tuple[Outline, ...]:
        x, y, z = map(float, self.size)
        return (Outline("box", (x, y, z)),)


@element
class Tube(Solid):
    """A solid cylinder along z; a form without a body, used like `Ball`.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_visual("upper", mbs.Tube(radius=0.05, length=1.0), pose=mbs.Pose((0, 0, -0.5)))
    """

    radius: float = field(Kind.POSITIVE, "m", "radius")
    length: float = field(Kind.POSITIVE, "m", "from end to end, along z")

    def outlines(self) -> tuple[Outline, ...]:
        return (Outline("cylinder", (2 * self.radius, 2 * self.radius, self.length)),)


@element
class Capsule(Solid):
    """A cylinder along z with a hemisphere on each end; a form without a body, used like `Ball`.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_visual("upper", mbs.Capsule(radius=0.05, length=0.9), pose=mbs.Pose((0, 0, -0.5)))
    """

    radius: float = field(Kind.POSITIVE, "m", "radius")
    length: float = field(Kind.NOT_NEGATIVE, "m", "of the straight part, along z")

    def outlines(self) -> tuple[Outline, ...]:
        ball = Outline("sphere", (2 * self.radius,) * 3)
        ends = (ball._replace(pose=Pose((0.0, 0.0, x))) for x in (-self.length / 2, self.length / 2))
        return (*Tube(self.radius, self.length).outlines(), *ends) if self.length else (ball,)


@element
class Mesh(Solid):
    """A form from a CAD program, without a body: triangles in a file (STL, OBJ, PLY, ...) or as arrays, (vertices,
    triangles) in place of the file. Meshes are equal if they have the same file name or the same arrays.

    `Mechanism.add_visual` draws it on a body, and a `ShapeContact` lets it touch another form;
    `mbs.study.outputs.Mesh(body, mesh)`, or `shape_on` there with a pose, fixes it to a body for clearances. A file is read
    only when one of these needs it, by trimesh (pip install 'jaxmbs[view]' or 'jaxmbs[mesh]'). An open mesh can be drawn,
    but has neither contact nor clearance. `mbs.save` writes arrays as lists of points: keep a mesh of many thousand
    triangles in a file. Raises ModelError for arrays that do not describe triangles.

    >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> wedge = mbs.Mesh(vertices=corners, triangles=[[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]], scale=0.1)
    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_visual("upper", wedge, color="#3b82f6")
    >>> stage = mbs.Mesh("stage.stl", scale=0.001)  # drawn in millimetres
    >>> mbs.study.outputs.Mesh("upper", stage) == mbs.study.outputs.Mesh("upper", "stage.stl", scale=0.001)
    True
    """

    file: str = field(Kind.TEXT, "", "path of the file; empty for arrays", default="")
    vertices: Rows | None = field(Kind.POINTS, "", "without a file: (n, 3), in units of `scale`", default=None)
    triangles: Rows | None = field(
        Kind.POINTS,
        "",
        "without a file: (m, 3), numbers of vertices from 0, counterclockwise from outside",
        default=None,
    )
    scale: float = field(Kind.POSITIVE, "m", "length of the unit of the mesh: 0.001 if it is in mm", default=1.0)
    error: float | None = field(
        Kind.POSITIVE, "m", "how far convex pieces that replace it may be from it, as in `mbs.study.outputs.Mesh`",
        default=None,
    )  # fmt: skip

    def __init__(
        self, file: str | os.PathLike[str] | Arrays = "", *, vertices: Rows | np.ndarray | None = None,
        triangles: Rows | np.ndarray | None = None, scale: float = 1.0, error: float | None = None,
    ) -> None:  # fmt: skip
        given: Any = file
        both = isinstance(given, (tuple, list))
        if both and (len(given) != 2 or vertices is not None or triangles is not None):
            raise ModelError("Mesh: pass a path, or the pair (vertices, triangles)")
        corners, sides = given if both else (vertices, triangles)
        if not both and not isinstance(given, (str, os.PathLike)):
            raise ModelError(f"Mesh: {type(given).__name__} is no path; pass one, or the pair (vertices, triangles)")
        path = "" if both else os.fspath(given)
        if bool(path) == (corners is not None) or (corners is None) != (sides is None):
            raise ModelError("Mesh: give either a file, or vertices and triangles")
        corners, sides = (None, None) if corners is None else plain_triangles(corners, sides)
        made = {"file": path, "vertices": corners, "triangles": sides, "scale": scale, "error": error}
        for name, x in made.items():
            object.__setattr__(self, name, x)
        self.__post_init__()

    def outlines(self) -> tuple[Outline, ...]:
        return (Outline("mesh", (self.scale,) * 3, self.file, self.vertices, self.triangles),)


def plain_triangles(vertices: Any, triangles: Any) -> tuple[Rows, Rows]:
    """Vertices (n, 3) and triangles (m, 3) as tuples, which can be compared and hashed. Raises ModelError if they do not
    describe triangles."""
    try:
        Triangles.of(vertices, triangles)
    except ModelError as error:
        raise ModelError(f"Mesh: {error}") from None
    return tuple_rows(np.asarray(vertices, float)), tuple_rows(np.asarray(triangles).astype(int))


def tuple_rows(x: np.ndarray) -> Rows:
    """The rows of an array (n, k) as tuples. By columns: lists of rows in between would take five times as long."""
    return tuple(zip(*(column.tolist() for column in x.T), strict=True))
