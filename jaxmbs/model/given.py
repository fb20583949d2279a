"""Types of values that users may pass as arrays, for the signatures of public functions."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxmbs.model.shapes import Float

Number = float | np.ndarray | jax.Array  # one number; an array without axes may be traced
Vector = Sequence[float | jax.Array] | np.ndarray | jax.Array  # several numbers
Rows = Sequence[Sequence[float | jax.Array]]
AnyShape = Number | Vector | Rows | Sequence[Rows]
Coordinates = Float[jax.Array, " nq"] | Vector
Rates = Float[jax.Array, " nv"] | Vector
Accelerations = Float[jax.Array, " nv"] | Vector
GeneralizedForces = Float[jax.Array, " nv"] | Vector
Triple = Float[jax.Array, " 3"] | Vector
Law = Callable[..., Vector]  # a user-defined function, (model, t, q, v) -> a vector


def shape_of(given: Any) -> tuple[int, ...]:
    """The shape of a number, of nested lists or of an array."""
    return np.shape(given)
