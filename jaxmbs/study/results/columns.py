"""Reads numbers of a run's samples part by part, so that memory does not grow with the number of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

PART = 1 << 20  # at most this many samples are in memory at once
_DIGIT = 16  # a pass counts numbers by this many bits of their keys
_MOST = 1 << 21  # at most this many numbers are sorted at once


@dataclass(frozen=True)
class Column:
    """(m,) numbers of the m samples in `spans` ((first, stop), ...), in order, read on demand. read: function
    (first, stop) -> (stop - first,).

    Conversion to an array, which NumPy does where it needs one, reads the whole column into memory; `parts` and slices
    from the start read only what is asked for. A column that fits into one part is cached.

    >>> x = Column(lambda first, stop: np.arange(first, stop), ((0, 3), (7, 9)))
    >>> len(x), x[:4].tolist(), np.asarray(x)[-1]
    (5, [0, 1, 2, 7], np.int64(8))
    """

    read: Callable[[int, int], np.ndarray]
    spans: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return sum(stop - first for first, stop in self.spans)

    @cached_property
    def _whole(self) -> np.ndarray:
        return np.concatenate([*self._read(), self.read(0, 0)])

    def _read(self) -> Iterator[np.ndarray]:
        for begin, end in self.spans:
            for first in range(begin, end, PART):
                yield self.read(first, min(first + PART, end))

    def parts(self) -> Iterator[np.ndarray]:
        """The numbers, at most PART at a time."""
        if len(self) <= PART:
            yield self._whole
        else:
            yield from self._read()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = self._whole if len(self) <= PART else np.concatenate(list(self._read()))
        return np.array(whole, dtype=dtype, copy=copy)

    def __getitem__(self, which: Any) -> Any:
        if len(self) <= PART or not isinstance(which, slice) or which.start or which.step or (which.stop or -1) < 0:
            return np.asarray(self)[which]
        found, some = [], which.stop
        for part in self._read():
            found.append(part[:some])
            some -= len(found[-1])
            if not some:
                break
        return np.concatenate(found)

    def mapped(self, fn: Callable[[np.ndarray], np.ndarray]) -> Column:
        """The column of the numbers fn(part), computed part by part on demand; fn acts on each number by itself."""
        return Column(lambda first, stop: fn(self.read(first, stop)), self.spans)


def column(values: Any) -> Column:
    """The values as a column: a column is returned unchanged, an array is wrapped."""
    if isinstance(values, Column):
        return values
    x = np.asarray(values)
    return Column(lambda first, stop: x[first:stop], ((0, len(x)),))


def column_of(array: Any, spans: tuple[tuple[int, int], ...]) -> Column:
    """The column of a run's variable, an array that zarr has opened."""
    return Column(lambda first, stop: array[first:stop], spans)


def at_ranks(values: Column, ranks: Sequence[int]) -> np.ndarray:
    """The numbers at the positions `ranks` of the sorted column, NaN last: exact for any distribution, in at most four
    passes.

    The number at a rank is found by its key (see `_ordered`), 16 bits per pass: a pass counts the numbers by these
    bits. As soon as few enough numbers share the bits found so far, these numbers are sorted instead.

    >>> at_ranks(column(np.array([3.0, -1.0, np.nan, 2.0])), [0, 2]).tolist()
    [-1.0, 3.0]
    """
    sought = np.asarray(ranks, int)
    if len(values) <= PART:
        return np.sort(np.asarray(values, float))[sought]
    prefix, below = np.zeros(len(sought), np.uint64), np.zeros(len(sought), int)
    bits, alike = 0, np.full(len(sought), len(values))
    while bits < 64:
        groups, first = np.unique(prefix, return_index=True)
        if bits and alike[first].sum() <= _MOST:
            break
        counts = np.zeros((len(groups), 1 << _DIGIT), int)
        for part in values.parts():
            keys = _ordered(part)
            for k, group in enumerate(groups):
                own = keys if not bits else keys[keys >> np.uint64(64 - bits) == group]
                digits = (own >> np.uint64(64 - bits - _DIGIT)) & np.uint64((1 << _DIGIT) - 1)
                counts[k] += np.bincount(digits.astype(int), minlength=1 << _DIGIT)
        for k, rank in enumerate(sought):
            own = counts[np.searchsorted(groups, prefix[k])]
            ends = below[k] + np.cumsum(own)
            digit = int(np.searchsorted(ends, rank, side="right"))
            prefix[k], below[k], alike[k] = (
                (prefix[k] << np.uint64(_DIGIT)) + np.uint64(digit),
                ends[digit] - own[digit],
                own[digit],
            )
        bits += _DIGIT
    if bits == 64:
        return _number(prefix)
    groups, found = np.unique(prefix), [[] for _ in np.unique(prefix)]
    for part in values.parts():
        keys = _ordered(part)
        for own, group in zip(found, groups, strict=True):
            own.append(keys[keys >> np.uint64(64 - bits) == group])
    lists = [np.sort(np.concatenate(own)) for own in found]
    return _number(
        np.array([lists[np.searchsorted(groups, p)][r - b] for p, r, b in zip(prefix, sought, below, strict=True)])
    )


def quantiles(values: Column, shares: Sequence[float]) -> np.ndarray:
    """np.quantile of the finite numbers; NaN if there are none.

    >>> quantiles(column(np.array([1.0, 3.0, np.nan, 2.0])), [0.25, 1.0]).tolist()
    [1.5, 3.0]
    """
    finite = values.mapped(lambda x: np.where(np.isfinite(x), x, np.nan))
    m = defined(values)
    if not m:
        return np.full(len(shares), np.nan)
    places = np.asarray(shares, float) * (m - 1)
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, m - 1)
    ends = at_ranks(finite, [*low, *high])
    a, b, t = ends[: len(low)], ends[len(low) :], places - low
    return np.where(t < 0.5, a + (b - a) * t, b - (b - a) * (1 - t))  # rounded as in NumPy


def defined(values: Column) -> int:
    """Number of finite numbers."""
    return sum(int(np.count_nonzero(np.isfinite(part))) for part in values.parts())


def _ordered(x: np.ndarray) -> np.ndarray:
    """Unsigned integers that sort as the numbers x do, with NaN after all others."""
    x = np.where(np.isnan(x), np.nan, x.astype(float)) + 0.0  # a single representation of NaN, and of zero
    bits = x.view(np.uint64)
    return np.where(bits >> np.uint64(63) == 1, ~bits, bits | np.uint64(1 << 63))


def _number(keys: np.ndarray) -> np.ndarray:
    """The numbers from their keys: the inverse of `_ordered`."""
    top = keys >> np.uint64(63) == 1
    return np.where(top, keys & np.uint64((1 << 63) - 1), ~keys).view(float)
