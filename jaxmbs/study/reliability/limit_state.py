"""Limit states: a function g of independent standard normal numbers u, and failure where g(u) <= 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxmbs.study.samples.blocks import BLOCK, in_blocks

Array = Any
FEW = 16  # block for at most this many points: a second program costs less than many unneeded points
_STEP = 1e-3  # of finite differences, in standard deviations; errors are about 1e-7


@dataclass
class LimitState:
    """A function g of d = `inputs` independent standard normal numbers, with failure where g <= 0 or g is NaN.

    values: function (m, d) -> (m,); gradients: function (m, d) -> ((m,), (m, d)), or None for central differences of
    values; simulations: how many values were computed so far, where a gradient from `gradients` counts as one.

    progress: called with (stage, simulations, level) at every stage and after every block of points; level: the level
    of g that a descending search or simulation has reached, NaN in stages without levels and before the first one.
    """

    values: Callable[[np.ndarray], np.ndarray]
    gradients: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None
    inputs: int
    simulations: int = field(default=0, compare=False)
    progress: Callable[[str, int, float], None] | None = field(default=None, compare=False)
    stage: str = field(default="", compare=False)
    level: float = field(default=np.nan, compare=False)

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """g of points u (..., d); counts the simulations."""
        flat, found = u.reshape(-1, self.inputs), []
        rows = BLOCK if self.progress else max(len(flat), 1)  # progress is reported after every block
        for first in range(0, len(flat), rows):
            found.append(np.asarray(self.values(flat[first : first + rows]), float))
            self.simulations += len(found[-1])
            self._report()
        g = np.concatenate(found) if found else np.zeros(0)
        return np.where(np.isnan(g), -np.inf, g).reshape(u.shape[:-1])

    def slopes(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m,) g and (m, d) its gradient at points u; counts the simulations."""
        if self.gradients is None:
            steps = _STEP * np.eye(self.inputs)
            sides = self(np.concatenate([u[:, None], u[:, None] + steps, u[:, None] - steps], axis=1))
            up, down = np.split(sides[:, 1:], 2, axis=1)
            with np.errstate(invalid="ignore"):
                return sides[:, 0], (up - down) / (2 * _STEP)
        self.simulations += len(u)
        g, slope = (np.asarray(x, float) for x in self.gradients(u))
        self._report()
        return np.where(np.isnan(g), -np.inf, g), slope

    def at(self, stage: str, level: float = np.nan) -> None:
        """Begin another stage, and report it to `progress` with the level that it begins at."""
        self.stage, self.level = stage, level
        self._report()

    def _report(self) -> None:
        if self.progress:
            self.progress(self.stage, self.simulations, self.level)


@dataclass(frozen=True)
class Estimate:
    """A probability of failure with its interval (low, high); method and number of simulations by which it was found;
    remark: why it may be wrong, "" if nothing is known against it."""

    method: str
    probability: float
    low: float
    high: float
    simulations: int
    remark: str = ""


def limit_state(fn: Callable[[Array], Array], inputs: int) -> LimitState:
    """The limit state of a JAX function fn of one point u (inputs,), which returns a number, zero or less for a failure.

    >>> g = limit_state(lambda u: 3.0 - u[0], 2)
    >>> float(g(np.zeros((1, 2)))[0])
    3.0
    """
    values, gradients = jax.jit(jax.vmap(fn)), jax.jit(jax.vmap(jax.value_and_grad(fn)))

    def rows(u: np.ndarray) -> int:
        return BLOCK if len(u) > FEW else FEW

    return LimitState(lambda u: in_blocks(values, u, rows(u)), lambda u: in_blocks(gradients, u, rows(u)), inputs)
