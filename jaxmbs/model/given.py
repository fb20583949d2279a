"""What users may give where an array is meant, for the signatures of public functions."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxmbs.model.shapes import Float

Number = float | np.ndarray | jax.Array  # one number; an array of no axes may be traced
Vector = Sequence[float | jax.Array] | np.ndarray | jax.Array  # numbers in a row
Rows = Sequence[Sequence[float | jax.Array]]
AnyShape = Number | Vector | Rows | Sequence[Rows]
Coordinates = Float[jax.Array, " nq"] | Vector
Rates = Float[jax.Array, " nv"] | Vector
Accelerations = Float[jax.Array, " nv"] | Vector
GeneralizedForces = Float[jax.Array, " nv"] | Vector
Triple = Float[jax.Array, " 3"] | Vector
Law = Callable[..., Vector]  # a function of the user, (model, t, q, v) -> a vector


def shape_of(given: Any) -> tuple[int, ...]:
    """Its shape, whether it is a number, lists or an array."""
    return np.shape(given)
