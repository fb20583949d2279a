"""Moves on the configuration manifold: unit quaternions kept, small motions added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.spatial import kernel
from jaxmbs.spatial.scalar import Scalar, add


def normalised(tree: Tree, q: Any) -> Any:
    """q with every quaternion divided by its length."""
    out = []
    for b, part in zip(tree.blocks, tree.split(q, tree.structure.q_slices), strict=True):
        at = b.joint.quaternion
        if at is not None:
            part = (*part[:at], *_unit(part[at : at + 4]), *part[at + 4 :])
        out.append(part)
    return tree.flat(out)


@kernel
def _unit(x: Sequence[Scalar]) -> tuple[Scalar, ...]:
    w, x1, x2, x3 = x
    scale = 1 / jnp.sqrt(w * w + x1 * x1 + x2 * x2 + x3 * x3)
    return tuple(c * scale for c in x)


def moved(state: State, change: Sequence[Scalar]) -> Any:
    """The state's q displaced by a small motion given in the coordinates of v."""
    still = State(state.tree, state.q, list(change), state.t, state.mode)
    rates = state.tree.flat([m.rates for m in still.motions])
    return normalised(state.tree, [add(a, b) for a, b in zip(state.q, rates, strict=True)])
