"""The worst combination of dispersions within a box or an ellipsoid, found by gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.reliability.limit_state import LimitState

_STEPS = 0.5 ** np.arange(8)
_ROUNDS = 80


@dataclass(frozen=True)
class WorstCase:
    """What a search for the worst case found. value: the least g within the region, at u (d,); found: number of starts that
    ended at about this value; simulations: number of simulations that the search took."""

    u: np.ndarray
    value: float
    found: int
    simulations: int


def worst_cases(
    g: LimitState, radius: float = 3.0, region: str = "ellipsoid", starts: int = 8, seed: int = 0,
    near: np.ndarray | None = None, most: int | None = None,
) -> WorstCase:  # fmt: skip
    """Least g within `radius` standard deviations.

    region: "ellipsoid", in which the length of a point is at most `radius`, or "box", in which each of its components is.
    The search tries projected gradient steps of several lengths at once, from the origin and from points `near` (k, d),
    or else from `starts` - 1 random points (from `seed`). It is a local search from many starts: a worse case is unlikely,
    but not excluded. It ends after the round in which it reaches `most` simulations.

    >>> from jaxmbs.study.reliability import limit_state
    >>> g = limit_state(lambda u: 1.0 - u[0] - u[1], 2)
    >>> round(worst_cases(g, 3.0, "box").value, 6), round(worst_cases(g, 3.0).value, 6)
    (-5.0, -3.242641)
    """
    if region not in ("ellipsoid", "box"):
        raise InputError(Problem("region", f'"{region}" is not a region; take "ellipsoid" or "box"'))

    def inside(u: np.ndarray) -> np.ndarray:
        if region == "box":
            return np.clip(u, -radius, radius)
        return u * np.minimum(1.0, radius / np.maximum(np.linalg.norm(u, axis=-1, keepdims=True), 1e-300))

    begin = g.simulations
    if near is None:
        near = radius * np.random.default_rng(seed).normal(size=(starts, g.inputs))[1:]
    u = np.concatenate([np.zeros((1, g.inputs)), inside(near)])
    moving = np.arange(len(u))
    for _ in range(_ROUNDS):
        value, slope = g.slopes(u[moving])
        tried = _tried(u[moving], np.where(np.isfinite(slope), slope, 0.0), radius, region == "box", inside)
        values = g(tried)
        best = np.argmin(values, axis=1)
        found = values[np.arange(len(moving)), best]
        better = found < value - 1e-9 * (1 + np.abs(value))
        u[moving[better]] = tried[np.arange(len(moving)), best][better]
        moving = moving[better]
        if not len(moving) or (most is not None and g.simulations >= begin + most):
            break
    value = g(u)
    least = int(np.argmin(value))
    alike = int(np.count_nonzero(value < value[least] + 1e-3 * (np.ptp(value) + abs(value[least]))))
    return WorstCase(u[least], float(value[least]), alike, g.simulations - begin)


def _tried(u: np.ndarray, slope: np.ndarray, radius: float, box: bool, inside: Callable[[Any], Any]) -> np.ndarray:
    """(m, 2 k, d) trial points, for k step lengths: towards the point of the region where the linearised g is least,
    and against the gradient, moved back into the region."""
    far = np.sign(slope) if box else slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-300)
    towards = u[:, None] + _STEPS[None, :, None] * (-radius * far - u)[:, None]
    return np.concatenate([towards, inside(u[:, None] - radius * _STEPS[None, :, None] * far[:, None])], axis=1)
