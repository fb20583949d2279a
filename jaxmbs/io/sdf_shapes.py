"""Shapes and colours of SDFormat files."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from jaxmbs.io.draft import Draft
from jaxmbs.io.names import TRUST
from jaxmbs.io.resources import resource
from jaxmbs.io.sdf_frames import Scope, number, text, vector


def form(
    draft: Draft, scope: Scope, e: ET.Element, trust: bool, what: str, where: str
) -> tuple[str, tuple[float, ...], str] | None:
    """The name of a shape, its extents (of a mesh its scale) and its mesh file; None, which the draft notes, if there is
    none that can be used. what: elements of this kind, in the plural."""
    geometry, drawn = e.find("geometry"), what == "visuals"
    shape = geometry[0] if geometry is not None and len(geometry) else None
    if shape is None or shape.tag == "empty":
        draft.leave_out(f"{what} that have no shape")
        return None
    if shape.tag == "box":
        return "box", vector(shape, "size", (1.0, 1.0, 1.0), where, draft.fault), ""
    if shape.tag in ("cylinder", "capsule", "cone"):
        d = 2 * number(shape, "radius", 0.5, where, draft.fault)
        return shape.tag, (d, d, number(shape, "length", 1.0, where, draft.fault)), ""
    if shape.tag == "sphere":
        return "sphere", (2 * number(shape, "radius", 1.0, where, draft.fault),) * 3, ""
    if shape.tag == "ellipsoid" and drawn:
        return "sphere", tuple(2 * x for x in vector(shape, "radii", (1.0, 1.0, 1.0), where, draft.fault)), ""
    if shape.tag == "mesh" and shape.find("submesh") is None:
        if file := resource(scope.file, text(shape, "uri") or "", trust):
            return "mesh", vector(shape, "scale", (1.0, 1.0, 1.0), where, draft.fault), file
        draft.leave_out(f"meshes outside the file's folder, which are read only with {TRUST}")
        return None
    draft.leave_out("parts of meshes" if shape.tag == "mesh" else f"{what} <{shape.tag}>")
    return None


def color(e: ET.Element) -> str:
    """The colour of a visual as "#rrggbb"; "" without one."""
    material = e.find("material")
    said = "" if material is None else text(material, "diffuse") or text(material, "ambient") or ""
    try:
        return (
            "#" + "".join(f"{round(255 * min(max(float(c), 0.0), 1.0)):02x}" for c in said.split()[:3]) if said else ""
        )
    except ValueError:
        return ""
