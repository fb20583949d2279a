"""Reduces the mass and stiffness matrices of a finite-element model to a part with a few modes (Craig-Bampton)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

from jaxmbs.model.errors import ModelError
from jaxmbs.model.flexible_bodies.checks import RIGID, check_resisted, check_rigid, symmetric, warn_if_wide
from jaxmbs.model.flexible_bodies.recovery import of_displacements

Array = np.ndarray
Nodes = int | Sequence[int]
DENSE = 400  # degrees of freedom up to which eigenvalues are computed from dense matrices
EQUAL = 1e-9  # relative difference of two squared frequencies, below which they count as equal
ALIKE = 1e-12  # relative to both diagonal entries, below which two degrees of freedom do not act on one another
MASSLESS = 1e-13  # relative to the masses of the degrees of freedom, below which a motion moves none
NOT_POSITIVE = (
    "flexible part: the mass matrix is not positive on all motions of the body; check signs, and that attachments have mass "
    "or are connected to nodes that have mass"
)
TIGHT = 1e-8  # of the largest eigenvalue, up to which a negative one is rounding
UNRESISTED = (
    "flexible part: the stiffness matrix is not positive where the attachments and the frame are fixed ({}); connect all "
    "nodes to the rest of the body, and check signs"
)


def reduced(
    mass: Any,
    stiffness: Any,
    positions: Any,
    *,
    attachments: Mapping[str, Nodes],
    stations: Mapping[str, Nodes] | None,
    frame: Nodes | None,
    modes: int,
    recovery: Mapping[str, Any] | None = None,
    further: Callable[[Array, Mapping[str, Any]], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The fields of a part: see `Part.from_matrices`. further: gives fields that replace those found, from the shapes of
    all nodes (6 N or 3 N, n) and the fields."""
    x, M, K = np.asarray(positions, float), symmetric("mass", mass), symmetric("stiffness", stiffness)
    N = len(x)
    per = M.shape[0] // max(N, 1)
    if x.shape != (N, 3) or per not in (3, 6) or M.shape != (per * N, per * N) or K.shape != M.shape:
        raise ModelError(
            f"flexible part: positions {x.shape}, mass {M.shape}, stiffness {K.shape}; N nodes need positions (N, 3) and "
            "matrices (6 N, 6 N): three displacements and three rotations for each node; or (3 N, 3 N) without rotations"
        )
    if not np.isfinite(x).all():
        raise ModelError("flexible part: positions has numbers that are not finite")
    if modes < 0:
        raise ModelError(f"flexible part: modes is {modes!r}; pass the number of fixed-interface modes, zero or more")
    stations = dict(stations or {})
    if both := [name for name in stations if name in attachments]:
        raise ModelError(f"flexible part: {both[0]!r} is among the attachments and among the stations; choose one")
    named = {name: _nodes(name, given, x, per) for name, given in (*attachments.items(), *stations.items())}
    held = None if frame is None else _nodes("frame", frame, x, per)
    if held is not None:
        x = x - x[held].mean(axis=0)
    check_rigid(K, rigid_motions(x, per))
    T, at = _tied(x, per, [*(named[name] for name in attachments), *([] if held is None else [held])])
    boundary = [at[tuple(named[name])] for name in attachments]
    fixed = None if held is None else at[tuple(held)]
    shapes, frequency = _modes(T.T @ M @ T, T.T @ K @ T, boundary, fixed, modes, _moving(M, rigid_motions(x, per)))
    whole = T @ shapes
    moved = [shapes[at[tuple(own)]] if tuple(own) in at else _mean_motion(x, per, own, whole) for own in named.values()]
    found = of_shapes(M, x, whole, frequency)
    warn_if_wide(found, x)
    found |= nodes_of(named, [x[own].mean(axis=0) for own in named.values()], moved)
    found["recovery"] = of_displacements(recovery, whole)
    return found | (further(whole, found) if further else {})


