"""Tests whether a point is an optimum, by the derivatives there and not by the reason why a solver stopped.

First order [J. Nocedal, S. J. Wright, Numerical Optimization, 2006, 12.3]: the gradient of the cost is a combination of the
gradients of the conditions, of the active margins and of the active bounds, the last two with the right sign. Second order
[12.5]: in the directions that are orthogonal to these gradients, the curvature of the Lagrangian is not negative. Along
directions of zero curvature, other parameters are equally good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbs.design.local import Local

USED_UP = 1e-6  # distance to its boundary, in usual sizes of the variables, below which a margin is active (used up)
DEPENDENT = 1e-8  # relative singular value below which gradients are combinations of others
STEP = 1e-4  # of finite differences, in usual sizes of the variables
NEAR = 1e-4  # distance to the minimum, in usual sizes, at which a point counts as the minimum
FLAT = 1e-7  # relative curvature that counts as zero: the square of a relative singular value of 3e-4
SADDLE = 1e-4  # relative size of a negative curvature that is more than rounding


@dataclass(frozen=True)
class First:
    """First-order conditions. rest (n,): the part of the gradient that conditions, margins and bounds do not balance;
    tangent (n, d): an orthonormal basis of the directions orthogonal to the gradients of the conditions and of the
    margins and bounds with a multiplier above zero; equal (e,), margins (m,): multipliers."""

    rest: np.ndarray
    tangent: np.ndarray
    equal: np.ndarray
    margins: np.ndarray


@dataclass(frozen=True)
class Optimality:
    """Result of the test of a point. rest: largest entry of `First.rest`; distance: to the minimum according to the
    curvature, in usual sizes of the variables; gain: reduction of the cost on the way there; flat (k, n): orthonormal
    directions in which neither cost nor conditions change; down (n,): a direction of negative curvature, or None."""

    rest: float
    distance: float
    gain: float
    flat: np.ndarray
    down: np.ndarray | None

    def least(self, cost: float) -> bool:
        """Whether no change nearby reduces the cost."""
        small = self.rest <= 1e-6 * abs(cost) or self.gain <= 1e-12 * abs(cost)
        return bool(self.down is None and (small or self.distance <= NEAR))


def used_up(here: Local) -> np.ndarray:
    """(m,) whether a margin is active: both its value and the distance to its boundary are at most USED_UP."""
    return here.margins <= USED_UP * np.minimum(np.linalg.norm(here.margin_slopes, axis=1), 1.0)


def first_order(here: Local, low: np.ndarray, high: np.ndarray, still: np.ndarray) -> First:
    """The first-order conditions at a point within the bounds low, high (n,); still (n,): which variables are left out,
    because they cannot change or change nothing."""
    from scipy.optimize import nnls

    n = len(here.x)
    at_low = (here.x <= low + 1e-9 * (1 + np.abs(low))) & ~still
    at_high = (here.x >= high - 1e-9 * (1 + np.abs(high))) & ~still
    used = used_up(here)
    eye = np.eye(n)
    fixed = np.concatenate([here.equal_slopes, eye[still | (at_low & at_high)]])
    basis = _row_space(fixed)
    columns = np.concatenate([here.margin_slopes[used], eye[at_low & ~at_high], -eye[at_high & ~at_low]])
    projected = columns - (columns @ basis.T) @ basis
    slope = here.slope - basis.T @ (basis @ here.slope)
    weights = np.zeros(len(columns))
    if len(columns):
        sizes = np.linalg.norm(projected, axis=1)
        sizes = np.where(sizes > 1e-12 * np.maximum(np.linalg.norm(columns, axis=1), 1e-300), sizes, np.inf)
        size = max(float(np.linalg.norm(slope)), 1e-300)
        try:
            weights = nnls((projected / sizes[:, None]).T, slope / size)[0] * size / sizes
        except RuntimeError:  # nnls cycles
            weights = np.zeros(len(columns))
    rest = slope - projected.T @ weights
    pushing = weights > 1e-8 * max(float(np.max(weights, initial=0.0)), 1e-300)
    held = np.concatenate([fixed, columns[pushing]])
    among_equal = np.zeros(len(here.equal))
    if len(here.equal):
        among_equal = np.linalg.lstsq(here.equal_slopes.T, here.slope - columns.T @ weights - rest, rcond=DEPENDENT)[0]
    margins = np.zeros(len(here.margins))
    margins[used] = weights[: int(used.sum())]
    return First(rest, null_space(held, n), among_equal, margins)


def optimality(
    at: Callable[[np.ndarray], Sequence[Local]], here: Local, low: np.ndarray, high: np.ndarray, still: np.ndarray
) -> Optimality:
    """Test the point `here` to first and second order; at: returns `Local` at several points (s, n)."""
    first = first_order(here, low, high, still)
    T = first.tangent
    rest = float(np.abs(first.rest).max(initial=0.0))
    if T.shape[1] == 0:
        return Optimality(rest, 0.0, 0.0, np.zeros((0, len(here.x))), None)
    ends = at(np.concatenate([here.x + STEP * T.T, here.x - STEP * T.T]))

    def slope(p: Local) -> np.ndarray:  # gradient of the Lagrangian
        return p.slope - p.equal_slopes.T @ first.equal - p.margin_slopes.T @ first.margins

    d = T.shape[1]
    curvature = np.nan_to_num(
        np.stack([(slope(a) - slope(b)) / (2 * STEP) for a, b in zip(ends[:d], ends[d:], strict=True)])
    )
    H = curvature @ T
    H = (H + H.T) / 2
    values, vectors = np.linalg.eigh(H)
    typical = 1e-4 * float(np.linalg.norm(here.slope)) + 1e-9 * abs(float(here.cost)) + 1e-300
    size = max(float(np.linalg.norm(curvature, axis=1).max()), typical)
    g = vectors.T @ (T.T @ here.slope)
    curved = values > FLAT * size
    steps = np.where(curved, -g / np.where(curved, values, 1.0), 0.0)
    flat = ~curved & (values > -SADDLE * size)
    # a gradient along flat directions that exceeds rounding means that the cost keeps falling there
    unit = np.abs(g[flat]).max(initial=0.0)
    distance = float(np.abs(vectors @ steps).max(initial=0.0))
    if unit > 1e-6 * max(abs(float(here.cost)), float(np.linalg.norm(here.slope)) * 1e-3):
        distance = np.inf
    down = T @ vectors[:, 0] if values[0] < -SADDLE * size else None
    gain = float(0.5 * np.sum(np.where(curved, g**2 / np.where(curved, values, 1.0), 0.0)))
    return Optimality(rest, distance, gain if np.isfinite(distance) else np.inf, (T @ vectors[:, flat]).T, down)


def _row_space(rows: np.ndarray) -> np.ndarray:
    """Orthonormal rows (r, n) that span the given rows."""
    if not len(rows):
        return np.zeros((0, rows.shape[1]))
    # rows are scaled to length 1, so that rows of small numbers count as much as others
    length = np.linalg.norm(rows, axis=1)
    _, s, V = np.linalg.svd(rows[length > 0] / length[length > 0, None], full_matrices=False)
    return V[: int(np.sum(s > DEPENDENT * s[0]))] if len(s) else np.zeros((0, rows.shape[1]))


def null_space(rows: np.ndarray, n: int) -> np.ndarray:
    """(n, d) orthonormal columns that are orthogonal to all rows."""
    basis = _row_space(rows) if len(rows) else np.zeros((0, n))
    _, _, V = np.linalg.svd(basis, full_matrices=True) if len(basis) else (None, None, np.eye(n))
    return V[len(basis) :].T


def compressed(x: Any, rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """(residuals (k,), derivatives (k, n)) with the same linearised sum of squares, where k is at most n + 1."""
    residual, slopes = np.asarray(x, float), np.asarray(rows, float)
    if len(residual) <= slopes.shape[1] + 1:
        return residual, slopes
    R = np.asarray(np.linalg.qr(np.column_stack([slopes, residual]), mode="r"))
    return R[:, -1], R[:, :-1]
