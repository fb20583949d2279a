"""The action of the multipliers on bodies and joint rates; wrenches and impulses in joints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constrained.constraints import Connection, Constraints, connections, row_counts
from jaxmbs.dynamics.constrained.multipliers import constrained_dynamics
from jaxmbs.dynamics.recursive import rnea
from jaxmbs.dynamics.state import State
from jaxmbs.spatial import ZERO_FORCE, ZERO_MOTION, Force, kernel
from jaxmbs.spatial.scalar import where


class Acting(NamedTuple):
    """The rows of one constraint. matrices: by node, "body:<name>" (rows, 6) or "rate:<joint>" (rows, nv of the joint),
    the velocity along the rows per unit flow of the node; flow (rows,): the prescribed velocity along the rows."""

    matrices: dict[str, jax.Array]
    flow: jax.Array


def acting(state: State, found: Constraints) -> Iterator[Acting]:
    """Yield one item per constraint, in the order of model.constraint_names; zero if it is switched off."""
    s, vector, start = state.tree.structure, state.tree.vector, 0
    for k, (c, count) in enumerate(zip(connections(state), row_counts(state), strict=True)):
        if isinstance(c, Connection):
            rows: dict[str, list[Any]] = {}
            for row in c.rows:
                for i, F in c.on_links(row.wrench).items():
                    rows.setdefault(f"body:{s.links[i].body}", []).append(vector(list(F.scalars())))
            matrices = {node: jnp.stack(wrenches) for node, wrenches in rows.items()}
            rates = [row.rate for row in c.rows]  # the motion of rheonomic tree joints is in the flows of the bodies
        else:
            columns = [vector(list(row)) for row in found.J[start : start + count]]
            J = jnp.stack(columns) if columns else jnp.zeros((0, s.nv), state.tree.dtype)
            parts = zip(s.links, s.v_slices, strict=True)
            matrices = {f"rate:{link.name}": J[:, p] for link, p in parts if link.joint.nv}
            rates = list(found.free[start : start + count])
        start += count
        flow = -vector(rates)
        if state.holds is not None:
            on = state.holds[k]
            matrices, flow = {n: jnp.where(on, x, 0.0) for n, x in matrices.items()}, jnp.where(on, flow, 0.0)
        yield Acting(matrices, flow)


def reactions(state: State, tau: Any, prescribed: Any) -> tuple[list[Force], list[Force]]:
    """(per block, the wrench of each tree joint on its link; that of each cut joint on its second body, at frame b)."""
    tree, s = state.tree, state.tree.structure
    a, multipliers, _ = constrained_dynamics(state, tau, prescribed)
    on_link, in_loop = _wrenches(state, multipliers)
    blocks = zip(tree.blocks, state.wrenches, strict=True)
    applied = [F + on_link.get(b.nodes[0], ZERO_FORCE) for b, F in blocks]  # every block is one link here
    for name, F in state.loads.on_cut.items():
        in_loop[name] = in_loop[name] + F
    return rnea.joint_wrenches(state, a, applied)[0], [in_loop[loop.name] for loop in s.loops]


def impulses(state: State, jump: Any, multipliers: Any) -> tuple[list[Force], list[Force]]:
    """As `reactions`, for a velocity jump: the impulses that the joints transmit. The state must be at rest."""
    on_link, in_loop = _wrenches(state, multipliers)
    applied = [on_link.get(b.nodes[0], ZERO_FORCE) for b in state.tree.blocks]
    found = rnea.joint_wrenches(state, jump, applied, ZERO_MOTION)[0]
    if state.tree.structure.rheonomic:  # the forces of the given motion are finite, so they are not impulses
        finite = rnea.joint_wrenches(state, None, [ZERO_FORCE] * len(applied), ZERO_MOTION)[0]
        found = [F - G for F, G in zip(found, finite, strict=True)]
    return found, [in_loop[loop.name] for loop in state.tree.structure.loops]


def _wrenches(state: State, multipliers: Any) -> tuple[dict[int, Force], dict[str, Force]]:
    """({link: total wrench of the constraints on it}, {cut joint: its wrench on the second body, at frame b})."""
    s, start = state.tree.structure, 0
    on_link: dict[int, Force] = {}
    in_loop: dict[str, Force] = {}
    for k, (c, count) in enumerate(zip(connections(state), row_counts(state), strict=True)):
        if isinstance(c, Connection):
            own = tuple(multipliers[r] for r in range(start, start + count))
            if state.holds is not None:
                own = tuple(where(state.holds[k], x, 0.0) for x in own)
            wrench = _sum(tuple(row.wrench for row in c.rows), own)
            for i, F in c.on_links(wrench).items():
                on_link[i] = on_link[i] + F if i in on_link else F
            if c.name in s.loop_by_name:
                in_loop[c.name] = wrench
        start += count
    return on_link, in_loop


@kernel
def _sum(rows: tuple[Force, ...], multipliers: tuple[Any, ...]) -> Force:
    out = ZERO_FORCE
    for row, x in zip(rows, multipliers, strict=True):
        out = out + row * x
    return out
