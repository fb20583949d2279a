"""What the elastic coordinates of a flexible body add to its inertia.

The equations of motion are those of Lagrange for the kinetic energy V I(q) V / 2 + V U(q) dq/dt + |dq/dt|²/2, with the
twist V of the body's frame: the wrench is d(I V + U dq/dt)/dt, and the force along a mode d(U V + dq/dt)/dt less the
derivative of the energy with respect to its coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmbs.spatial import ZERO3, ZERO_FORCE, Force, Motion, RigidInertia, Symmetric3, Vector3, kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, total


@components
class Deformation:
    """At one state, for the modes of a body: U, its momentum per rate of each; momentum: U dq/dt; rate: dI/dt; changes:
    the derivative of I with respect to each coordinate; turning: for each, the sum of rho phi_l × phi_k dq_l/dt;
    drawn: the force from the second-order displacements, dU/dt dq/dt."""

    U: tuple[Force, ...]
    momentum: Force
    rate: RigidInertia
    changes: tuple[RigidInertia, ...]
    turning: tuple[Vector3, ...]
    drawn: Vector3

    def wrench(self, V: Motion, a: Sequence[Scalar]) -> Force:
        """Rate of change of the momentum beyond I A + V × I V, with the accelerations a of the modes (none: zero)."""
        F = V.cross_force(self.momentum) + self.rate @ V + Force(ZERO3, self.drawn)
        for U, x in zip(self.U, a, strict=False):
            F = F + U * x
        return F

    def bias(self, V: Motion) -> tuple[Scalar, ...]:
        """Force along each mode at accelerations zero of the frame and of all modes."""
        return tuple(2 * (V.angular @ w) - 0.5 * (V @ (I @ V)) for w, I in zip(self.turning, self.changes, strict=True))

    def along(self, V: Motion, A: Motion, a: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """Force along each mode at the acceleration A of the frame and a of the modes, whose modal mass is one."""
        return tuple(A @ U + x + b for U, x, b in zip(self.U, a, self.bias(V), strict=True))


@kernel
def deformed(p: Any, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[RigidInertia, Deformation]:
    """(change of the inertia of the body as a whole, Deformation) at coordinates q and rates v of the modes; p: the
    numbers of `ElasticModes`."""
    n = len(q)
    angular, first = (_grouped(p[name], size) for name, size in (("angular_momentum", 3), ("inertia_change", 6)))
    pairs = [(k, l) for k in range(n) for l in range(k + 1, n)]
    crossed = dict(zip(pairs, _grouped(p["coupling"], 3), strict=False))
    second, shorter = _paired(p["inertia_curvature"], n, 6), _paired(p["moment_curvature"], n, 3)

    def turned(k: int, by: Sequence[Scalar]) -> Vector3:
        """The sum over l of rho phi_l × phi_k, times by[l]."""
        own = [(crossed[l, k], by[l]) for l in range(k)] + [(crossed[k, l], -by[l]) for l in range(k + 1, n)]
        return Vector3(*_combined([x for x, _ in own], [y for _, y in own], 3))

    def slope(k: int, share: float) -> tuple[Scalar, ...]:
        more = [second[min(k, l), max(k, l)] for l in range(n)] if second else []
        return _combined([first[k], *more], [1.0, *(share * x for x in q[: len(more)])], 6)

    moments, means = momenta(p, q, 1.0), momenta(p, q, 0.5)
    U = tuple(Force(Vector3(*angular[k]) + turned(k, q), moments[k]) for k in range(n))
    changes = tuple(RigidInertia(ZERO, moments[k], Symmetric3(*slope(k, 1.0))) for k in range(n))
    momentum = ZERO_FORCE
    for u, x in zip(U, v, strict=True):
        momentum = momentum + u * x
    rate = _whole([tuple(x) for x in moments], [tuple(x.inertia) for x in changes], v)
    whole = _whole([tuple(x) for x in means], [slope(k, 0.5) for k in range(n)], q)
    drawn = ZERO3
    for (k, l), c in shorter.items():
        drawn = drawn + Vector3(*c) * (v[k] * v[l] * (1.0 if k == l else 2.0))
    return whole, Deformation(U, momentum, rate, changes, tuple(turned(k, v) for k in range(n)), drawn)


def momenta(p: Any, q: Sequence[Scalar], share: float) -> list[Vector3]:
    """For each mode, the derivative of mass times centre of mass; with share 0.5, what times its coordinate adds up to the
    change of mass times centre of mass. p: as in `deformed`."""
    n, linear = len(q), _grouped(p["momentum"], 3)
    shorter = _paired(p["moment_curvature"], n, 3)
    if not shorter:
        return [Vector3(*x) for x in linear[:n]]
    rows = [[linear[k], *(shorter[min(k, l), max(k, l)] for l in range(n))] for k in range(n)]
    return [Vector3(*_combined(row, [1.0, *(share * x for x in q)], 3)) for row in rows]


def _paired(numbers: Sequence[Scalar], n: int, size: int) -> dict[tuple[int, int], Sequence[Scalar]]:
    """The numbers of each pair of modes k <= l; none for one zero."""
    pairs = [(k, l) for k in range(n) for l in range(k, n)]
    return dict(zip(pairs, _grouped(numbers, size), strict=True)) if len(numbers) > 1 else {}


def _whole(moments: Sequence[Any], inertias: Sequence[Any], by: Sequence[Scalar]) -> RigidInertia:
    return RigidInertia(ZERO, Vector3(*_combined(moments, by, 3)), Symmetric3(*_combined(inertias, by, 6)))


def _grouped(numbers: Sequence[Scalar], size: int) -> list[Sequence[Scalar]]:
    return [numbers[k : k + size] for k in range(0, len(numbers) - size + 1, size)]


def _combined(rows: Sequence[Sequence[Scalar]], by: Sequence[Scalar], size: int) -> tuple[Scalar, ...]:
    return tuple(total(*(row[c] * x for row, x in zip(rows, by, strict=True))) for c in range(size))
