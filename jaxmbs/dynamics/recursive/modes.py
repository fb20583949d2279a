"""The steps of the articulated-body algorithm for a flexible body: its nodes hand on their inertia as a function of the
motion of the body's frame and of its modes, and the body's modes are eliminated in turn."""

from __future__ import annotations

from typing import Any

from jaxmbs.dynamics.recursive.drives import Drive
from jaxmbs.dynamics.state.kinematics import LinkMotion
from jaxmbs.dynamics.state.tree import Link
from jaxmbs.spatial import ZERO_FORCE, ArticulatedInertia, Force, Motion
from jaxmbs.spatial.components import components
from jaxmbs.spatial.known import ONE, ZERO
from jaxmbs.spatial.scalar import Scalar, total, where


@components
class Modal:
    """The part of an articulated inertia and bias force that concerns modes. U: per mode, the wrench on the body's frame
    per unit acceleration of the mode; D: per mode, the forces along all modes; p: bias forces along the modes."""

    U: tuple[Force, ...]
    D: tuple[tuple[Scalar, ...], ...]
    p: tuple[Scalar, ...]

    def __add__(self, other: Modal) -> Modal:
        return Modal(
            tuple(a + b for a, b in zip(self.U, other.U, strict=True)),
            tuple(tuple(x + y for x, y in zip(a, b, strict=True)) for a, b in zip(self.D, other.D, strict=True)),
            tuple(a + b for a, b in zip(self.p, other.p, strict=True)),
        )


@components
class ModeFreedom:
    """An eliminated mode: U / D, the row of D up to it, divided by D, and (tau - p) / D."""

    scaled: Force
    row: tuple[Scalar, ...]
    rate: Scalar


def none(n: int) -> Modal:
    """Of a body whose nodes carry nothing."""
    return Modal((ZERO_FORCE,) * n, ((ZERO,) * n,) * n, (ZERO,) * n)


def of_node(I: ArticulatedInertia, p: Force, m: LinkMotion) -> tuple[tuple[Any, ...], tuple[()]]:
    """What a node with articulated inertia I and bias force p hands to its body."""
    p = p + I @ m.c
    forces = [I @ S for S in m.S]
    modal = Modal(
        tuple(map(m.X.force_to_parent, forces)),
        tuple(tuple(S @ F for S in m.S) for F in forces),
        tuple(S @ p for S in m.S),
    )
    return (I.to_parent(m.X), m.X.force_to_parent(p), modal), ()


def eliminated(
    I: ArticulatedInertia, p: Force, carried: Modal, m: LinkMotion, link: Link, drive: Drive
) -> tuple[tuple[ArticulatedInertia, Force], tuple[ModeFreedom, ...]]:
    """The articulated inertia and bias force of a flexible body whose modes follow its motion, and its modes."""
    d, n = link.deformation, len(drive.tau)
    p = p + d.wrench(m.V, ())
    U = [a + b for a, b in zip(d.U, carried.U, strict=True)]
    D = [list(row) for row in carried.D]
    along = [a + b for a, b in zip(d.bias(m.V), carried.p, strict=True)]
    found = []
    for k in reversed(range(n)):
        lock = drive.lock[k] if drive.lock else None
        pivot = D[k][k] + ONE + link.armature
        inverse = 1.0 / pivot if lock is None else where(lock, 0.0, 1.0 / where(lock, 1.0, pivot))
        rate = (drive.tau[k] - along[k]) * inverse
        rate = rate if lock is None else where(lock, drive.prescribed[k], rate)
        scaled, row = U[k] * inverse, tuple(x * inverse for x in D[k][:k])
        found.append(ModeFreedom(scaled, row, rate))
        I = I.minus_outer(U[k], scaled)
        p = p + U[k] * rate
        for j in range(k):
            along[j] = along[j] + D[k][j] * rate
            U[j] = U[j] - U[k] * row[j]
            for l in range(j + 1):
                D[j][l] = D[j][l] - D[k][j] * row[l]
    return (I.to_parent(m.X), m.X.force_to_parent(p + I @ m.c)), tuple(found[::-1])


def released(
    A: Motion, m: LinkMotion, freedoms: tuple[ModeFreedom, ...]
) -> tuple[tuple[Motion, tuple[Scalar, ...]], tuple[Scalar, ...]]:
    """(what nodes move with: the acceleration of the body's frame and those of the modes; those of the modes), with the
    acceleration A of the parent."""
    A = m.X.motion_to_child(A) + m.c
    rates: list[Scalar] = []
    for f in freedoms:
        rates.append(f.rate - A @ f.scaled - total(*(x * y for x, y in zip(f.row, rates, strict=True))))
    return (A, tuple(rates)), tuple(rates)


def with_body(body: tuple[Motion, tuple[Scalar, ...]], m: LinkMotion) -> Motion:
    """The acceleration of a node."""
    A = m.X.motion_to_child(body[0]) + m.c
    for S, rate in zip(m.S, body[1], strict=True):
        A = A + S * rate
    return A
