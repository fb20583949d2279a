"""Recursive Newton-Euler: forces from accelerations [Y 3.170-3.172; T Introduction]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import LinkMotion
from jaxmbs.dynamics.state.tree import Link, Tree
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import ZERO_FORCE, Force, Motion
from jaxmbs.spatial.scalar import Scalar


def accelerate(m: LinkMotion, A_parent: Motion, a: tuple[Scalar, ...]) -> Motion:
    """Acceleration of the link: its parent's, the velocity products and the joint's own acceleration [Y 3.172]."""
    A = m.X.motion_to_child(A_parent) + m.c
    for S, rate in zip(m.S, a, strict=True):
        A = A + S * rate
    return A


def newton_euler(
    tree: Tree, motions: Sequence[LinkMotion], links: Sequence[Link], applied: Sequence[Force], base: Motion, a: Any
) -> tuple[list[Force], list[tuple[Scalar, ...]]]:
    """Per block, the wrench of each joint on its link and its generalized forces, armature included [Y 3.170].

    a: accelerations (nv,), None for zero; applied: per block, the wrench on the links; base: acceleration of the world.
    """
    parts = tree.split(a, tree.structure.motion_v)

    def outward(joint: Joint, A: Motion, d: Any) -> tuple[Motion, Motion]:
        A = accelerate(d[0], A, d[1])
        return A, A

    accelerations = tree.outward(outward, list(zip(motions, parts, strict=True)), base)

    def inward(joint: Joint, carried: tuple[Force], d: Any) -> tuple[tuple[Force], Any]:
        m, link, A, applied, rates = d
        own = link.inertia @ A + link.inertia.turning(m.V) - applied + carried[0]
        along = tuple(S @ own + link.armature * x for S, x in zip(m.S, rates, strict=True))
        if joint.elastic:
            own = own + link.deformation.wrench(m.V, rates)
            elastic = link.deformation.along(m.V, A, rates)
            along = tuple(x + y for x, y in zip(along, elastic, strict=True))
        return (m.X.force_to_parent(own),), (own, along)

    results, _ = tree.inward(
        inward, list(zip(motions, links, accelerations, applied, parts, strict=True)), (ZERO_FORCE,)
    )
    return [own for own, _ in results], tree.owned([along for _, along in results])


def joint_wrenches(
    state: State, a: Any, applied: Sequence[Force] | None = None, base: Motion | None = None
) -> tuple[list[Force], list[tuple[Scalar, ...]]]:
    """`newton_euler` at a state; applied None: wrenches of the force elements; base None: acceleration -gravity."""
    applied, base = applied or state.wrenches, base or state.base_acceleration
    return newton_euler(state.tree, state.motions, state.links, applied, base, a)


def inverse_dynamics(state: State, a: Any) -> Any:
    """tau = A a + bias (nv,); a None: the bias alone."""
    return state.tree.flat(state.with_elements(joint_wrenches(state, a)[1], -1))
