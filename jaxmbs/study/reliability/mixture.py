"""Mixtures of normal distributions of unit variance about several centres, fitted to points."""

from __future__ import annotations

import numpy as np

_SIZES = (1, 2, 4, 8, 16)  # numbers of centres that are tried
_ROUNDS = 15
_BETTER = 0.02  # least gain in the mean logarithm of the density for which more centres are used
_LEAST = 0.1  # share that is divided evenly among the centres, however few points are near them


def fitted(u: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Centres (K, d) that are fitted to points u (m, d). K, the number of centres, is the one that makes other points,
    `test` (m, d), most likely."""
    best, found = -np.inf, u.mean(axis=0, keepdims=True)
    for K in _SIZES:
        if len(u) < 4 * K:
            break
        centres = _centres(u, K, rng)
        likely = float(density_ratio(test, centres, shares_of(u, centres)).mean())
        if likely > best + _BETTER:
            best, found = likely, centres
    return found


def _centres(u: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
    """K centres by expectation maximisation, starting from points of u that are far from one another."""
    centres = u[[rng.integers(len(u))]]
    for _ in range(K - 1):
        far = _squares(u, centres).min(1)
        centres = np.concatenate([centres, u[[rng.choice(len(u), p=far / far.sum()) if far.sum() else 0]]])
    shares = np.full(K, 1 / K)
    for _ in range(_ROUNDS):
        part = _responsible(u, centres, shares)
        shares = part.mean(axis=0)
        centres = (part.T @ u) / (part.sum(axis=0) + 1e-12)[:, None]
    return centres


def shares_of(u: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """(K,) the shares of centres (K, d) that make points u (m, d) most likely; none is zero."""
    K = len(centres)
    shares = np.full(K, 1 / K)
    for _ in range(_ROUNDS):
        shares = _responsible(u, centres, shares).mean(axis=0)
    return (1 - _LEAST) * shares + _LEAST / K


def density_ratio(u: np.ndarray, centres: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(m,) logarithm of the ratio of the mixture's density to the standard normal density, at points u (m, d)."""
    from scipy.special import logsumexp

    return np.asarray(logsumexp(u @ centres.T - 0.5 * (centres**2).sum(1), axis=1, b=shares))


def _responsible(u: np.ndarray, centres: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(m, K) probability that each point belongs to each centre."""
    log = u @ centres.T - 0.5 * (centres**2).sum(1)
    part = shares * np.exp(log - log.max(axis=1, keepdims=True))
    return part / part.sum(axis=1, keepdims=True)


def _squares(u: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """(m, K) squared distances of points from centres."""
    return np.maximum((u**2).sum(1)[:, None] - 2 * u @ centres.T + (centres**2).sum(1), 0.0)
