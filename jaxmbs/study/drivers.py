"""Which draws drive an output: shares of its variance, as far as they stand above what unrelated draws show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jaxmbs.study.statistics import CONFIDENCE, Summary

if TYPE_CHECKING:
    from jaxmbs.study.problem import Study
    from jaxmbs.study.store import Store

_SAMPLES = 20_000  # ranks of more say no more
_ORDERS = 500  # of 10,000 samples in random order, more of fewer; at least twice as many as one of which is seldom
_GROUPS = 20  # of samples, one of which is left out at a time


@dataclass(frozen=True)
class Driver:
    """A draw with its share of the variance and the interval of that share."""

    name: str
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Drivers:
    """Drivers of an output, the largest first; others: how many draws do not stand above noise; noise: the share that
    the largest of as many unrelated draws reaches in one study of twenty; rest: what the drivers leave unexplained."""

    found: tuple[Driver, ...]
    others: int
    noise: float
    rest: float


def drivers(study: Study, store: Store, summary: Summary, output: str, most: int = 8) -> Drivers | None:
    """Draws that explain part of an output's variance by themselves; None where there are too few samples.

    The share is the first-order Sobol index estimated from the samples at hand: the variance of the output's mean over
    slices of equal number along the draw, less what slices of unrelated samples would show. It sees relations that go
    down and up again, as those of rates and clearances do. A draw counts where it is more than the largest of as many
    unrelated draws would show. Intervals by leaving out groups of samples.
    """
    y = summary.outputs[output][:_SAMPLES]
    keep = np.isfinite(y)
    rows, y = summary.index[:_SAMPLES][keep], y[keep]
    slices = number_of_slices(len(rows))
    if slices < 4 or np.ptp(y) == 0:
        return None
    columns: dict[str, np.ndarray] = {}
    data = store.dataset().isel(sample=slice(0, int(rows.max()) + 1))
    for d in study.dispersions.items:
        x = data[d.name].values[rows].reshape(len(rows), -1)
        columns |= {d.name if d.k == 1 else f"{d.name}[{i}]": x[:, i] for i in range(d.k)}
    return ranked({name: x for name, x in columns.items() if np.ptp(x) > 0}, y, slices, most)


def number_of_slices(samples: int) -> int:
    """Of at least 25 samples each."""
    return min(60, samples // 25)


def ranked(columns: dict[str, np.ndarray], y: np.ndarray, slices: int, most: int = 8) -> Drivers:
    """Drivers of y (m,) among columns (m,)."""
    shares = {name: explained(x, y, slices) for name, x in columns.items()}
    limit = noise(y, slices, max(1, len(columns)))
    above = sorted((name for name in shares if shares[name] > limit), key=lambda name: -shares[name])
    found = tuple(Driver(name, shares[name], *_interval(columns[name], y, slices)) for name in above[:most])
    rest = 1 - sum(shares[name] for name in above)
    return Drivers(found, len(columns) - len(above), limit, max(0.0, rest))


def noise(y: np.ndarray, slices: int, draws: int) -> float:
    """The share that the largest of so many unrelated draws stays below, with confidence.

    Of samples in random order: most outputs are not normal, and rare ones are far from it.
    """
    level = (1 - CONFIDENCE) / draws
    orders = int(np.clip(_ORDERS * 10_000 / len(y), 2 / level, 2500))
    rng, ends = np.random.default_rng(0), np.linspace(0, len(y), slices + 1).astype(int)
    middle, variance, found = y.mean(), float(y.var()), np.empty(orders)
    for k in range(orders):
        means = np.add.reduceat(rng.permutation(y), ends[:-1]) / np.diff(ends)
        found[k] = np.diff(ends) @ (means - middle) ** 2 / len(y)
    between = np.quantile(found, 1 - level) / variance
    return float(between - (1 - between) * (slices - 1) / (len(y) - slices))


def explained(x: np.ndarray, y: np.ndarray, slices: int) -> float:
    """Share of the variance of y that x explains."""
    parts = np.array_split(y[np.argsort(x, kind="stable")], slices)
    sizes, means = np.array([len(p) for p in parts]), np.array([p.mean() for p in parts])
    between = float(sizes @ (means - y.mean()) ** 2) / len(y)
    within = float(y.var()) - between
    return (between - within * (slices - 1) / (len(y) - slices)) / float(y.var())


def _interval(x: np.ndarray, y: np.ndarray, slices: int) -> tuple[float, float]:
    """Of the share: estimates without one group of samples each (the jackknife), and Student's t."""
    from scipy.special import stdtrit  # Student's t; scipy.stats takes a second to import

    group = np.arange(len(y)) % _GROUPS
    without = np.array([explained(x[group != g], y[group != g], slices) for g in range(_GROUPS)])
    middle = explained(x, y, slices)
    deviation = float(np.sqrt((_GROUPS - 1) / _GROUPS * np.sum((without - without.mean()) ** 2)))
    reach = float(stdtrit(_GROUPS - 1, (1 + CONFIDENCE) / 2)) * deviation
    return max(0.0, middle - reach), min(1.0, middle + reach)
