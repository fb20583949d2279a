"""Checksum of every sample, over the bits of all its numbers, their names, its index and its study."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np

from jaxmbs.study.mixing import mixed

CHECKSUM = "checksum"


def checksums(values: Mapping[str, np.ndarray], first: int, salt: int) -> np.ndarray:
    """(m,) uint32 checksums of the samples first ... first + m - 1. values: their numbers by name, (m,) or (m, k) each;
    salt: a number that identifies the study.

    The same numbers under another sample, output, study or component give another checksum, except with a probability
    of 2**-32.
    """
    m = len(next(iter(values.values())))
    total = mixed(np.arange(first, first + m, dtype=np.uint64) ^ np.uint64(salt))
    for name in sorted(values):
        columns = np.ascontiguousarray(values[name]).reshape(m, -1)
        bits = columns.view(f"u{columns.itemsize}").astype(np.uint64)
        for k in range(bits.shape[1]):
            total = mixed(total ^ (bits[:, k] + np.uint64(zlib.crc32(f"{name}[{k}]".encode()))))
    return (total >> np.uint64(32)).astype(np.uint32)
