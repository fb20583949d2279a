"""The steps of the articulated-body algorithm for a flexible body.

Its nodes hand on what they carry, and the body eliminates its modes: one after the other or, if there are many modes and
only one node carries mass, all together at this node, which takes fewer operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from jaxmbs.dynamics.recursive.drives import Drive
from jaxmbs.dynamics.state.kinematics import LinkMotion
from jaxmbs.dynamics.state.tree import Link
from jaxmbs.spatial import ZERO_MOTION, ArticulatedInertia, Force, Motion, Vector3
from jaxmbs.spatial.components import components
from jaxmbs.spatial.known import ONE, ZERO
from jaxmbs.spatial.scalar import Scalar, total, vanishes, where

FEW = 8  # modes; operations: 80 n + 900 from a node, 54 n + 12 n² + n³/6 one after the other
LEAST = 1e-12  # share of a node's flexibility in a direction, below which it is rounding of those in other directions


@components
class Node:
    """What a node hands to its body: its articulated inertia and bias force, in its axes, its motion and numbers."""

    inertia: ArticulatedInertia
    bias: Force
    motion: LinkMotion
    link: Link

    @property
    def carries(self) -> bool:
        """Whether it has inertia."""
        return not all(vanishes(x) for x in jax.tree_util.tree_leaves(self.inertia))


@components
class Mode:
    """A mode that was eliminated after those that follow it. scaled: U / d; row: the entries of its row of D before the
    diagonal, divided by d; rate: (tau - p) / d. U: the wrench on the body's frame per unit acceleration of the mode; D: the
    force along each mode per unit acceleration of each mode; d: the diagonal entry of D."""

    scaled: Force
    row: tuple[Scalar, ...]
    rate: Scalar


@components
class Series:
    """Modes that were eliminated together with a node. rates: their accelerations without a force at the node; scaled: per
    mode, U / D; columns: the motion of the node per unit motion of the body; behind, bias: inertia and bias force at the
    node as seen through the modes, which give the force f there; yielding: per mode, s / D: the force reduces the
    acceleration of the mode by s f / D."""

    rates: tuple[Scalar, ...]
    scaled: tuple[Force, ...]
    columns: tuple[Motion, ...]
    behind: ArticulatedInertia
    bias: Force
    yielding: tuple[Motion, ...]


class Body(NamedTuple):
    """A flexible body before its modes are eliminated: articulated inertia and bias force of its frame; per mode, U, the
    force along it without accelerations, its modal mass with armature, its lock (None if it is never locked)."""

    I: ArticulatedInertia
    p: Force
    U: list[Force]
    along: list[Scalar]
    mass: Scalar
    drive: Drive

    def lock(self, k: int) -> Any:
        return self.drive.lock[k] if self.drive.lock else None

    def rate(self, k: int, force: Scalar, inverse: Scalar) -> Scalar:
        """The acceleration of a mode under a force, or the one that is prescribed."""
        rate, lock = force * inverse, self.lock(k)
        return rate if lock is None else where(lock, self.drive.prescribed[k], rate)

    def inverse(self, k: int, pivot: Scalar) -> Scalar:
        """1 / pivot, and zero where the mode is locked."""
        lock = self.lock(k)
        return 1.0 / pivot if lock is None else where(lock, 0.0, 1.0 / where(lock, 1.0, pivot))


def eliminate(
    I: ArticulatedInertia, p: Force, nodes: Sequence[Node], m: LinkMotion, link: Link, drive: Drive
) -> tuple[tuple[ArticulatedInertia, Force], Any]:
    """((articulated inertia, bias force), eliminated modes): the first pair is what a flexible body hands to its parent, its
    modes following its motion."""
    d = link.deformation
    p, along = p + d.wrench(m.V, ()), list(d.bias(m.V))
    heavy = [x for x in nodes if x.carries]
    single = len(heavy) == 1 and len(along) > FEW
    for node in nodes:
        if not (single and node.carries):
            bias = node.bias + node.inertia @ node.motion.c
            p = p + node.motion.X.force_to_parent(bias)
            along = [x + S @ bias for x, S in zip(along, node.motion.S, strict=True)]
    body = Body(I, p, list(d.U), along, ONE + link.armature, drive)
    I, p, found = _in_series(body, heavy[0]) if single else _in_turn(body, heavy)
    return (I.to_parent(m.X), m.X.force_to_parent(p + I @ m.c)), found


def _in_turn(body: Body, nodes: Sequence[Node]) -> tuple[ArticulatedInertia, Force, tuple[Mode, ...]]:
    """The modes eliminated one after the other, from the last."""
    I, p, U, along, mass, drive = body
    n = len(along)
    D: list[list[Scalar]] = [[mass if j == k else ZERO for j in range(k + 1)] for k in range(n)]
    for node in nodes:
        X, S = node.motion.X, node.motion.S
        forces = [node.inertia @ s for s in S]
        I = I + node.inertia.to_parent(X)
        U = [u + X.force_to_parent(f) for u, f in zip(U, forces, strict=True)]
        D = [[x + S[j] @ forces[k] for j, x in enumerate(row)] for k, row in enumerate(D)]
    found = []
    for k in reversed(range(n)):
        inverse = body.inverse(k, D[k][k])
        rate = body.rate(k, drive.tau[k] - along[k], inverse)
        scaled, row = U[k] * inverse, tuple(x * inverse for x in D[k][:k])
        found.append(Mode(scaled, row, rate))
        I = I.minus_outer(U[k], scaled)
        p = p + U[k] * rate
        for j in range(k):
            along[j] = along[j] + D[k][j] * rate
            U[j] = U[j] - U[k] * row[j]
            for l in range(j + 1):
                D[j][l] = D[j][l] - D[k][j] * row[l]
    return I, p, tuple(found[::-1])


def _in_series(body: Body, node: Node) -> tuple[ArticulatedInertia, Force, Series]:
    """The modes eliminated from the node, which alone carries mass.

    With the force f at the node, each mode accelerates by a rate of its own, less U A / D, less s f / D. The first two move
    the node as the body does, by `columns` and a known acceleration. The last is a flexibility G = sum of s sᵀ / D between
    the two, with only six directions, which for constant modes is a constant.
    """
    I, p, U, along, mass, drive = body
    T, m = node.link.deformation, node.motion
    inverses = [body.inverse(k, mass) for k in range(len(along))]
    scaled = tuple(u * w for u, w in zip(U, inverses, strict=True))
    rates = tuple(body.rate(k, drive.tau[k] - along[k], w) for k, w in enumerate(inverses))
    directions, flexible = _directions(T.shapes, inverses)
    shapes = [_resolved(directions, s) for s in T.shapes]
    columns = [_resolved(directions, T.entered(node.link.fixed.motion_to_child(e))) for e in _units()]
    own = ZERO_MOTION
    for s, u, w, rate in zip(shapes, U, scaled, rates, strict=True):
        I, p, own = I.minus_outer(u, w), p + u * rate, own + s * rate
        columns = [c + s * -x for c, x in zip(columns, w.scalars(), strict=True)]
    behind = T.inertia(node.inertia).of_columns(directions)
    felt = T.wrench(node.bias + node.inertia @ m.c)
    bias = _wrench([l @ felt for l in directions]) + behind @ own
    for e, flexibility in zip(_units(), flexible, strict=True):
        behind, bias = behind.softened(bias, e, flexibility)
    yielding = tuple(s * w for s, w in zip(shapes, inverses, strict=True))
    found = Series(rates, scaled, tuple(columns), behind, bias, yielding)
    return I + behind.of_columns(columns), p + _wrench([c @ bias for c in columns]), found


def _directions(shapes: Sequence[Motion], inverses: Sequence[Scalar]) -> tuple[list[Motion], list[Scalar]]:
    """Six motions l, the columns of a lower triangular matrix with a unit diagonal, and the flexibility d along each, so
    that the sum of d l lᵀ is that of s sᵀ / D over the modes. In coordinates along them, which do not mix flexibilities
    of different sizes, heavy loads lose no digits."""
    rows = [s.scalars() for s in shapes]
    G = [
        [total(*(x[i] * x[j] * w for x, w in zip(rows, inverses, strict=True))) for j in range(i + 1)] for i in range(6)
    ]
    least = [LEAST * G[i][i] for i in range(6)]
    directions, flexible = [], []
    for j in range(6):
        small = G[j][j] <= least[j]
        inverse = where(small, 0.0, 1.0 / where(small, 1.0, G[j][j]))
        column = [ZERO] * j + [ONE] + [G[i][j] * inverse for i in range(j + 1, 6)]
        directions.append(Motion(Vector3(*column[:3]), Vector3(*column[3:])))
        flexible.append(where(small, 0.0, G[j][j]))
        for i in range(j + 1, 6):
            for k in range(j + 1, i + 1):
                G[i][k] = G[i][k] - column[i] * G[k][j]
    return directions, flexible


def _resolved(directions: Sequence[Motion], m: Motion) -> Motion:
    """A motion in coordinates along the directions."""
    x = list(m.scalars())
    for j, l in enumerate(directions):
        column = l.scalars()
        for i in range(j + 1, 6):
            x[i] = x[i] - column[i] * x[j]
    return Motion(Vector3(*x[:3]), Vector3(*x[3:]))


def _wrench(x: Sequence[Scalar]) -> Force:
    return Force(Vector3(*x[:3]), Vector3(*x[3:]))


def _units() -> list[Motion]:
    rows = [[ONE if i == k else ZERO for i in range(6)] for k in range(6)]
    return [Motion(Vector3(*x[:3]), Vector3(*x[3:])) for x in rows]


def release(A: Motion, m: LinkMotion, found: Any) -> tuple[tuple[Motion, tuple[Scalar, ...]], tuple[Scalar, ...]]:
    """(state for the nodes, result): the state is (acceleration of the body's frame, accelerations of the modes), the result
    the latter alone. A: acceleration of the parent."""
    A = m.X.motion_to_child(A) + m.c
    rates: list[Scalar] = []
    if isinstance(found, Series):
        moved = ZERO_MOTION
        for column, x in zip(found.columns, A.scalars(), strict=True):
            moved = moved + column * x
        force = found.behind @ moved + found.bias
        rates = [rate - A @ u - s @ force for rate, u, s in zip(found.rates, found.scaled, found.yielding, strict=True)]
    else:
        for f in found:
            rates.append(f.rate - A @ f.scaled - total(*(x * y for x, y in zip(f.row, rates, strict=True))))
    return (A, tuple(rates)), tuple(rates)


def with_body(body: tuple[Motion, tuple[Scalar, ...]], m: LinkMotion) -> Motion:
    """The acceleration of a node."""
    A = m.X.motion_to_child(body[0]) + m.c
    for S, rate in zip(m.S, body[1], strict=True):
        A = A + S * rate
    return A
