"""Pivoted factorization of symmetric semidefinite matrices in components, which finds rows that depend on others.

S = K D Kᵀ with one column of K for each row used, largest relative pivot first. Rows are not exchanged: flags mark the
chosen row, so that the same operations serve every order.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxmbs.spatial.boundary import kernel
from jaxmbs.spatial.factorization import Matrix, Vector, expand, factorize, reduce
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, is_number, maximum, minimum, total, where


class Pivoted(NamedTuple):
    """Factors of a matrix, one entry per step. columns: the columns of K, with 1 in the chosen row; chosen: flags that
    mark this row; inverse: entries of D⁻¹; used: 1 if the row is independent of those before, otherwise 0; pivots: each
    pivot divided by the diagonal entry of its row; sizes: each pivot divided by the largest diagonal entry. In a step
    whose row is not used, the column and the inverse are 0, the pivot and the size are 1."""

    columns: Matrix
    chosen: Matrix
    inverse: Vector
    used: Vector
    pivots: Vector
    sizes: Vector


def pivoted(S: Matrix, tolerance: float, smallest: float) -> Pivoted:
    """Factors of the matrix with the lower triangle S.

    A row is used if its pivot is above `tolerance` times its diagonal entry, and this entry is above `smallest` times
    the largest one.
    """
    m, found = len(S), []
    scale, overall = _scales(tuple(S[i][i] for i in range(m)), smallest)
    free: Vector = (True,) * m
    for _ in range(m):
        *step, S, free = _step(S, scale, overall, free, tolerance)
        found.append(step)
    return Pivoted(*(tuple(x) for x in zip(*found, strict=True))) if found else Pivoted((), (), (), (), (), ())


@kernel
def conditioning(factors: Pivoted) -> tuple[Scalar, Scalar]:
    """Smallest values, among the rows used, of (pivot / largest diagonal entry, pivot / diagonal entry of its row)."""
    return functools.reduce(minimum, factors.sizes, 1.0), functools.reduce(minimum, factors.pivots, 1.0)


@kernel
def basic_solution(factors: Pivoted, b: Vector) -> Vector:
    """x with S x = b for b in the range of S, zero in the rows that are not used."""
    rest, x, m = list(b), [ZERO] * len(b), len(b)
    y = []
    for column, chosen in zip(factors.columns, factors.chosen, strict=True):
        y.append(_pick(chosen, rest))
        rest = [r - c * y[-1] for r, c in zip(rest, column, strict=True)]
    for k in reversed(range(m)):
        column, chosen = factors.columns[k], factors.chosen[k]
        own = y[k] * factors.inverse[k] - total(*(c * v for c, v in zip(column, x, strict=True)))
        x = [_where(h, own, v) for h, v in zip(chosen, x, strict=True)]
    return tuple(x)


def in_range(factors: Pivoted, x: Vector) -> Vector:
    """The part of x in the range of S, K (KᵀK)⁻¹ Kᵀ x, refined once because rows in different units scale KᵀK badly."""
    U, inverse = factorize(_normal(factors))
    first = expand(U, inverse, reduce(U, _along(factors, x)))
    rest = tuple(v - s for v, s in zip(x, _spread(factors, first), strict=True))
    second = expand(U, inverse, reduce(U, _along(factors, rest)))
    return _spread(factors, tuple(v + w for v, w in zip(first, second, strict=True)))


def complete(factors: Pivoted) -> Scalar:
    """Whether all rows are used."""
    return total(*factors.used) > len(factors.used) - 0.5


@kernel
def _normal(factors: Pivoted) -> Matrix:
    """Lower triangle of KᵀK, with 1 on the diagonal for each column that is zero."""
    K, used = factors.columns, factors.used
    return tuple(
        tuple(_inner(K[i], K[j]) + (1.0 - used[i] if i == j else ZERO) for j in range(i + 1)) for i in range(len(K))
    )


@kernel
def _along(factors: Pivoted, x: Vector) -> Vector:
    return tuple(_inner(column, x) for column in factors.columns)


@kernel
def _spread(factors: Pivoted, z: Vector) -> Vector:
    return tuple(_inner(row, z) for row in zip(*factors.columns, strict=True))


def _inner(a: Vector, b: Vector) -> Scalar:
    return total(*(x * y for x, y in zip(a, b, strict=True)))


@kernel
def _scales(diagonal: Vector, smallest: float) -> tuple[Vector, Scalar]:
    """(inverses of the diagonal entries, 0 for those that are too small; the inverse of the largest)."""
    largest = functools.reduce(maximum, diagonal, 0.0)
    least = smallest * largest
    own = tuple(where(d > least, 1.0 / where(d > least, d, 1.0), 0.0) for d in diagonal)
    return own, 1.0 / where(largest > 0, largest, 1.0)


@kernel
def _step(S: Matrix, scale: Vector, overall: Scalar, free: Vector, tolerance: float) -> tuple[Any, ...]:
    """(column, chosen, inverse, used, pivot, size, the remaining part of S, flags of the remaining rows)."""
    m = len(S)
    worth = [where(on, S[i][i] * scale[i], -1.0) for i, on in enumerate(free)]
    best = functools.reduce(maximum, worth)
    chosen, taken = [], False
    for w in worth:
        chosen.append(where(taken, False, w == best))
        taken = where(chosen[-1], True, taken)
    along = [_pick(chosen, [S[max(i, j)][min(i, j)] for j in range(m)]) for i in range(m)]
    pivot = _pick(chosen, along)
    idle = best <= tolerance  # false for NaN
    inverse = where(idle, 0.0, 1.0 / where(idle, 1.0, pivot))
    used = where(idle, 0.0, 1.0)
    column = tuple(where(h, used, x * inverse) for h, x in zip(chosen, along, strict=True))
    rest = tuple(tuple(x - column[i] * along[j] for j, x in enumerate(row)) for i, row in enumerate(S))
    left = tuple(where(h, False, on) for h, on in zip(chosen, free, strict=True))
    sizes = where(idle, 1.0, best), where(idle, 1.0, pivot * overall)
    return column, tuple(chosen), inverse, used, *sizes, rest, left


def _pick(flags: Sequence[Scalar], values: Sequence[Scalar]) -> Scalar:
    out: Scalar = ZERO
    for h, x in zip(flags, values, strict=True):
        out = _where(h, x, out)
    return out


def _where(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    return a if is_number(a) and is_number(b) and a == b else where(condition, a, b)
