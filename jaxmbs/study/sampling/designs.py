"""Sampling plans: each point is a pure function of plan, number of samples, seed and index, so that any range of points
can be computed by itself.

Random samples are not a plan: each is a function of key and index alone. A plan spreads points more evenly than random
samples, or sets them without chance, as on a grid. Its samples are therefore not independent: estimates are often
better, but no confidence interval is known for them.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.mixing import mixed

if TYPE_CHECKING:
    from scipy.stats.qmc import QMCEngine

RANDOM = "random"
MORRIS_LEVELS, MORRIS_REACH = 4, (0.02, 0.98)  # number of levels of Morris' grid, and the probabilities at its ends
_WHY = {
    "latin_hypercube": (
        "the samples of a Latin hypercube are not independent, so no confidence interval is known for their share"
    ),
    "sobol": "Sobol points are not independent, so no confidence interval is known for their share",
    "halton": "Halton points are not independent, so no confidence interval is known for their share",
    "factorial": "the points of a factorial plan are chosen, not drawn, so their share is not a probability",
    "one_at_a_time": "the points of a sweep are chosen, not drawn, so their share is not a probability",
    "saltelli": (
        "the samples of this plan come in groups that share draws, so no confidence interval is known for their share"
    ),
    "morris": "the points of this plan lie on a grid, so their share is not a probability",
}


@dataclass(frozen=True)
class SamplingPlan:
    """A sampling plan of n points over the inputs `names`. kind: `design` of [study]; levels: the probabilities at which
    "factorial" and "one_at_a_time" take each input (0.5: its median)."""

    kind: str
    names: tuple[str, ...]
    n: int
    seed: int
    levels: tuple[float, ...]

    def points(self, first: int, stop: int) -> np.ndarray:
        """(stop - first, inputs) numbers in [0, 1] of the points first ... stop - 1; points beyond n have no meaning."""
        return _MAKERS[self.kind](self, np.arange(first, stop))


def dependence(kind: str) -> str:
    """Why the samples of a plan are not independent; "" if they are independent."""
    return _WHY.get(kind, "")


def fixed_size(kind: str, inputs: int, levels: Sequence[float]) -> int | None:
    """Number of samples if the plan fixes it; None for other plans."""
    if kind == "factorial":
        return len(levels) ** inputs
    return 1 + inputs * len(levels) if kind == "one_at_a_time" else None


def group_size(kind: str, inputs: int) -> int:
    """Number of samples in each group of a plan, which n must be a multiple of; 1 for a plan without groups."""
    return {"saltelli": inputs + 2, "morris": inputs + 1}.get(kind, 1)


def check_size(kind: str, inputs: int, levels: Sequence[float], n: int | None) -> int:
    """The number of samples: n, or if n is None the number that the plan fixes. Raises InputError if the plan does not
    allow n, or fixes no number."""
    fixed, group = fixed_size(kind, inputs, levels), group_size(kind, inputs)
    if n is None:
        if fixed is None:
            raise InputError(Problem("n", "the number of samples is missing; give it with -n N"))
        return fixed
    if fixed is not None and n != fixed:
        raise InputError(
            Problem("n", f'design = "{kind}" has {fixed:,} samples here, not {n:,}; leave -n out, or give -n {fixed}')
        )
    if n % group:
        near = max(1, round(n / group)) * group
        raise InputError(
            Problem("n", f'design = "{kind}" has groups of {group} samples; take {near:,} in place of {n:,}')
        )
    return n


# --- points -----------------------------------------------------------------------------------------------------------


def _latin(d: SamplingPlan, index: np.ndarray) -> np.ndarray:
    """One point in each of n equal slices, for every input."""
    found = np.empty((len(index), len(d.names)))
    for j, name in enumerate(d.names):
        salt = _salt(d, name)
        found[:, j] = (permuted(index, d.n, salt) + _fraction(index, salt + 1)) / d.n
    return found


def _sobol(d: SamplingPlan, index: np.ndarray) -> np.ndarray:
    return _sobol_points(d, len(d.names), index)


def _sobol_points(d: SamplingPlan, inputs: int, index: np.ndarray) -> np.ndarray:
    from scipy.stats.qmc import Sobol

    engine = Sobol(inputs, scramble=True, bits=32, rng=np.random.default_rng(d.seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "n should be a power of 2": a part of the plan need not be
        return _middle(_from(engine, index))


def _halton(d: SamplingPlan, index: np.ndarray) -> np.ndarray:
    from scipy.stats.qmc import Halton

    return _middle(_from(Halton(len(d.names), scramble=True, rng=np.random.default_rng(d.seed)), index))


def _from(engine: QMCEngine, index: np.ndarray) -> np.ndarray:
    """The points of a sequence at consecutive indices."""
    if index[0]:
        engine.fast_forward(int(index[0]))
    return engine.random(len(index))


def _factorial(d: SamplingPlan, index: np.ndarray) -> np.ndarray:
    """Every combination of the inputs' levels; the last input changes fastest."""
    m = len(d.levels)
    powers = [m**k for k in range(len(d.names) - 1, -1, -1)]
    return np.stack([np.asarray(d.levels)[index // p % m] for p in powers], axis=1)


def _one_at_a_time(d: SamplingPlan, index: np.ndarray) -> np.ndarray:
    """First all inputs at the middle, then each input by itself at each level."""
    found = np.full((len(index), len(d.names)), 0.5)
    moved = np.flatnonzero((index > 0) & (index <= len(d.names) * len(d.levels)))
    which, level = np.divmod(index[moved] - 1, len(d.levels))
    found[moved, which] = np.asarray(d.levels)[level]
    return found


def _saltelli(d: SamplingPlan, index: np.ndarray) -> np.ndarray:
    """Groups of k + 2 points, in the order that SALib expects: a Sobol point a; k copies of a, the i-th with
    input i replaced by that of a second point b; and b."""
    k = len(d.names)
    group, which = np.divmod(index, k + 2)
    base = _sobol_points(d, 2 * k, np.arange(group[0], group[-1] + 1))[group - group[0]]
    from_b = (which[:, None] == np.arange(1, k + 1)) | (which == k + 1)[:, None]
    return np.where(from_b, base[:, k:], base[:, :k])


def _morris(d: SamplingPlan, index: np.ndarray) -> np.ndarray:
    """Walks on a grid: from a random grid point, each input moves once by half the levels, in an order that differs
    between walks."""
    k, levels = len(d.names), MORRIS_LEVELS
    step = levels / 2 / (levels - 1)
    walk, turn = np.divmod(index, k + 1)
    order = np.stack([_fraction(walk, _salt(d, f"order {name}")) for name in d.names], axis=1).argsort(1).argsort(1)
    start = np.stack([(_fraction(walk, _salt(d, name)) * levels).astype(int) for name in d.names], axis=1) / (
        levels - 1
    )
    moved = start + np.where(start < 0.5, step, -step)
    low, high = MORRIS_REACH
    return low + (high - low) * np.where(order < turn[:, None], moved, start)


_MAKERS: Mapping[str, Callable[[SamplingPlan, np.ndarray], np.ndarray]] = {
    "latin_hypercube": _latin, "sobol": _sobol, "halton": _halton, "factorial": _factorial,
    "one_at_a_time": _one_at_a_time, "saltelli": _saltelli, "morris": _morris,
}  # fmt: skip


# --- numbers by index -------------------------------------------------------------------------------------------------


def _salt(d: SamplingPlan, name: str) -> int:
    return int(mixed(np.array([d.seed ^ zlib.crc32(name.encode()) * 0x9E3779B1], np.uint64))[0])


def _fraction(index: np.ndarray, salt: int) -> np.ndarray:
    """Uniform in (0, 1), as a function of index and salt."""
    bits = mixed(mixed(index.astype(np.uint64)) ^ np.uint64(salt % 2**64)) >> np.uint64(11)
    return np.minimum((bits.astype(float) + 0.5) / 2**53, 1 - 2.0**-53)  # the largest would be rounded to 1


def _middle(x: np.ndarray) -> np.ndarray:
    """Clips x away from 0 and 1, where the quantiles of a normal distribution are infinite."""
    return np.clip(x, 2.0**-33, 1 - 2.0**-33)


def permuted(index: np.ndarray, n: int, salt: int) -> np.ndarray:
    """Where a random permutation of 0 ... n - 1 puts each index, without computing the others (a Feistel network,
    applied until the result is below n)."""
    half = max(1, (max(n - 1, 1).bit_length() + 1) // 2)
    mask = np.uint64(2**half - 1)
    x = (index % n).astype(np.uint64)
    open_ = np.ones(len(x), bool)
    while open_.any():
        left, right = x[open_] >> np.uint64(half), x[open_] & mask
        for turn in range(6):
            left, right = right, left ^ (mixed(right ^ np.uint64((salt + turn * 0x9E3779B97F4A7C15) % 2**64)) & mask)
        x[open_] = (left << np.uint64(half)) | right
        open_ = x >= n
    return x.astype(np.int64)
