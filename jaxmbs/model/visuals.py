"""What bodies look like, for pictures only: shapes have neither mass nor contact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind, checked
from jaxmbs.model.fields import Element, element, field
from jaxmbs.model.given import Rows, Vector
from jaxmbs.model.pose import HERE, Pose
from jaxmbs.model.solids import Solid, plain_triangles
from jaxmbs.spatial import from_quaternion

SHAPES = ("box", "cylinder", "cone", "sphere", "pipe", "nozzle", "half_pipe", "half_nozzle", "mesh")


@element
class Visual(Element):
    """A shape on a body. It fills the box `size` about the origin of its pose; round shapes have their axis along z.

    A pipe is hollow and open at both ends; so is a nozzle, which is narrower at its upper end. half_pipe and half_nozzle are
    their halves y > 0, in the box of the whole.
    """

    body: str = field(Kind.BODY_OR_WORLD, "", "body that carries it")
    shape: str = field(Kind.CHOICE, "", "what it is; a sphere of three sizes is an ellipsoid", choices=SHAPES)
    size: Vector = field(
        Kind.VECTOR, "m", "extents along x, y, z; of a mesh the scale of its file", default=(1.0, 1.0, 1.0)
    )
    pose: Pose = field(Kind.PART, "", "the shape in the body's frame", default=Pose(), of=Pose)
    color: str = field(Kind.TEXT, "", 'colour such as "#3b82f6"; chosen by body if empty', default="")
    file: str = field(Kind.TEXT, "", "of a mesh: STL, OBJ, ...; beside the file that names it", default="")
    vertices: Rows | None = field(Kind.POINTS, "", "of a mesh without a file, in units of its size", default=None)
    triangles: Rows | None = field(
        Kind.POINTS, "", "of a mesh without a file: the numbers of three vertices each, from 0", default=None
    )


def visuals_of(x: Visual) -> tuple[Visual, ...]:
    """The checked visuals for the given one: itself if its shape is a name, otherwise the parts of its solid. Raises
    ModelError if it is invalid."""
    solid: Any = x.shape
    if isinstance(solid, str):
        return (checked_visual(x),)
    if not isinstance(solid, Solid):
        hint = f"; pass {solid.__name__}(...)" if isinstance(solid, type) else ""
        raise ModelError(f"{solid!r} is neither the name of a shape nor a solid such as mbs.Mesh(...){hint}")
    own = {d: getattr(Visual, d) for d in ("size", "file", "vertices", "triangles")}
    for name, usual in own.items():
        given = getattr(x, name)
        if given is not usual and not np.array_equal(given, usual):
            hint = "; give the pose as pose=..." if isinstance(given, Pose) else ""
            raise ModelError(f"{name} is for shapes that are given by name; a {type(solid).__name__} has its own{hint}")
    found = []
    for part in solid.outlines():
        of_mesh = {"file": part.file, "vertices": part.vertices, "triangles": part.triangles}
        one = checked_visual(replace(x, shape=part.shape, size=part.size, **of_mesh), of_solid=True)
        found.append(one if part.pose is HERE else replace(one, pose=part.pose.within(one.pose)))
    return tuple(found)


def checked_visual(x: Visual, of_solid: bool = False) -> Visual:
    """The same visual with plain tuples, which can be compared and hashed; of_solid: whether its vertices and triangles are
    those of a solid, which are plain tuples already. Raises ModelError if it is invalid."""
    if x.shape not in SHAPES:
        raise ModelError(f"shape {x.shape!r} does not exist; it is one of {', '.join(SHAPES)}")
    if x.color and not (
        len(x.color) == 7 and x.color[0] == "#" and all(c in "0123456789abcdefABCDEF" for c in x.color[1:])
    ):
        raise ModelError(f'color {x.color!r} is not a colour; write it as "#rrggbb", two hexadecimal digits each')
    if (x.shape == "mesh") != (bool(x.file) or x.vertices is not None or x.triangles is not None):
        raise ModelError('the shape "mesh" needs a file, or vertices and triangles, and no other shape has them')
    arrays: tuple[Rows | None, Rows | None] = (None, None)
    if x.shape == "mesh" and not x.file:
        arrays = (x.vertices, x.triangles) if of_solid else plain_triangles(x.vertices, x.triangles)
    elif x.vertices is not None or x.triangles is not None:
        raise ModelError("a mesh has either a file, or vertices and triangles")
    kind = Kind.VECTOR if x.shape == "mesh" else Kind.NOT_NEGATIVE_VECTOR  # a mirrored mesh has negative scales
    size = tuple(map(float, checked(kind, x.size, "size").tolist()))
    position = tuple(map(float, checked(Kind.VECTOR, x.pose.position, "pose.position").tolist()))
    R = checked(Kind.ROTATION, x.pose.rotation, "pose.rotation")
    if R.shape == (4,):
        R = np.array([*from_quaternion(R.tolist())]).reshape(3, 3)
    rotation = tuple(tuple(map(float, row)) for row in R.tolist())
    return Visual(x.body, x.shape, size, Pose(position, rotation), x.color, x.file, *arrays)