def _nodes(name: str, given: Nodes, x: Array, per: int) -> list[int]:
    """The indices of the nodes of an attachment, a station, or the frame."""
    try:
        own = [operator.index(k) for k in (given if isinstance(given, Iterable) else [given])]
    except TypeError:
        raise ModelError(f"flexible part: {name!r} is {given!r}; pass the index of a node, or a list of them") from None
    for k in own:
        if not 0 <= k < len(x):
            raise ModelError(f"flexible part: {name!r} is node {k}; the model has nodes 0 to {len(x) - 1}")
    if len(set(own)) < len(own) or not own:
        raise ModelError(f"flexible part: {name!r} has nodes {own}; give each of them once, and at least one")
    spread = np.linalg.svd(x[own] - x[own].mean(axis=0), compute_uv=False)
    if per == 3 and (len(own) < 3 or spread[1] <= ALIKE**0.5 * spread[0]):
        raise ModelError(
            f"flexible part: {name!r} has {len(own)} nodes on a point or a line, whose rotation is not known without "
            "rotations of nodes; give three or more, not on one line"
        )
    return own


def _tied(x: Array, per: int, groups: Iterable[list[int]]) -> tuple[Any, dict[tuple[int, ...], Array]]:
    """(T, places). T: gives all displacements from those that remain when each group of nodes is a rigid plate; places:
    where the six of each plate are among those that remain."""
    group_of: dict[int, tuple[int, ...]] = {}
    for own in map(tuple, groups):
        for k in own:
            if group_of.setdefault(k, own) != own:
                raise ModelError(f"flexible part: node {k} is in two attachments; give it to one, or make one of both")
    size = 0
    at, blocks = {}, []
    for k in range(len(x)):
        own = group_of.get(k)
        if own is None or (per == 6 and len(own) == 1):
            blocks.append((k, size, np.eye(per)))
            if own is not None:
                at[own] = np.arange(size, size + 6)
            size += per
        elif own not in at:
            at[own] = np.arange(size, size + 6)
            size += 6
    for own, places in at.items():
        if per == 3 or len(own) > 1:
            motions = rigid_motions(x[list(own)] - x[list(own)].mean(axis=0), per).reshape(len(own), per, 6)
            blocks += [(k, places[0], block) for k, block in zip(own, motions, strict=True)]
    T = scipy.sparse.lil_array((per * len(x), size))
    for k, start, block in blocks:
        T[per * k : per * (k + 1), start : start + block.shape[1]] = block
    return T.tocsr(), at


def _mean_motion(x: Array, per: int, own: list[int], shapes: Array) -> Array:
    """(6, n): displacement and rotation of a station, the rigid motion nearest to those of its nodes."""
    rows = shapes.reshape(len(x), per, -1)[own]
    if per == 6 and len(own) == 1:
        return rows[0]
    motions = rigid_motions(x[own] - x[own].mean(axis=0), per)
    return np.linalg.lstsq(motions, rows.reshape(len(motions), -1), rcond=None)[0]


def nodes_of(names: Iterable[str], positions: Any, moved: Sequence[Array]) -> dict[str, Any]:
    """The fields of a part that concern its nodes; moved: for each, (6, n)."""
    n, N = (moved[0].shape[1] if moved else 0), len(moved)
    six = np.reshape(np.array(moved, float), (N, 6, n))
    return {
        "nodes": tuple(names), "positions": np.reshape(np.array(positions, float), (N, 3)), "displacements": six[:, :3],
        "rotations": six[:, 3:],
    }  # fmt: skip


