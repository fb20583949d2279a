"""Mixing of bits: for checksums of samples, and for the permutations of sampling plans."""

from __future__ import annotations

import numpy as np


def mixed(x: np.ndarray) -> np.ndarray:
    """Mixes the bits of x, so that every bit of the result depends on every bit of x; one to one (the finaliser of
    splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
