"""Searches for failures without gradients: descends from samples of the whole space, through levels of g that it sets
itself, to points that fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxmbs.study.reliability.limit_state import LimitState

_LEVELS = 12  # largest number of levels: down to a probability of 1e-12
_CORRELATION = 0.8  # correlation of a chain's proposal with its last point
_FLAT = 0.5  # a value that is common to more than this share of the samples cannot be a level
_FEWEST = 3  # fewest samples below such a value from which the next level can start


@dataclass(frozen=True)
class Search:
    """Result of a search. levels: levels of g, each reached by about the same share of the previous level's samples;
    the last is 0 if failure was reached; u (m, d): points that reach the last level, distributed like the standard
    normal ones that do; probability: rough probability of reaching it; reached: whether failure was reached; flat:
    whether the search ended because almost all values were the same, so that no lower level could be set."""

    levels: list[float]
    u: np.ndarray
    probability: float
    reached: bool
    flat: bool = False


def searches(g: LimitState, rng: np.random.Generator, n: int, count: int = 1, share: float = 0.1) -> list[Search]:
    """`count` independent runs of subset simulation (Au and Beck 2001) with n samples in each level, all at once.
    share: the share of the samples that reach the next level."""
    seeds = max(2, round(share * n))
    u = rng.normal(size=(count, n, g.inputs))
    value, walks = g(u), [_Walk() for _ in range(count)]
    going = list(range(count))
    for _ in range(_LEVELS):
        reached = [walks[k].down(u[i], value[i], seeds) for i, k in enumerate(going)]
        on = [i for i, k in enumerate(going) if walks[k].found is None]
        if not on:
            break
        going = [going[i] for i in on]
        level = np.array([walks[k].levels[-1] for k in going])
        g.level = float(level.min())
        start = drawn(rng, u[on], value[on], np.stack([reached[i] for i in on]), seeds)
        u, value = chains(g, rng, *start, level[:, None], n)
    for i, k in enumerate(going):
        walks[k].found = walks[k].found or Search(walks[k].levels, u[i], walks[k].probability, False)
    return [w.found for w in walks if w.found]


@dataclass
class _Walk:
    """A search that is under way."""

    levels: list[float] = field(default_factory=list)
    probability: float = 1.0
    found: Search | None = None

    def down(self, u: np.ndarray, value: np.ndarray, seeds: int) -> np.ndarray:
        """(n,) bool: which of the samples reach the next level; sets `found` if the search ends."""
        level = _level(value, seeds)
        if level is None or (self.levels and level >= self.levels[-1]):
            self.found = Search(self.levels, u, self.probability, False, flat=True)
            return np.zeros(len(u), bool)
        reached = value <= level
        self.levels.append(level)
        self.probability *= float(reached.mean())
        if level == 0:
            self.found = Search(self.levels, u[reached], self.probability, True)
        return reached


def _level(values: np.ndarray, seeds: int) -> float | None:
    """The next level, at least zero: the one of rank `seeds` among the values (n,), the lowest first. If more than half
    of all values are equal to it, the next lower value is the level; None if too few are lower."""
    level = float(np.sort(values)[seeds - 1])
    if level > 0 and np.mean(values == level) > _FLAT:
        below = values[values < level]
        if len(below) < _FEWEST:
            return None
        level = float(below.max())
    return max(level, 0.0)


def drawn(
    rng: np.random.Generator, u: np.ndarray, value: np.ndarray, reached: np.ndarray, seeds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Points (R, seeds, d) drawn from those that `reached` (R, n) the level, and their g."""
    keys = rng.uniform(size=(*reached.shape[:1], seeds)) * reached.sum(1)[:, None]
    place = np.stack([np.flatnonzero(row)[k.astype(int)] for row, k in zip(reached, keys, strict=True)])
    return np.take_along_axis(u, place[:, :, None], 1), np.take_along_axis(value, place, 1)


def chains(
    g: LimitState, rng: np.random.Generator, u: np.ndarray, value: np.ndarray, level: Any, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Points (R, about n, d) that reach the level (a number, or (R, 1)), g <= level, and their g: Markov chains from
    the seeds u (R, s, d). Their stationary distribution is the standard normal one, restricted to the points that reach
    the level (Papaioannou and others 2015)."""
    us, values = [u], [value]
    for _ in range(-(-n // u.shape[1]) - 1):
        proposed = _CORRELATION * u + np.sqrt(1 - _CORRELATION**2) * rng.normal(size=u.shape)
        found = g(proposed)
        inside = found <= level
        u, value = np.where(inside[:, :, None], proposed, u), np.where(inside, found, value)
        us.append(u)
        values.append(value)
    return np.concatenate(us, axis=1), np.concatenate(values, axis=1)
