"""Frames on bodies and their relative motion."""

from __future__ import annotations

from jaxmbs.spatial import Motion, Transform
from jaxmbs.spatial.components import components


@components
class Frame:
    """A frame on a body: its placement in the link and in the world; velocity: its twist in its own axes."""

    in_link: Transform
    placement: Transform
    velocity: Motion


def frame_on(in_link: Transform, W: Transform, V: Motion) -> Frame:
    """The frame at in_link on a link that is placed at W in the world and has the twist V in its own axes."""
    return Frame(in_link, W @ in_link, in_link.motion_to_child(V))


def relative(a: Frame, b: Frame) -> tuple[Transform, Motion, Motion]:
    """(placement of b in a, twist of b relative to a, twist that b would have if it were fixed to a), in axes of b."""
    X = a.placement.inverse() @ b.placement
    carried = X.motion_to_child(a.velocity)
    return X, b.velocity + carried * -1, carried
