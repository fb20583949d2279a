"""The rows of a solution whose program has room for more, or of which only some are wanted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model import Model
from jaxmbs.model.parameters import is_traced
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.solution import Solution

# The most numbers in rows for which a program has room. Beyond it, the number of steps is part of the program: writing and
# copying rows that nobody asked for would need more memory than the rest of a session, and take as long as compiling again.
ROOM = 1 << 25
NAMES = ("t", "q", "v", "states", "energy_error", "constraint_error", "conditioning")


def has_room(model: Model, grid: Grid, save_every: int, instances: int) -> bool:
    """Whether a program may have room for all rows of a grid, i.e. for those of all instances and for the times."""
    each = model.nq + model.nv + sum(len(p.pattern) for p in model.structure.states) + len(NAMES) - 3
    return instances * each * (grid.steps // save_every + 1) + 3 * grid.steps <= ROOM


class Rows(NamedTuple):
    """The first row, and the others, which are more than there are steps: joined outside the program, so that they are
    copied once."""

    first: Any
    others: Any


def whole(first: Any, others: Any) -> Any:
    """All rows as one array."""
    return jnp.concatenate([first[None], others])


def picked(found: Solution, count: int, wanted: np.ndarray | None) -> Solution:
    """The solution with only its first `count` rows, and of these the ones with the indices `wanted`, which include the
    first and the last; None: all."""
    given = {name: getattr(found, name) for name in NAMES}
    leaves = jax.tree_util.tree_leaves(given)
    if any(is_traced(x) or len(x.devices()) > 1 for x in leaves):
        return replace(found, **_compiled(given, count, wanted))
    rows = _picked(np, jax.tree_util.tree_map(np.asarray, given), count, wanted)  # NumPy compiles nothing
    on = next((x.sharding for x in leaves if x.committed), None)
    return replace(found, **jax.device_put(rows, on))


def _picked(on: Any, given: dict[str, Any], count: int, wanted: Any) -> dict[str, Any]:
    """The rows, by `on`: NumPy or jax.numpy."""

    def first(x: Any) -> Any:
        return on.concatenate([x.first[None], x.others[: count - 1]]) if isinstance(x, Rows) else x[:count]

    kept = jax.tree_util.tree_map(first, given, is_leaf=lambda x: isinstance(x, Rows))
    if wanted is None:
        return kept
    least = kept["conditioning"]  # since the row before, for each of the steps that led from there to a row
    if on is np:
        least = np.minimum.reduceat(least, np.append(0, wanted[:-1] + 1))
    else:
        least = jax.ops.segment_min(least, on.searchsorted(wanted, on.arange(count)), len(wanted))
    return {**jax.tree_util.tree_map(lambda x: x[wanted], kept), "conditioning": least}


_compiled = jax.jit(lambda given, count, wanted: _picked(jnp, given, count, wanted), static_argnums=1)
