"""A problem of synthesis: what may change, and what is wanted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.design.objectives.base import Objective, Setting, evaluated, weighted
from jaxmbs.design.objectives.motion import OfMotion
from jaxmbs.design.samples import moved, require_effect
from jaxmbs.design.variables import Item, Variables
from jaxmbs.model import Model, ModelError
from jaxmbs.model.errors import unknown

METHODS = ("least_squares", "adam", "constrained")
Array = Any


@dataclass(frozen=True)
class Problem:
    """What may change in a model, and what is wanted of it.

    model: the mechanism at its nominal values; free: `Free`, `Factor` and `MassDistribution` items, all else stays;
    objectives: what is wanted, conditions (goal "zero") and things to be made small (goal "least"), their squares summed;
    starts: number of searches, the first from the nominal values, others from random ones `spread` about them; seed: of all
    random numbers; tolerance: largest residual of a condition that holds; max_steps: of a search; method: "least_squares"
    (Levenberg-Marquardt, bounds by projection), "adam" (stochastic: fresh configurations and samples in every step,
    learning_rate) or "constrained" (conditions exactly, bounds by active sets: SciPy's SLSQP from the best of a least
    squares search); study: the `jaxmbs.study.Study` whose dispersions, outputs and simulation objectives may use.

    >>> model = mbs.set(mbs.library.double_pendulum().build(), {"gravity": (0, 0, 0)})
    >>> lower = mbs.design.MassDistribution("lower", half_axes=(0.3, 0.3, 0.3))
    >>> mbs.design.Problem(model, [lower], [mbs.design.ConfigurationIndependence()], starts=4).starts
    4
    """

    model: Model
    free: Sequence[Item]
    objectives: Sequence[Objective]
    starts: int = 64
    seed: int = 0
    spread: float = 0.5
    tolerance: float = 1e-10
    max_steps: int = 200
    method: str = "least_squares"
    learning_rate: float = 0.02
    study: Any = None


class Prepared:
    """A problem made ready: its variables, the instances of every objective, and the function of both."""

    def __init__(self, problem: Problem):
        self.problem, self.variables = problem, Variables(problem.model, problem.free)
        self.objectives = tuple(problem.objectives)
        self.setting = Setting(problem.model, problem.seed, problem.study)
        if problem.method not in METHODS:
            raise unknown("method", problem.method, METHODS, "synthesize")
        if not self.objectives:
            raise ModelError("synthesize: there is no objective; say what is wanted")
        for name in ("starts", "max_steps"):
            if getattr(problem, name) < 1:
                raise ModelError(f"synthesize: {name} = {getattr(problem, name)}; give 1 or more")
        if jax.dtypes.canonicalize_dtype(float) != np.dtype("float64"):
            raise ModelError(
                'synthesize: single precision is too coarse for it; call jax.config.update("jax_enable_x64", True) first'
            )
        for objective in self.objectives:
            objective.check(self.setting)
        if problem.study is not None:
            require_effect(problem.study, self.variables.names)
        self.constants = tuple(o.constants(self.setting) for o in self.objectives)
        self.own_sizes, self.own_starts, self.own_spread = [], [], []
        for o in self.objectives:
            count, spread = o.own(self.setting)
            start = np.asarray(o.own_start(self.setting), float) if count else np.zeros((0, 0))
            self.own_sizes.append(start.shape)
            self.own_starts.append(start.reshape(-1))
            self.own_spread.append(np.full(start.size, spread))
        self.low = np.concatenate([self.variables.low, *(np.full(s.size, -np.inf) for s in self.own_starts)])
        self.high = np.concatenate([self.variables.high, *(np.full(s.size, np.inf) for s in self.own_starts)])
        self.conditions = np.array([o.goal == "zero" for o in self.objectives])
        if problem.method != "constrained" and self.conditions.any() and not self.conditions.all():
            raise ModelError(
                'synthesize: goals "zero" and "least" together: a sum of squares would trade the conditions for the '
                'rest; use method = "constrained", or give all the goal "least" and weights'
            )

    def data(self, salt: int | None = None) -> tuple[Any, ...]:
        """The instances of every objective; fresh ones of another salt."""
        seed = self.problem.seed if salt is None else (self.problem.seed + 1) * 1_000_003 + salt
        setting = Setting(self.problem.model, seed, self.problem.study)
        return tuple(o.data(setting) for o in self.objectives)

    def starts(self) -> np.ndarray:
        """(starts, n) variables to begin with."""
        p, v = self.problem, self.variables
        rng = np.random.default_rng([p.seed, 1])
        own, spread = np.concatenate([*self.own_starts, []]), np.concatenate([*self.own_spread, []])
        scattered = own + spread * rng.standard_normal((p.starts, len(own)))
        if len(own):
            scattered[0] = own
        return np.concatenate([v.starts(p.starts, p.seed, p.spread), scattered], axis=1)

    def own(self, x: Array) -> list[Array]:
        """The own unknowns of every objective's instances."""
        found, start = [], self.variables.size
        for shape, nominal in zip(self.own_sizes, self.own_starts, strict=True):
            found.append(x[start : start + nominal.size].reshape(shape if nominal.size else (0, 0)))
            start += nominal.size
        return found

    def measured(self, model: Model, x: Array, data: Any) -> list[Array]:
        """What every objective measures of a model."""
        out, motions = [], {}
        for o, instances, mine in zip(self.objectives, data, self.own(x), strict=True):
            count = jax.tree.leaves(instances)[0].shape[0]
            rows = mine if mine.size else jnp.zeros((count, 0), x.dtype)
            if isinstance(o, OfMotion):  # those of the same samples share their simulation
                if o.samples not in motions:
                    motions[o.samples] = moved(self.problem.study, model, instances)
                out.append(o.taken(motions[o.samples], self.problem.study))
            else:
                out.append(evaluated(o, model, instances, rows))
        return out

    def residuals(self, x: Array, data: Any) -> tuple[Array, Array]:
        """(weighted residuals of all objectives, the largest of each)."""
        model = self.variables.at(self.variables.place(x[: self.variables.size]))
        found = [
            o.residuals(m, c)
            for o, m, c in zip(self.objectives, self.measured(model, x, data), self.constants, strict=True)
        ]
        worst = jnp.stack([jnp.max(jnp.abs(r)) for r in found])
        return jnp.concatenate([weighted(o, r) for o, r in zip(self.objectives, found, strict=True)]), worst

    def in_parts(self, x: Array, data: Any) -> tuple[Array, Array, Array]:
        """(residuals that get least, residuals that vanish, margins that are not negative)."""
        model = self.variables.at(self.variables.place(x[: self.variables.size]))
        least, equal, margins = [jnp.zeros(0)], [jnp.zeros(0)], [jnp.zeros(0)]
        for o, m, c in zip(self.objectives, self.measured(model, x, data), self.constants, strict=True):
            margin = o.margins(m, c)
            if margin is not None and o.goal == "zero":
                margins.append(margin)
            else:
                r = o.residuals(m, c)
                (equal if o.goal == "zero" else least).append(weighted(o, r) if o.goal == "least" else r)
        return jnp.concatenate(least), jnp.concatenate(equal), jnp.concatenate(margins)

    def digest(self) -> str:
        """What a checkpoint must agree with: the starts, the bounds and everything that was asked for."""
        p = self.problem
        text = repr(
            (p.model.structure, p.free, p.objectives, p.seed, p.tolerance, p.method, p.max_steps, p.learning_rate)
        )
        numbers = np.concatenate([np.asarray(p.model.numbers, float), self.low, self.high, self.starts().reshape(-1)])
        return hashlib.sha256(text.encode() + numbers.tobytes()).hexdigest()
