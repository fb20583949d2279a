"""What the matrices of a finite-element model must satisfy to be those of a body."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from jaxmbs.model.errors import ModelError, ModelWarning

Array = np.ndarray
ASYMMETRY, RIGID = 1e-8, 1e-6  # allowed, relative to the largest entries
TIGHT = 1e-8  # of the largest eigenvalue, up to which a negative one is rounding
LOOSE = 1e-13  # of the stiffness of the nodes that a motion moves: rounding leaves up to 6e-15 where nothing resists it
WIDE = 3.0  # radius of gyration, relative to the distance of the farthest node from the centre of mass


def symmetric(name: str, x: Any) -> Any:
    """The matrix, made symmetric to the last digit. Raises ModelError if it is asymmetric by more than rounding."""
    m: Any = scipy.sparse.csr_matrix(x) if scipy.sparse.issparse(x) else np.asarray(x)
    if m.ndim != 2 or m.shape[0] != m.shape[1] or not m.shape[0] or m.dtype.kind not in "fiu":
        raise ModelError(
            f"flexible part: the {name} matrix is {m.shape} of {m.dtype}; pass a square one of real numbers"
        )
    m = m.astype(float)
    off, size = abs(m - m.T).max(), abs(m).max()
    if not np.isfinite(size):
        raise ModelError(f"flexible part: the {name} matrix has numbers that are not finite")
    if not size:
        raise ModelError(f"flexible part: the {name} matrix is zero")
    if off > ASYMMETRY * size:
        raise ModelError(f"flexible part: the {name} matrix is not symmetric (by {off:.3g} of {size:.3g})")
    return (m + m.T) / 2


def check_rigid(K: Any, rigid: Array) -> None:
    """Refuse a stiffness matrix that resists motions of the rigid body: it is held somewhere, or units are mixed."""
    forces = np.abs(K @ rigid)
    scale = abs(K) @ np.abs(rigid)
    worst = (forces.max(axis=0) / np.maximum(np.asarray(scale).max(axis=0), 1e-300)).max()
    if worst > RIGID:
        raise ModelError(
            f"flexible part: the stiffness matrix resists the motion of a rigid body (forces of {worst:.2e} of those of its "
            "entries); remove all supports, and check that positions and matrices have the same units and node order"
        )


def check_resisted(K: Any, shapes: Array, squared: Array) -> None:
    """Refuse a stiffness that is negative for a mode, or zero, as when nodes are not connected to the rest. shapes, squared:
    those of the modes and their eigenvalues [1/s²]."""
    if squared.min(initial=0.0) < -TIGHT * squared.max(initial=1.0):
        raise ModelError(f"flexible part: the stiffness matrix has a negative eigenvalue, {squared.min():.3g} 1/s²")
    loose = squared <= LOOSE * np.einsum("ik,ik->k", np.abs(shapes), abs(K) @ np.abs(shapes))
    if loose.any():
        raise ModelError(
            f"flexible part: beside the motions of the rigid body the stiffness matrix leaves {loose.sum()} free "
            f"(eigenvalues up to {np.abs(squared[loose]).max():.1e} of {squared.max():.3g} 1/s²); connect all nodes to the "
            "rest, check signs, and join what moves on hinges as two parts, by a joint"
        )


def warn_if_wide(found: Mapping[str, Any], x: Array) -> None:
    """Warn of rotary inertias that are large for the size of the body: what mixed units give."""
    gyration = (np.trace(found["inertia"]) / 2 / found["mass"]) ** 0.5
    farthest = np.linalg.norm(x - found["com"], axis=1).max()
    if gyration > WIDE * farthest:
        warnings.warn(
            f"flexible part: the mass matrix gives the body a radius of gyration of {gyration:.3g} m, but no node is "
            f"farther than {farthest:.3g} m from its centre of mass; check that positions and rotary inertias have the "
            "same units",
            ModelWarning,
            stacklevel=4,
        )
