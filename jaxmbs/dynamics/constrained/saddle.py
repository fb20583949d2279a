"""Solves A a - Jᵀ lambda = force, J a = target in components, for any rank of J.

S = J A⁻¹ Jᵀ is factorised with its diagonal raised by a few units of rounding. This makes it definite even if rows
depend on one another, so that no pivoting is needed. The resulting error in a shrinks at every step of

    lambda += S⁻¹ (target - J a),    a += A⁻¹ Jᵀ (S⁻¹ (target - J a))

by the ratio of the added amount to the eigenvalues of S (the proximal method of multipliers). At a small distance from
a singular configuration, one eigenvalue is about the square of this distance: at 1e-4 the ratio is about 1e-6. The
residual is computed from a itself, so that rounding is amplified by the inverse of the distance and not of its square.
If a row is so small that it is only rounding compared with the others, its diagonal entry is raised so much that the
row has no effect. Multipliers in the null space of Jᵀ have no effect on the motion; `least_norm` removes them.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from jaxmbs.spatial import kernel
from jaxmbs.spatial.factorization import Matrix, Vector, expand, factorize, product, reduce
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.pivoting import Pivoted, basic_solution, complete, in_range, pivoted
from jaxmbs.spatial.pivoting import conditioning as conditioning
from jaxmbs.spatial.scalar import Scalar, maximum, total, where


def raised(eps: float, redundant: bool) -> float:
    """The fraction by which the diagonal of S is raised; it must exceed the error of S, a few units of rounding.

    redundant: whether rows depend on one another wherever the loops are closed. At the stages of an integration step
    the loops are open by the integrator's error, so that such rows are only nearly dependent; a larger fraction
    prevents them from acting as independent rows there.
    """
    return eps**0.7 if redundant else 16 * eps


_DEPENDENT = 64.0  # multiples of rounding below which the remainder of a row counts as zero


def smallest(eps: float) -> float:
    """The fraction of the largest diagonal entry of S below which a diagonal entry, and its row, counts as rounding."""
    return eps ** (4 / 3)


class Factors(NamedTuple):
    """A = U D Uᵀ with inverse = D⁻¹; Z = J U⁻ᵀ; J A⁻¹ Jᵀ, its diagonal raised, = V E Vᵀ with weights = E⁻¹."""

    U: Matrix
    inverse: Vector
    Z: Matrix
    V: Matrix
    weights: Vector


class OfRedundant(Factors):
    """Factors whose diagonal is raised so much that the correction takes more steps."""


def steps(factors: tuple[Any, ...]) -> int:
    """Number of steps of the correction, for full accuracy at a distance of 1e-4 from a singular configuration."""
    return 4 if isinstance(factors, OfRedundant) else 2


def factorized(A: Matrix, J: Matrix, eps: float, redundant: bool = False) -> Factors:
    U, inverse = factorize(A)
    Z = tuple(reduce(U, row) for row in J)
    V, weights = factorize(_raised(schur(Z, inverse), 1 + raised(eps, redundant), smallest(eps)))
    return (OfRedundant if redundant else Factors)(U, inverse, Z, V, weights)


def multiply(matrix: tuple[Matrix, Matrix], x: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """(A a - Jᵀ lambda, J a)."""
    (A, J), (a, multipliers) = matrix, x
    return driven(product(A, a), J, tuple(-f for f in multipliers)), product(J, a)


def solve(factors: Factors, right: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """(a, lambda) of right = (force, target)."""
    U, inverse, Z, V, weights = factors
    force, target = right
    z = reduce(U, force)
    multipliers: Vector = (ZERO,) * len(Z)
    for _ in range(steps(factors) if Z else 0):
        change = expand(V, weights, reduce(V, missing(Z, inverse, z, target)))
        z = driven(z, Z, change)
        multipliers = tuple(x + d for x, d in zip(multipliers, change, strict=True))
    return expand(U, inverse, z), multipliers


@kernel
def schur(Z: Matrix, inverse: Vector) -> Matrix:
    """Lower triangle of J A⁻¹ Jᵀ."""
    scaled = tuple(tuple(x * d for x, d in zip(z, inverse, strict=True)) for z in Z)
    return tuple(
        tuple(total(*(x * y for x, y in zip(Z[i], scaled[j], strict=True))) for j in range(i + 1))
        for i in range(len(Z))
    )


@kernel
def _raised(S: Matrix, factor: Scalar, least: Scalar) -> Matrix:
    """S with its diagonal multiplied by a factor and raised by `least` times its largest entry (by 1 if this is 0)."""
    floor = least * functools.reduce(maximum, (row[-1] for row in S), 0.0)
    floor = where(floor > 0, floor, 1.0)
    return tuple((*row[:-1], row[-1] * factor + floor) for row in S)


@kernel
def missing(Z: Matrix, inverse: Vector, z: Vector, target: Vector) -> Vector:
    """target - J a, with a = U⁻ᵀ D⁻¹ z."""
    a = tuple(x * d for x, d in zip(z, inverse, strict=True))
    return tuple(t - total(*(x * y for x, y in zip(row, a, strict=True))) for t, row in zip(target, Z, strict=True))


@kernel
def driven(z: Vector, Z: Matrix, multipliers: Vector) -> Vector:
    """z + Zᵀ multipliers."""
    return tuple(x + total(*(row[k] * f for row, f in zip(Z, multipliers, strict=True))) for k, x in enumerate(z))


def ranked(factors: Factors, eps: float) -> Pivoted:
    """The rows in the order of their pivots, for `least_norm` and `conditioning`."""
    return pivoted(schur(factors.Z, factors.inverse), _DEPENDENT * eps, smallest(eps))


def multiply_transposed(J: Matrix, x: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """(lambda - J w, Jᵀ lambda) of x = (lambda, w): the equations of `least_norm`."""
    multipliers, w = x
    moved = tuple(f - x for f, x in zip(multipliers, product(J, w), strict=True))
    return moved, driven((ZERO,) * len(w), J, multipliers)


def least_norm(factors: tuple[Matrix, Factors, Pivoted], right: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """(lambda, w) of right = (b, p): the lambda nearest to b with Jᵀ lambda = p, and lambda = b + J w."""
    J, of_matrix, rows = factors
    b, p = right
    U, inverse, Z = of_matrix.U, of_matrix.inverse, of_matrix.Z
    none: Vector = (ZERO,) * len(Z)

    def acting(x: Vector) -> Vector:
        """Multipliers f, zero for rows that are not used, with J A⁻¹ Jᵀ f = J a at a = U⁻ᵀ D⁻¹ x."""
        return tuple(-f for f in basic_solution(rows, missing(Z, inverse, x, none)))

    z = reduce(U, driven(p, J, tuple(-f for f in b)))
    basic = acting(z)
    basic = _sum(basic, acting(driven(z, Z, tuple(-f for f in basic))))
    spread = in_range(rows, basic)
    idle = tuple(y - x for x, y in zip(spread, basic, strict=True))
    spread = _sum(spread, acting(driven((ZERO,) * len(z), Z, idle)))
    whole = complete(rows)
    own = tuple(where(whole, x, y) for x, y in zip(basic, spread, strict=True))
    return _sum(b, own), solve(of_matrix, ((ZERO,) * len(z), own))[0]


@kernel
def _sum(a: Vector, b: Vector) -> Vector:
    return tuple(x + y for x, y in zip(a, b, strict=True))
