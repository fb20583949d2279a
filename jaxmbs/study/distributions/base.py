"""Distributions of a study file and their random variates, which are pure functions of (study key, dispersion,
component, sample)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfinv
from pydantic import model_validator

from jaxmbs.io.tables import Matrix, NumberOrList, Table, stated
from jaxmbs.model.fields import type_name

if TYPE_CHECKING:
    from jaxmbs.study.distributions.laws import Law

# A 53-bit uniform number cannot give a larger standard normal number, so the support of a normal distribution is finite
# here, and "a mass is positive in every sample" can be checked before the first sample.
LARGEST_NORMAL = 8.3

Array = Any


@dataclass(frozen=True)
class Components:
    """Distributions of k scalar variates, each without its correlations with the others.

    All fields but `laws` are (k,) arrays. kind: 0 uniform in (low, high); 1 normal, location + scale * z with z
    standard normal; 2 lognormal, the exponential of that; low, high: the range of a uniform variate, the truncation of
    a normal one (infinite if there is none); laws: (position, law) of the variates with another distribution, whose
    entries in the arrays are not used.
    """

    kind: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    low: np.ndarray
    high: np.ndarray
    laws: tuple[tuple[int, Law], ...] = ()

    @staticmethod
    def join(parts: Sequence[Components]) -> Components:
        arrays = [f.name for f in fields(Components) if f.name != "laws"]
        starts = np.cumsum([0, *(len(p.kind) for p in parts)])
        laws = tuple((int(start) + k, law) for start, p in zip(starts, parts, strict=False) for k, law in p.laws)
        return Components(**{f: np.concatenate([getattr(p, f) for p in parts]) for f in arrays}, laws=laws)

    @staticmethod
    def of_laws(laws: Sequence[Law]) -> Components:
        """Components whose distributions are the given laws."""
        zero, one = np.zeros(len(laws)), np.ones(len(laws))
        return Components(np.zeros(len(laws), int), zero, zero, zero, one, tuple(enumerate(laws)))

    def variate(self, i: int) -> Components:
        """Variate i by itself."""
        arrays = {f.name: getattr(self, f.name)[i : i + 1] for f in fields(Components) if f.name != "laws"}
        return Components(**arrays, laws=tuple((0, law) for k, law in self.laws if k == i))

    @property
    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest variate that can occur, (k,) each."""
        reach = LARGEST_NORMAL * self.scale
        low = np.where(self.kind == 0, self.low, np.maximum(self.location - reach, self.low))
        high = np.where(self.kind == 0, self.high, np.minimum(self.location + reach, self.high))
        low, high = self._exponential(low), self._exponential(high)
        return self._own(low, lambda law: law.support[0]), self._own(high, lambda law: law.support[1])

    @property
    def middle(self) -> np.ndarray:
        """(k,) medians of the variates; for a truncated normal the mean before truncation, which only approximates the
        median."""
        low, high = (np.where(self.kind == 0, end, self.location) for end in (self.low, self.high))
        return self._own(self._exponential((low + high) / 2), lambda law: law.middle)

    @property
    def spread(self) -> np.ndarray:
        """(k,) standard deviations; for a truncated normal the one before truncation, for a lognormal half the width
        of its one-sigma interval."""
        log = self.kind == 2
        width = np.exp(np.where(log, self.scale, 0.0)) - np.exp(np.where(log, -self.scale, 0.0))
        uniform = np.where(self.kind == 0, self.high - self.low, 0.0) / np.sqrt(12)
        found = np.where(log, self.middle * width / 2, np.where(self.kind == 0, uniform, self.scale))
        return self._own(found, lambda law: law.spread)

    def deviations(self, x: np.ndarray) -> np.ndarray:
        """(k,) distances of the variates x (k,) from their medians, in standard deviations; of a lognormal variate by its
        logarithm, NaN for those that do not vary."""
        log = self.kind == 2
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(log, np.log(x / self.middle) / self.scale, (x - self.middle) / self.spread)
        return np.where(self.spread > 0, z, np.nan)

    def _own(self, x: np.ndarray, of: Callable[[Law], float]) -> np.ndarray:
        """x (k,) with the numbers of the variates in `laws` replaced by `of(law)`."""
        x = np.array(x, float)
        for k, law in self.laws:
            x[k] = of(law)
        return x

    def _exponential(self, x: np.ndarray) -> np.ndarray:
        log = self.kind == 2
        return np.where(log, np.exp(np.where(log, x, 0.0)), x)


