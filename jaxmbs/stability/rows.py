"""The constraints at a state as arrays, including joints that are held."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained.constraints import Constraints, constraints, velocities
from jaxmbs.dynamics.constrained.public import planned_state
from jaxmbs.dynamics.constrained.row_groups import RowGroups
from jaxmbs.dynamics.state import State
from jaxmbs.model import Mode, Model


class Rows(NamedTuple):
    """J (rows, nv), drift (rows,) [J a + drift = 0], velocity (rows,) [J v + free, zero if v satisfies the rows],
    residual (rows,) [zero for nonholonomic rows], holonomic (rows,): a mask. Rows of held freedoms come last."""

    J: Any
    drift: Any
    velocity: Any
    residual: Any
    holonomic: np.ndarray

    def only(self, which: np.ndarray) -> Rows:
        """The rows for which the mask `which` holds."""
        keep = np.flatnonzero(which)
        return Rows(*(x[keep] for x in self))


def rows(model: Model, q: Any, v: Any, t: Any, mode: Mode | None, held: tuple[int, ...] = ()) -> Rows:
    """All rows at q (nq,), v (nv,); held: positions in v of the speeds that are held at zero, one row for each."""
    dtype, nv = jnp.result_type(q, v), model.nv
    pinned = jnp.eye(nv, dtype=dtype)[np.array(held, int)]
    none = jnp.zeros(len(held), dtype)
    own = Rows(pinned, none, pinned @ v, none, np.ones(len(held), bool))
    if not model.structure.constrained:
        return own
    state = planned_state(model, q, v, t, mode)
    found = constraints(state)
    given = _of_groups(state, found) if isinstance(found, RowGroups) else written_out(state, found)
    J, drift, velocity, residual = (jnp.concatenate(pair) for pair in zip(given[:4], own[:4], strict=True))
    return Rows(J, drift, velocity, residual, np.concatenate([given.holonomic, own.holonomic]))


def _of_groups(state: State, found: RowGroups) -> Rows:
    """The arrays of rows in groups, whose Jacobian is formed only here."""

    def velocity(v: Any) -> Any:
        return constraints(State(state.tree, state.q, v, state.t, state.mode)).rate

    J = jax.jacfwd(velocity)(state.v)
    residual = jnp.where(found.holonomic, found.residual, 0.0)
    return Rows(J, found.drift, found.rate, residual, found.holonomic)


def written_out(state: State, found: Constraints) -> Rows:
    """The arrays of rows that are given in components."""
    vector, nv = state.tree.vector, state.tree.structure.nv
    residual = vector([g if on else 0.0 for g, on in zip(found.residual, found.holonomic, strict=True)])
    J = jnp.stack([vector(list(row)) for row in found.J]) if found.J else jnp.zeros((0, nv), state.tree.dtype)
    drift, velocity = vector(list(found.drift)), vector(list(velocities(state, found)))
    return Rows(J, drift, velocity, residual, np.array(found.holonomic, bool))
