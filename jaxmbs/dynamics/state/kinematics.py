"""Forward kinematics: placements, velocities and velocity-product accelerations of the links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmbs.dynamics.state.tree import Link, Tree
from jaxmbs.model.joints import Joint, JointMotion
from jaxmbs.spatial import IDENTITY, ZERO_MOTION, Motion, Transform, kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.scalar import Scalar


@components
class LinkMotion:
    """Motion of one link, in its own axes at its own origin.

    X: link frame in the parent link's frame; S: columns of the joint's motion subspace; V: twist; c: acceleration at
    dv/dt = 0 if the parent link does not accelerate, w' of [Y 3.172]; rates: dq/dt.
    """

    X: Transform
    S: tuple[Motion, ...]
    V: Motion
    c: Motion
    rates: tuple[Scalar, ...]


@kernel
def _joint_motion(joint: Joint, numbers: Any, q: Any, v: Any, t: Scalar) -> JointMotion:
    return joint.motion(numbers, q, v, t)


def remaining(V: Motion, m: JointMotion) -> Motion:
    """Acceleration of a link at dv/dt = 0 if the parent link does not accelerate."""
    return m.bias + V.cross(m.velocity)


@kernel
def _rates(joint: Joint, q: Any, v: Any, m: JointMotion) -> tuple[Scalar, ...]:
    return joint.rates(q, v, m)


def moved(joint: Joint, link: Link, q: Any, v: Any, t: Scalar) -> tuple[Transform, JointMotion, tuple[Scalar, ...]]:
    """(link frame in the parent link's frame, motion of the joint, dq/dt)."""
    m = _joint_motion(joint, link.numbers, q, v, t)
    return link.fixed @ m.placement, m, _rates(joint, q, v, m)


def link_motions(tree: Tree, q: Any, v: Any, t: Scalar) -> list[LinkMotion]:
    """Per block, the motion of its links [Y 3.99-3.105, 3.172]."""
    s = tree.structure
    data = list(zip(tree.links, tree.split(q, s.motion_q), tree.split(v, s.motion_v), strict=True))

    def step(joint: Joint, V: Motion, d: Any) -> tuple[Motion, LinkMotion]:
        link, q, v = d
        X, m, rates = moved(joint, link, q, v, t)
        V = X.motion_to_child(V) + m.velocity
        return V, LinkMotion(X, m.S, V, remaining(V, m), rates)

    return tree.outward(step, data, ZERO_MOTION)


def displaced(tree: Tree, q: Any, change: Any) -> Any:
    """q after unit time at the constant velocities v = change, in the form of `Tree.flat`."""
    s = tree.structure
    parts = zip(tree.blocks, tree.split(q, s.q_slices), tree.split(change, s.v_slices), strict=True)
    return tree.flat([_displaced(b.joint, *part) for b, *part in parts])


@kernel
def _displaced(joint: Joint, q: Any, change: Any) -> tuple[Scalar, ...]:
    return joint.moved(q, change)


def world_placements(tree: Tree, motions: Sequence[LinkMotion]) -> list[Transform]:
    """Per block, the placements of its links in the world."""

    def step(joint: Joint, W: Transform, X: Transform) -> tuple[Transform, Transform]:
        W = W @ X
        return W, W

    return tree.outward(step, [m.X for m in motions], IDENTITY)
