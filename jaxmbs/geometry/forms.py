"""Pieces of forms that are not convex, or that have many points."""

from __future__ import annotations

import itertools
import math

import numpy as np

from jaxmbs.geometry.pieces import Piece


def flat_panels(
    base: np.ndarray, axis: np.ndarray, middle: np.ndarray, ends: tuple[float, float | None], length: float,
    thickness: float, angle: float, error: float,
) -> tuple[Piece, ...]:  # fmt: skip
    """Flat panels that contain a curved one and are nowhere farther from it than `error` [m].

    base: centre of its base [m]; axis, middle: unit vectors along the axis, and across it to the middle of the panel; ends:
    inner radii at the base and at the end [m], the same at both if the second is None; length: along the axis [m];
    thickness: outwards from the inner radius [m]; angle: about the axis [rad].
    """
    w = np.cross(axis, middle)
    profile = ((0.0, ends[0]), (length, ends[0] if ends[1] is None else ends[1]))
    largest = max(r for _, r in profile) + thickness
    number = math.ceil(angle / (2 * math.acos(1 / (1 + min(error / largest, 1.0)))))
    number = max(number, math.ceil(angle / 2.0))  # none goes half round
    edges = np.linspace(-angle / 2, angle / 2, number + 1)
    outwards = 1 / math.cos(angle / number / 2)

    def corners(turn: float) -> list[np.ndarray]:
        out = middle * math.cos(turn) + w * math.sin(turn)
        return [base + axis * z + out * x for z, r in profile for x in (r, (r + thickness) * outwards)]

    return tuple(Piece.of_points([*corners(x), *corners(y)]) for x, y in itertools.pairwise(edges))


def corners_of(points: np.ndarray) -> np.ndarray:
    """Those of the points that are corners of their hull; all of them if it is flat."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return points[ConvexHull(points).vertices]
    except (QhullError, ValueError):
        return points
