"""Small dense symmetric systems in components: A = U D Uᵀ, and the least-norm solution of a semidefinite system."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from jaxmbs.spatial import kernel
from jaxmbs.spatial.scalar import Scalar, add, div, maximum, minimum, mul, sub, total, where

Vector = tuple[Scalar, ...]
Matrix = tuple[Vector, ...]


@kernel
def product(A: Matrix, x: Vector) -> Vector:
    """A x."""
    return tuple(total(*(mul(a, b) for a, b in zip(row, x, strict=True))) for row in A)


@kernel
def _factors(row: Vector) -> tuple[Vector, Scalar]:
    inverse = div(1.0, row[-1])
    return tuple(mul(x, inverse) for x in row[:-1]), inverse


@kernel
def _remaining(left: Matrix, factors: Vector, row: Vector) -> Matrix:
    return tuple(tuple(sub(x, mul(factors[i], row[j])) for j, x in enumerate(line)) for i, line in enumerate(left))


def factorize(A: Sequence[Sequence[Scalar]]) -> tuple[Matrix, Vector]:
    """(U, D⁻¹) of a symmetric positive definite A = U D Uᵀ; U[k] holds the entries above the unit diagonal of column k.

    Eliminates from the last coordinate: on a tree, whose coordinates are numbered outwards, that creates no fill-in
    [Y 2.7]; structural zeros are skipped.
    """
    left: Matrix = tuple(tuple(A[i][j] for j in range(i + 1)) for i in range(len(A)))
    U: list[Vector] = []
    inverse: list[Scalar] = []
    while left:
        *rest, row = left
        factors, pivot = _factors(row)
        U.append(factors)
        inverse.append(pivot)
        left = _remaining(tuple(rest), factors, row)
    return tuple(U[::-1]), tuple(inverse[::-1])


@kernel
def reduce(U: Matrix, b: Vector) -> Vector:
    """U⁻¹ b."""
    x = list(b)
    for k in reversed(range(len(x))):
        for i in range(k):
            x[i] = sub(x[i], mul(U[k][i], x[k]))
    return tuple(x)


@kernel
def expand(U: Matrix, inverse: Vector, z: Vector) -> Vector:
    """U⁻ᵀ D⁻¹ z."""
    x: list[Scalar] = []
    for k in range(len(z)):
        x.append(sub(mul(z[k], inverse[k]), total(*(mul(U[k][i], x[i]) for i in range(k)))))
    return tuple(x)


def solve(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Solution of A x = b for a symmetric positive definite A."""
    U, inverse = factorize(A)
    return expand(U, inverse, reduce(U, tuple(b)))


def inverse(A: Sequence[Sequence[Scalar]]) -> Matrix:
    """A⁻¹ of a symmetric positive definite A."""
    U, pivots = factorize(A)
    n = len(A)
    return tuple(expand(U, pivots, reduce(U, tuple(1 if i == k else 0 for i in range(n)))) for k in range(n))


def solve_semidefinite(S: Matrix, b: Vector, tolerance: float) -> tuple[Vector, Scalar]:
    """Least-norm solution of S x = b for a symmetric semidefinite S with b in its range, and its conditioning.

    Conditioning: the smallest pivot of the rows used over the largest entry of S. A row whose pivot falls under
    `tolerance` of its diagonal depends on those before it and is left out; what its share would be is then spread over
    all rows. Derivatives are those at constant rank.
    """
    m = len(b)
    L: list[list[Scalar]] = [[0] * m for _ in range(m)]
    used: list[Scalar] = []
    pivots: list[Scalar] = []
    inverse: list[Scalar] = []
    left = S
    for k in range(m):
        keep, pivot, inv, column, left = _pivot(left, S[k][k], tolerance)
        used.append(keep)
        pivots.append(pivot)
        inverse.append(inv)
        for i, x in enumerate(column, k + 1):
            L[i][k] = x
    lower = tuple(tuple(row[:i]) for i, row in enumerate(L))
    basic = _substitute(lower, tuple(inverse), b)
    return _least_norm(lower, tuple(used), basic), _conditioning(tuple(pivots), tuple(S[k][k] for k in range(m)))


@kernel
def _pivot(left: Matrix, diagonal: Scalar, tolerance: float) -> tuple[Scalar, Scalar, Scalar, Vector, Matrix]:
    """(whether the first row is used, its pivot or infinity, inverse pivot or 0, its column of L, what remains)."""
    d = left[0][0]
    keep = d > mul(tolerance, diagonal)
    inverse = where(keep, div(1.0, where(keep, d, 1.0)), 0.0)
    column = tuple(mul(row[0], inverse) for row in left[1:])
    rest = tuple(
        tuple(sub(row[j + 1], mul(column[i], left[j + 1][0])) for j in range(i + 1)) for i, row in enumerate(left[1:])
    )
    return where(keep, 1.0, 0.0), where(keep, d, math.inf), inverse, column, rest


@kernel
def _conditioning(pivots: Vector, diagonal: Vector) -> Scalar:
    largest = functools.reduce(maximum, diagonal)
    return minimum(1.0, div(functools.reduce(minimum, pivots), where(largest > 0, largest, 1.0)))


@kernel
def _substitute(L: Matrix, inverse: Vector, b: Vector) -> Vector:
    y: list[Scalar] = []
    for k in range(len(b)):
        y.append(sub(b[k], total(*(mul(L[k][i], y[i]) for i in range(k)))))
    x = [mul(v, inv) for v, inv in zip(y, inverse, strict=True)]
    for k in reversed(range(len(b))):
        x[k] = sub(x[k], total(*(mul(L[i][k], x[i]) for i in range(k + 1, len(b)))))
    return tuple(x)


def _least_norm(L: Matrix, used: Vector, x: Vector) -> Vector:
    """The solution of least norm from one in which the unused rows are zero.

    With K the columns of L that are used, S = K D Kᵀ, and the answer is K (KᵀK)⁻¹ Kᵀ x.
    """
    m = len(x)
    K = [[mul(used[j], L[i][j] if j < i else (1 if i == j else 0)) for j in range(m)] for i in range(m)]
    normal = [
        [
            add(total(*(mul(K[k][i], K[k][j]) for k in range(m))), sub(1.0, used[i]) if i == j else 0)
            for j in range(i + 1)
        ]
        for i in range(m)
    ]
    y = [total(*(mul(K[k][i], x[k]) for k in range(m))) for i in range(m)]
    z = solve([[normal[max(i, j)][min(i, j)] for j in range(m)] for i in range(m)], y)
    spread = [total(*(mul(K[k][i], z[i]) for i in range(k + 1))) for k in range(m)]
    complete = total(*used) > m - 0.5
    return tuple(where(complete, a, b) for a, b in zip(x, spread, strict=True))
