"""The constraint rows at a state: of one constraint, or of several with the same formulas, as arrays over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.forest import rows_of
from jaxmbs.dynamics.state.kinematics import LinkMotion, world_placements
from jaxmbs.model.constraint_rows import Drifting, Rows, Site, between_frames, between_joints, fixed
from jaxmbs.model.frames import frame_on
from jaxmbs.spatial import IDENTITY, ZERO_MOTION, Motion, Transform, kernel
from jaxmbs.spatial.scalar import vanishes, where


class LinkKinematics(NamedTuple):
    """Per block: placements of the links in the world, twists, accelerations at dv/dt = 0."""

    W: list[Transform]
    V: list[Motion]
    A: list[Motion]


def kinematics(state: State) -> LinkKinematics:
    """The motion of all links."""
    tree = state.tree

    def outward(joint: Any, A: Motion, m: LinkMotion) -> tuple[Motion, Motion]:
        A = m.X.motion_to_child(A) + m.c
        return A, A

    drifts = tree.outward(outward, state.motions, ZERO_MOTION)
    return LinkKinematics(world_placements(tree, state.motions), [m.V for m in state.motions], drifts)


def rows(state: State, sites: Sequence[Site], motions: LinkKinematics) -> Rows:
    """The rows of constraints with the same formulas; those that the mode switches off are zero. motions: `kinematics`."""
    tree, s, first = state.tree, state.tree.structure, sites[0]
    p = {f: tree.values.several([f"{x.name}.{f}" for x in sites]) for f in first.formulas.numbers}
    links = list(zip(*(x.links for x in sites), strict=True))  # per end
    if first.on_joints:
        q, v = ([entries(x, [part[i].start for i in on]) for on in links]
                for x, part in ((state.q, s.q_slices), (state.v, s.v_slices)))  # fmt: skip
        return between_joints(first, p, q, v)
    poses = [tree.values.pose(*names) for names in zip(*(x.poses for x in sites), strict=True)] or [IDENTITY] * 2
    a, b = (_frame(state, on, pose, motions) for on, pose in zip(links, poses, strict=True))
    return between_frames(first, p, a, b, state.t)


def _frame(state: State, links: Sequence[int], pose: Transform, motions: LinkKinematics) -> Drifting:
    """The frame at a pose in the body of each link; all links are the world if one is."""
    if links[0] < 0:
        return fixed(pose, pose)
    in_link = state.tree.gather(state.tree.body_in_link.per_block, links) @ pose
    return _drifting(in_link, *(state.tree.gather(x, links) for x in motions))


@kernel
def _drifting(in_link: Transform, W: Transform, V: Motion, A: Motion) -> Drifting:
    return Drifting(frame_on(in_link, W, V), in_link.motion_to_child(A))


def entries(x: Any, places: Sequence[int]) -> Any:
    """Entries of a vector: one, or several as an array."""
    return x[places[0]] if len(places) == 1 else rows_of(x, places)


def switched(found: Any, on: Any) -> Any:
    """Rows of a constraint that the mode may switch off."""
    return jax.tree_util.tree_map(lambda x: x if vanishes(x) else where(on, x, 0.0), found)
