"""What bodies look like, for pictures only: shapes have neither mass nor contact."""

from __future__ import annotations

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind, checked
from jaxmbs.model.fields import Element, element, field
from jaxmbs.model.given import Vector
from jaxmbs.model.pose import Pose
from jaxmbs.spatial import from_quaternion

SHAPES = ("box", "cylinder", "cone", "sphere", "pipe", "nozzle", "half_pipe", "half_nozzle", "mesh")


@element
class Visual(Element):
    """A shape on a body. It fills the box `size` about the origin of its pose; round ones have their axis along z.

    A pipe is hollow and open at both ends, a nozzle too, which is narrower at its upper end; of these there are halves, on
    the side y > 0, in the box of the whole.
    """

    body: str = field(Kind.BODY_OR_WORLD, "", "body that carries it")
    shape: str = field(Kind.CHOICE, "", "what it is; a sphere of three sizes is an ellipsoid", choices=SHAPES)
    size: Vector = field(
        Kind.VECTOR, "m", "extents along x, y, z; of a mesh the scale of its file", default=(1.0, 1.0, 1.0)
    )
    pose: Pose = field(Kind.PART, "", "the shape in the body's frame", default=Pose(), of=Pose)
    color: str = field(Kind.TEXT, "", 'colour such as "#3b82f6"; chosen by body if empty', default="")
    file: str = field(Kind.TEXT, "", "of a mesh: STL, OBJ, ...; beside the file that names it", default="")


def checked_visual(x: Visual) -> Visual:
    """The same visual with plain tuples, which can be compared and hashed. Raises ModelError if it is invalid."""
    if x.shape not in SHAPES:
        raise ModelError(f"shape {x.shape!r} does not exist; it is one of {', '.join(SHAPES)}")
    if x.color and not (
        len(x.color) == 7 and x.color[0] == "#" and all(c in "0123456789abcdefABCDEF" for c in x.color[1:])
    ):
        raise ModelError(f'color {x.color!r} is not a colour; write it as "#rrggbb", two hexadecimal digits each')
    if (x.shape == "mesh") != bool(x.file):
        raise ModelError('the shape "mesh" needs a file, and no other shape has one')
    kind = Kind.VECTOR if x.shape == "mesh" else Kind.NOT_NEGATIVE_VECTOR  # a mirrored mesh has negative scales
    size = tuple(map(float, checked(kind, x.size, "size").tolist()))
    position = tuple(map(float, checked(Kind.VECTOR, x.pose.position, "pose.position").tolist()))
    R = checked(Kind.ROTATION, x.pose.rotation, "pose.rotation")
    if R.shape == (4,):
        R = np.array([*from_quaternion(R.tolist())]).reshape(3, 3)
    rotation = tuple(tuple(map(float, row)) for row in R.tolist())
    return Visual(x.body, x.shape, size, Pose(position, rotation), x.color, x.file)
