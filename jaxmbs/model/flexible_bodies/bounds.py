"""What the shape integrals of every body satisfy, whatever its shape: numbers in other units rarely do.

Modes of unit modal mass are orthonormal functions in the body, of which the density is the weight. The square of the
integral of rho f . phi, summed over the modes, is therefore at most the integral of rho f . f (Bessel), and the largest
singular value of a matrix of integrals of rho phi_k . A phi_l at most that of A.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from jaxmbs.model.errors import ModelError, ModelWarning

# Where masses are not lumped at nodes, the displacements of nodes alone are not quite orthonormal: reduced beams and plates
# of few elements have up to 1.06 and 2.2 times what a body can have.
CHANGE, PRODUCTS = 1.5, 3.0
THIN = 1e-6  # of the sum of principal inertias: what rounding leaves of one that is zero
APART = 100.0  # radii of gyration from the centre of mass to the farthest node, or the other way round


def check_integrals(part: Any) -> None:
    """Refuse a part whose shape integrals no body can have, with the figures, and warn of one whose nodes do not fit it."""
    sizes, axes = np.linalg.eigh(part.mass_matrix[:3, :3])  # the inertia about the frame's origin
    sizes = sizes + THIN * sizes.sum()
    # f is -(a . x) b - (b . x) a for two axes, and twice the part of x across the axis for one
    found = np.sqrt((np.einsum("ai,kab,bj->kij", axes, part.inertia_change, axes) ** 2).sum(axis=0))
    most = np.sqrt([[4 * sizes[i] if i == j else sizes[3 - i - j] for j in range(3)] for i in range(3)])
    i, j = np.unravel_index(np.argmax(found / most), (3, 3))
    if found[i, j] > CHANGE * most[i, j]:
        raise ModelError(
            f"flexible part: inertia_change is {found[i, j]:.3g} m kg^0.5 in all modes, but a body with this mass, centre "
            f"of mass and inertia has at most {most[i, j]:.3g} (twice the root of an inertia about the frame's origin, "
            "or once off the diagonal); check the units of inertia_change, inertia, mass and com, and modal masses"
        )
    if not part.modes:
        return
    crossed = max(float(np.linalg.norm(part.coupling[..., i], 2)) for i in range(3))
    _check_products("coupling", "singular value", crossed, 1.0)
    # displacements of second order, as those of a beam that becomes shorter, reduce the inertia
    curved = max(float(np.linalg.eigvalsh(part.inertia_curvature[..., i, i])[-1]) for i in range(3))
    _check_products("inertia_curvature", "eigenvalue", curved, 2.0)
    _warn_if_apart(part)


def _check_products(name: str, what: str, size: float, most: float) -> None:
    """Refuse integrals of products of modes that are too large for modes of unit modal mass."""
    if size > PRODUCTS * most:
        raise ModelError(
            f"flexible part: {name} has the {what} {size:.3g}, but with modes of unit modal mass it has at most {most:.0f}; "
            "check its units, and divide shapes by the roots of their modal masses"
        )


def _warn_if_apart(part: Any) -> None:
    """Warn of nodes that are very far from the body, or all very near its centre of mass, as in other units of length."""
    gyration = (np.trace(part.inertia) / 2 / part.mass) ** 0.5
    farthest = np.linalg.norm(part.positions - part.com, axis=1).max(initial=0.0)
    several = np.ptp(part.positions, axis=0).any() if len(part.positions) else False
    if farthest > APART * gyration > 0 or (several and gyration > APART * farthest):
        warnings.warn(
            f"flexible part: its radius of gyration is {gyration:.3g} m, but the farthest node is {farthest:.3g} m from its "
            "centre of mass; check that positions, com and inertia have the same units",
            ModelWarning,
            stacklevel=5,
        )
