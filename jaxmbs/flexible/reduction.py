"""From mass and stiffness matrices of a finite-element model to a part with a few modes (Craig and Bampton)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

from jaxmbs.model import ModelError
from jaxmbs.model.flexible import FlexiblePart

Array = np.ndarray
DENSE = 400  # degrees of freedom up to which eigenvalues are computed from dense matrices
ASYMMETRY, RIGID = 1e-8, 1e-6  # allowed, relative to the largest entries
ALIKE = 1e-12  # relative to both diagonal entries, below which two degrees of freedom do not act on one another
TIGHT = 1e-8  # of the largest eigenvalue, below which a motion is one of a rigid body


def reduced(
    mass: Any,
    stiffness: Any,
    positions: Any,
    *,
    attachments: Mapping[str, int],
    stations: Mapping[str, int] | None = None,
    frame: int | None = None,
    modes: int = 10,
) -> FlexiblePart:
    """The part of a finite-element model: constraint modes of its attachments and fixed-interface modes, combined to
    the modes of the whole.

    mass, stiffness (6 N, 6 N): dense, or sparse of SciPy; for each node three displacements, then three rotations.
    positions (N, 3) [m], of the nodes. attachments: {name: index of the node} to which other elements may be attached;
    stations: further nodes, which move with the body, for shapes, outputs and light things; they add no modes.
    frame: the node that is fixed in the floating frame, whose origin is there; None: no node is, the modes are those of
    the free body and the origin is that of the positions. modes: how many fixed-interface modes to use; the part has these
    and six for each attachment (less six that are motions of a rigid body, without a frame).

    Frequencies and shapes are those of the model with all elements removed from the attachments; static loads there are
    represented exactly. The second-order shape integrals take each node's share of a mode's momentum to be at the node,
    which is exact for lumped masses. Degrees of freedom without mass follow the others as in statics.

    Raises ModelError, with the figures, for matrices that are not symmetric, a stiffness that resists a motion of the
    rigid body, a mass matrix that is not positive, and attachments that the model lacks.
    """
    x, (M, K) = (
        np.asarray(positions, float),
        (symmetric(name, m) for name, m in (("mass", mass), ("stiffness", stiffness))),
    )
    N = len(x)
    if x.shape != (N, 3) or M.shape != (6 * N, 6 * N) or K.shape != M.shape:
        raise ModelError(
            f"flexible part: positions {x.shape}, mass {M.shape}, stiffness {K.shape}; N nodes need positions (N, 3) and "
            "matrices (6 N, 6 N): three displacements and three rotations for each node"
        )
    stations = dict(stations or {})
    if both := [name for name in stations if name in attachments]:
        raise ModelError(f"flexible part: {both[0]!r} is among the attachments and among the stations; choose one")
    for name, node in (*attachments.items(), *stations.items(), *([] if frame is None else [("frame", frame)])):
        if not 0 <= node < N:
            raise ModelError(f"flexible part: {name!r} is node {node}; the model has nodes 0 to {N - 1}")
    if frame is not None:
        x = x - x[frame]
    rigid = rigid_motions(x)
    check_rigid(K, rigid)
    shapes, frequency = _modes(M, K, list(attachments.values()), frame, modes)
    return of_shapes(M, x, shapes, frequency, {**attachments, **stations})


def of_shapes(M: Any, x: Array, shapes: Array, frequency: Array, named: Mapping[str, int]) -> FlexiblePart:
    """The part with given shapes (6 N, n) of unit modal mass; named: {name: index} of its nodes."""
    N, n = len(x), shapes.shape[1]
    carried = M @ shapes
    u, p = (y.reshape(N, 6, n)[:, :3] for y in (shapes, carried))
    spread = np.einsum("ia,ibk->kab", x, p)  # the integral of rho x phi' for each mode
    pairs = np.einsum("iak,ibl->klab", u, p)
    pairs = (pairs + np.einsum("iak,ibl->klab", p, u)) / 2
    nodes = list(named.values())
    at = shapes.reshape(N, 6, n)[nodes]
    return FlexiblePart(
        **rigid_integrals(M, rigid_motions(x), shapes), frequency=frequency, inertia_change=_inertia(spread),
        coupling=_crossed(pairs), inertia_curvature=_inertia(pairs), nodes=tuple(named), positions=x[nodes],
        displacements=at[:, :3], rotations=at[:, 3:],
    )  # fmt: skip


def rigid_integrals(M: Any, rigid: Array, shapes: Array) -> dict[str, Any]:
    """mass, com, inertia, momentum and angular_momentum of a part: from its mass matrix, the motions of the rigid body
    (translations, then rotations about the frame's origin), and the shapes."""
    whole = rigid.T @ (M @ rigid)
    mass = float(np.trace(whole[:3, :3]) / 3)
    if not mass > 0:
        raise ModelError(f"flexible part: the mass matrix gives the body a mass of {mass:.6g} kg")
    uneven = np.abs(whole[:3, :3] - mass * np.eye(3)).max()
    if uneven > RIGID * mass:
        raise ModelError(
            f"flexible part: the masses along x, y and z differ by {uneven:.3g} of {mass:.6g} kg; masses must not depend on "
            "the direction"
        )
    com = np.array([whole[1, 5] - whole[2, 4], whole[2, 3] - whole[0, 5], whole[0, 4] - whole[1, 3]]) / 2 / mass
    across = np.cross(np.eye(3), com)
    inertia = whole[3:, 3:] - mass * across @ across.T
    carried = M @ shapes
    return {
        "mass": mass, "com": com, "inertia": (inertia + inertia.T) / 2, "momentum": (rigid[:, :3].T @ carried).T,
        "angular_momentum": (rigid[:, 3:].T @ carried).T,
    }  # fmt: skip


def _inertia(G: Array) -> Array:
    """2 tr(G) - G - Gᵀ for (..., 3, 3): the change of an inertia matrix that comes from the integral G of rho x u'."""
    return 2 * np.trace(G, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - G - G.swapaxes(-1, -2)


def _crossed(H: Array) -> Array:
    """The vector product from (..., 3, 3) of a bᵀ."""
    return np.einsum("cab,...ab->...c", LEVI_CIVITA, H)


LEVI_CIVITA = np.zeros((3, 3, 3))
LEVI_CIVITA[[0, 1, 2], [1, 2, 0], [2, 0, 1]], LEVI_CIVITA[[0, 2, 1], [2, 1, 0], [1, 0, 2]] = 1, -1


def rigid_motions(x: Array) -> Array:
    """(6 N, 6): displacements and rotations of all nodes for unit translations along the axes, then rotations about
    them."""
    out = np.zeros((len(x), 6, 6))
    out[:, :3, :3] = out[:, 3:, 3:] = np.eye(3)
    out[:, :3, 3:] = np.cross(np.eye(3), x[:, None]).swapaxes(1, 2)
    return out.reshape(-1, 6)


def _modes(M: Any, K: Any, boundary: list[int], frame: int | None, modes: int) -> tuple[Array, Array]:
    """(shapes (6 N, n) of unit modal mass, frequencies [Hz])."""
    held = set() if frame is None else set(range(6 * frame, 6 * frame + 6))
    b = {d for node in boundary for d in range(6 * node, 6 * node + 6)} - held
    found = []
    for own in _uncoupled(M, K):
        own = np.array([d for d in own if d not in held], int)
        m, k = M[np.ix_(own, own)], K[np.ix_(own, own)]
        at_ends = np.array([d in b for d in own], bool)
        light = (np.asarray(abs(m).sum(axis=0)).reshape(-1) == 0) & ~at_ends
        heavy, followed = ~light, None
        if light.any():  # without mass, they follow the others as in statics
            followed = -_solve(k[np.ix_(light, light)], _full(k[np.ix_(light, heavy)]))
            k = _full(k[np.ix_(heavy, heavy)]) + k[np.ix_(heavy, light)] @ followed
            k, m, at_ends = _halved(k), m[np.ix_(heavy, heavy)], at_ends[heavy]
        shapes, squared = _craig_bampton(m, k, np.flatnonzero(at_ends), np.flatnonzero(~at_ends), modes)
        whole = np.zeros((M.shape[0], len(squared)))
        whole[own[heavy]] = shapes
        if followed is not None:
            whole[own[light]] = followed @ shapes
        found.append((whole, squared))
    shapes, squared = np.concatenate([x for x, _ in found], axis=1), np.concatenate([x for _, x in found])
    order = np.argsort(squared, kind="stable")[0 if frame is not None else 6 :]
    squared = squared[order]
    if squared.min(initial=0.0) < -TIGHT * squared.max(initial=1.0):
        raise ModelError(f"flexible part: the stiffness matrix has a negative eigenvalue, {squared.min():.3g} 1/s²")
    kept = slice(None, modes + len(b) - (6 if frame is None and b else 0))
    return shapes[:, order][:, kept], np.sqrt(np.maximum(squared, 0.0))[kept] / (2 * np.pi)


def _uncoupled(M: Any, K: Any) -> list[Array]:
    """Degrees of freedom in groups between which nothing acts: bending in two planes, torsion and tension of a straight
    beam. Modes of equal frequency then do not mix."""
    joined = scipy.sparse.csr_matrix(M.shape)
    for x in (M, K):
        own = np.sqrt(np.abs(x.diagonal()))
        scale = scipy.sparse.diags(1 / np.where(own > 0, own, 1.0))
        joined = joined + scale @ scipy.sparse.csr_matrix(abs(x)) @ scale
    joined.data[joined.data < ALIKE] = 0
    joined.eliminate_zeros()
    n, group = scipy.sparse.csgraph.connected_components(joined, directed=False)
    return [np.flatnonzero(group == k) for k in range(n)]


def _craig_bampton(M: Any, K: Any, boundary: Array, inner: Array, modes: int) -> tuple[Array, Array]:
    """(shapes, squared circular frequencies) from static shapes for the boundary and the lowest modes with it fixed."""
    size = M.shape[0]
    if not len(boundary):
        return _lowest(K, M, modes + 6)
    static = np.zeros((size, len(boundary)))
    static[boundary] = np.eye(len(boundary))
    T = static
    if len(inner):
        Kii, Mii = K[np.ix_(inner, inner)], M[np.ix_(inner, inner)]
        static[inner] = -_solve(Kii, _full(K[np.ix_(inner, boundary)]))
        fixed = np.zeros((size, min(modes, len(inner))))
        if fixed.shape[1]:
            fixed[inner] = _lowest(Kii, Mii, fixed.shape[1])[0]
        T = np.concatenate([static, fixed], axis=1)
    squared, mixed = scipy.linalg.eigh(_halved(T.T @ (K @ T)), _halved(T.T @ (M @ T)))
    return T @ mixed, squared


def _lowest(K: Any, M: Any, n: int) -> tuple[Array, Array]:
    """(shapes, squared circular frequencies) of the n lowest modes."""
    n = min(n, K.shape[0])
    try:
        if K.shape[0] <= max(DENSE, 3 * n):
            squared, shapes = scipy.linalg.eigh(_full(K), _full(M), subset_by_index=(0, n - 1))
        else:
            K, M = (scipy.sparse.csc_matrix(x) for x in (K, M))
            low = -1e-6 * K.diagonal().mean() / max(M.diagonal().mean(), 1e-300)
            squared, shapes = scipy.sparse.linalg.eigsh(K, n, M, sigma=low)
    except np.linalg.LinAlgError:
        raise ModelError(
            "flexible part: the mass matrix is not positive on all motions of the body; check signs, and that attachments "
            "have mass or are connected to nodes that have"
        ) from None
    order = np.argsort(squared)
    return shapes[:, order], squared[order]


def _solve(K: Any, right: Array) -> Array:
    if scipy.sparse.issparse(K):
        return np.asarray(scipy.sparse.linalg.splu(scipy.sparse.csc_matrix(K)).solve(right))
    return scipy.linalg.solve(K, right, assume_a="pos")


def symmetric(name: str, x: Any) -> Any:
    """The matrix, made symmetric to the last digit. Raises ModelError if it is not symmetric but for rounding."""
    m = scipy.sparse.csr_matrix(x) if scipy.sparse.issparse(x) else np.asarray(x, float)
    off, size = abs(m - m.T).max(), abs(m).max()
    if m.ndim != 2 or off > ASYMMETRY * size:
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


def _full(x: Any) -> Array:
    return x.toarray() if scipy.sparse.issparse(x) else np.asarray(x)


def _halved(x: Array) -> Array:
    return (x + x.T) / 2