def named() -> Any:
    """Declaration of the key `distribution`, by which a file selects the class."""
    return stated("word", "names the distribution")


class Distribution(Table):
    """Keys that every dispersion has in addition to those of its distribution."""

    catalogued: ClassVar[bool] = True  # modules and packages may define more distributions

    target: str | None = stated("name", "parameter or initial value; the table's name by default", default=None)
    apply: Literal["replace", "add", "multiply", "tilt"] | None = stated(
        "replace | add | multiply | tilt",
        "how a draw acts on the nominal value; by default tilt (about the cross axes) for directions and rotations, "
        "multiply (principal second moments) for inertias, else replace",
        default=None,
    )
    unit: str = stated("unit", "unit of the numbers; SI by default", default="")
    common: bool = stated("true or false", "one draw for all components of a vector", default=False)
    draw: str = stated(
        "name", "dispersions with the same name take the same random numbers: parts of one lot", default=""
    )
    known: bool = stated(
        "true or false", "whether the value is known on the day, before the run: see study.per_day", default=False
    )

    @model_validator(mode="before")
    @classmethod
    def _of_this_kind(cls, data: Any) -> Any:
        """Adds the key `distribution`, which selects the class in a file; in Python the class itself determines it."""
        return {"distribution": type_name(cls), **data} if isinstance(data, Mapping) else data

    @property
    def whole_rows(self) -> bool:
        """Whether one random number determines all components."""
        return False

    def correlation(self, k: int) -> np.ndarray | None:
        """(k, k) correlation of the components' normal scores; None if they are independent."""
        return None

    def components(self, neutral: np.ndarray, factor: float) -> Components:
        """Variates in SI. neutral (k,): the draw that changes nothing, the default of `mean` and `median`; factor:
        conversion factor of the unit to SI. Raises ValueError if a list does not have the k components of the target."""
        raise NotImplementedError

    def in_words(self, unit: str = "") -> str:
        """The distribution with its numbers, as text. unit: that of the numbers, after a space."""
        own = {
            k: getattr(self, k)
            for k in type(self).model_fields
            if k not in (*Distribution.model_fields, "distribution")
        }
        values = (f"{k} {said(x) if isinstance(x, float) else x}" for k, x in own.items())
        return ", ".join([type_name(type(self)), *values]) + unit


def said(x: object) -> str:
    """A number, or several separated by commas, as text."""
    return ", ".join(f"{v:g}" for v in x) if isinstance(x, tuple) else f"{x:g}"


class Normal(Distribution):
    """Normal distribution: mean + std z, or with a covariance matrix of the components."""

    distribution: Literal["normal"] = named()
    mean: NumberOrList | None = stated("number or list", "mean; no change by default", default=None)
    std: NumberOrList | None = stated(
        "number or list", "standard deviation; 0 switches the dispersion off; needed without covariance", default=None
    )
    covariance: Matrix | None = stated(
        "list of rows", "covariance of the components of a vector, in place of std", default=None
    )

    def components(self, neutral: np.ndarray, factor: float) -> Components:
        k, inf = len(neutral), np.full(len(neutral), np.inf)
        if (self.std is None) == (self.covariance is None):
            raise ValueError("a normal distribution needs one of std and covariance; write std = ...")
        mean = _numbers_of(self, "mean", k, factor, neutral)
        if self.covariance is None:
            return Components(np.full(k, 1), mean, _width(self, "std", k, factor), -inf, inf)
        c = np.asarray(self.covariance)
        if c.shape != (k, k):
            raise ValueError(f"covariance has {c.shape[0]} rows of {c.shape[1]}, but the target has {k} components")
        problem = not_a_covariance(c)
        if problem:
            raise ValueError(f"covariance {problem}")
        return Components(np.full(k, 1), mean, np.sqrt(np.diag(c)) * factor, -inf, inf)

    def in_words(self, unit: str = "") -> str:
        width = f"covariance {[list(row) for row in self.covariance]}" if self.covariance else f"std {said(self.std)}"
        return f"normal, {_mean_said(self)}{width}{unit}"

    def correlation(self, k: int) -> np.ndarray | None:
        if self.covariance is None:
            return None
        c = np.asarray(self.covariance)
        std = np.sqrt(np.diag(c))
        width = np.where(std > 0, std, 1.0)
        return c / np.outer(width, width) + np.diag((std == 0).astype(float))


