"""Differences between pairs of samples with the same draws, read part by part: memory does not grow with their number.

SciPy, which is slow to import, is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.study.results.columns import PART, Column, column
from jaxmbs.study.statistics.equivalence import FEWEST

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.results.store import Store

Parts = Iterator[tuple[np.ndarray, np.ndarray]]


def common_draws(a: Study, b: Study) -> list[str]:
    """Names of the dispersions that both studies have."""
    return [d.name for d in a.dispersions.items if any(d.name == e.name for e in b.dispersions.items)]


def same_draws(study_a: Study, store_a: Store, study_b: Study, store_b: Store, m: int) -> bool:
    """Whether the first m samples of two runs have the same draws, from the dispersions that both studies have; False if
    there are none."""
    names = common_draws(study_a, study_b)
    (x, own), (y, other) = ((s.arrays(), s.labels(t).draws) for s, t in ((store_a, study_a), (store_b, study_b)))
    return bool(names) and all(
        np.array_equal(x[own[name]][first : min(first + PART, m)], y[other[name]][first : min(first + PART, m)])
        for name in names
        for first in range(0, m, PART)
    )


def parts(a: Column | np.ndarray, b: Column | np.ndarray, m: int) -> Parts:
    """The first m numbers of two columns, which begin with sample 0 and leave none out, at most PART at a time."""
    x, y = column(a), column(b)
    for first in range(0, m, PART):
        stop = min(first + PART, m)
        yield x.read(first, stop), y.read(first, stop)


@dataclass(frozen=True)
class Differences:
    """What is known of b - a of many pairs. count: pairs in which both are defined; mean; squares: sum of the squares of the
    deviations from the mean; largest: the largest |b - a|; lost: pairs in which only one of the two is defined; size: the
    largest |a| or |b|."""

    count: int = 0
    mean: float = float("nan")
    squares: float = 0.0
    largest: float = 0.0
    lost: int = 0
    size: float = 0.0

    def interval(self, alpha: float) -> tuple[float, float]:
        """The interval of the mean with the confidence 1 - alpha (Student); NaN for fewer than FEWEST pairs."""
        from scipy.stats import t

        if self.count < FEWEST:
            return float("nan"), float("nan")
        reach = float(t.isf(alpha / 2, self.count - 1)) * np.sqrt(self.squares / (self.count - 1) / self.count)
        return self.mean - float(reach), self.mean + float(reach)


def differences_of(pairs: Parts) -> Differences:
    """The differences of all pairs.

    >>> a = np.array([1.0, 2.0, np.nan])
    >>> found = differences_of(iter([(a, a + 1.0), (a[:2], a[:2] + 3.0)]))
    >>> found.count, found.mean, found.squares, found.largest
    (4, 2.0, 4.0, 3.0)
    """
    found = Differences()
    for a, b in pairs:
        both, one = np.isfinite(a) & np.isfinite(b), np.isfinite(a) != np.isfinite(b)
        d = (b - a)[both]
        mean = float(d.mean()) if len(d) else float("nan")
        squares = float(((d - mean) ** 2).sum())
        count = found.count + len(d)
        if found.count and len(d):  # the sums of two groups about the mean of both
            apart = mean - found.mean
            squares += found.squares + apart**2 * found.count * len(d) / count
            mean = found.mean + apart * len(d) / count
        elif found.count:
            mean, squares = found.mean, found.squares
        size = max(float(np.abs(x[np.isfinite(x)]).max(initial=0.0)) for x in (a, b))
        found = Differences(
            count,
            mean,
            squares,
            max(found.largest, float(np.abs(d).max(initial=0.0))),
            found.lost + int(np.count_nonzero(one)),
            max(found.size, size),
        )
    return found


def met_in_one_only(pairs: Parts, met: tuple[Callable[[Any], Any], Callable[[Any], Any]]) -> tuple[int, int]:
    """(number of pairs of which only the first meets its condition, number of those of which only the second does)."""
    only_a = only_b = 0
    for a, b in pairs:
        x, y = met[0](a), met[1](b)
        only_a, only_b = only_a + int(np.count_nonzero(x & ~y)), only_b + int(np.count_nonzero(y & ~x))
    return only_a, only_b


def mcnemar(only_a: int, only_b: int) -> float:
    """McNemar's exact test: probability of numbers at least this uneven if a and b meet their conditions equally often."""
    from scipy.stats import binomtest

    return float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0


def interval_of_shares(only_a: int, only_b: int, m: int, alpha: float) -> tuple[float, float]:
    """Interval of a difference of shares of m pairs: the share in which b meets its condition, minus the share in which a
    meets its own.

    only_a, only_b: number of pairs in which a alone, or b alone, meets its condition; alpha: 1 minus the confidence. The
    interval is that of Bonett and Price (2012), which Fagerland, Lydersen and Laake (Statistics in Medicine 33, 2014)
    recommend; it has a width even if a and b never differ.

    >>> [round(x, 4) for x in interval_of_shares(5, 20, 1000, 0.05)]
    [0.0048, 0.0251]
    """
    from scipy.stats import norm

    a, b = (only_a + 1) / (m + 2), (only_b + 1) / (m + 2)
    reach = float(norm.isf(alpha / 2)) * np.sqrt((a + b - (b - a) ** 2) / (m + 2))
    return max(-1.0, float(b - a - reach)), min(1.0, float(b - a + reach))
