"""Samples around the most probable failures, each with the weight that it has among all."""

from __future__ import annotations

import numpy as np

from jaxmbs.study.reliability.design_point import DesignPoint
from jaxmbs.study.reliability.limit_state import Estimate, LimitState

_FEWEST = 50.0  # samples that a probability must rest on, counted by their weights
_AT_ONCE = 4096


def importance_sampling(
    g: LimitState, points: list[DesignPoint], n: int = 4000, confidence: float = 0.95, seed: int = 0
) -> Estimate:
    """Probability of failure from n samples around design points, with its interval.

    Unbiased wherever the points lie; the interval is that of a mean of n weights. The estimate says so where it rests
    on few of them, and where failures come from elsewhere than from the points.

    >>> from jaxmbs.study.reliability import design_points, limit_state
    >>> g = limit_state(lambda u: 4.0 - u[0], 2)
    >>> found = importance_sampling(g, design_points(g), 4000, seed=1)
    >>> found.low < 3.167e-5 < found.high
    True
    """
    from scipy.special import logsumexp
    from scipy.stats import norm

    if not points:
        return Estimate("importance sampling", np.nan, np.nan, np.nan, g.simulations, "no failure was found")
    rng = np.random.default_rng(seed)
    centres = np.stack([p.u for p in points])
    shares = norm.sf(np.abs([p.beta for p in points]))
    shares = np.maximum(shares / shares.sum(), 0.1)
    shares /= shares.sum()
    fails_at_origin = points[0].beta < 0
    weights = np.empty(n)
    for first in range(0, n, _AT_ONCE):
        m = min(_AT_ONCE, n - first)
        u = rng.normal(size=(m, g.inputs)) + centres[rng.choice(len(shares), size=m, p=shares)]
        # the density of a standard normal number over that of the samples
        log = -np.asarray(logsumexp(u @ centres.T - 0.5 * (centres**2).sum(1) + np.log(shares), axis=1))
        failed = g(u) <= 0
        weights[first : first + m] = np.exp(log) * (~failed if fails_at_origin else failed)
    mean, deviation = float(weights.mean()), float(weights.std(ddof=1) / np.sqrt(n))
    reach = float(norm.isf((1 - confidence) / 2)) * deviation
    low, high = max(0.0, mean - reach), mean + reach
    if fails_at_origin:
        mean, low, high = 1 - mean, max(0.0, 1 - high), 1 - low
    return Estimate("importance sampling", mean, low, high, g.simulations, _remark(weights, points))


def _remark(weights: np.ndarray, points: list[DesignPoint]) -> str:
    if not weights.any():
        return "no sample around the points fails: they are no design points"
    effective = weights.sum() ** 2 / (weights**2).sum()
    if effective < _FEWEST:
        return f"rests on {effective:.0f} samples by their weights: take more, or subset simulation"
    return "" if all(p.converged for p in points) else "a design point is not exact; the interval holds all the same"
