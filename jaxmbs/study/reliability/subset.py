"""Subset simulation: to a rare failure by steps that are not rare, without gradients, in any number of inputs."""

from __future__ import annotations

import numpy as np

from jaxmbs.study.reliability.limit_state import Estimate, LimitState

_LEVELS = 24  # down to 1e-24
_CORRELATION = 0.8  # of a chain's proposal with its last point


def subset_simulation(
    g: LimitState, n: int = 500, repeats: int = 10, share: float = 0.1, confidence: float = 0.95, seed: int = 0
) -> Estimate:
    """Probability of failure from `repeats` independent runs of subset simulation (Au and Beck 2001) with n samples
    per level.

    A run before them sets the levels of g, each reached by the `share` of the samples of the one before: levels that a
    run sets
    for itself bias it, by half and more where the failure is rare and n small. Chains start at samples drawn among
    those that
    reached the level, and every point of a chain counts; so each run is unbiased (Dau and Chopin 2022), and runs are
    independent. The interval is that of their mean, as numbers whose logarithms are about normal (Cox's).

    >>> from jaxmbs.study.reliability import limit_state
    >>> found = subset_simulation(limit_state(lambda u: 3.0 - u[0], 2), n=200)
    >>> found.low < 1.35e-3 < found.high
    True
    """
    from scipy.stats import t

    rng = np.random.default_rng(seed)
    seeds = max(2, round(share * n))
    levels = _levels(g, rng, n, seeds)
    if levels is None:
        remark = "no failure was found: it is rarer than 1e-24, or cannot happen"
        return Estimate("subset simulation", 0.0, 0.0, np.nan, g.simulations, remark)
    u, found = rng.normal(size=(repeats, n, g.inputs)), np.ones(repeats)
    value = g(u)
    for level in levels:
        reached = value <= level
        found *= reached.mean(1)
        if level == 0 or not found.all():
            break
        u, value = _chains(g, rng, *_drawn(rng, u, value, reached, seeds), level, n)
    if not found.all():
        remark = f"{np.count_nonzero(found == 0)} of {repeats} runs found no failure: take more samples per level"
        return Estimate("subset simulation", float(found.mean()), 0.0, np.nan, g.simulations, remark)
    log = np.log(found)
    spread = float(log.var(ddof=1))
    reach = float(t.isf((1 - confidence) / 2, repeats - 1)) * np.sqrt(
        spread / repeats + spread**2 / (2 * (repeats - 1))
    )
    low, high = np.exp(log.mean() + spread / 2 - reach), np.exp(log.mean() + spread / 2 + reach)
    return Estimate("subset simulation", float(found.mean()), float(low), min(1.0, float(high)), g.simulations)


def _levels(g: LimitState, rng: np.random.Generator, n: int, seeds: int) -> list[float] | None:
    """Levels of g from a run that sets them itself; the last is 0. None where it does not get there."""
    u = rng.normal(size=(1, n, g.inputs))
    value, found = g(u), []
    for _ in range(_LEVELS):
        found.append(max(float(np.sort(value[0])[seeds - 1]), 0.0))
        if found[-1] == 0:
            return found
        u, value = _chains(g, rng, *_drawn(rng, u, value, value <= found[-1], seeds), found[-1], n)
    return None


def _drawn(
    rng: np.random.Generator, u: np.ndarray, value: np.ndarray, reached: np.ndarray, seeds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Points (R, seeds, d) drawn among those that reached the level (R, n), and their g."""
    keys = rng.uniform(size=(*reached.shape[:1], seeds)) * reached.sum(1)[:, None]
    place = np.stack([np.flatnonzero(row)[k.astype(int)] for row, k in zip(reached, keys, strict=True)])
    return np.take_along_axis(u, place[:, :, None], 1), np.take_along_axis(value, place, 1)


def _chains(
    g: LimitState, rng: np.random.Generator, u: np.ndarray, value: np.ndarray, level: float, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Points (R, about n, d) below the level and their g: chains from the seeds u (R, s, d), whose stationary law is
    the standard normal one there (Papaioannou and others 2015)."""
    us, values = [u], [value]
    for _ in range(-(-n // u.shape[1]) - 1):
        proposed = _CORRELATION * u + np.sqrt(1 - _CORRELATION**2) * rng.normal(size=u.shape)
        found = g(proposed)
        inside = found <= level
        u, value = np.where(inside[:, :, None], proposed, u), np.where(inside, found, value)
        us.append(u)
        values.append(value)
    return np.concatenate(us, axis=1), np.concatenate(values, axis=1)
