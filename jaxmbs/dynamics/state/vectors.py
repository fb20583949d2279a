"""Vectors over degrees of freedom or constraint rows: lists of scalars if formulas are written out, otherwise arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np


def each(fn: Callable[..., Any], *vectors: Any) -> Any:
    """fn of the entries of vectors of the same length, as a list, or of whole arrays."""
    if all(isinstance(x, (jax.Array, np.ndarray)) for x in vectors):
        return fn(*vectors)
    return [fn(*(x[k] for x in vectors)) for k in range(len(vectors[0]))]
