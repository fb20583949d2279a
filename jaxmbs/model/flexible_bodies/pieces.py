"""Reduces the mass and stiffness matrices of a mechanism of rigid bodies, in its own coordinates, to a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from jaxmbs.model.errors import ModelError
from jaxmbs.model.flexible_bodies.checks import symmetric
from jaxmbs.model.flexible_bodies.reduction import lowest, nodes_of, of_moving_mass, of_shapes

Array = np.ndarray
ODD = 1e-9  # of the largest entry, up to which the mass matrix may differ from that of the bodies
LOOSE = 1e-11  # of the largest eigenvalue, below which nothing resists a motion
DEPENDENT = 1e-9  # of the largest motion of the attachments, below which a motion moves none


def point_masses(mass: float, com: Array, inertia: Array) -> tuple[Array, Array]:
    """(masses (6,), places (6, 3)) that have the mass, centre of mass and inertia about it of a body."""
    second = np.trace(inertia) / 2 * np.eye(3) - inertia  # the integral of rho x xᵀ
    sizes, axes = np.linalg.eigh(second)
    out = np.sqrt(3 * np.maximum(sizes, 0.0) / mass) * axes
    return np.full(6, mass / 6), com + np.concatenate([out.T, -out.T])


def of_pieces(
    M: Any,
    K: Any,
    masses: Array,
    points: Array,
    moved: Array,
    attachments: Sequence[str],
    nodes: Mapping[str, tuple[Array, Array]],
    modes: int,
) -> dict[str, Any]:
    """The fields of a part: see `reduced_part`.

    M, K (n, n); masses (P,) at points (P, 3), with displacements (P, 3, n); nodes: {name: position (3,), displacements and
    rotations (6, n)}, of the attachments and the stations. All in the axes of the floating frame.
    """
    M, K = symmetric("mass", M), symmetric("stiffness", K) if np.any(K) else np.zeros_like(M)
    own = np.einsum("pak,p,pal->kl", moved, masses, moved)
    if np.abs(own - M).max() > ODD * np.abs(M).max():
        raise ModelError(
            "reduced_part: the mechanism has masses other than those of its bodies, such as armature or propellant; set "
            "them to zero, or give them to bodies"
        )
    sizes = scipy.linalg.eigh(K, M, eigvals_only=True)
    if sizes[0] <= LOOSE * sizes[-1]:
        what = "is not stable at rest" if sizes[0] < -LOOSE * sizes[-1] else "can move without deforming"
        raise ModelError(
            f"reduced_part: the mechanism {what} (least eigenvalue {sizes[0]:.3g} of {sizes[-1]:.3g} 1/s²); name the body "
            "that is the floating frame (frame=...), and give every other joint a spring"
        )
    boundary = np.concatenate([nodes[name][1] for name in attachments] or [np.zeros((0, len(M)))])
    shapes, squared = _craig_bampton(M, K, boundary, modes)
    whole = (moved @ shapes).reshape(3 * len(points), -1)
    frequency = np.sqrt(np.maximum(squared, 0.0)) / (2 * np.pi)
    return of_shapes(scipy.sparse.diags(np.repeat(masses, 3)).tocsr(), points, whole, frequency) | nodes_of(
        nodes, [x for x, _ in nodes.values()], [J @ shapes for _, J in nodes.values()]
    )


def _craig_bampton(M: Array, K: Array, boundary: Array, modes: int) -> tuple[Array, Array]:
    """(shapes of unit modal mass, squared circular frequencies) from the static shapes for loads on the boundary, whose
    displacements are boundary (rows, n) times the coordinates, and the lowest modes with it fixed."""
    _, sizes, directions = np.linalg.svd(boundary)
    rank = int((sizes > DEPENDENT * sizes.max(initial=0.0)).sum())
    static, inner = scipy.linalg.solve(K, directions[:rank].T, assume_a="pos"), directions[rank:].T
    count = min(modes, inner.shape[1])
    fixed = inner @ lowest(inner.T @ K @ inner, inner.T @ M @ inner, count)[0] if count else inner[:, :0]
    T = np.concatenate([static, fixed], axis=1)
    shapes, squared = of_moving_mass(T.T @ K @ T, T.T @ M @ T)
    return T @ shapes, squared
