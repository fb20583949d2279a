"""Small dense symmetric systems in components: A = U D Uᵀ."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.spatial import kernel
from jaxmbs.spatial.scalar import Scalar, total

Vector = tuple[Scalar, ...]
Matrix = tuple[Vector, ...]


@kernel
def product(A: Matrix, x: Vector) -> Vector:
    """A x."""
    return tuple(total(*(a * b for a, b in zip(row, x, strict=True))) for row in A)


@kernel
def _factors(row: Vector) -> tuple[Vector, Scalar]:
    inverse = 1.0 / row[-1]
    return tuple(x * inverse for x in row[:-1]), inverse


@kernel
def _remaining(left: Matrix, factors: Vector, row: Vector) -> Matrix:
    return tuple(tuple(x - factors[i] * row[j] for j, x in enumerate(line)) for i, line in enumerate(left))


def factorize(A: Sequence[Sequence[Scalar]]) -> tuple[Matrix, Vector]:
    """(U, D⁻¹) of a symmetric positive definite A = U D Uᵀ; U[k] holds the entries above the unit diagonal of column k.

    Elimination starts from the last coordinate: on a tree, whose coordinates are numbered outwards, this creates no
    fill-in [Y 2.7]. Structural zeros are skipped.
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
            x[i] -= U[k][i] * x[k]
    return tuple(x)


@kernel
def expand(U: Matrix, inverse: Vector, z: Vector) -> Vector:
    """U⁻ᵀ D⁻¹ z."""
    x: list[Scalar] = []
    for k in range(len(z)):
        x.append(z[k] * inverse[k] - total(*(U[k][i] * x[i] for i in range(k))))
    return tuple(x)


def solve(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Solution of A x = b for a symmetric positive definite A."""
    U, inverse = factorize(A)
    return expand(U, inverse, reduce(U, tuple(b)))
