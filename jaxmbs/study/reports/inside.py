"""Where a shape comes closest to the inner side of the hollow one that contains it, for pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbs.study.outputs import Ball, Clearance, Disc, Tube
from jaxmbs.study.outputs.inside import Corners

FINE = 201  # points of an edge; of a rim there are four times as many


def nearest_inside(output: Clearance, rotation: np.ndarray, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points (3,) of the shape and of the wall that are nearest to each other, in axes of the hollow body. rotation,
    position: of the shape's body in axes of the hollow body. In an open tube, only what lies between its ends counts, if
    anything does.

    Both are found from sampled points on the edges of the shape, which is exact enough for a picture.
    """
    points, balls = _points(output)
    hollow: Any = output.shape_b
    center = np.asarray(hollow.center, float)
    p = points @ rotation.T + position - center
    outwards, room = _walls(output, p)
    gap = room - balls
    if output.open and isinstance(hollow, Tube):
        between = np.abs(p @ np.asarray(hollow.axis)) <= hollow.length / 2 + balls
        gap = np.where(between, gap, np.inf if between.any() else gap)
    k = int(gap.argmin())
    return center + p[k] + balls[k] * outwards[k], center + p[k] + room[k] * outwards[k]


def _points(output: Clearance) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) on the edges of the shape, and the radii (n,) of the balls about them."""
    if isinstance(output.shape_a, Disc):
        rim = np.concatenate([x.seen(4 * FINE) for x in output.shape_a.pieces()])
        return rim, np.zeros(len(rim))
    points, balls, edges = Corners.of(output.shape_a)
    share = np.linspace(0, 1, FINE)[:, None]
    along = [points[i] + (points[j] - points[i]) * share for i, j in edges]
    return np.concatenate(along), np.repeat(balls[edges[:, 0]], FINE)


def _walls(output: Clearance, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For points (n, 3) relative to the centre of the hollow shape: unit vectors (n, 3) to the nearest wall, and how far it
    is (n,)."""
    hollow: Any = output.shape_b
    if isinstance(hollow, Ball):
        away, far = _unit(p)
        return away, hollow.radius - far
    if isinstance(hollow, Tube):
        axis = np.asarray(hollow.axis, float)
        high = p @ axis
        across, far = _unit(p - np.outer(high, axis))
        ends = (
            [] if output.open else [(np.where(high < 0, -1.0, 1.0)[:, None] * axis, hollow.length / 2 - np.abs(high))]
        )
        walls = [(across, hollow.radius - far), *ends]
    else:
        walls = []
        for edge, size in zip(hollow.edges(), hollow.size, strict=True):
            high = p @ edge
            walls.append((np.where(high < 0, -1.0, 1.0)[:, None] * edge, size / 2 - np.abs(high)))
    room = np.stack([x for _, x in walls])
    first = room.argmin(0)
    return np.stack([x for x, _ in walls])[first, np.arange(len(p))], room.min(0)


def _unit(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors along vectors (n, 3), that of zero being any, and their lengths (n,)."""
    far = np.linalg.norm(p, axis=1)
    return np.where(far[:, None] > 0, p / np.where(far > 0, far, 1.0)[:, None], [1.0, 0.0, 0.0]), far
