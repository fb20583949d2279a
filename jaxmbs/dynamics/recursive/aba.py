"""Articulated-body algorithm, the method of separate bodies of [Y 3.5] (Vereshchagin)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmbs.dynamics.recursive import crba, modes, rnea
from jaxmbs.dynamics.recursive.drives import Drive
from jaxmbs.dynamics.recursive.implicit import implicit
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import LinkMotion
from jaxmbs.dynamics.state.tree import Link, Tree
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import ZERO_FORCE, Force, Motion, kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.inertias import ZERO_INERTIA
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, vanishes, where

Handed = tuple[Any, ...]  # articulated inertia, bias force; of nodes of a flexible body, Modal
Data = tuple[list[LinkMotion], list[Link], list[Force], Motion, "list[Drive]"]  # per block; the Motion is the world's


@components
class Freedom:
    """An eliminated degree of freedom: I S / D and (tau - S p) / D with D = S I S + armature [Y 3.174]."""

    scaled: Force
    rate: Scalar


@kernel
def _freedom(S: Motion, U: Force, p: Force, tau: Scalar, armature: Scalar) -> Freedom:
    inverse = 1.0 / (S @ U + armature)
    return Freedom(U * inverse, (tau - S @ p) * inverse)


@kernel
def _freedom_or_lock(
    S: Motion, U: Force, p: Force, tau: Scalar, armature: Scalar, lock: Scalar, prescribed: Scalar
) -> Freedom:
    """`_freedom` where `lock` is False; a locked one leaves I unreduced and accelerates as prescribed."""
    inverse = 1.0 / where(lock, 1.0, S @ U + armature)
    return Freedom(U * where(lock, 0.0, inverse), where(lock, prescribed, (tau - S @ p) * inverse))


@kernel
def _release(S: Motion, A: Motion, f: Freedom) -> tuple[Motion, Scalar]:
    """Acceleration of the link after one degree of freedom is added, and of that one itself [Y 3.174, 3.172]."""
    rate = f.rate - A @ f.scaled
    return A + S * rate, rate


def _inward(joint: Joint, carried: Handed, d: Any) -> tuple[Handed, tuple[Any, ...]]:
    """Articulated inertia and bias force that the link and its descendants pass to the parent [Y 3.176, 3.177]."""
    m, link, applied, drive = d
    I = link.inertia.articulated() + carried[0]
    p = link.inertia.turning(m.V) - applied + carried[1]
    if joint.follows:
        return modes.of_node(I, p, m)
    if joint.elastic:
        return modes.eliminated(I, p, carried[2], m, link, drive)
    found: list[Freedom] = []
    for k in reversed(range(len(m.S))):
        S, tau = m.S[k], drive.tau[k]
        U = I @ S
        if drive.lock and drive.lock[k] is not None:
            f = _freedom_or_lock(S, U, p, tau, link.armature, drive.lock[k], drive.prescribed[k])
            I = I.minus_outer(U, f.scaled)
        else:
            f = _freedom(S, U, p, tau, link.armature)
            I = I.minus_outer(U, f.scaled, S if vanishes(link.armature) else None)
        p = p + U * f.rate
        found.append(f)
    return (I.to_parent(m.X), m.X.force_to_parent(p + I @ m.c)), tuple(found[::-1])


def _outward(joint: Joint, A: Any, d: Any) -> tuple[Any, tuple[Scalar, ...]]:
    m, freedoms = d
    if joint.follows:
        return modes.with_body(A, m), ()
    if joint.elastic:
        return modes.released(A, m, freedoms)
    A = m.X.motion_to_child(A) + m.c
    rates = []
    for S, freedom in zip(m.S, freedoms, strict=True):
        A, rate = _release(S, A, freedom)
        rates.append(rate)
    return A, tuple(rates)


def forward_dynamics(state: State, tau: Any, prescribed: Any = None) -> Any:
    """Accelerations (nv,), in the form of `Tree.flat`, from generalized forces tau (nv,) or None.

    The degrees of freedom that the state's mode locks accelerate as `prescribed` (None: zero).
    """
    tree, drives = state.tree, _drives(state, tau, prescribed)
    data = (state.motions, state.links, state.wrenches, state.base_acceleration, drives)
    if tree.rolled or tree.dtype is None:
        return _accelerations(tree, data)
    return implicit(
        lambda data: _accelerations(tree, data),
        lambda data, a: _residual(tree, data, a),
        lambda data: _matrix(tree, data),
        data,
        tree.dtype,
    )


def _nothing(joint: Joint) -> Handed:
    """What a link without children is handed."""
    rigid = (ZERO_INERTIA.articulated(), ZERO_FORCE)
    return (*rigid, modes.none(joint.nv)) if joint.elastic else rigid


def _accelerations(tree: Tree, data: Data) -> Any:
    motions, links, wrenches, base, drives = data
    freedoms, _ = tree.inward(_inward, list(zip(motions, links, wrenches, drives, strict=True)), _nothing)
    return tree.flat(tree.outward(_outward, list(zip(motions, freedoms, strict=True)), base))


def _residual(tree: Tree, data: Data, a: Sequence[Scalar]) -> list[Scalar]:
    """A a + bias - tau; a - prescribed where a degree of freedom is locked."""
    motions, links, wrenches, base, drives = data
    _, along = rnea.newton_euler(tree, motions, links, wrenches, base, a)
    lacking = [x - y for own, d in zip(along, drives, strict=True) for x, y in zip(own, d.tau, strict=True)]
    lock, prescribed = _locks(drives)
    if not lock:
        return lacking
    return [where(on, x - y, r) for on, x, y, r in zip(lock, a, prescribed, lacking, strict=True)]


def _matrix(tree: Tree, data: Data) -> tuple[Any, tuple[Scalar, ...]]:
    motions, links, _, _, drives = data
    found, nv = crba.entries(tree, motions, links), tree.structure.nv
    rows = tuple(tuple(found.get((max(i, j), min(i, j)), ZERO) for j in range(nv)) for i in range(nv))
    return rows, _locks(drives)[0]


def _locks(drives: Sequence[Drive]) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    return tuple(x for d in drives for x in d.lock), tuple(x for d in drives for x in d.prescribed)


def _drives(state: State, tau: Any, prescribed: Any) -> list[Drive]:
    tree, slices = state.tree, state.tree.structure.v_slices
    taus = state.with_elements(tree.split(tau, slices), 1)
    if state.locks is None:
        return [Drive(x, (), ()) for x in taus]
    locks, wanted = tree.split(state.locks, slices), tree.split(prescribed, slices)
    return [Drive(*x) for x in zip(taus, locks, wanted, strict=True)]
