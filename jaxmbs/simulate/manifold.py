"""Motion on the configuration manifold: normalises quaternions and adds small displacements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.dynamics.state.vectors import each
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import kernel
from jaxmbs.spatial.scalar import Scalar


def normalised(tree: Tree, q: Any) -> Any:
    """q with the conditions on the coordinates of each joint restored: quaternions are divided by their lengths."""
    out = []
    for b, part in zip(tree.blocks, tree.split(q, tree.structure.q_slices), strict=True):
        out.append(_normalised(b.joint, part) if b.joint.gives("normalised") else part)
    return tree.flat(out)


@kernel
def _normalised(joint: Joint, q: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return joint.normalised(q)


def moved(state: State, change: Sequence[Scalar]) -> Any:
    """The state's q after a small displacement `change` (nv,), in the components of v."""
    change = change if state.tree.rolled else list(change)
    still = State(state.tree, state.q, change, state.t, state.mode)
    rates = state.tree.flat([m.rates for m in still.motions])
    return normalised(state.tree, each(operator.add, state.q, rates))
