"""The constraints at a state as arrays, including joints that are held."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained.constraints import constraints
from jaxmbs.dynamics.constrained.public import planned_state
from jaxmbs.model import Mode, Model


class Rows(NamedTuple):
    """The constraint rows at a state. J (rows, nv); drift (rows,): J a + drift = 0; velocity (rows,): J v + free, zero if v
    satisfies the rows; residual (rows,): zero for nonholonomic rows; holonomic (rows,): a mask. Rows of held degrees of
    freedom come last."""

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
    vector = state.tree.vector
    given = found.jacobian(), vector(found.drift), vector(found.rate), vector(found.residual)
    J, drift, velocity, residual = (jnp.concatenate(pair) for pair in zip(given, own[:4], strict=True))
    return Rows(J, drift, velocity, residual, np.concatenate([found.holonomic, own.holonomic]))
