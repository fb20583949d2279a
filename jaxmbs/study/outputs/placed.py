"""Solids fixed to bodies, as the shapes of clearances."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.model import Pose, compounds, solids, walls
from jaxmbs.model.field_rules import Kind, checked
from jaxmbs.model.pose import HERE
from jaxmbs.study.outputs.compound import Compound
from jaxmbs.study.outputs.mesh import Mesh
from jaxmbs.study.outputs.shapes import Ball, Box, Capsule, Cone, Disc, Hull, Panel, Shape, Tube, edges_of


def shape_on(body: str, solid: solids.Solid, pose: Pose = HERE) -> Shape:
    """A solid such as `mbs.Mesh(...)` or `mbs.Box(...)`, on a body or on the world, as a shape for clearances.

    pose: of the solid in the body's frame. Raises ModelError for what is not a solid, and for what is not a pose.

    >>> from jaxmbs.study.outputs import shape_on
    >>> shape_on("stage", mbs.Tube(radius=0.5, length=2.0), mbs.Pose((0, 0, 1))).center
    (0.0, 0.0, 1.0)
    """
    if not isinstance(pose, Pose):
        raise ModelError(f"shape_on: pose is {pose!r}; pass a mbs.Pose")
    if isinstance(solid, compounds.Compound):
        pairs: Any = solid.parts
        return Compound([shape_on(body, part, own.within(pose)) for part, own in pairs])
    x, y, z = checked(Kind.VECTOR, pose.position, "shape_on: pose.position").tolist()
    given = checked(Kind.ROTATION, pose.rotation, "shape_on: pose.rotation").tolist()
    turned = tuple(tuple(row) if isinstance(row, list) else row for row in given)
    edges = edges_of(turned)
    center, axis = (x, y, z), tuple(edges[2].tolist())
    if isinstance(solid, solids.Mesh):
        return Mesh(body, solid, position=center, rotation=turned)
    if isinstance(solid, solids.Ball):
        return Ball(body, center, radius=solid.radius)
    if isinstance(solid, solids.Box):
        return Box(body, center, size=solid.size, rotation=turned)
    if isinstance(solid, solids.Tube):
        return Tube(body, center, axis=axis, radius=solid.radius, length=solid.length)
    if isinstance(solid, walls.Disc):
        return Disc(body, center, axis=axis, radius=solid.radius)
    if isinstance(solid, solids.Capsule):
        return Capsule(body, center, axis=axis, radius=solid.radius, length=solid.length)
    if isinstance(solid, (walls.Cone, walls.Panel)):
        base = tuple((np.asarray(center) - edges[2] * solid.length / 2).tolist())
        same = {"axis": axis, "radius": solid.radius, "length": solid.length, "end_radius": solid.end_radius}
        if isinstance(solid, walls.Cone):
            return Cone(body, base, **same)
        middle = tuple(edges[0].tolist())
        return Panel(body, base, **same, thickness=solid.thickness, angle=solid.angle, middle=middle)
    if isinstance(solid, walls.Hull):
        return Hull(body, points=np.asarray(center) + np.asarray(solid.points) @ edges)
    raise ModelError(f"shape_on: {solid!r} is not a solid; pass one such as mbs.Mesh(...)")
