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
    the derivative of I, whose mass is zero, with respect to each coordinate; coupling: of each pair k < l, the integral of
    rho phi_k × phi_l, none if all are zero; rates: dq/dt; drawn: the force from the second-order displacements, dU/dt
    dq/dt."""

    U: tuple[Force, ...]
    momentum: Force
    rate: RigidInertia
    changes: tuple[RigidInertia, ...]
    coupling: tuple[Vector3, ...]
    rates: tuple[Scalar, ...]
    drawn: Vector3

    def wrench(self, V: Motion, a: Sequence[Scalar]) -> Force:
        """Rate of change of the momentum beyond I A + V × I V, with the accelerations a of the modes (none: zero)."""
        F = V.cross_force(self.momentum) + self.rate @ V + Force(ZERO3, self.drawn)
        for U, x in zip(self.U, a, strict=False):
            F = F + U * x
        return F

    def bias(self, V: Motion) -> tuple[Scalar, ...]:
        """Force along each mode while the frame and all modes have zero accelerations."""
        w, n = V.angular, len(self.rates)
        across, h = w.cross(V.linear), w * 0.5
        spread = Symmetric3(w.x * h.x, w.y * h.y, w.z * h.z, w.x * w.y, w.x * w.z, w.y * w.z)
        found = [
            I.moment @ across - total(*(x * y for x, y in zip(I.inertia, spread, strict=True))) for I in self.changes
        ]
        twice = w * 2
        coriolis = _antisymmetric([twice @ c for c in self.coupling], n)
        return tuple(
            total(x, *(-y * self.rates[l] for l, y in row.items())) for x, row in zip(found, coriolis, strict=True)
        )

    def along(self, V: Motion, A: Motion, a: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """Force along each mode at the acceleration A of the frame and a of the modes, whose modal mass is one."""
        return tuple(A @ U + x + b for U, x, b in zip(self.U, a, self.bias(V), strict=True))


@kernel
def deformed(p: Any, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[RigidInertia, Deformation]:
    """(change of the inertia of the body as a whole, Deformation) at coordinates q and rates v of the modes; p: the
    numbers of `ElasticModes`."""
    n = len(q)
    angular, first = (_grouped(p[name], size) for name, size in (("angular_momentum", 3), ("inertia_change", 6)))
    crossed = tuple(Vector3(*x) for x in _grouped(p["coupling"], 3))[: n * (n - 1) // 2]
    second, shorter = _paired(p["inertia_curvature"], n, 6), _paired(p["moment_curvature"], n, 3)
    turned = [
        sum((-c * q[l] for l, c in row.items()), Vector3(*x))  # the displacements turn the momenta of the modes
        for x, row in zip(angular, _antisymmetric(crossed, n), strict=False)
    ]
    bent = [
        _combined([second[min(k, l), max(k, l)] for l in range(n)], q, 6) if second else (ZERO,) * 6 for k in range(n)
    ]

    def slope(k: int, share: float) -> tuple[Scalar, ...]:
        return tuple(x + share * y for x, y in zip(first[k], bent[k], strict=True))

    moments, means = momenta(p, q, 1.0), momenta(p, q, 0.5)
    U = tuple(Force(h, x) for h, x in zip(turned, moments, strict=True))
    changes = tuple(RigidInertia(ZERO, moments[k], Symmetric3(*slope(k, 1.0))) for k in range(n))
    momentum = ZERO_FORCE
    for u, x in zip(U, v, strict=True):
        momentum = momentum + u * x
    rate = _whole([tuple(x) for x in moments], [tuple(x.inertia) for x in changes], v)
    whole = _whole([tuple(x) for x in means], [slope(k, 0.5) for k in range(n)], q)
    drawn = ZERO3
    for (k, l), c in shorter.items():
        drawn = drawn + Vector3(*c) * (v[k] * v[l] * (1.0 if k == l else 2.0))
    return whole, Deformation(U, momentum, rate, changes, crossed, tuple(v), drawn)


def _antisymmetric(above: Sequence[Any], n: int) -> list[dict[int, Any]]:
    """Per row {column: entry} of the antisymmetric matrix with these entries above its diagonal; empty if there are none."""
    rows: list[dict[int, Any]] = [{} for _ in range(n)]
    pairs = ((k, l) for k in range(n) for l in range(k + 1, n))
    for (k, l), x in zip(pairs, above, strict=False):
        rows[k][l], rows[l][k] = x, -x
    return rows


def momenta(p: Any, q: Sequence[Scalar], share: float) -> list[Vector3]:
    """For each mode, the derivative of mass times centre of mass with respect to its coordinate. With share 0.5, the mean of
    this derivative between the undeformed body and q: times the coordinates, it adds up to the change of mass times centre
    of mass. p: as in `deformed`."""
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
