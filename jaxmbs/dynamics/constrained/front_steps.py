"""The steps of the elimination in fronts: of a joint, of a constraint row, of their loads, and back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jaxmbs.dynamics.constrained.order import Elimination
from jaxmbs.dynamics.state.tree import Link
from jaxmbs.spatial import ZERO_FORCE, ArticulatedInertia, Force, Motion, Transform, kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.inertias import ZERO_INERTIA
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, maximum, total, vanishes, where

Symmetric = tuple[tuple[Scalar, ...], ...]  # lower triangle


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


def empty(n: int) -> Front:
    return Front(ZERO_INERTIA.articulated(), (ZERO_FORCE,) * n, tuple((ZERO,) * (r + 1) for r in range(n)), (ZERO,) * n)


def _handed(kind: Elimination, inertia: ArticulatedInertia, K: Any, L: Any, sizes: Any) -> Front:
    """The front in the layout of the next step; L: the lower triangle of the pending rows."""
    out = empty(kind.next)
    forces, rows, found = list(out.K), [list(row) for row in out.L], list(out.sizes)
    for r, i in enumerate(kind.onto):
        forces[i], found[i] = K[r], sizes[r]
        for s in range(r + 1):
            j = kind.onto[s]
            rows[max(i, j)][min(i, j)] = L[r][s]
    return Front(inertia, tuple(forces), tuple(map(tuple, rows)), tuple(found))


def without_joint(
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


def without_rows(
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
def raises(sizes: tuple[Scalar, ...], factor: Scalar, least: Scalar) -> tuple[Scalar, ...]:
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


def loaded(
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
def multipliers(
    rows: tuple[Row, ...], driven: tuple[Scalar, ...], A: Motion, pending: tuple[Scalar, ...]
) -> tuple[Scalar, ...]:
    found: tuple[Scalar, ...] = pending
    for row, own in zip(reversed(rows), reversed(driven), strict=True):
        seen = A @ row.K + total(*(x * y for x, y in zip(row.L, found, strict=True)))
        found = (-(own + seen * row.inverse), *found)
    return found[: len(rows)]


@kernel
def rates(
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
