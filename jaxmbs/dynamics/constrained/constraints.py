"""The constraints of a mechanism at one state [Y 3.194-3.198]: the choice between two layouts of their equations.

Large mechanisms are eliminated joint by joint (`row_groups`, `sparse`). Small ones, and those whose constraints do not
allow this (`order`), have matrices (`written`, `metric`).
"""

from __future__ import annotations

from typing import Any

from jaxmbs.dynamics.constrained import functions
from jaxmbs.dynamics.constrained.base import Constraints
from jaxmbs.dynamics.constrained.order import plan_of
from jaxmbs.dynamics.constrained.row_groups import row_groups
from jaxmbs.dynamics.constrained.written import written
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model
from jaxmbs.model.constraint_rows import sites


def tree_of(model: Model, dtype: Any) -> Tree:
    """The tree in the layout that suits the constraints: for loops (`Tree.rolled`) if there is a plan of elimination
    (`order`), otherwise link by link, because the constraint rows are then written out in components."""
    plan = plan_of(model.structure)
    return Tree(model, dtype, unrolled=len(model.structure.links) if plan is None else 0)


def constraints(state: State) -> Constraints:
    """The rows of all cut joints and constraint elements."""
    if not state.tree.rolled:
        return written(state)
    plan = plan_of(state.tree.structure)
    assert plan is not None
    return row_groups(state, plan)


def row_counts(state: State) -> list[int]:
    """Number of rows of every constraint, in the order of model.constraint_names."""
    return [functions.count(state, x) if x.is_function else x.rows for x in sites(state.tree.structure)]