def of_shapes(M: Any, x: Array, shapes: Array, frequency: Array) -> dict[str, Any]:
    """The fields of a part with given shapes (6 N or 3 N, n) of unit modal mass, except those of its nodes."""
    N, n = len(x), shapes.shape[1]
    per = shapes.shape[0] // N
    u, p = (y.reshape(N, per, n)[:, :3] for y in (shapes, M @ shapes))
    spread = np.einsum("ia,ibk->kab", x, p)  # the integral of rho x phiᵀ for each mode
    pairs = np.einsum("iak,ibl->klab", u, p)
    pairs = (pairs + np.einsum("iak,ibl->klab", p, u)) / 2
    return rigid_integrals(M, rigid_motions(x, per), shapes) | {
        "frequency": frequency, "inertia_change": inertia_of(spread), "coupling": _crossed(pairs),
        "inertia_curvature": inertia_of(pairs),
    }  # fmt: skip


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
    moment = whole[:3, 3:]
    size = np.sqrt(max(np.trace(whole[3:, 3:]), 0.0) * mass)
    if (off := np.abs(moment + moment.T).max()) > RIGID * size:
        raise ModelError(
            "flexible part: the mass matrix does not fit the positions: entries for the same moment of mass differ by "
            f"{off:.3g} of {size:.3g} kg m; check that positions and rotations have the same units and node order"
        )
    com = np.array([whole[1, 5] - whole[2, 4], whole[2, 3] - whole[0, 5], whole[0, 4] - whole[1, 3]]) / 2 / mass
    across = np.cross(np.eye(3), com)
    inertia = whole[3:, 3:] - mass * across @ across.T
    low, middle, high = np.linalg.eigvalsh(inertia)
    if low + middle < high - RIGID * np.trace(whole[3:, 3:]):
        raise ModelError(
            f"flexible part: the mass matrix gives the body principal inertias of {low:.3g}, {middle:.3g} and {high:.3g} "
            "kg m² about its centre of mass, of which one exceeds the sum of the others; check that positions and rotations "
            "have the same units"
        )
    carried = M @ shapes
    return {
        "mass": mass, "com": com, "inertia": (inertia + inertia.T) / 2, "momentum": (rigid[:, :3].T @ carried).T,
        "angular_momentum": (rigid[:, 3:].T @ carried).T,
    }  # fmt: skip


