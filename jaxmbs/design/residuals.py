"""The residuals of a fit and their derivatives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.compiling import compiled
from jaxmbs.design.objectives.base import missed
from jaxmbs.design.problem import Prepared

Array = Any


def residuals_at(prepared: Prepared, x: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[int]]:
    """(residuals (k,) of every objective without its weight, their derivatives (k, n), their numbers k) at x (n,)."""
    data = prepared.data()

    def each(x: Array) -> tuple[Any, Any]:
        found = prepared.measured(prepared.model(x), x, data)
        taken = zip(prepared.objectives, found, prepared.constants, strict=True)
        r = tuple(missed(o, m, c) for o, m, c in taken)
        return r, r

    J, r = compiled(jax.jacfwd(each, has_aux=True))(jnp.asarray(x))
    return [np.asarray(a) for a in r], [np.asarray(a) for a in J], [len(a) for a in r]
