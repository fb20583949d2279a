"""Plain sampling: the only method that is left if a sample shows nothing but whether it failed."""

from __future__ import annotations

import numpy as np

from jaxmbs.study.reliability.limit_state import Estimate, LimitState
from jaxmbs.study.reliability.search import Search
from jaxmbs.study.statistics.order_statistics import interval

_FLAG = "the output is only true or false: there are no levels between, and plain samples show no more than this"
_FLAT = (
    "the output does not change on the way to failure: there are no levels between, and plain samples show no more "
    "than this"
)


def plain_sampling(g: LimitState, n: int = 4000, confidence: float = 0.95, seed: int = 0, remark: str = "") -> Estimate:
    """Probability of failure from n independent samples, with Clopper and Pearson's interval: at least a share
    `confidence` of such intervals contains it, however rare the failure, and whatever g is.

    >>> found = plain_sampling(LimitState(lambda u: np.where(u[:, 0] > 4, -1.0, 1.0), None, 2), 1000)
    >>> found.probability, found.low, round(found.high, 4)
    (0.0, 0.0, 0.0037)
    """
    g.at("plain samples")
    failed = int(np.count_nonzero(g(np.random.default_rng(seed).normal(size=(n, g.inputs))) <= 0))
    low, high = interval(failed, n, confidence)
    return Estimate("plain sampling", failed / n, float(low), float(high), g.simulations, remark)


def without_failures(g: LimitState, found: Search, n: int, confidence: float = 0.95, seed: int = 0) -> Estimate:
    """Estimate after a search that reached no failure. If it ended because almost all values were the same, as for a
    flag, at a probability of more than 1 / n, the estimate comes from n plain samples. Otherwise it is zero, without an
    upper end (NaN), and the remark states down to which probability the search found no failure."""
    if found.flat and found.probability * n > 1:
        return plain_sampling(g, n, confidence, seed, _FLAT if found.levels else _FLAG)
    remark = (
        f"no failure was found down to a probability of {found.probability:.0e}: failure is rarer, or cannot happen"
    )
    return Estimate("search by levels", 0.0, 0.0, np.nan, g.simulations, remark)