def inertia_of(G: Array) -> Array:
    """2 tr(G) - G - Gᵀ for G (..., 3, 3): the change of an inertia matrix that comes from the integral G of rho x uᵀ."""
    return 2 * np.trace(G, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - G - G.swapaxes(-1, -2)


def _crossed(H: Array) -> Array:
    """The vector products a × b (..., 3) from the matrices a bᵀ (..., 3, 3)."""
    return np.einsum("cab,...ab->...c", LEVI_CIVITA, H)


LEVI_CIVITA = np.zeros((3, 3, 3))
LEVI_CIVITA[[0, 1, 2], [1, 2, 0], [2, 0, 1]], LEVI_CIVITA[[0, 2, 1], [2, 1, 0], [1, 0, 2]] = 1, -1


def rigid_motions(x: Array, per: int = 6) -> Array:
    """(per N, 6): displacements, and rotations if there are six per node, of all nodes for unit translations along the
    axes, then rotations about them."""
    out = np.zeros((len(x), 6, 6))
    out[:, :3, :3] = out[:, 3:, 3:] = np.eye(3)
    out[:, :3, 3:] = np.cross(np.eye(3), x[:, None]).swapaxes(1, 2)
    return out[:, :per].reshape(-1, 6)


def _moving(M: Any, rigid: Array) -> int:
    """How many of the six motions of a rigid body move mass: five if all masses are points on a line."""
    whole = rigid.T @ (M @ rigid)
    own = np.sqrt(np.where((size := np.diag(whole)) > 0, size, 1.0))
    return int((np.linalg.eigvalsh(whole / own[:, None] / own) > ALIKE).sum())


def _modes(M: Any, K: Any, boundary: list[Array], frame: Array | None, modes: int, moving: int) -> tuple[Array, Array]:
    """(shapes of unit modal mass, frequencies [Hz]); boundary, frame: the six degrees of freedom of each attachment, and of
    what is fixed; moving: how many motions of the rigid body move mass."""
    held = set() if frame is None else set(frame.tolist())
    b = {d for own in boundary for d in own.tolist()} - held
    found = [(np.zeros((M.shape[0], 0)), np.zeros(0))]
    for own in _uncoupled(M, K):
        own = np.array([d for d in own if d not in held], int)
        m, k = M[np.ix_(own, own)], K[np.ix_(own, own)]
        at_ends = np.array([d in b for d in own], bool)
        light = (np.asarray(abs(m).sum(axis=0)).reshape(-1) == 0) & ~at_ends
        heavy, followed = ~light, None
        if light.all():  # nothing makes them move
            continue
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
    order = _ascending(squared)[0 if frame is not None else moving :]
    shapes, squared = shapes[:, order], squared[order]
    check_resisted(K, shapes, squared)
    kept = slice(None, modes + len(b) - (moving if frame is None and b else 0))
    return _signed(shapes[:, kept]), np.sqrt(squared)[kept] / (2 * np.pi)


def _ascending(squared: Array) -> Array:
    """The order of modes by frequency. Frequencies are equal if only rounding makes them differ, which depends on the
    processor; then the mode of the last group comes first: for a beam that is as stiff in both planes, bending along z."""
    order = np.argsort(squared, kind="stable")
    x = squared[order]
    number = np.cumsum(np.diff(x, prepend=x[:1]) > EQUAL * np.abs(x))
    return order[np.lexsort((-order, number))]


def _signed(shapes: Array) -> Array:
    """The shapes with signs that are the same on every processor: the largest number of each is positive, the first one
    where several are as large."""
    size = np.abs(shapes)
    first = np.argmax(size >= (1 - EQUAL**0.5) * size.max(axis=0, initial=0.0), axis=0)
    return shapes * np.where(np.take_along_axis(shapes, first[None], axis=0) < 0, -1.0, 1.0)


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
        return lowest(K, M, modes + 6)
    static = np.zeros((size, len(boundary)))
    static[boundary] = np.eye(len(boundary))
    T = static
    if len(inner):
        Kii, Mii = K[np.ix_(inner, inner)], M[np.ix_(inner, inner)]
        static[inner] = -_solve(Kii, _full(K[np.ix_(inner, boundary)]))
        fixed = np.zeros((size, min(modes, len(inner))))
        if fixed.shape[1]:
            fixed[inner] = lowest(Kii, Mii, fixed.shape[1])[0]
        T = np.concatenate([static, fixed], axis=1)
    shapes, squared = of_moving_mass(_halved(T.T @ (K @ T)), _halved(T.T @ (M @ T)))
    return T @ shapes, squared


def of_moving_mass(K: Array, M: Array) -> tuple[Array, Array]:
    """(shapes, squared circular frequencies) of dense matrices; motions that move no mass follow as in statics."""
    largest = np.diag(M).max(initial=0.0)
    if np.diag(M).min(initial=0.0) < 0:
        raise ModelError(NOT_POSITIVE)
    if largest == 0:
        return np.zeros((len(M), 0)), np.zeros(0)
    own = np.sqrt(np.maximum(np.diag(M), MASSLESS * largest))
    sizes, directions = np.linalg.eigh(M / own[:, None] / own)
    if sizes[0] < -TIGHT * abs(sizes).max():
        raise ModelError(NOT_POSITIVE)
    light, heavy = (directions[:, x] / own[:, None] for x in (sizes <= MASSLESS, sizes > MASSLESS))
    if light.shape[1]:
        heavy = heavy - light @ scipy.linalg.solve(light.T @ K @ light, light.T @ K @ heavy, assume_a="sym")
    squared, mixed = scipy.linalg.eigh(_halved(heavy.T @ K @ heavy), _halved(heavy.T @ M @ heavy))
    return heavy @ mixed, squared


def lowest(K: Any, M: Any, n: int) -> tuple[Array, Array]:
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
        raise ModelError(NOT_POSITIVE) from None
    order = np.argsort(squared)
    return shapes[:, order], squared[order]


def _solve(K: Any, right: Array) -> Array:
    try:
        if scipy.sparse.issparse(K):
            return np.asarray(scipy.sparse.linalg.splu(scipy.sparse.csc_matrix(K)).solve(right))
        return scipy.linalg.solve(K, right, assume_a="pos")
    except (np.linalg.LinAlgError, RuntimeError):  # RuntimeError: of SciPy's sparse factorisation
        raise ModelError(UNRESISTED.format(_figures(K))) from None


def _figures(K: Any) -> str:
    """Why a stiffness matrix cannot be factorised; eigenvalues of large ones would take long."""
    if K.shape[0] > 5 * DENSE:
        return f"a factorisation of {K.shape[0]} rows fails"
    sizes = scipy.linalg.eigvalsh(_full(K))
    return f"least eigenvalue {sizes[0]:.3g} of {sizes[-1]:.3g}"


def _full(x: Any) -> Array:
    return x.toarray() if scipy.sparse.issparse(x) else np.asarray(x)


def _halved(x: Array) -> Array:
    return (x + x.T) / 2
