"""How well a fit determines its parameters: standard deviations, correlations, intervals, profiles.

If the residuals r(x) of a fit have the standard deviation sigma and the weights w, the estimate has the covariance
(J'WJ)^-1 J'W S W J (J'WJ)^-1 with W = w² and S = sigma² on the diagonal [G. Seber, C. Wild, Nonlinear Regression, 2003,
2.1]. Residuals of measurements are in units of their noise, sigma = 1. For others, sigma is estimated from the residuals
that remain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.compiling import compiled
from jaxmbs.design.local import Problems
from jaxmbs.design.optimality import null_space, used_up
from jaxmbs.design.problem import Prepared, residuals_at
from jaxmbs.design.profiles import ends
from jaxmbs.model import ModelError

if TYPE_CHECKING:
    from jaxmbs.design.synthesize import Design

Array = Any
FREE = 1e-7  # relative singular value of the weighted derivatives below which a direction is not determined
LEVEL = 0.95
POOR = 0.3  # standard deviation, relative to the value, beyond which intervals from the curvature are coarse


@dataclass(frozen=True)
class Estimate:
    """A number that a fit found: name, SI unit, value, std (its standard deviation, infinite if the data do not
    determine it) and an interval of 95 % from low to high; profiled: whether the interval comes from the profile (see
    `profile`). The profile is used if the standard deviation is large relative to the value, where the curvature alone
    would be too coarse.

    >>> print(mbs.design.Estimate("link.mass", "kg", 1.3, 0.02, 1.26, 1.34))
    link.mass = 1.3 ± 0.02 kg   (95 %: 1.26 to 1.34)
    """

    name: str
    unit: str
    value: float
    std: float
    low: float
    high: float
    profiled: bool = False

    def __str__(self) -> str:
        """The number with its interval."""
        if not np.isfinite(self.std):
            return f"{self.name} = {self.value:.6g} {self.unit}, not determined".replace(" ,", ",")
        unit = f" {self.unit}" if self.unit else ""
        by = " by its profile" if self.profiled else ""
        return f"{self.name} = {self.value:.6g} ± {self.std:.2g}{unit}   (95 %{by}: {self.low:.6g} to {self.high:.6g})"

    @property
    def poor(self) -> bool:
        """Whether the standard deviation is so large relative to the value that its interval is coarse."""
        return bool(np.isfinite(self.std) and self.std > POOR * abs(self.value))


@dataclass(frozen=True)
class Uncertainty:
    """Uncertainty of a fit. estimates: one for each coordinate; correlation (c, c): of the estimates, NaN for those that are
    undetermined or at a bound; freedom: number of residuals minus the number of directions that they determine.

    >>> one = mbs.design.Estimate("link.mass", "kg", 1.3, 0.02, 1.26, 1.34)
    >>> mbs.design.Uncertainty((one,), np.ones((1, 1)), 40)["link.mass"].std
    0.02
    """

    estimates: tuple[Estimate, ...]
    correlation: np.ndarray
    freedom: int

    def __getitem__(self, name: str) -> Estimate:
        """The estimate of a coordinate."""
        found = [e for e in self.estimates if e.name == name]
        if not found:
            raise KeyError(f"no estimate is named {name!r}; there are {', '.join(e.name for e in self.estimates)}")
        return found[0]

    @property
    def close(self) -> list[tuple[str, str, float]]:
        """(name, name, correlation) of pairs of coordinates that the data hardly distinguish: |correlation| > 0.95."""
        i, j = np.triu_indices(len(self.estimates), 1)
        strong = np.abs(np.nan_to_num(self.correlation[i, j])) > 0.95
        names = [e.name for e in self.estimates]
        return [(names[a], names[b], float(self.correlation[a, b])) for a, b in zip(i[strong], j[strong], strict=True)]


def uncertainty(prepared: Prepared, x: np.ndarray) -> Uncertainty | None:
    """The uncertainty of a fit at its minimum x (n,). A fit is a problem whose objectives, apart from conditions, all
    have the goal "least". None for other problems, if no direction is determined, or if the noise is unknown and no
    residuals are left over to estimate it.

    Under conditions the estimates vary only in the directions that the conditions do not fix [Seber, Wild, 2.10.2].
    """
    from scipy.stats import norm, t

    v = prepared.variables
    of_fit = np.flatnonzero(~prepared.conditions)
    fits = [prepared.objectives[k] for k in of_fit]
    if not fits or any(o.goal != "least" for o in fits):
        return None
    residuals, slopes, _ = residuals_at(prepared, x)
    r, J = [residuals[k] for k in of_fit], np.concatenate([slopes[k] for k in of_fit])
    sizes = [len(own) for own in r]
    weights = np.concatenate([np.full(len(own), o.weight / np.sqrt(len(own)))
                              for o, own in zip(fits, r, strict=True)])  # fmt: skip
    inside = (x > prepared.low) & (x < prepared.high) & (np.linalg.norm(J, axis=0) > 0)
    held = ~inside & (np.linalg.norm(J, axis=0) > 0)
    tangent = np.eye(int(inside.sum()))
    if prepared.conditions.any():
        here = Problems(prepared, 1)(x[None])[0]
        rows = np.concatenate([here.equal_slopes, here.margin_slopes[used_up(here)]])
        tangent = null_space(rows[:, inside], int(inside.sum()))
    W = J[:, inside] * weights[:, None] @ tangent
    U, s, V = np.linalg.svd(W, full_matrices=True)
    rank = int(np.sum(s > FREE * s[0])) if len(s) else 0
    gap = [int(np.sum(np.linalg.norm(rows, axis=1) > 0)) for rows in np.split(J, np.cumsum(sizes)[:-1])]
    freedom = sum(gap) - rank
    noisy = all(o.noisy for o in fits)
    if rank == 0 or (freedom < 1 and not noisy):
        return None
    share = [max(n - rank * n / sum(gap), 1e-300) for n in gap]
    sigma = np.concatenate([np.full(len(own), 1.0 if o.noisy else np.sqrt(np.sum(own**2) / m))
                            for o, own, m in zip(fits, r, share, strict=True)])  # fmt: skip
    inverse = tangent @ (V[:rank].T / s[:rank] @ (U[:, :rank] * weights[:, None] * sigma[:, None]).T)
    place = np.asarray(compiled(jax.jacfwd(v.place))(jnp.asarray(x[: v.size])))
    slopes = np.concatenate([place, np.zeros((len(place), len(x) - v.size))], axis=1)
    C = slopes[:, inside] @ inverse
    covariance = C @ C.T
    still = ~(inside | held)
    loose = np.linalg.norm(slopes[:, inside] @ tangent @ V[rank:].T, axis=1) + np.linalg.norm(slopes[:, still], axis=1)
    free = loose > 1e-6 * np.maximum(np.linalg.norm(slopes, axis=1), 1e-300)
    std = np.where(free, np.inf, np.sqrt(np.maximum(np.diagonal(covariance), 0.0)))
    here = v.coordinates_at(x)
    factor = float(norm.ppf(0.5 + LEVEL / 2) if noisy else t.ppf(0.5 + LEVEL / 2, freedom))
    known = np.isfinite(std) & (std > 0)
    scale = np.where(known, std, np.nan)
    estimates = tuple(
        Estimate(c.name, c.unit, float(a), float(b), float(a - factor * b), float(a + factor * b))
        for c, a, b in zip(v.coordinates, here, std, strict=True)
    )
    return Uncertainty(estimates, covariance / np.outer(scale, scale), freedom)


def with_profiles(design: Design) -> Uncertainty | None:
    """The uncertainty of a design, with profile intervals for poor estimates unless the fit is under conditions."""
    found = design.uncertainty
    if found is None or not any(e.poor for e in found.estimates) or Prepared(design.problem).conditions.any():
        return found
    of = ends(design, LEVEL)
    estimates = (
        replace(e, low=of[e.name][0], high=of[e.name][1], profiled=True) if e.poor else e for e in found.estimates
    )
    return replace(found, estimates=tuple(estimates))


def profile(design: Design, level: float = LEVEL) -> dict[str, tuple[float, float]]:
    """Intervals {coordinate: (low, high)} of a fit from its profile: how far a coordinate can change, with all others
    adapted to it, until the sum of squares exceeds the limit for the confidence `level` [Seber, Wild, 5.2].

    The intervals are valid also where the sum of squares is not quadratic, and infinite where it never exceeds the
    limit. Where a bound of the problem is reached first, the interval ends there. Raises ModelError if the design is
    not a fit, or if the fit is under conditions.

    >>> mbs.design.profile.__name__
    'profile'
    """
    if design.uncertainty is None:
        raise ModelError('profile: the design is not a least-squares fit; give all objectives goal = "least"')
    if Prepared(design.problem).conditions.any():
        raise ModelError("profile: a fit with conditions has no profile; use design.uncertainty")
    return ends(design, level)
