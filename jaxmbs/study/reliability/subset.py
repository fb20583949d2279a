"""Subset simulation: reaches a rare failure in steps that are not rare, without gradients, in any number of inputs."""

from __future__ import annotations

import numpy as np

from jaxmbs.study.reliability.limit_state import Estimate, LimitState
from jaxmbs.study.reliability.plain import without_failures
from jaxmbs.study.reliability.search import chains, drawn, searches

_FIRST = 500  # fewest samples that set the levels: with fewer, a level may be too far from the previous one


def subset_simulation(
    g: LimitState, n: int = 500, repeats: int = 10, share: float = 0.1, confidence: float = 0.95, seed: int = 0
) -> Estimate:
    """Probability of failure from `repeats` independent runs of subset simulation (Au and Beck 2001) with n samples per
    level.

    A preliminary run sets the levels of g, each reached by the `share` of the samples of the previous one. Levels that
    a run sets for itself would bias it, by half and more if the failure is rare and n small. Chains start at samples
    drawn from those that reached the level, and every point of a chain counts; therefore each run is unbiased (Dau and
    Chopin 2022), and the runs are independent. The interval with this `confidence` is Cox's for the mean of numbers whose
    logarithms are approximately normal. If the preliminary run reaches no failure, as for a flag, which has no levels,
    the result is that of `without_failures`. seed: of all random numbers.

    >>> from jaxmbs.study.reliability import limit_state
    >>> found = subset_simulation(limit_state(lambda u: 3.0 - u[0], 2), n=200)
    >>> found.low < 1.35e-3 < found.high
    True
    """
    from scipy.stats import t

    rng = np.random.default_rng(seed)
    seeds = max(2, round(share * n))
    g.at("levels")
    (first,) = searches(g, rng, max(n, _FIRST), share=share)
    if not first.reached:
        return without_failures(g, first, n * repeats, confidence, seed + 1)
    g.at("plain samples")
    u, found = rng.normal(size=(repeats, n, g.inputs)), np.ones(repeats)
    value = g(u)
    for level in first.levels:
        reached = value <= level
        found[found > 0] *= reached.mean(1)
        alive = reached.any(1)
        if level == 0 or not alive.any():
            break
        g.at(f"{repeats} runs of {n} samples through {len(first.levels)} levels", level)
        u, value = chains(g, rng, *drawn(rng, u[alive], value[alive], reached[alive], seeds), level, n)
    dead, alive = np.count_nonzero(found == 0), found[found > 0]
    remark = f"{dead} of {repeats} runs found no failure: take more samples per level" if dead else ""
    if len(alive) < 3:
        return Estimate("subset simulation", float(found.mean()), 0.0, np.nan, g.simulations, remark)
    log = np.log(alive)
    spread, runs = float(log.var(ddof=1)), len(alive)
    reach = float(t.isf((1 - confidence) / 2, runs - 1)) * np.sqrt(spread / runs + spread**2 / (2 * (runs - 1)))
    low, high = np.exp(log.mean() + spread / 2 + np.array([-reach, reach]))  # runs without a failure cannot raise it
    return Estimate(
        "subset simulation",
        float(found.mean()),
        0.0 if dead else float(low),
        min(1.0, float(high)),
        g.simulations,
        remark,
    )
