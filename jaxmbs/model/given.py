"""What users may give where an array is meant, for the signatures of public functions."""

from collections.abc import Sequence

import jax
import numpy as np

Number = float | np.ndarray | jax.Array  # one number; an array of no axes may be traced
Numbers = Sequence[float | jax.Array] | np.ndarray | jax.Array  # a vector
