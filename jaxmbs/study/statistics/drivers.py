"""Finds the draws that drive an output: those that explain more of its variance than unrelated draws would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jaxmbs.study.statistics.summary import CONFIDENCE, Summary

if TYPE_CHECKING:
    from collections.abc import Mapping

_ORDERS = 500  # number of random orders of 10,000 samples (more of fewer samples), so that they include rare shares
_GROUPS = 20  # groups of samples, one of which is left out at a time


@dataclass(frozen=True)
class Driver:
    """A draw with its share of the variance and the interval of that share."""

    name: str
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Drivers:
    """Drivers of an output. found: the draws whose shares exceed the noise, the largest first, at most `most` of them;
    others: how many draws do not exceed it; noise: if no draw had any influence on the output, the largest of their
    shares would exceed this in one study out of twenty; rest: the share that all drivers leave unexplained."""

    found: tuple[Driver, ...]
    others: int
    noise: float
    rest: float


def drivers(draws: Mapping[str, np.ndarray], summary: Summary, output: str, most: int = 8) -> Drivers | None:
    """Draws that explain part of an output's variance by themselves; None if there are too few samples.

    draws: name -> (m, k), those of the first m samples of the summary; more than some 20,000 do not improve the result;
    most: how many drivers are returned at most.

    The share is the first-order Sobol index, estimated from the available samples: these are sorted by the draw and cut
    into slices of equally many samples; the share is the variance between the slices' means of the output, minus what
    an unrelated draw would show. It also detects relations that are not monotonic, which are common for rates and
    clearances. A draw counts if its share exceeds what the largest of as many unrelated draws would show. Intervals
    come from leaving out groups of samples.
    """
    y = summary.outputs[output][: len(next(iter(draws.values())))]
    keep = np.isfinite(y)
    y = y[keep]
    slices = number_of_slices(len(y))
    if slices < 4 or np.ptp(y) == 0:
        return None
    columns: dict[str, np.ndarray] = {}
    for name, x in draws.items():
        k = x.shape[1]
        columns |= {name if k == 1 else f"{name}[{i}]": x[keep, i] for i in range(k)}
    return ranked({name: x for name, x in columns.items() if np.ptp(x) > 0}, y, slices, most)


def number_of_slices(samples: int) -> int:
    """Number of slices, of at least 25 samples each."""
    return min(60, samples // 25)


def ranked(columns: dict[str, np.ndarray], y: np.ndarray, slices: int, most: int = 8) -> Drivers:
    """Drivers of y (m,) among the draws `columns` (m,)."""
    shares = {name: explained(x, y, slices) for name, x in columns.items()}
    limit = noise(y, slices, max(1, len(columns)))
    above = sorted((name for name in shares if shares[name] > limit), key=lambda name: -shares[name])
    found = tuple(Driver(name, shares[name], *_interval(columns[name], y, slices)) for name in above[:most])
    rest = 1 - sum(shares[name] for name in above)
    return Drivers(found, len(columns) - len(above), limit, max(0.0, rest))


def noise(y: np.ndarray, slices: int, draws: int) -> float:
    """The share below which all of `draws` unrelated draws stay, with a probability of CONFIDENCE.

    It is estimated from the samples in random order, because most outputs are not normal, and those about rare events
    are far from normal.
    """
    level = (1 - CONFIDENCE) / draws
    each = int(np.ceil(np.sqrt(np.clip(_ORDERS * 10_000 / len(y), 2 / level, 2500))))
    rng = np.random.default_rng(0)
    # One random order applied after another gives a third. Two sets of `each` orders thus give each**2 orders, any two
    # of which are as independent as two unrelated draws, so few orders need to be drawn.
    orders = np.stack([rng.permutation(len(y)) for _ in range(each)])
    found = np.concatenate([_between(rng.permutation(y)[orders], slices) for _ in range(each)])
    between = np.quantile(found, 1 - level) / float(y.var())
    return float(between - (1 - between) * (slices - 1) / (len(y) - slices))


def explained(x: np.ndarray, y: np.ndarray, slices: int) -> float:
    """Share of the variance of y that x explains."""
    return _explained(y[np.argsort(x, kind="stable")], slices)


def _explained(y: np.ndarray, slices: int) -> float:
    """Share of the variance of y that x explains, for y sorted by x."""
    variance, between = float(y.var()), float(_between(y, slices))
    within = variance - between
    return (between - within * (slices - 1) / (len(y) - slices)) / variance


def _between(y: np.ndarray, slices: int) -> np.ndarray:
    """Variance (...) between the slices of y (..., m)."""
    m = y.shape[-1]
    begins = np.arange(slices) * m // slices
    sizes = np.diff(begins, append=m)
    means = np.add.reduceat(y, begins, axis=-1) / sizes
    return (means - y.mean(axis=-1, keepdims=True)) ** 2 @ sizes / m


def _interval(x: np.ndarray, y: np.ndarray, slices: int) -> tuple[float, float]:
    """Interval of the share, by Student's t from estimates that each leave out one group of samples (the jackknife)."""
    from scipy.special import stdtrit  # Student's t; scipy.stats takes a second to import

    order = np.argsort(x, kind="stable")
    group, y = (np.arange(len(y)) % _GROUPS)[order], y[order]
    without = np.array([_explained(y[group != g], slices) for g in range(_GROUPS)])
    middle = _explained(y, slices)
    deviation = float(np.sqrt((_GROUPS - 1) / _GROUPS * np.sum((without - without.mean()) ** 2)))
    reach = float(stdtrit(_GROUPS - 1, (1 + CONFIDENCE) / 2)) * deviation
    return max(0.0, middle - reach), min(1.0, middle + reach)
