"""The action of the multipliers on bodies and joint rates; wrenches and impulses in joints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constrained.base import Constraints
from jaxmbs.dynamics.constrained.constraints import constraints
from jaxmbs.dynamics.constrained.multipliers import constrained_dynamics
from jaxmbs.dynamics.constrained.written import Written
from jaxmbs.dynamics.recursive import rnea
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.spatial import ZERO_FORCE, ZERO_MOTION, Force, kernel


class Acting(NamedTuple):
    """The rows of one constraint. matrices: by node, "body:<name>" (rows, 6) or "rate:<joint>" (rows, nv of the joint),
    the velocity along the rows per unit flow of the node; flow (rows,): the prescribed velocity along the rows."""

    matrices: dict[str, jax.Array]
    flow: jax.Array


def acting(found: Constraints) -> Iterator[Acting]:
    """Yield one item per constraint, in the order of model.constraint_names; zero if it is switched off."""
    assert isinstance(found, Written)  # as for every state on an unrolled tree
    s, vector = found.state.tree.structure, found.state.tree.vector
    J = found.jacobian()
    for site, span, rows in found.parts:
        if rows is None or site.on_joints:
            parts = zip(s.links, s.v_slices, strict=True)
            own = J[span.start : span.stop]
            matrices = {f"rate:{link.name}": own[:, p] for link, p in parts if link.joint.nv}
            rates = found.free[span.start : span.stop]
        else:
            ends = {
                f"body:{s.links[i].body}": end for i, end in zip(site.links, rows.ends, strict=True) if i >= 0 and end
            }
            matrices = {n: jnp.stack([vector(list(F.scalars())) for F in end]) for n, end in ends.items()}
            rates = rows.own  # the motion of rheonomic tree joints is in the flows of the bodies
        yield Acting(matrices, -vector(list(rates)))


def reactions(state: State, tau: Any, prescribed: Any) -> tuple[list[Force], list[Force]]:
    """(per block, the wrench of each tree joint on its link; that of each cut joint on its second body, at frame b)."""
    tree, s = state.tree, state.tree.structure
    a, multipliers, found = constrained_dynamics(state, tau, prescribed)
    on_link, in_loop = _wrenches(found, multipliers)
    blocks = zip(tree.blocks, state.wrenches, strict=True)
    applied = [F + on_link.get(b.nodes[0], ZERO_FORCE) for b, F in blocks]  # every block is one link here
    for name, F in state.loads.on_cut.items():
        in_loop[name] = in_loop[name] + F
    return rnea.joint_wrenches(state, a, applied)[0], [in_loop[loop.name] for loop in s.loops]


def in_rows(tree: Tree, in_joints: list[Force], in_loops: list[Force]) -> jax.Array:
    """(joints, 6) wrenches of all tree joints, given per block, and of all cut joints; NaN for the modes of a flexible body,
    which transmit none."""
    rows = [tree.vector(list(F.scalars())) for F in (*tree.per_link(in_joints), *in_loops)]
    of_modes = {i for i, link in enumerate(tree.structure.links) if link.joint.elastic}
    return jnp.stack([jnp.full_like(row, jnp.nan) if i in of_modes else row for i, row in enumerate(rows)])


def impulses(state: State, jump: Any, multipliers: Any) -> tuple[list[Force], list[Force]]:
    """As `reactions`, for a velocity jump: the impulses that the joints transmit. The state must be at rest."""
    on_link, in_loop = _wrenches(constraints(state), multipliers)
    applied = [on_link.get(b.nodes[0], ZERO_FORCE) for b in state.tree.blocks]
    found = rnea.joint_wrenches(state, jump, applied, ZERO_MOTION)[0]
    if state.tree.structure.rheonomic:  # the forces of the given motion are finite, so they are not impulses
        finite = rnea.joint_wrenches(state, None, [ZERO_FORCE] * len(applied), ZERO_MOTION)[0]
        found = [F - G for F, G in zip(found, finite, strict=True)]
    return found, [in_loop[loop.name] for loop in state.tree.structure.loops]


def _wrenches(found: Constraints, multipliers: Any) -> tuple[dict[int, Force], dict[str, Force]]:
    """({link: total wrench of the constraints on it}, {cut joint: its wrench on the second body, at frame b})."""
    assert isinstance(found, Written)  # as for every state on an unrolled tree
    on_link: dict[int, Force] = {}
    in_loop: dict[str, Force] = {}
    for site, span, rows in found.parts:
        if rows is None or site.on_joints:
            continue
        own = tuple(multipliers[r] for r in span)
        for i, end in zip(site.links, rows.ends, strict=True):
            if i >= 0 and end:
                F = _sum(end, own)
                on_link[i] = on_link[i] + F if i in on_link else F
        if site.poses:
            in_loop[site.name] = _sum(rows.wrenches, own)
    return on_link, in_loop


@kernel
def _sum(rows: tuple[Force, ...], multipliers: tuple[Any, ...]) -> Force:
    out = ZERO_FORCE
    for row, x in zip(rows, multipliers, strict=True):
        out = out + row * x
    return out
