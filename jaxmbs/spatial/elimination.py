"""Small dense systems in components without symmetry: A = L U, pivots from the diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.spatial.boundary import kernel
from jaxmbs.spatial.factorization import Matrix, Vector
from jaxmbs.spatial.scalar import Scalar

Factors = tuple[Matrix, Matrix, Vector]


def eliminated(A: Sequence[Sequence[Scalar]]) -> Factors:
    """(columns of L below its unit diagonal, rows of U right of its diagonal, one over the diagonal of U) of A = L U.

    Rows are not exchanged, so the matrix should be close to a symmetric positive definite one.
    """
    left: Matrix = tuple(tuple(row) for row in A)
    lower, upper, inverse = [], [], []
    while left:
        pivot, column, row, left = _step(left)
        inverse.append(pivot)
        lower.append(column)
        upper.append(row)
    return tuple(lower), tuple(upper), tuple(inverse)


@kernel
def _step(A: Matrix) -> tuple[Scalar, Vector, Vector, Matrix]:
    pivot, row = 1.0 / A[0][0], A[0][1:]
    column = tuple(line[0] * pivot for line in A[1:])
    rest = tuple(
        tuple(x - c * y for x, y in zip(line[1:], row, strict=True)) for c, line in zip(column, A[1:], strict=True)
    )
    return pivot, column, row, rest


@kernel
def solved(factors: Factors, b: Vector) -> Vector:
    """The solution x of A x = b."""
    lower, upper, inverse = factors
    x = list(b)
    for k, column in enumerate(lower):
        for i, c in enumerate(column, k + 1):
            x[i] -= c * x[k]
    for k in reversed(range(len(x))):
        for j, u in enumerate(upper[k], k + 1):
            x[k] -= u * x[j]
        x[k] *= inverse[k]
    return tuple(x)
