"""The constraints of a large mechanism at one state, as one set of arrays per group; no Jacobian is written out."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import jax
import numpy as np

from jaxmbs.dynamics.constrained.base import Constraints, Metric
from jaxmbs.dynamics.constrained.groups import flat_rows, groups_of
from jaxmbs.dynamics.constrained.order import Plan
from jaxmbs.dynamics.constrained.rows import kinematics, rows, switched
from jaxmbs.dynamics.constrained.sparse import SparseMetric
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.forest import Forest
from jaxmbs.model.constraint_rows import Rows
from jaxmbs.spatial.known import ZERO


class RowGroups(Constraints):
    """The rows as arrays, with free = 0. plan: the order of their elimination; forest: the groups; ends: `Rows.ends` per
    group."""

    def __init__(self, state: State, plan: Plan, forest: Forest, found: Sequence[Rows]):
        self.state, self.plan, self.forest = state, plan, forest
        self.ends = [r.ends for r in found]
        self._found = found
        holonomic = {c: [x is not None for x in r.residual] for b, r in zip(forest.strands, found, strict=True)
                     for c in b.nodes}  # fmt: skip
        self.holonomic = np.array([on for c in sorted(holonomic) for on in holonomic[c]], bool)

    @functools.cached_property
    def drift(self) -> jax.Array:
        return flat_rows(self.forest, [r.drift for r in self._found])

    @functools.cached_property
    def rate(self) -> jax.Array:
        return flat_rows(self.forest, [r.rate for r in self._found])

    @functools.cached_property
    def residual(self) -> jax.Array:
        found = [tuple(ZERO if x is None else x for x in r.residual) for r in self._found]
        return flat_rows(self.forest, found)

    def rate_of(self, v: jax.Array) -> jax.Array:
        state = self.state
        return row_groups(State(state.tree, state.q, v, state.t, state.mode), self.plan).rate

    def jacobian(self) -> jax.Array:
        return jax.jacfwd(self.rate_of)(self.state.v)

    def of_positions(self) -> RowGroups:
        if self.holonomic.all():
            return self
        found = []
        for r in self._found:
            on = [x is not None for x in r.residual]

            def kept(x: Any, on: Sequence[bool] = on) -> Any:
                return tuple(y if k else jax.tree_util.tree_map(lambda _: 0, y) for y, k in zip(x, on, strict=True))

            found.append(Rows(tuple(map(kept, r.ends)), kept(r.drift), kept(r.rate), r.residual))
        return RowGroups(self.state, self.plan, self.forest, found)

    def metric(self, prescribed: Any = None) -> Metric:
        return SparseMetric(self, prescribed)


def row_groups(state: State, plan: Plan) -> RowGroups:
    """The rows at a state of a rolled tree."""
    forest = Forest(groups_of(state.tree.structure), state.tree.dtype)
    motions, found = kinematics(state), []
    for b in forest.strands:
        own = rows(state, [plan.constraints[c] for c in b.nodes], motions)
        ends = tuple(() if on_world else end for on_world, end in zip_longest(b.kind.grounded, own.ends))
        own = Rows(ends, own.drift, own.rate, own.residual)
        if state.holds is not None:
            own = switched(own, state.holds[b.nodes[0]] if not b.rolled else state.holds[np.asarray(b.nodes)])
        found.append(forest.whole(b, own))
    return RowGroups(state, plan, forest, found)
