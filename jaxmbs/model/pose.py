"""Placement of one frame in another, as users write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxmbs.model.errors import ModelError


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pose:
    """Placement of a frame in its parent: x_parent = rotation @ x_child + position.

    position: (3,) [m]; rotation: quaternion w, x, y, z (normalised) or a 3x3 rotation matrix.
    Poses returned by the library hold matrices, with any leading axes.
    """

    position: Any = (0.0, 0.0, 0.0)
    rotation: Any = (1.0, 0.0, 0.0, 0.0)


def rotation_matrix(rotation: Any, where: str) -> np.ndarray:
    """Checked 3x3 matrix of a quaternion or a matrix of concrete numbers."""
    R = np.asarray(rotation, float)
    if not np.all(np.isfinite(R)):
        raise ModelError(f"{where}: rotation has a value that is not finite: {rotation!r}")
    if R.shape == (4,):
        n = float(np.linalg.norm(R))
        if n < 1e-12:
            raise ModelError(f"{where}: the quaternion is zero; no rotation is (1, 0, 0, 0)")
        w, x, y, z = R / n
        return np.array([
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ])  # fmt: skip
    if R.shape != (3, 3):
        raise ModelError(f"{where}: rotation has shape {R.shape}; pass a quaternion (w, x, y, z) or a 3x3 matrix")
    off = float(np.abs(R @ R.T - np.eye(3)).max())
    if off > 1e-6 or np.linalg.det(R) < 0:
        raise ModelError(
            f"{where}: the 3x3 rotation is not proper orthogonal (R Rᵀ differs from 1 by {off:.1e}, "
            f"det {np.linalg.det(R):+.3f}); pass a rotation matrix or a quaternion"
        )
    return R
