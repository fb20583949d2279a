"""Unphysical inertias, and the nearest physical ones."""

from __future__ import annotations

import numpy as np


def nearest_inertia(inertia: np.ndarray) -> np.ndarray:
    """The physical inertia (3, 3) nearest to a symmetric matrix, both about the centre of mass.

    The second moments of mass, ½ tr(I) 1 - I, must not be negative along any axis: negative ones become zero. For the
    same mass and centre of mass, this is the nearest pseudo-inertia in the Frobenius norm, taken at the centre of mass.

    >>> nearest_inertia(np.diag([1.0, 1.0, 2.2])).round(3).tolist()
    [[1.1, 0.0, 0.0], [0.0, 1.1, 0.0], [0.0, 0.0, 2.2]]
    """
    I = (inertia + inertia.T) / 2
    moments, axes = np.linalg.eigh(np.trace(I) / 2 * np.eye(3) - I)
    if moments[0] >= 0:
        return I
    if not np.any(I - np.diag(np.diag(I))):  # the axes of a diagonal matrix are known exactly
        moments, axes = np.trace(I) / 2 - np.diag(I), np.eye(3)
    second = (axes * np.maximum(moments, 0.0)) @ axes.T
    return np.trace(second) * np.eye(3) - (second + second.T) / 2
