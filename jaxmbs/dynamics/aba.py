"""Articulated-body algorithm, the method of separate bodies of [Y 3.5] (Vereshchagin)."""

from __future__ import annotations

from typing import Any

from jaxmbs.dynamics.kinematics import LinkMotion
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.tree import Link
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import ZERO_FORCE, ArticulatedInertia, Force, Motion, kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.inertias import ZERO_INERTIA
from jaxmbs.spatial.scalar import Scalar, div, mul, sub, where

Handed = tuple[ArticulatedInertia, Force]


@components
class Freedom:
    """One degree of freedom when its turn of elimination came: U = I S, U / D and (tau - S p) / D."""

    U: Force
    scaled: Force
    rate: Scalar


@components
class Drive:
    """Of one link: tau plus elements, and per degree of freedom the lock and the prescribed acceleration (or ())."""

    tau: tuple[Scalar, ...]
    lock: tuple[Scalar, ...]
    prescribed: tuple[Scalar, ...]


@kernel
def _start(m: LinkMotion, link: Link, applied: Force, carried: Handed) -> Handed:
    """Articulated inertia and bias force of the link with all that it carries."""
    momentum = link.inertia @ m.V
    return link.inertia.articulated() + carried[0], m.V.cross_force(momentum) - applied + carried[1]


@kernel
def _eliminate(S: Motion, I: ArticulatedInertia, p: Force, tau: Scalar) -> tuple[ArticulatedInertia, Force, Freedom]:
    """Let one degree of freedom give way: the inertia and bias force that remain [Y 3.174, 3.176, 3.177]."""
    U = I @ S
    D = S @ U
    scaled = U * div(1.0, D)
    rate = div(sub(tau, S @ p), D)
    return I.minus_outer(U, scaled, S, True), p + U * rate, Freedom(U, scaled, rate)


@kernel
def _eliminate_unless_locked(
    S: Motion, I: ArticulatedInertia, p: Force, tau: Scalar, lock: Scalar, prescribed: Scalar
) -> tuple[ArticulatedInertia, Force, Freedom]:
    """The same where `lock` is False; a locked freedom keeps its inertia and moves as prescribed."""
    U = I @ S
    inverse = div(1.0, where(lock, 1.0, S @ U))
    scaled = U * where(lock, 0.0, inverse)
    rate = where(lock, prescribed, mul(sub(tau, S @ p), inverse))
    return I.minus_outer(U, scaled, S, False), p + U * rate, Freedom(U, scaled, rate)


@kernel
def _hand_inwards(m: LinkMotion, I: ArticulatedInertia, p: Force) -> Handed:
    return I.to_parent(m.X), m.X.force_to_parent(p + I @ m.c)


@kernel
def _carry(m: LinkMotion, A_parent: Motion) -> Motion:
    return m.X.motion_to_child(A_parent) + m.c


@kernel
def _release(S: Motion, A: Motion, f: Freedom) -> tuple[Motion, Scalar]:
    """Acceleration of one degree of freedom and of the link with it [Y 3.174, 3.172]."""
    rate = sub(f.rate, A @ f.scaled)
    return A + S * rate, rate


def _inward(joint: Joint, carried: Handed, d: Any) -> tuple[Handed, tuple[Freedom, ...]]:
    m, link, applied, drive = d
    I, p = _start(m, link, applied, carried)
    found: list[Freedom] = []
    for k in reversed(range(len(m.S))):
        if drive.lock:
            I, p, freedom = _eliminate_unless_locked(m.S[k], I, p, drive.tau[k], drive.lock[k], drive.prescribed[k])
        else:
            I, p, freedom = _eliminate(m.S[k], I, p, drive.tau[k])
        found.append(freedom)
    return _hand_inwards(m, I, p), tuple(found[::-1])


def _outward(joint: Joint, A: Motion, d: Any) -> tuple[Motion, tuple[Scalar, ...]]:
    m, freedoms = d
    A = _carry(m, A)
    rates = []
    for S, freedom in zip(m.S, freedoms, strict=True):
        A, rate = _release(S, A, freedom)
        rates.append(rate)
    return A, tuple(rates)


def forward_dynamics(state: State, tau: Any, prescribed: Any = None) -> Any:
    """Accelerations (nv,), flat as by `Tree.flat`, from generalized forces tau (nv,) or None.

    The degrees of freedom that the state's mode locks accelerate as `prescribed` (None: zero).
    """
    tree = state.tree
    zero = (ZERO_INERTIA.articulated(), ZERO_FORCE)
    data = list(zip(state.motions, tree.links, state.wrenches, _drives(state, tau, prescribed), strict=True))
    freedoms, _ = tree.inward(_inward, data, zero)
    rates = tree.outward(_outward, list(zip(state.motions, freedoms, strict=True)), state.base_acceleration)
    return tree.flat(rates)


def _drives(state: State, tau: Any, prescribed: Any) -> list[Drive]:
    tree, slices = state.tree, state.tree.structure.v_slices
    taus = state.with_elements(tree.split(tau, slices), 1)
    if state.mode is None:
        return [Drive(x, (), ()) for x in taus]
    locks, wanted = tree.split(state.mode.lock, slices), tree.split(prescribed, slices)
    return [Drive(*x) for x in zip(taus, locks, wanted, strict=True)]
