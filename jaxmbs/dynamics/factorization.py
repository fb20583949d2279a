"""Solves A a = b for a small dense symmetric positive definite A, in components."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.spatial.scalar import Scalar, div, mul, sub


def solve(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> list[Scalar]:
    """Solution by L D Lᵀ, eliminating from the last coordinate.

    On a tree, whose coordinates are numbered outwards, that order creates no fill-in [Y 2.7]; structural zeros are
    skipped.
    """
    n = len(b)
    L = [list(row) for row in A]
    x = list(b)
    for k in reversed(range(n)):
        for i in range(k):
            factor = div(L[k][i], L[k][k])
            for j in range(i + 1):
                L[i][j] = sub(L[i][j], mul(factor, L[k][j]))
            x[i] = sub(x[i], mul(factor, x[k]))
    for k in range(n):
        for i in range(k):
            x[k] = sub(x[k], mul(L[k][i], x[i]))
        x[k] = div(x[k], L[k][k])
    return x
