"""Importance sampling: samples around the places where failures were found, and everywhere else, each weighted by its
standard normal density relative to the density of the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxmbs.study.reliability.design_point import DesignPoint
from jaxmbs.study.reliability.limit_state import Estimate, LimitState
from jaxmbs.study.reliability.mixture import density_ratio, fitted, shares_of
from jaxmbs.study.reliability.plain import plain_sampling, without_failures
from jaxmbs.study.reliability.search import Search, searches
from jaxmbs.study.reliability.subset import subset_simulation

_FEWEST = 25.0  # least effective number of samples (by their weights) on which a probability may rest
_EVERYWHERE = 0.1  # share of the standard normal samples, and of those spread as widely as the failures are far away
_FREQUENT = 0.05  # probability above which plain samples are as good
_BEYOND = 1e-4  # share of the samples about a centre that lie outside the radius that counts as covered
_MOST_UNSEEN = 0.9  # largest share to count as unseen or sparsely sampled: each raises the upper end tenfold at most
_HEAVY = 0.05  # samples are too sparse where one would carry more than this share of the probability
_PLACINGS, _PLACED = 3, 8  # most rounds that only place other samples; each uses n / _PLACED of them
_PICKED = 300  # most failures that are drawn by their weights in such a round
_APART = 0.8  # directions differ if the cosine of the angle between them is less


@dataclass(frozen=True)
class Failures:
    """Results of two independent searches for failures. The failures that only one found indicate how many neither
    found."""

    searches: tuple[Search, Search]

    @property
    def reached(self) -> bool:
        """Whether any failure was found."""
        return any(s.reached for s in self.searches)

    @property
    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Failing points (m, d) of one search and of the other; if only one found any, its points in two halves."""
        a, b = self.searches
        if a.reached and b.reached:
            return a.u, b.u
        one = a.u if a.reached else b.u
        return one[::2], one[1::2]

    def apart(self, most: int) -> np.ndarray:
        """(k, d) failures near the origin in different directions, the nearest first, at most `most` of them."""
        u = np.concatenate(self.halves)
        u = u[np.argsort((u**2).sum(1))]
        directions, found = u / np.maximum(np.linalg.norm(u, axis=1, keepdims=True), 1e-300), [0]
        while len(found) < most:
            least = (directions @ directions[found].T).max(1) < _APART
            if not least.any():
                break
            found.append(int(np.argmax(least)))
        return u[found]

    def unseen(self, rng: np.random.Generator) -> float:
        """Estimated share of the failures that neither search saw, as in capture and recapture: the share of the first
        search's points that are far from all centres of the second's, times the share of the second's points that are
        far from all centres of the first's; 0.5 if only one search found any."""
        from scipy.stats import chi2

        if not all(s.reached for s in self.searches):
            return 0.5
        far, missed = chi2.isf(_BEYOND, self.halves[0].shape[1]), 1.0
        for one, other in (self.halves, self.halves[::-1]):
            centres = fitted(one, one, rng)
            missed *= float(np.mean(((other[:, None] - centres) ** 2).sum(2).min(1) > far))
        return min(missed, _MOST_UNSEEN)


def failures(g: LimitState, n: int = 300, seed: int = 0) -> Failures:
    """Two independent searches for failures, which descend through levels of g with n samples in each (`searches`)."""
    g.at("search for failures")
    one, other = searches(g, np.random.default_rng(seed), n, 2)
    return Failures((one, other))