def not_a_covariance(x: np.ndarray) -> str:
    """Why a square matrix is not a covariance matrix, with the remedy; "" if it is one."""
    if not np.allclose(x, x.T, rtol=1e-9, atol=0):
        i, j = np.argwhere(~np.isclose(x, x.T, rtol=1e-9, atol=0))[0]
        return (
            f"is not symmetric: {x[i, j]:g} in row {i}, column {j}, but {x[j, i]:g} in row {j}, column {i}; correct "
            "one of them"
        )
    least = float(np.linalg.eigvalsh(x)[0])
    if least < -1e-9 * float(np.abs(x).max()):
        return (
            f"has the negative eigenvalue {least:.3g}, which is not possible; make the entries off the diagonal smaller"
        )
    return ""


class TruncatedNormal(Distribution):
    """A normal distribution restricted to low <= x <= high (either may be left out)."""

    distribution: Literal["truncated_normal"] = named()
    mean: NumberOrList | None = stated("number or list", "mean; no change by default", default=None)
    std: NumberOrList = stated("number or list", "standard deviation; 0 switches the dispersion off")
    low: NumberOrList | None = stated("number or list", "smallest value, if there is one", default=None)
    high: NumberOrList | None = stated("number or list", "largest value, if there is one", default=None)

    def components(self, neutral: np.ndarray, factor: float) -> Components:
        k, inf = len(neutral), np.full(len(neutral), np.inf)
        mean, std = _numbers_of(self, "mean", k, factor, neutral), _width(self, "std", k, factor)
        low, high = _bounds(self, k, factor, -inf, inf)
        if np.any((mean < low) | (mean > high)):
            said = f"low {self.low}, mean {self.mean if self.mean is not None else neutral.tolist()}, high {self.high}"
            raise ValueError(f"the mean lies outside the bounds ({said}); move the bounds or the mean")
        return Components(np.full(k, 1), mean, std, low, high)

    def in_words(self, unit: str = "") -> str:
        bounds = (f", {k} {said(x)}" for k, x in (("low", self.low), ("high", self.high)) if x is not None)
        return f"truncated normal, {_mean_said(self)}std {said(self.std)}{unit}{''.join(bounds)}"


def _mean_said(d: Normal | TruncatedNormal) -> str:
    return f"mean {said(d.mean)}, " if d.mean is not None else ""


class Uniform(Distribution):
    """Uniform distribution: every value in low <= x <= high is equally likely."""

    distribution: Literal["uniform"] = named()
    low: NumberOrList = stated("number or list", "smallest value")
    high: NumberOrList = stated("number or list", "largest value")

    def components(self, neutral: np.ndarray, factor: float) -> Components:
        k, zero = len(neutral), np.zeros(len(neutral))
        low, high = _bounds(self, k, factor, zero, zero)
        return Components(np.full(k, 0), zero, zero, low, high)

    def in_words(self, unit: str = "") -> str:
        return f"uniform, {said(self.low)} to {said(self.high)}{unit}"


class Lognormal(Distribution):
    """Lognormal distribution: median exp(sigma z)."""

    distribution: Literal["lognormal"] = named()
    median: NumberOrList | None = stated("number or list", "median; no change by default", default=None)
    sigma: NumberOrList = stated(
        "number or list", "standard deviation of the logarithm, near the relative one while small"
    )

    def components(self, neutral: np.ndarray, factor: float) -> Components:
        k, inf = len(neutral), np.full(len(neutral), np.inf)
        median, sigma = _numbers_of(self, "median", k, factor, neutral), _width(self, "sigma", k, 1.0)
        if np.any(median <= 0):
            said = self.median if self.median is not None else neutral.tolist()
            raise ValueError(f'the median of a lognormal must be positive, not {said}; give one, or apply = "multiply"')
        return Components(np.full(k, 2), np.log(median), sigma, -inf, inf)

    def in_words(self, unit: str = "") -> str:
        median = f", median {said(self.median)}{unit}" if self.median is not None else ""
        return f"lognormal, sigma {said(self.sigma)}{median}"


