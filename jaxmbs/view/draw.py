"""A mechanism as a still picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxmbs.dynamics import body_poses
from jaxmbs.model import Model
from jaxmbs.model.given import Coordinates
from jaxmbs.view.deformed import enlarged, said
from jaxmbs.view.shapes import Drawn, Shapes, scene_of

if TYPE_CHECKING:
    from mpl_toolkits.mplot3d import Axes3D

LIGHT = np.array([0.35, -0.5, 0.8]) / np.linalg.norm([0.35, -0.5, 0.8])


def draw(
    model: Model, q: Coordinates | None = None, axes: Axes3D | None = None, *, t: float = 0.0,
    shapes: Shapes | None = None, over_visuals: bool = False, deformation_scale: float = 1.0,
) -> Axes3D:  # fmt: skip
    """Draw a mechanism at q (nq,) (None: neutral configuration) and time t [s]; returns the axes (new ones if None).

    Bodies are drawn with their visuals, those without visuals with their `shapes`, {body: [(vertices (n, 3) in its axes,
    triangles (m, 3)), ...]}, others as the ellipsoids of their inertia; joints as their axes. over_visuals: draw the
    `shapes` also over visuals, half transparent. Flexible bodies are drawn deformed: their visuals, or lines between their
    nodes; deformation_scale: factor of their modal coordinates, which the title states. Needs matplotlib
    (`pip install 'jaxmbs[study]'`). Raises ModelError for a wrong shape, and for a scale that is negative or not finite.

    >>> axes = mbs.draw(mbs.library.double_pendulum().build(), [0.5, 0.3])
    >>> axes.figure.savefig("pendulum.png")
    """
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    title = f"{model.name}{said(model, deformation_scale, 'draw')}"
    drawn, library = scene_of(model, shapes, over_visuals)
    shown = enlarged(model, np.asarray(model.neutral() if q is None else q), deformation_scale)
    poses = body_poses(model, shown, t=t)
    R, p = np.asarray(poses.rotation, float), np.asarray(poses.position, float)
    if axes is None:
        axes = Figure(figsize=(6, 6), layout="constrained").add_subplot(projection="3d")
    everything, colors = [], []
    placed = [d.vertices(library, shown) for d in drawn]
    placed = [x if d.body < 0 else x @ R[d.body].T + p[d.body] for d, x in zip(drawn, placed, strict=True)]
    for d, x in zip(drawn, _grounds_cut(drawn, placed), strict=True):
        triangles = x[library[d.key][1]]
        normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
        lengths = np.linalg.norm(normals, axis=1, keepdims=True)
        shade = 0.65 + 0.35 * np.abs(normals @ LIGHT)[:, None] / np.where(lengths > 0, lengths, 1)
        everything.append(triangles)
        colors.append(np.c_[shade * np.array(to_rgb(d.color)), np.full(len(shade), d.opacity)])
    if everything:
        found = np.concatenate(everything)
        axes.add_collection3d(Poly3DCollection(found, facecolors=np.concatenate(colors), edgecolors="none"))
        low, high = found.min((0, 1)), found.max((0, 1))
        middle, half = (low + high) / 2, (high - low).max() / 2 or 1.0
        axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half))
        axes.set_zlim(middle[2] - half, middle[2] + half)
    axes.set_box_aspect((1, 1, 1))
    axes.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]", title=title)
    return axes


def _grounds_cut(drawn: list[Drawn], shapes: list[np.ndarray]) -> list[np.ndarray]:
    """The shapes, with the axis-aligned boxes of the world (grounds, walls) reduced to the surroundings of the
    bodies."""
    bodies = [x for d, x in zip(drawn, shapes, strict=True) if d.body >= 0]
    if not bodies:
        return shapes
    low, high = np.min([x.min(0) for x in bodies], 0), np.max([x.max(0) for x in bodies], 0)
    half = 0.6 * (high - low).max()
    low, high = (low + high) / 2 - half, (low + high) / 2 + half

    def cut(d: Drawn, x: np.ndarray) -> np.ndarray:
        along = d.body < 0 and d.key == "box" and (np.count_nonzero(abs(d.matrix[:3, :3]) > 1e-12, axis=0) <= 1).all()
        seen = (x.min(0) <= high).all() and (x.max(0) >= low).all()
        return np.clip(x, low, high) if along and seen else x

    return [cut(d, x) for d, x in zip(drawn, shapes, strict=True)]
