"""Functions of any number of points, computed in blocks of one shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

BLOCK = 256  # points that are computed at once, so that one compiled program serves any number of them


def in_blocks(fn: Callable[[np.ndarray], Any], u: np.ndarray, rows: int = BLOCK) -> Any:
    """fn of the points u (m, ...), computed in blocks of `rows` points."""
    import jax

    parts = []
    for first in range(0, len(u), rows):
        own = u[first : first + rows]
        full = np.concatenate([own, np.repeat(own[-1:], rows - len(own), axis=0)])
        parts.append(jax.tree.map(lambda x, n=len(own): np.asarray(x)[:n], fn(full)))
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)
