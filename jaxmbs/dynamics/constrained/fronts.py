"""Solves A a - Jᵀ lambda = force, J a = target by eliminating joints and multipliers in turn, in bounded fronts.

The link that carries a subtree acts on it with the force f. The pending rows, which are not yet eliminated, give one
equation each for their multipliers lambda:

    f = I A + p - K lambda,    0 = Kᵀ A + L lambda + l,

with A the acceleration of that link: these are the articulated bodies of [Y 3.174-3.177] with loads that are not yet
known. Joints are eliminated as there. The rows of a constraint are eliminated by their pivots in L, which are positive
once all joints between its ends have been eliminated, and which are raised as in `saddle`. All formulas are in
components; `Forest` applies them in loops and to arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained.order import Elimination, Plan
from jaxmbs.dynamics.constrained.rows import entries
from jaxmbs.dynamics.constrained.saddle import raised, smallest
from jaxmbs.dynamics.state.forest import Forest, rows_of
from jaxmbs.dynamics.state.kinematics import LinkMotion
from jaxmbs.dynamics.state.tree import Link, Tree
from jaxmbs.spatial import ZERO_FORCE, ZERO_MOTION, ArticulatedInertia, Force, Motion, Transform, kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.inertias import ZERO_INERTIA
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, maximum, total, vanishes, where

Symmetric = tuple[tuple[Scalar, ...], ...]  # lower triangle
_DEPENDENT = 4096.0  # multiples of rounding below which the remainder of a row counts as zero; more than with pivoting


@components
class Front:
    """The part of the matrix that is passed inwards; sizes: the diagonal of L after the elimination of joints alone."""

    inertia: ArticulatedInertia
    K: tuple[Force, ...]
    L: Symmetric
    sizes: tuple[Scalar, ...]

    def __add__(self, other: Front) -> Front:
        return Front(
            self.inertia + other.inertia,
            tuple(x + y for x, y in zip(self.K, other.K, strict=True)),
            tuple(_sum(x, y) for x, y in zip(self.L, other.L, strict=True)),
            _sum(self.sizes, other.sizes),
        )


@components
class Load:
    """The part of the right-hand side that is passed inwards."""

    p: Force
    l: tuple[Scalar, ...]

    def __add__(self, other: Load) -> Load:
        return Load(self.p + other.p, _sum(self.l, other.l))


@components
class Row:
    """An eliminated scalar: its coupling K to the remaining link and L to the remaining rows, and its inverse pivot."""

    K: Force
    L: tuple[Scalar, ...]
    inverse: Scalar


@components
class Pivot:
    """The pivot of a constraint row. size: the diagonal entry of the row, as in `Front.sizes`; left: pivot / size,
    which is small if the row nearly depends on rows that were eliminated before it."""

    left: Scalar
    size: Scalar


class Factors(NamedTuple):
    """Factors, one item per strand of the plan. rows: the eliminated scalars. In steps of joints, S, X: the motions of
    the joint and the placement of its link. In steps of constraints, pivots: those of the constraint rows."""

    rows: list[tuple[Row, ...]]
    S: list[tuple[Motion, ...]]
    X: list[Transform | None]
    pivots: list[tuple[Pivot, ...]]


def factorized(
    tree: Tree, plan: Plan, motions: Sequence[LinkMotion], links: Sequence[Link], groups: Forest, ends: Any, lock: Any,
    redundant: bool, alike: float | None = None,
) -> Factors:  # fmt: skip
    """The factors of the matrix. groups, ends: the constraints and their J, as in `RowGroups`; lock (nv,): which
    degrees of freedom do not move, or None; redundant: see `saddle.raised`; alike: the fraction of 1 / (mean mass) by
    which all pivots of constraint rows are raised; None to raise each in proportion to its size."""
    forest, slices = Forest(plan.strands, tree.dtype), tree.structure.v_slices
    eps = float(jnp.finfo(tree.dtype).eps)
    same = None if alike is None else alike / _mean_mass(tree, links)
    S: list[tuple[Motion, ...]] = []
    X: list[Transform | None] = []
    data = []
    for b in plan.strands:
        of = [plan.of_node[i] for i in b.nodes]
        attached = []
        for k, (_, end, _, _) in enumerate(b.kind.attached):
            attached.append(groups.gather([_end(e, end) for e in ends], [plan.ends[i][k] for i in b.nodes]))
        if b.kind.joint is None:
            S.append(())
            X.append(None)
            data.append((attached,))
            continue
        m, link = tree.gather(motions, of), tree.gather(links, of)
        held = () if lock is None else _entries(lock, slices, of)
        S.append(m.S)
        X.append(m.X)
        data.append((attached, link, m.S, m.X, held))

    def raises(sizes: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        return _raises(sizes, raised(eps, redundant), smallest(eps)) if same is None else (same,) * len(sizes)

    def step(kind: Elimination, carried: tuple[Front], d: Any) -> tuple[tuple[Front], Any]:
        if kind.joint is None:
            return _without_rows(kind, carried[0], d[0], raises)
        return _without_joint(kind, carried[0], *d)

    found, _ = forest.inward(step, data, lambda kind: (_empty(kind.own + kind.pending),))
    return Factors([rows for rows, _ in found], S, X, [pivots for _, pivots in found])


def _mean_mass(tree: Tree, links: Sequence[Link]) -> Scalar:
    masses = [
        jnp.sum(jnp.broadcast_to(jnp.asarray(x.inertia.mass, tree.dtype), (b.length,)))
        for b, x in zip(tree.blocks, links, strict=True)
    ]
    return sum(masses) / len(tree.structure.links)


def _end(ends: Any, end: int) -> Any:
    return ends[end] if end < len(ends) else ends[0]


def solve(tree: Tree, plan: Plan, factors: Factors, force: Any, target: Any) -> tuple[Any, Any, list[Motion]]:
    """(a (nv,), lambda (m,), accelerations of the links per block of the tree)."""
    forest, slices = Forest(plan.strands, tree.dtype), tree.structure.v_slices
    starts = list(np.cumsum([0] + [c.rows for c in plan.constraints]))
    data = []
    for b, rows, S, X in zip(plan.strands, factors.rows, factors.S, factors.X, strict=True):
        of = [plan.of_node[i] for i in b.nodes]
        if b.kind.joint is None:
            given = tuple(entries(target, [int(starts[c]) + r for c in of]) for r in range(b.kind.own))
        else:
            given = _entries(force, slices, of)
        data.append((rows, S, X, given))

    def inward(kind: Elimination, carried: tuple[Any], d: Any) -> tuple[tuple[Load], Any]:
        return _loaded(kind, carried[0], *d)

    loads, _ = forest.inward(inward, data, lambda kind: (Load(ZERO_FORCE, (ZERO,) * (kind.own + kind.pending)),))

    def outward(kind: Elimination, state: Any, d: Any) -> tuple[Any, Any]:
        (rows, S, X, _), own = d
        A, x = state
        x = tuple(x[k] for k in kind.onto)
        A = A if kind.hangs else ZERO_MOTION
        if kind.joint is None:
            found = _multipliers(rows, own, A, x)
            return (A, (*found, *x)), found
        A, rates = _rates(rows, S, X, own, A, x)
        return (A, x), (A, rates)

    results = forest.outward(outward, list(zip(data, loads, strict=True)), (ZERO_MOTION, ()))
    motions, a, multipliers = [], [], []
    places_a, places_l = [], []
    by_link: list[Any] = []
    for b, found in zip(plan.strands, results, strict=True):
        of = [plan.of_node[i] for i in b.nodes]
        if b.kind.joint is None:
            by_link.append((ZERO_MOTION, ()))
            for r, x in enumerate(found):
                multipliers.append(jnp.broadcast_to(jnp.asarray(x, tree.dtype), (b.length,)))
                places_l += [int(starts[c]) + r for c in of]
            continue
        by_link.append(found)
        for k, x in enumerate(found[1]):
            a.append(jnp.broadcast_to(jnp.asarray(x, tree.dtype), (b.length,)))
            places_a += [slices[i].start + k for i in of]
    node_of = {k: i for i, k in enumerate(plan.of_node) if _is_link(plan, forest, i)}
    motions = [forest.gather([x[0] for x in by_link], [node_of[i] for i in b.nodes]) for b in tree.blocks]
    return _in_order(a, places_a, tree.dtype), _in_order(multipliers, places_l, tree.dtype), motions


def _is_link(plan: Plan, forest: Forest, node: int) -> bool:
    return plan.strands[forest.at[node][0]].kind.joint is not None


def conditioning(factors: Factors, eps: float, redundant: bool) -> tuple[Any, Any]:
    """As `Metric.conditioning`, from the pivots in the order of elimination."""
    nothing = _DEPENDENT * max(eps, raised(eps, redundant) / 64)  # raising earlier pivots leaves a remainder
    largest: Any = 0.0
    for strand in factors.pivots:
        for pivot in strand:
            largest = jnp.maximum(largest, jnp.max(jnp.asarray(pivot.size)))
    largest = jnp.where(largest > 0, largest, 1.0)
    own: Any = 1.0
    whole: Any = 1.0
    for strand in factors.pivots:
        for pivot in strand:
            counts = (pivot.left > nothing) & (pivot.size > smallest(eps) * largest)
            own = jnp.minimum(own, jnp.min(jnp.where(counts, pivot.left, 1.0)))
            whole = jnp.minimum(whole, jnp.min(jnp.where(counts, pivot.left * pivot.size / largest, 1.0)))
    return whole, own


def _in_order(parts: list[Any], places: list[int], dtype: Any) -> Any:
    if not parts:
        return jnp.zeros(0, dtype)
    return rows_of(jnp.concatenate(parts), np.argsort(np.asarray(places)).tolist())


def _entries(x: Any, slices: Any, of: list[int]) -> tuple[Any, ...]:
    size = slices[of[0]].stop - slices[of[0]].start
    return tuple(entries(x, [slices[i].start + k for i in of]) for k in range(size))


# steps of the matrix


def _empty(n: int) -> Front:
    return Front(ZERO_INERTIA.articulated(), (ZERO_FORCE,) * n, tuple((ZERO,) * (r + 1) for r in range(n)), (ZERO,) * n)


def _handed(kind: Elimination, inertia: ArticulatedInertia, K: Any, L: Any, sizes: Any) -> Front:
    """The front in the layout of the next step; L: the lower triangle of the pending rows."""
    out = _empty(kind.next)
    forces, rows, found = list(out.K), [list(row) for row in out.L], list(out.sizes)
    for r, i in enumerate(kind.onto):
        forces[i], found[i] = K[r], sizes[r]
        for s in range(r + 1):
            j = kind.onto[s]
            rows[max(i, j)][min(i, j)] = L[r][s]
    return Front(inertia, tuple(forces), tuple(map(tuple, rows)), tuple(found))


def _without_joint(
    kind: Elimination, front: Front, attached: Any, link: Link, S: tuple[Motion, ...], X: Transform, lock: Any
) -> tuple[tuple[Front], Any]:
    I = link.inertia.articulated() + front.inertia
    K, L, sizes = list(front.K), front.L, front.sizes
    rates: list[Scalar] = [ZERO] * kind.pending
    for (place, _, count, on_joints), given in zip(kind.attached, attached, strict=True):
        for r in range(count):
            if on_joints:
                rates[place + r] += given[r]
            else:
                K[place + r] = K[place + r] + given[r]
    rows: list[Row] = []
    forces = tuple(K)
    for k in reversed(range(len(S))):
        U = I @ S[k]
        row = _freedom(S[k], U, forces, tuple(rates), link.armature, lock[k] if lock else False)
        exact = vanishes(link.armature) and not lock
        I = I.minus_outer(U, U * row.inverse, S[k] if exact else None)
        forces, L, sizes = _less(row, forces, L, sizes)
        rows.append(row)
    if kind.hangs:
        I, forces = I.to_parent(X), tuple(X.force_to_parent(F) for F in forces)
    else:
        I, forces = ZERO_INERTIA.articulated(), (ZERO_FORCE,) * kind.pending
    return (_handed(kind, I, forces, L, sizes),), (tuple(rows), ())


@kernel
def _freedom(
    S: Motion, U: Force, K: tuple[Force, ...], rates: tuple[Scalar, ...], armature: Scalar, lock: Scalar
) -> Row:
    pivot = S @ U + armature
    inverse = 1.0 / pivot if lock is False else where(lock, 0.0, 1.0 / where(lock, 1.0, pivot))
    return Row(U, tuple(S @ F + x for F, x in zip(K, rates, strict=True)), inverse)


@kernel
def _less(row: Row, K: tuple[Force, ...], L: Symmetric, sizes: tuple[Scalar, ...]) -> Any:
    """K, L and sizes after the elimination of a degree of freedom."""
    scaled = tuple(x * row.inverse for x in row.L)
    K = tuple(F + row.K * -x for F, x in zip(K, scaled, strict=True))
    L = tuple(tuple(x + scaled[r] * row.L[s] for s, x in enumerate(line)) for r, line in enumerate(L))
    return K, L, tuple(x + s * y for x, s, y in zip(sizes, scaled, row.L, strict=True))


def _without_rows(
    kind: Elimination, front: Front, attached: Any, raises: Callable[[tuple[Scalar, ...]], tuple[Scalar, ...]]
) -> tuple[tuple[Front], Any]:
    K = list(front.K)
    for (place, _, count, _), given in zip(kind.attached, attached, strict=True):
        for r in range(count):
            K[place + r] = K[place + r] + given[r]
    I, forces, L, sizes = front.inertia, tuple(K), front.L, front.sizes
    added = raises(sizes[: kind.own])
    rows, pivots = [], []
    for delta in added:
        row, pivot, I, forces, L, sizes = _without_row(I, forces, L, sizes, delta)
        rows.append(row)
        pivots.append(pivot)
    return (_handed(kind, I, forces, L, sizes),), (tuple(rows), tuple(pivots))


@kernel
def _raises(sizes: tuple[Scalar, ...], factor: Scalar, least: Scalar) -> tuple[Scalar, ...]:
    """The amount by which each pivot of a constraint is raised: a fraction of its own size plus a fraction of the
    largest size, or 1 if all sizes are zero."""
    floor = least * functools.reduce(maximum, sizes, 0.0)
    floor = where(floor > 0, floor, 1.0)
    return tuple(x * factor + floor for x in sizes)


@kernel
def _without_row(
    I: ArticulatedInertia, K: tuple[Force, ...], L: Symmetric, sizes: tuple[Scalar, ...], delta: Scalar
) -> tuple[Any, ...]:
    """(the first row, its pivot, and inertia, K, L, sizes after the elimination of this row)."""
    inverse = 1.0 / (L[0][0] + delta)
    row = Row(K[0], tuple(line[0] for line in L[1:]), inverse)
    scaled = tuple(x * inverse for x in row.L)
    I = I.minus_outer(row.K, row.K * -inverse)
    forces = tuple(F + row.K * -x for F, x in zip(K[1:], scaled, strict=True))
    left = tuple(tuple(x - scaled[r] * row.L[s] for s, x in enumerate(line[1:])) for r, line in enumerate(L[1:]))
    size = where(sizes[0] > 0, sizes[0], 1.0)
    return row, Pivot(L[0][0] / size, sizes[0]), I, forces, left, sizes[1:]


# steps of the right-hand side


def _loaded(
    kind: Elimination, load: Load, rows: tuple[Row, ...], S: tuple[Motion, ...], X: Transform | None, given: Any
) -> tuple[tuple[Load], Any]:
    """(the load that is passed inwards, the value of each eliminated scalar under the loads alone)."""
    p, l = load.p, load.l
    driven = []
    if kind.joint is None:
        l = (*(x - t for x, t in zip(l, given, strict=False)), *l[kind.own :])
        for row in rows:
            p, l, own = _row_loaded(row, p, l)
            driven.append(own)
    else:
        for row, k in zip(rows, reversed(range(len(S))), strict=True):
            p, l, own = _joint_loaded(row, S[k], given[k], p, l)
            driven.append(own)
        p = X.force_to_parent(p) if kind.hangs and X is not None else ZERO_FORCE
    handed: list[Scalar] = [ZERO] * kind.next
    for x, i in zip(l, kind.onto, strict=True):
        handed[i] = x
    return (Load(p, tuple(handed)),), tuple(driven)


@kernel
def _row_loaded(row: Row, p: Force, l: tuple[Scalar, ...]) -> Any:
    own = l[0] * row.inverse
    return p + row.K * own, tuple(x - own * y for x, y in zip(l[1:], row.L, strict=True)), own


@kernel
def _joint_loaded(row: Row, S: Motion, tau: Scalar, p: Force, l: tuple[Scalar, ...]) -> Any:
    own = (tau - S @ p) * row.inverse
    return p + row.K * own, tuple(x + own * y for x, y in zip(l, row.L, strict=True)), own


@kernel
def _multipliers(
    rows: tuple[Row, ...], driven: tuple[Scalar, ...], A: Motion, pending: tuple[Scalar, ...]
) -> tuple[Scalar, ...]:
    found: tuple[Scalar, ...] = pending
    for row, own in zip(reversed(rows), reversed(driven), strict=True):
        seen = A @ row.K + total(*(x * y for x, y in zip(row.L, found, strict=True)))
        found = (-(own + seen * row.inverse), *found)
    return found[: len(rows)]


@kernel
def _rates(
    rows: tuple[Row, ...], S: tuple[Motion, ...], X: Transform, driven: tuple[Scalar, ...], A: Motion, pending: Any
) -> tuple[Motion, tuple[Scalar, ...]]:
    """(acceleration of the link, accelerations of its joint)."""
    A = X.motion_to_child(A)
    rates = []
    for motion, row, own in zip(S, reversed(rows), reversed(driven), strict=True):
        seen = total(*(x * y for x, y in zip(row.L, pending, strict=True))) - A @ row.K
        rates.append(own + seen * row.inverse)
        A = A + motion * rates[-1]
    return A, tuple(rates)


def _sum(a: tuple[Scalar, ...], b: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))
