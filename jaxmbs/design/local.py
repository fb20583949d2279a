"""Evaluates a problem at many points at once: cost, conditions and margins with their exact derivatives.

Motions are the expensive part: every motion of every point is one instance in the batch of a machine-code program
(`mbs.jit`), which returns the values measured on it and their derivatives with respect to the variables. The rest is a
small array program.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.batching.compiling import compiled
from jaxmbs.design.objectives.motion import OfMotion
from jaxmbs.design.problem import Prepared
from jaxmbs.design.samples import moved

Array = Any


class Local(NamedTuple):
    """What is known at one point. x (n,): the point; largest: the largest residual of each objective, or its mean for
    the goal "lowest"; cost: to be minimised; equal (e,): values that must vanish; margins (m,): values that must not be
    negative; slope (n,), equal_slopes (e, n), margin_slopes (m, n): derivatives of cost, equal and margins."""

    x: np.ndarray
    largest: np.ndarray
    cost: float
    equal: np.ndarray
    margins: np.ndarray
    slope: np.ndarray
    equal_slopes: np.ndarray
    margin_slopes: np.ndarray

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.cost) and np.isfinite(self.slope).all() and self.conditioned)

    @property
    def conditioned(self) -> bool:
        """Whether the conditions and margins are finite, whatever the cost is."""
        parts = (self.equal, self.margins, self.equal_slopes, self.margin_slopes)
        return all(bool(np.isfinite(a).all()) for a in parts)

    @property
    def violation(self) -> float:
        """The largest violation of a condition or margin."""
        worst = [np.abs(self.equal), -self.margins, np.zeros(1)]
        return float(np.max(np.concatenate(worst)))

    @property
    def broken(self) -> float:
        """The sum of squares of all violations, which is minimised where not all conditions can hold."""
        return float(np.sum(self.equal**2) + np.sum(np.minimum(self.margins, 0.0) ** 2))


class Problems:
    """Evaluates `Local` at points x (s, n), `size` points at a time; smaller groups are padded, so that one program
    suffices."""

    def __init__(self, prepared: Prepared, size: int):
        self.prepared, self.size = prepared, size
        self.data = prepared.data()
        moving = {o.samples: d for o, d in zip(prepared.objectives, self.data, strict=True) if isinstance(o, OfMotion)}
        self.draws = {samples: np.asarray(draws) for samples, draws in moving.items()}
        self.motions = {samples: mbs.jit(self._motion(samples), in_axes=(0, 0)) for samples in self.draws}
        self.finish = compiled(jax.vmap(self._finished))
        self.evaluations = 0

    def __call__(self, x: np.ndarray) -> list[Local]:
        found: list[Local] = []
        for begin in range(0, len(x), self.size):
            part = x[begin : begin + self.size]
            padded = part[np.arange(self.size) % len(part)]
            motions = {samples: self._moved(samples, padded) for samples in self.draws}
            made: Any = jax.tree.map(np.asarray, self.finish(padded, motions))
            found += [Local(part[k], *(a[k] for a in made)) for k in range(len(part))]
        self.evaluations += len(x)
        return found

    def _motion(self, samples: int) -> Any:
        """Function (x, draw) -> (values that the objectives take from one motion (k,), their derivatives (k, n))."""
        prepared = self.prepared
        taking = [o for o in prepared.objectives if isinstance(o, OfMotion) and o.samples == samples]

        def one(x: Array, draw: Array) -> tuple[Array, Array]:
            motion = moved(prepared.problem.study, prepared.model(x), draw[None])
            taken = jnp.stack([o.number(motion, prepared.problem.study)[0, 0] for o in taking])
            return taken, taken

        def with_slopes(x: Array, draw: Array) -> tuple[Array, Array]:
            slopes, taken = jax.jacfwd(one, has_aux=True)(x, draw)
            return taken, slopes

        return with_slopes

    def _moved(self, samples: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (s, samples, k) and derivatives (s, samples, k, n) from the motions of all points x (s, n)."""
        draws = self.draws[samples]
        rows = np.repeat(x, len(draws), axis=0), np.tile(draws, (len(x), 1))
        found = self.motions[samples](*rows)
        return tuple(np.asarray(a).reshape(len(x), len(draws), *a.shape[1:]) for a in found)  # type: ignore[return-value]

    def _finished(self, x: Array, motions: Any) -> tuple[Array, ...]:
        """(largest residuals, *values, *derivatives) at one point from its motions."""

        def values(y: Array) -> tuple[Any, Any]:
            near = {s: list(jnp.moveaxis(m + slopes @ (y - x), -1, 0)) for s, (m, slopes) in motions.items()}
            found = self.prepared.in_parts(y, self.data, near)
            return found, (self.prepared.largest(y, self.data, near), *found)

        slopes, found = jax.jacfwd(values, has_aux=True)(x)
        return *found, *slopes
