"""Frames on bodies and their motion relative to one another."""

from __future__ import annotations

from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model.structure import LoopJoint
from jaxmbs.spatial import Motion, Transform
from jaxmbs.spatial.components import components


@components
class Frame:
    """A frame on a body: in its link, in the world, and its velocity in its own axes."""

    in_link: Transform
    placement: Transform
    velocity: Motion


def frame_on(in_link: Transform, W: Transform, V: Motion) -> Frame:
    """The frame on a link that lies at W and moves with V."""
    return Frame(in_link, W @ in_link, in_link.motion_to_child(V))


def relative(a: Frame, b: Frame) -> tuple[Transform, Motion, Motion]:
    """Of b in a: placement, velocity and the velocity of a carried there, in axes of b."""
    X = a.placement.inverse() @ b.placement
    carried = X.motion_to_child(a.velocity)
    return X, b.velocity + carried * -1, carried


def ends(tree: Tree, loop: LoopJoint) -> tuple[tuple[str, Transform], tuple[str, Transform]]:
    """(body, frame in it) on either side of a cut joint."""

    def end(body: str, pose: str) -> tuple[str, Transform]:
        name = f"{loop.name}.{pose}"
        return body, Transform(tree.values[f"{name}.rotation"], tree.values[f"{name}.position"])

    return end(loop.body_a, "pose_a"), end(loop.body_b, "pose_b")