def importance_sampling(
    g: LimitState, points: Sequence[DesignPoint] = (), n: int = 4000, confidence: float = 0.95, seed: int = 0,
    found: Failures | None = None,
) -> Estimate:  # fmt: skip
    """Probability of failure (g <= 0) from n samples around failures, with its interval for this `confidence`.

    The failures are those of two independent searches without gradients (`found`, or run here), and the design
    `points`, if there are any; seed: of all random numbers. One to three eighths of the samples serve only to place the
    others. A fifth of all samples comes from the whole space: half of these are standard normal, and half come from a
    normal distribution that is as wide as the failures are far from the origin. Therefore no weight exceeds ten, and the
    mean is unbiased wherever the failures lie. The interval is that of a mean of weights. Their variance is estimated
    twice, from the samples and from the weights that the failures found by the searches would have, and the larger
    estimate counts. The upper end also allows for failures that both searches are expected to have missed, and for found
    failures around which the samples are too sparse.

    If the searches reach no failure, the result is that of `without_failures`; if failures are frequent, that of plain
    samples; if few samples carry the weight, as in a hundred dimensions, that of subset simulation. The estimate names
    the method.

    >>> from jaxmbs.study.reliability import limit_state
    >>> found = importance_sampling(limit_state(lambda u: 4.0 - u[0], 2), n=2000)
    >>> found.low < 3.167e-5 < found.high
    True
    """
    found = found or failures(g, max(n // 13, 100), seed)
    if not found.reached:
        return without_failures(g, max(found.searches, key=lambda s: s.probability), n, confidence, seed + 1)
    if max(s.probability for s in found.searches) > _FREQUENT:
        return plain_sampling(g, n, confidence, seed + 1)
    rng = np.random.default_rng(seed + 1)
    halves, near = found.halves, [p.u[None] for p in points if p.converged and p.beta > 0]
    g.at("samples around failures")
    law, left = _law(halves, near, rng), n
    for _ in range(_PLACINGS):
        u, weights = law.sampled(g, n // _PLACED, rng)
        left -= len(u)
        if weights.any():
            halves = tuple(np.concatenate([h, _picked(u, weights, rng)]) for h in halves)
            law = _law(halves, near, rng)
        if _effective(weights) > 2 * _FEWEST:
            break
    _, weights = law.sampled(g, left, rng)
    estimate, effective = _estimate(weights, law, found, confidence, g.simulations, rng)
    if effective < _FEWEST:
        few = f"only {effective:.0f} samples around failures carry weight, so subset simulation was used"
        estimate = subset_simulation(g, max(n // 13, 100), confidence=confidence, seed=seed + 2)
        return replace(estimate, remark="; ".join(filter(None, (few, estimate.remark))))
    return estimate


def _estimate(
    weights: np.ndarray, law: _Law, found: Failures, confidence: float, simulations: int, rng: np.random.Generator
) -> tuple[Estimate, float]:
    """The estimate, and the effective number of samples that it rests on."""
    from scipy.stats import norm

    n, mean = len(weights), float(weights.mean())
    if mean == 0:
        return Estimate("importance sampling", 0.0, 0.0, np.nan, simulations), 0.0
    # weights of the failures that were found without these samples. Where one sample would carry more than a twentieth
    # of the probability, the samples are too sparse to rely on, so the share of the failures that lie there counts as
    # unseen
    others = law.weights(np.concatenate(found.halves))
    thin = others > _HEAVY * n * mean
    square = max(float((weights**2).mean()), mean * float((others * ~thin).mean()))
    spread = np.sqrt(max(square - mean**2, 0.0) / n) / mean
    reach = float(norm.isf((1 - confidence) / 2)) * spread
    seen = (1 - found.unseen(rng)) * max(1 - float(thin.mean()), 1 - _MOST_UNSEEN)
    # the weights are skewed towards rare high values, which may be missed: the upper end is that of the logarithm
    low, high = mean * max(0.0, 1 - reach), mean * np.exp(reach) / seen
    return Estimate("importance sampling", mean, float(low), min(1.0, float(high)), simulations), n * mean**2 / square


@dataclass(frozen=True)
class _Law:
    """Distribution of the samples: a mixture of normal distributions of unit variance about the centres (K, d) with
    shares (K,), one about the origin, and one about the origin that is `wide` times as wide."""

    centres: np.ndarray
    shares: np.ndarray
    wide: float

    def sampled(self, g: LimitState, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """n samples (n, d), and their weights, which are zero for samples that do not fail."""
        K = len(self.centres)
        which = rng.choice(K + 2, size=n, p=np.append(self.shares * (1 - 2 * _EVERYWHERE), [_EVERYWHERE] * 2))
        u = rng.normal(size=(n, g.inputs)) * np.where(which == K + 1, self.wide, 1.0)[:, None]
        u += np.concatenate([self.centres, np.zeros((2, g.inputs))])[which]
        return u, self.weights(u) * (g(u) <= 0)

    def weights(self, u: np.ndarray) -> np.ndarray:
        """(m,) standard normal density divided by the density of the samples, at points u (m, d)."""
        around = density_ratio(u, self.centres, self.shares)
        wide = 0.5 * (u**2).sum(1) * (1 - self.wide**-2) - u.shape[1] * np.log(self.wide)
        log = np.logaddexp(around + np.log(1 - 2 * _EVERYWHERE), np.logaddexp(0.0, wide) + np.log(_EVERYWHERE))
        return np.exp(-log)


def _law(halves: Sequence[np.ndarray], near: list[np.ndarray], rng: np.random.Generator) -> _Law:
    """Distribution of the samples, from the failures that two searches found, and from the design points `near`."""
    one, other = halves
    u = np.concatenate([one, other])
    centres = np.concatenate([fitted(one, other, rng), fitted(other, one, rng), *near])
    far = float(np.sqrt((u**2).sum(1).mean() / u.shape[1]))
    return _Law(centres, shares_of(u, centres), max(1.5, far))


def _picked(u: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Failures among the samples u, drawn in proportion to their weights: so they are distributed like the failures
    among standard normal samples."""
    return u[rng.choice(len(u), size=min(_PICKED, 2 * round(_effective(weights))), p=weights / weights.sum())]


def _effective(weights: np.ndarray) -> float:
    """Effective number of samples, from their weights."""
    return float(weights.sum() ** 2 / max((weights**2).sum(), 1e-300))
