"""Collision shapes of USD files, as forms with poses in the frames of their bodies."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.io.draft import Draft, Form, tidy
from jaxmbs.model import Ball, Box, Capsule, Cone, Mesh, Pose, Tube

ALONG = {"X": 0, "Y": 1, "Z": 2}
_FLAT = 1e-5  # by which directions and scales may differ: the format holds single precision


def form_of(draft: Draft, prim: Any, placed: np.ndarray, position: np.ndarray) -> tuple[Form, Pose] | None:
    """The form of a prim and its pose in the frame of its body; None, which the draft notes, if there is none.

    placed (3, 3): from the axes of the prim to those of the body, with the scale and with the length of the stage's unit;
    position (3,): of its origin [m].
    """
    kind, where = str(prim.GetTypeName()), str(prim.GetPath())
    try:
        if kind == "Mesh":
            return _mesh(draft, prim, placed, position)
        return _plain(draft, kind, prim, placed, position)
    except ModelError as error:
        draft.fault(where, str(error))
        return None


def _plain(draft: Draft, kind: str, prim: Any, placed: np.ndarray, position: np.ndarray) -> tuple[Form, Pose] | None:
    if kind not in ("Cube", "Sphere", "Cylinder", "Capsule", "Cone"):
        draft.leave_out(f"collision shapes of the type {kind or 'none'}")
        return None
    scale = np.linalg.norm(placed, axis=0)
    if not scale.all() or np.abs((placed / scale).T @ (placed / scale) - np.eye(3)).max() > _FLAT:
        draft.leave_out("collision shapes that are skewed or flat")
        return None
    R, along = placed / scale, 2
    if kind in ("Cylinder", "Capsule", "Cone"):
        along = ALONG[str(prim.GetAttribute("axis").Get())]
    x, y = (along + 1) % 3, (along + 2) % 3  # the others, such that x, y, along are right-handed
    R, (s, across, length) = R[:, [x, y, along]], scale[[x, y, along]]
    if np.linalg.det(R) < 0:  # all of these shapes are symmetric in x
        R = R * (-1.0, 1.0, 1.0)
    pose = Pose(tuple(position.tolist()), tidy(orthonormal(R)))
    if kind == "Cube":
        return Box(tuple((float(prim.GetAttribute("size").Get()) * np.array([s, across, length])).tolist())), pose
    round_ = (s, across) if kind in ("Cylinder", "Cone") else (s, across, length)
    if np.ptp(round_) > _FLAT * max(round_):
        draft.leave_out("round collision shapes that are scaled differently along x, y and z")
        return None
    radius = float(prim.GetAttribute("radius").Get()) * float(s)
    if kind == "Sphere":
        return Ball(radius), pose
    height = float(prim.GetAttribute("height").Get()) * float(length)
    return {"Cylinder": Tube, "Capsule": Capsule, "Cone": Cone}[kind](radius, height), pose


def _mesh(draft: Draft, prim: Any, placed: np.ndarray, position: np.ndarray) -> tuple[Form, Pose] | None:
    """The triangles of a mesh in axes of its body; of its faces with more corners, which must be convex, fans."""
    points = np.array(prim.GetAttribute("points").Get() or (), float).reshape(-1, 3) @ placed.T + position
    counts = np.array(prim.GetAttribute("faceVertexCounts").Get() or (), int)
    corners = np.array(prim.GetAttribute("faceVertexIndices").Get() or (), int)
    if counts.sum() != len(corners) or (counts < 3).any():
        raise ModelError("its faceVertexCounts do not fit its faceVertexIndices; a face has three corners or more")
    if len(corners) and not (corners.min() >= 0 and corners.max() < len(points)):
        raise ModelError(f"its faceVertexIndices must be numbers of its {len(points)} points, from 0")
    first = np.cumsum(counts) - counts
    face = np.repeat(np.arange(len(counts)), counts - 2)
    second = np.arange(len(face)) - np.repeat(np.cumsum(counts - 2) - (counts - 2), counts - 2) + first[face] + 1
    triangles = np.stack([corners[first[face]], corners[second], corners[second + 1]], 1)
    if len(triangles):
        a, b, c = np.moveaxis(points[triangles], 1, 0)
        areas = np.cross(b - a, c - a)
        whole = np.stack([np.bincount(face, x, len(counts)) for x in areas.T], 1)
        size = np.abs(whole).max()
        if ((areas * whole[face]).sum(1) < -_FLAT * size**2).any():
            draft.leave_out("meshes with faces that are not convex")
            return None
    left = str(prim.GetAttribute("orientation").Get() or "rightHanded") == "leftHanded"
    if left != (np.linalg.det(placed) < 0):
        triangles = triangles[:, ::-1]
    return Mesh(vertices=points, triangles=triangles), Pose()


def orthonormal(R: np.ndarray) -> np.ndarray:
    """The rotation nearest to a matrix."""
    U, _, V = np.linalg.svd(R)
    return U @ V
