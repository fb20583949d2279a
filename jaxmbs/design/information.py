"""How well planned experiments determine parameters: Fisher information at the nominal values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.compiling import compiled
from jaxmbs.design.problem import Prepared, Problem, residuals_at
from jaxmbs.model import ModelError

NOTHING = 1e-12  # relative eigenvalue below which an experiment does not determine a direction


@dataclass(frozen=True)
class Information:
    """Fisher information of one experiment: matrix (c, c), in the SI units of `coordinates`.

    Its inverse is the smallest covariance that an unbiased estimate can have. The information matrices of several
    experiments add up.

    >>> one = mbs.design.Information(("a", "b"), jnp.diag(jnp.array([4.0, 25.0])))
    >>> print(one.std, round(one.a, 4))
    [0.5 0.2] 0.29
    """

    coordinates: tuple[str, ...]
    matrix: np.ndarray

    def __add__(self, other: Information) -> Information:
        """The information of both experiments together."""
        return replace(self, matrix=self.matrix + other.matrix)

    @property
    def covariance(self) -> np.ndarray:
        """(c, c) smallest covariance of the estimates; infinite if some combination is not determined."""
        size = np.sqrt(np.maximum(np.diagonal(self.matrix), 1e-300))
        scaled = self.matrix / np.outer(size, size)
        if np.linalg.eigvalsh(scaled)[0] <= NOTHING:
            return np.full_like(self.matrix, np.inf)
        return np.linalg.inv(scaled) / np.outer(size, size)

    @property
    def std(self) -> np.ndarray:
        """(c,) smallest standard deviations of the estimates."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def d(self) -> float:
        """The logarithm of the determinant: the experiment with the largest value is D-optimal, whatever the units
        are."""
        if not np.isfinite(self.covariance).all():
            return -np.inf
        return float(np.linalg.slogdet(self.matrix)[1])

    @property
    def a(self) -> float:
        """The sum of the variances: the experiment with the smallest value is A-optimal. It depends on the units."""
        return float(np.trace(self.covariance))


def information(problem: Problem) -> tuple[Information, ...]:
    """Fisher information about the free parameters at the nominal values, one for each objective of a problem: each
    objective stands for one candidate experiment.

    The information depends on the states of an experiment (positions, rates, accelerations, times) and its noise, not
    on the measured values. Additional unknowns of an experiment, such as its initial state, reduce it. Raises
    ModelError for objectives that are not measurements, and if a motion fails.

    >>> mech = mbs.Mechanism("cart", gravity=(0, 0, 0))
    >>> mech.add_body("cart", mass=2.0, inertia=(1.0, 1.0, 1.0))
    >>> mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), parent="world", child="cart")
    >>> push = {"q": jnp.zeros((4, 1)), "v": jnp.zeros((4, 1)), "a": jnp.ones((4, 1)), "tau": jnp.zeros((4, 1))}
    >>> experiments = [mbs.design.MeasuredTorques(push, noise=noise, goal="least") for noise in (0.1, 0.2)]
    >>> free = [mbs.design.Free("cart.mass")]
    >>> good, poor = mbs.design.information(mbs.design.Problem(mech.build(), free, experiments))
    >>> print(good.std.round(3), poor.std.round(3), good.d > poor.d)
    [0.05] [0.1] True
    """
    prepared = Prepared(replace(problem, method="least_squares"))
    for o in prepared.objectives:
        if not o.noisy:
            raise ModelError(
                f"information: {type(o).__name__} is not a measurement with noise; give MeasuredTorques or MeasuredMotion"
            )
    v = prepared.variables
    x = prepared.starts()[0]
    slopes: list[Any] = residuals_at(prepared, x)[1]
    place = np.asarray(compiled(jax.jacfwd(v.place))(jnp.asarray(x[: v.size])))
    back = np.linalg.pinv(place)
    out = []
    for J in slopes:
        if not np.isfinite(J).all():
            raise ModelError("information: a simulation fails at the nominal values; use a smaller dt")
        F = J.T @ J
        own = F[: v.size, v.size :]
        F = F[: v.size, : v.size] - own @ np.linalg.pinv(F[v.size :, v.size :]) @ own.T
        out.append(Information(tuple(c.name for c in v.coordinates), back.T @ F @ back))
    return tuple(out)
