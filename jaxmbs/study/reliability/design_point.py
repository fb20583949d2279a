"""Design points, the most probable points of failure: finds them by gradient, and estimates the probability of failure
from them alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxmbs.study.reliability.limit_state import Estimate, LimitState

_ROUNDS = 60
_STEPS = 0.5 ** np.arange(6)  # step lengths that are tried in a round, all in one batch
_TOLERANCE = 1e-5  # of g, relative to its value at the origin; ten times as much for u perpendicular to the gradient
_APART = 0.3  # [rad] least angle between two points that count as different
_FARTHER = 1.5  # points farther out than the nearest by more than this are dropped: they add little


@dataclass(frozen=True)
class DesignPoint:
    """The point u (d,) of the boundary g = 0 that is nearest to the origin among its neighbours, at the distance |beta|
    (beta is negative if the origin itself fails). slope: length of g's gradient there; converged: whether |g| is less
    than 1e-5 of its value at the origin, and the part of u that is perpendicular to the gradient shorter than
    1e-4 (1 + the largest |component| of u)."""

    u: np.ndarray
    beta: float
    slope: float
    converged: bool


def design_points(
    g: LimitState, starts: int = 8, seed: int = 0, near: np.ndarray | None = None, most: int | None = None
) -> list[DesignPoint]:
    """The points of failure nearest to the origin, the nearest first; several if the failure can happen in several
    ways.

    The steps are those of Hasofer, Lind, Rackwitz and Fiessler, with a search along each step (Zhang and Der Kiureghian).
    They begin at the origin and at the points `near` (k, d), or else at `starts` - 1 random points (from `seed`), all at
    once. The search ends after the round in which it reaches `most` simulations. The list is empty if no failure was
    found.

    >>> from jaxmbs.study.reliability import limit_state
    >>> (point,) = design_points(limit_state(lambda u: 3.0 - (u[0] + u[1]) / 2**0.5, 2))
    >>> round(point.beta, 6), point.u.round(3).tolist()
    (3.0, [2.121, 2.121])
    """
    drawn = np.random.default_rng(seed).normal(size=(starts, g.inputs))[1:]
    others = 3.0 * drawn / np.linalg.norm(drawn, axis=1, keepdims=True) if near is None else near
    u = np.concatenate([np.zeros((1, g.inputs)), others])
    limit = np.inf if most is None else g.simulations + most
    value, slope = g.slopes(u)
    size = abs(float(value[0])) or 1.0  # scale of g, relative to which it counts as zero
    sign = 1.0 if value[0] > 0 else -1.0
    good = np.isfinite(value) & np.isfinite(slope).all(1)
    u, value, slope = u[good], value[good], slope[good]
    for _ in range(_ROUNDS):
        done = _converged(u, value, slope, size)
        at = np.flatnonzero(~done & np.isfinite(value) & np.isfinite(slope).all(1))
        if not len(at) or g.simulations >= limit:
            break
        new = _stepped(g, u[at], value[at], slope[at], size)
        u[at], (value[at], slope[at]) = new, g.slopes(new)
    return _distinct(u, value, slope, size, sign)


def _stepped(g: LimitState, u: np.ndarray, value: np.ndarray, slope: np.ndarray, size: float) -> np.ndarray:
    """Points (m, d) after one step, whose length minimises a merit function that is least at a design point."""
    square = np.maximum((slope**2).sum(1), 1e-300)
    aim = (((slope * u).sum(1) - value) / square)[:, None] * slope
    reach = np.linalg.norm(aim - u, axis=1)
    aim = u + (aim - u) * np.minimum(1.0, 3.0 / np.maximum(reach, 1e-300))[:, None]
    weight = 2 * np.maximum(np.linalg.norm(u, axis=1), 1.0) / np.sqrt(square) + 10 / size
    tried = u[:, None] + _STEPS[None, :, None] * (aim - u)[:, None]
    merit = 0.5 * (tried**2).sum(2) + weight[:, None] * np.abs(g(tried))
    return tried[np.arange(len(u)), np.argmin(merit, axis=1)]


def _converged(u: np.ndarray, value: np.ndarray, slope: np.ndarray, size: float) -> np.ndarray:
    """(m,) bool: whether each point is a design point, within the tolerances that `DesignPoint` states. size: |g| at
    the origin."""
    length = np.maximum(np.linalg.norm(slope, axis=1), 1e-300)
    normal = slope / length[:, None]
    across = u - (u * normal).sum(1)[:, None] * normal
    return (np.abs(value) < _TOLERANCE * size) & (
        np.linalg.norm(across, axis=1) < 10 * _TOLERANCE * (1 + np.abs(u).max(1))
    )


def _distinct(u: np.ndarray, value: np.ndarray, slope: np.ndarray, size: float, sign: float) -> list[DesignPoint]:
    found: list[DesignPoint] = []
    near = np.abs(value) < 0.02 * size  # on the boundary, though perhaps not its nearest point
    done = _converged(u, value, slope, size)
    distance = np.linalg.norm(u, axis=1)
    for k in np.lexsort((distance, ~done)):
        if not near[k]:
            continue
        direction = u[k] / max(distance[k], 1e-300)
        angles = [np.arccos(np.clip(direction @ p.u / max(np.linalg.norm(p.u), 1e-300), -1, 1)) for p in found]
        if all(a > _APART for a in angles):
            found.append(DesignPoint(u[k], sign * float(distance[k]), float(np.linalg.norm(slope[k])), bool(done[k])))
    found.sort(key=lambda p: abs(p.beta))
    return [p for p in found if abs(p.beta) < abs(found[0].beta) + _FARTHER]


def first_order(g: LimitState, points: list[DesignPoint]) -> Estimate:
    """Probability of failure if each boundary is taken as flat (FORM); the probabilities of several points are added.
    There is no interval: only samples can show how large the error is."""
    from scipy.stats import norm

    return _estimate("first order", g, points, [float(norm.sf(p.beta)) for p in points])


def second_order(g: LimitState, points: list[DesignPoint], step: float = 1e-3) -> Estimate:
    """Probability of failure with the curvatures of the boundary at the points (SORM; Breitung 1984, Hohenbichler and
    Rackwitz 1988). The curvatures are central differences of gradients over `step` to each side, which need 2 d gradients
    for each point."""
    from scipy.stats import norm

    found = []
    for p in points:
        sides = np.concatenate([p.u + step * np.eye(g.inputs), p.u - step * np.eye(g.inputs)])
        slopes = g.slopes(sides)[1]
        H = (slopes[: g.inputs] - slopes[g.inputs :]) / (2 * step)
        normal = p.u / max(np.linalg.norm(p.u), 1e-300)
        across = np.linalg.svd(normal[None, :])[2][1:]
        bent = np.linalg.eigvalsh(across @ ((H + H.T) / 2) @ across.T) / p.slope
        if p.beta < 0:
            bent = -bent
        ratio = float(np.exp(norm.logpdf(p.beta) - norm.logsf(abs(p.beta))))
        factors = 1 + ratio * bent
        safe = (
            float(norm.sf(abs(p.beta)) * np.prod(np.maximum(factors, 1e-12) ** -0.5)) if np.all(factors > 0) else np.nan
        )
        found.append(safe if p.beta >= 0 else 1 - safe)
    remark = (
        "the failure boundary curves towards the origin more than a paraboloid can" if np.isnan(found).any() else ""
    )
    return _estimate("second order", g, points, found, remark)


def _estimate(method: str, g: LimitState, points: list[DesignPoint], found: list[float], remark: str = "") -> Estimate:
    lost = "" if all(p.converged for p in points) else "the search for the most probable failure did not converge"
    lost = lost if points else "no failure was found"
    p = float(np.minimum(1.0, np.sum(found))) if points else np.nan
    return Estimate(method, p, np.nan, np.nan, g.simulations, remark or lost)
