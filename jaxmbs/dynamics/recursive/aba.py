"""Articulated-body algorithm, the method of separate bodies of [Y 3.5] (Vereshchagin)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmbs.dynamics.recursive import crba, modes, rnea
from jaxmbs.dynamics.recursive.drives import Drive
from jaxmbs.dynamics.recursive.freedoms import Freedom, eliminated, released
from jaxmbs.dynamics.recursive.implicit import implicit
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import LinkMotion
from jaxmbs.dynamics.state.tree import Link, Tree
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import ZERO_FORCE, Force, Motion
from jaxmbs.spatial.inertias import ZERO_INERTIA
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, where

Handed = tuple[Any, ...]  # articulated inertia, bias force; of nodes of a flexible body, zeros and the node
RIGID_NOTHING: Handed = (ZERO_INERTIA.articulated(), ZERO_FORCE)
Data = tuple[list[LinkMotion], list[Link], list[Force], Motion, "list[Drive]"]  # per block; the Motion is the world's


def _inward(joint: Joint, carried: Handed, d: Any) -> tuple[Handed, tuple[Any, ...]]:
    """Articulated inertia and bias force that the link and its descendants pass to the parent [Y 3.176, 3.177]."""
    m, link, applied, drive = d
    I = link.inertia.articulated() + carried[0]
    p = link.inertia.turning(m.V) - applied + carried[1]
    if joint.follows:
        return (*RIGID_NOTHING, (modes.Node(I, p, m, link),)), ()
    if joint.elastic:
        return modes.eliminate(I, p, carried[2], m, link, drive)
    found: list[Freedom] = []
    for k in reversed(range(len(m.S))):
        lock = drive.lock[k] if drive.lock else None
        prescribed = drive.prescribed[k] if drive.prescribed else 0.0
        I, p, freedom = eliminated(I, p, m.S[k], drive.tau[k], link.armature, lock, prescribed)
        found.append(freedom)
    return (I.to_parent(m.X), m.X.force_to_parent(p + I @ m.c)), tuple(found[::-1])


def _outward(joint: Joint, A: Any, d: Any) -> tuple[Any, tuple[Scalar, ...]]:
    m, freedoms = d
    if joint.follows:
        return modes.with_body(A, m), ()
    if joint.elastic:
        return modes.release(A, m, freedoms)
    A = m.X.motion_to_child(A) + m.c
    rates = []
    for S, freedom in zip(m.S, freedoms, strict=True):
        A, rate = released(S, A, freedom)
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
    return (*RIGID_NOTHING, ()) if joint.elastic else RIGID_NOTHING


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
