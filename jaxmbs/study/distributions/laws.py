"""Distributions of one number that have no formula: values with weights, measured values, mixtures of other
distributions.

A law maps a symmetric uniform number s in (-1, 1) to its quantile at the probability (s + 1) / 2. It increases with s,
so that correlations and stratified sampling plans keep their meaning; rows of a table that are drawn together are the
exception.

SciPy, which is slow to import, is imported by the laws that need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from jaxmbs.study.distributions.base import Components

Array = Any
_HALVINGS = {4: 60, 8: 100}  # by bytes of a number: bisections after which no number lies between the ends


class Law(Protocol):
    """A distribution of one number."""

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest number that can occur."""
        ...

    @property
    def middle(self) -> float:
        """Median."""
        ...

    @property
    def spread(self) -> float:
        """Standard deviation; for a mixture approximate, since it takes the medians of the parts as their means."""
        ...

    def quantile(self, s: Array, dtype: Any) -> Array:
        """The number at s in (-1, 1)."""
        ...


@dataclass(frozen=True)
class Steps:
    """Discrete distribution: values (m,), in the order in which they are reached as s grows, and their probabilities
    `shares` (m,)."""

    values: np.ndarray
    shares: np.ndarray

    @property
    def support(self) -> tuple[float, float]:
        drawn = self.values[self.shares > 0]
        return float(drawn.min()), float(drawn.max())

    @property
    def middle(self) -> float:
        order = np.argsort(self.values, kind="stable")
        return float(self.values[order][np.searchsorted(np.cumsum(self.shares[order]), 0.5 - 1e-12)])

    @property
    def spread(self) -> float:
        mean = self.shares @ self.values
        return float(np.sqrt(self.shares @ (self.values - mean) ** 2))

    def quantile(self, s: Array, dtype: Any) -> Array:
        ends = (2 * np.cumsum(self.shares) - 1)[:-1].astype(dtype)
        return jnp.asarray(self.values.astype(dtype))[jnp.searchsorted(jnp.asarray(ends), s, side="right")]


@dataclass(frozen=True)
class Line:
    """Distribution between m sorted measured values, uniform within equally likely gaps: np.quantile of the values."""

    values: np.ndarray

    @property
    def support(self) -> tuple[float, float]:
        return float(self.values[0]), float(self.values[-1])

    @property
    def middle(self) -> float:
        return float(np.median(self.values))

    @property
    def spread(self) -> float:
        a, b = self.values[:-1], self.values[1:]
        square = float(np.mean((a * a + a * b + b * b) / 3))  # mean square of a uniform number in each gap
        return float(np.sqrt(max(0.0, square - float(np.mean((a + b) / 2)) ** 2)))

    def quantile(self, s: Array, dtype: Any) -> Array:
        places = np.linspace(-1, 1, len(self.values)).astype(dtype)
        return jnp.interp(s, jnp.asarray(places), jnp.asarray(self.values.astype(dtype)))


@dataclass(frozen=True)
class Mixed:
    """Mixture of the m distributions in `parts` with the probabilities `shares` (m,)."""

    parts: Components
    shares: np.ndarray

    @property
    def support(self) -> tuple[float, float]:
        low, high = (end[self.shares > 0] for end in self.parts.support)
        return float(low.min()), float(high.max())

    @property
    def middle(self) -> float:
        from scipy.optimize import brentq

        low, high = self.support
        found: Any = brentq(lambda x: float(self.cumulative(np.asarray(x, float))), low, high) if high > low else low
        return float(found)

    @property
    def spread(self) -> float:
        mean = self.shares @ self.parts.middle
        return float(np.sqrt(self.shares @ (self.parts.spread**2 + (self.parts.middle - mean) ** 2)))

    def cumulative(self, x: Array) -> Array:
        """2 F(x) - 1, where F(x) is the probability of a number <= x. x: an array of JAX or NumPy."""
        if isinstance(x, np.ndarray):
            from scipy.special import erf as of

            jnp, erf = np, of
        else:
            jnp, erf = jax.numpy, jax.scipy.special.erf
        c = self.parts
        log = c.kind == 2
        at = jnp.where(log, jnp.log(jnp.where(log, jnp.maximum(x, jnp.finfo(x.dtype).tiny), 1.0)), x)
        width = np.where(c.scale > 0, c.scale, 1.0)
        z = (at - c.location) / width
        low, high = ((end - c.location) / width for end in (c.low, c.high))
        below, above = (jnp.asarray(erf(end / np.sqrt(2)), x.dtype) for end in (low, high))
        within = jnp.where(above > below, above - below, 1.0)
        normal = 2 * (jnp.clip(erf(z / np.sqrt(2)), below, above) - below) / within - 1
        normal = jnp.where(c.scale > 0, normal, jnp.where(at >= c.location, 1.0, -1.0))
        span = np.where((c.kind == 0) & (c.high > c.low), c.high - c.low, 1.0)
        start, end = (np.where(c.kind == 0, edge, 0.0) for edge in (c.low, c.high))
        uniform = jnp.clip(2 * (x - start) / span - 1, -1, 1)
        uniform = jnp.where(end > start, uniform, jnp.where(x >= start, 1.0, -1.0))
        return (self.shares * jnp.where(c.kind == 0, uniform, normal)).sum().astype(x.dtype)

    def quantile(self, s: Array, dtype: Any) -> Array:
        s = jnp.asarray(s, dtype)
        least, most = (jnp.asarray(end, dtype) for end in self.support)
        fixed = jax.lax.stop_gradient(s)

        def halved(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = low + (high - low) / 2
            below = self.cumulative(middle) < fixed
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        x = jax.lax.fori_loop(0, _HALVINGS[jnp.dtype(dtype).itemsize], halved, (least, most))[1]
        slope = jax.jvp(self.cumulative, (x,), (jnp.ones_like(x),))[1]  # the derivative of an inverse function
        return x + jnp.where(slope > 0, (s - fixed) / jnp.where(slope > 0, slope, 1.0), 0.0)
