"""Composite-rigid-body algorithm: the mass matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import LinkMotion, world_placements
from jaxmbs.dynamics.state.tree import Link, Tree
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Force, RigidInertia
from jaxmbs.spatial.inertias import ZERO_INERTIA
from jaxmbs.spatial.known import ONE, ZERO
from jaxmbs.spatial.scalar import Scalar


def composites(tree: Tree, motions: Sequence[LinkMotion], links: Sequence[Link]) -> list[RigidInertia]:
    """Per block, the composite inertia of each link, in link axes."""

    def step(joint: Joint, carried: tuple[RigidInertia], d: Any) -> tuple[tuple[RigidInertia], RigidInertia]:
        link, X = d
        whole = link.inertia + carried[0]
        return (whole.to_parent(X),), whole

    data = list(zip(links, [m.X for m in motions], strict=True))
    return tree.inward(step, data, (ZERO_INERTIA,))[0]


def entries(tree: Tree, motions: Sequence[LinkMotion], links: Sequence[Link]) -> dict[tuple[int, int], Scalar]:
    """Entries (row >= column) of the mass matrix that are not structurally zero."""
    s, whole = tree.structure, tree.per_link(composites(tree, motions, links))
    motions, armature = tree.per_link(motions), tree.per_link([link.armature for link in links])
    out: dict[tuple[int, int], Scalar] = {}
    for i in range(len(s.links)):
        for row, (F, own) in enumerate(_momenta(tree, motions, links, whole, i), s.v_slices[i].start):
            own[row - s.v_slices[i].start] += armature[i]
            out |= {(row, column): x for column, x in enumerate(own, s.v_slices[i].start) if column <= row}
            j = i
            while s.links[j].parent >= 0:
                F = motions[j].X.force_to_parent(F)
                j = s.links[j].parent
                if not s.links[j].joint.elastic:  # the motion of a node has the columns of the body's coordinates
                    out |= {(row, column): S @ F for column, S in enumerate(motions[j].S, s.motion_v[j].start)}
    return out


def _momenta(
    tree: Tree, motions: Sequence[LinkMotion], links: Sequence[Link], whole: Sequence[RigidInertia], i: int
) -> Iterator[tuple[Force, list[Scalar]]]:
    """For each degree of freedom of a link, the momentum of all that it moves, per unit rate: in the link's frame, and
    along each degree of freedom of the link."""
    joint = tree.structure.links[i].joint
    if joint.elastic:
        yield from _of_modes(tree, motions, links[i].deformation.U, whole, i)
    elif not joint.follows:
        for S in motions[i].S:
            F = whole[i] @ S
            yield F, [s @ F for s in motions[i].S]


def _of_modes(
    tree: Tree, motions: Sequence[LinkMotion], own: Sequence[Force], whole: Sequence[RigidInertia], i: int
) -> Iterator[tuple[Force, list[Scalar]]]:
    """As `_momenta`, for the modes of a flexible body, which move the body itself and all that its nodes carry."""
    nodes = tree.structure.children[i]
    for k, F in enumerate(own):
        along: list[Scalar] = [ONE if k == l else ZERO for l in range(len(own))]
        for c in nodes:
            f = whole[c] @ motions[c].S[k]
            F = F + motions[c].X.force_to_parent(f)
            along = [x + S @ f for x, S in zip(along, motions[c].S, strict=True)]
        yield F, along


def mass_matrix(state: State) -> Any:
    """A (nv, nv), symmetric; a list of rows for Python or SymPy scalars."""
    tree, nv = state.tree, state.tree.structure.nv
    if tree.rolled:
        return _in_world_axes(state)
    rows = written_out(state)
    if tree.dtype is None:
        return rows
    return tree.vector([x for row in rows for x in row]).reshape(nv, nv)


def written_out(state: State) -> list[list[Scalar]]:
    """The rows of A, structural zeros included, for a tree that is not rolled."""
    found, n = entries(state.tree, state.motions, state.links), state.tree.structure.nv
    return [[found.get((max(i, j), min(i, j)), ZERO) for j in range(n)] for i in range(n)]


def _in_world_axes(state: State) -> Any:
    """A of a rolled tree: S' I S with all motions and composite inertias in world axes.

    One dense product replaces n²/2 unrolled steps.
    """
    tree, s = state.tree, state.tree.structure
    S_W, F_W = [], []
    for m, W, I in zip(
        state.motions, world_placements(tree, state.motions), composites(tree, state.motions, tree.links), strict=True
    ):
        forces = [I @ S for S in m.S]
        S_W.append([W.motion_to_parent(S).scalars() for S in m.S])
        F_W.append([W.force_to_parent(F).scalars() for F in forces])

    def table(parts: Any) -> Any:
        return jnp.stack([tree.flat([[x[k] for x in part] for part in parts]) for k in range(6)])

    upper = table(F_W).T @ table(S_W)
    mask = _carries(s)
    lower = jnp.where(jnp.asarray(mask), upper, 0.0)
    # within the block of one joint `lower` already has both halves
    return tree.with_armature(jnp.where(jnp.asarray(mask & mask.T), lower, lower + lower.T))


def _carries(s: Any) -> np.ndarray:
    """(nv, nv): whether the joint of the column is the joint of the row or one of its ancestors."""
    n = len(s.links)
    reach = np.eye(n, dtype=bool)
    for i, link in enumerate(s.links):
        if link.parent >= 0:
            reach[i] |= reach[link.parent]
    of = np.repeat(np.arange(n), [link.joint.nv for link in s.links])
    return reach[np.ix_(of, of)]