def component_keys(key: jax.Array, name: str, k: int) -> jax.Array:
    """(k,) keys of the components of one name, that of a dispersion or of a `draw` that several share; they depend only
    on key, name and component."""
    digest = hashlib.sha256(name.encode()).digest()
    for i in (0, 4):
        key = jax.random.fold_in(key, int.from_bytes(digest[i : i + 4], "little"))
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(k, dtype=jnp.uint32))


def uniforms(keys: jax.Array, index: Array, dtype: Any) -> jax.Array:
    """(k,) independent numbers, uniform in (-1, 1). index: of the sample, one for all keys or one per key."""
    drawn = jax.vmap(jax.random.fold_in)(keys, jnp.broadcast_to(index, keys.shape))
    return jax.vmap(lambda key: jax.random.uniform(key, (), dtype, minval=least_uniform(dtype), maxval=1))(drawn)


def least_uniform(dtype: Any) -> Any:
    """The smallest number of this type above -1; -1 itself is excluded because erfinv(-1) is infinite."""
    return np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype))


def quantiles(s: Array, components: Components, dtype: Any) -> jax.Array:
    """(k,) draws at the probabilities (s + 1) / 2, with s (k,) in (-1, 1)."""
    from scipy.special import erf

    c, least = components, least_uniform(dtype)
    half = (s + 1) / 2

    width = np.where(c.scale > 0, c.scale, 1.0)
    z_low, z_high = (c.low - c.location) / width, (c.high - c.location) / width
    cut = np.isfinite(c.low) | np.isfinite(c.high)
    erf_low, erf_high = (erf(z / np.sqrt(2)) for z in (z_low, z_high))
    within = _cast(erf_low, dtype) + half * _cast(erf_high - erf_low, dtype)
    z = np.sqrt(2).astype(dtype) * erfinv(jnp.clip(jnp.where(cut, within, s), least, -least))
    z = jnp.clip(z, _cast(z_low, dtype), _cast(z_high, dtype))

    normal = _cast(c.location, dtype) + _cast(c.scale, dtype) * z
    low = np.where(c.kind == 0, c.low, 0.0)
    uniform = _cast(low, dtype) + _cast(np.where(c.kind == 0, c.high, 0.0) - low, dtype) * half
    x = jnp.where(c.kind == 0, uniform, jnp.where(c.kind == 2, jnp.exp(jnp.where(c.kind == 2, normal, 0)), normal))
    for k, law in c.laws:
        x = x.at[k].set(law.quantile(s[k], dtype))
    return x


def _cast(x: np.ndarray, dtype: Any) -> np.ndarray:
    return np.asarray(x).astype(dtype)


def _numbers_of(table: Distribution, key: str, k: int, factor: float, default: np.ndarray | None = None) -> np.ndarray:
    """(k,) numbers of a key, in SI."""
    value = getattr(table, key)
    if value is None and default is not None:
        return np.asarray(default, float)
    row = np.asarray(value, float) * factor
    if row.ndim == 1 and len(row) != k:
        raise ValueError(f"{key} = {value} has {len(row)} components, but the target has {k}; give {k}, or one for all")
    return np.broadcast_to(row, (k,)).astype(float)


def _width(table: Distribution, key: str, k: int, factor: float) -> np.ndarray:
    row = _numbers_of(table, key, k, factor)
    if np.any(row < 0):
        raise ValueError(
            f"{key} = {getattr(table, key)} is negative; give zero or more (0 switches the dispersion off)"
        )
    return row


def _bounds(
    table: Uniform | TruncatedNormal, k: int, factor: float, lowest: np.ndarray, highest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    low, high = _numbers_of(table, "low", k, factor, lowest), _numbers_of(table, "high", k, factor, highest)
    if np.any(low > high):
        raise ValueError(f"low = {table.low} is above high = {table.high}; exchange them")
    return low, high
