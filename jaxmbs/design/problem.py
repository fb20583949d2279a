"""A synthesis problem: what may change, and what is wanted."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxmbs.batching import content
from jaxmbs.batching.compiling import compiled
from jaxmbs.design.objectives.base import Objective, Setting, evaluated, limits, missed, weighted
from jaxmbs.design.objectives.motion import OfMotion
from jaxmbs.design.samples import moved, require_effect
from jaxmbs.design.variables import Item, Variables
from jaxmbs.model import Model, ModelError
from jaxmbs.model.errors import unknown

METHODS = ("least_squares", "adam", "constrained")
Array = Any
_PROCESS = secrets.token_hex()  # marks digests that identify a problem only within this process


@dataclass(frozen=True)
class Problem:
    """What may change in a model, and what is wanted of it.

    model: the mechanism at its nominal values; free: `Free`, `Factor` and `MassDistribution` items, everything else
    stays fixed; objectives: conditions (goal "zero") and quantities to be made small (goal "least": the sum of their
    squares) or low (goal "lowest": their mean, which may become negative); starts: number of searches, the first from
    the nominal values, the others from random values: uniform between the bounds of a variable that has two, otherwise
    scattered about its nominal value by `spread`, relative to its usual size; seed: of all random numbers;
    tolerance: largest residual with which a condition counts as met; max_steps: largest number of steps of a search;
    method: "least_squares" (Levenberg-Marquardt, bounds by projection), "adam" (stochastic: fresh configurations and
    samples in every step, with `learning_rate`), another optimiser of optax, which has its own learning rate, or
    "constrained" (the conditions hold exactly, and the other objectives are as small as the conditions allow:
    sequential quadratic programming from all starts together); study: the `jaxmbs.study.Study` whose dispersions,
    outputs and simulation the objectives may use.

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
    method: str | optax.GradientTransformation = "least_squares"
    learning_rate: float = 0.02
    study: Any = None


class Prepared:
    """A problem prepared for a search: its variables, the instances of every objective, and the functions that
    evaluate the objectives at given variables and instances.

    traded: the costs of the objectives that are not conditions become the first margins, with opposite sign, for
    `pareto`; the cost is then zero.
    """

    def __init__(self, problem: Problem, traded: bool = False):
        self.traded = traded
        self.problem, self.variables = problem, Variables(problem.model, problem.free)
        self.setting = Setting(problem.model, problem.seed, problem.study)
        self.objectives = tuple(o.ready(self.setting) for o in problem.objectives)
        if not isinstance(problem.method, optax.GradientTransformation) and problem.method not in METHODS:
            raise unknown("method", str(problem.method), METHODS, "synthesize")
        if not self.objectives:
            raise ModelError("synthesize: there is no objective; add one")
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
        for o in self.objectives:
            if o.within is not None and o.goal != "zero":
                raise ModelError(
                    f'synthesize: within = {o.within:g} is for conditions (goal = "zero") only, not for goal = "{o.goal}"'
                )
        if problem.method != "constrained" and any(o.goal == "lowest" for o in self.objectives):
            raise ModelError('synthesize: goal "lowest" is not a sum of squares; use method = "constrained"')
        if problem.method != "constrained" and self.conditions.any() and not self.conditions.all():
            raise ModelError(
                'synthesize: conditions (goal "zero") and objectives with the goal "least" cannot be combined in a sum of '
                'squares, which would trade one for the other; use method = "constrained", or give all the goal "least" and '
                "weights"
            )

    def data(self, salt: int | None = None) -> tuple[Any, ...]:
        """The instances of every objective; each value of `salt` gives different random instances."""
        seed = self.problem.seed if salt is None else (self.problem.seed + 1) * 1_000_003 + salt
        setting = Setting(self.problem.model, seed, self.problem.study, fresh=salt is not None)
        return tuple(o.data(setting) for o in self.objectives)

    def starts(self) -> np.ndarray:
        """(starts, n) starting points of the searches."""
        p, v = self.problem, self.variables
        rng = np.random.default_rng([p.seed, 1])
        own, spread = np.concatenate([*self.own_starts, []]), np.concatenate([*self.own_spread, []])
        scattered = own + spread * rng.standard_normal((p.starts, len(own)))
        if len(own):
            scattered[0] = own
        return np.concatenate([v.starts(p.starts, p.seed, p.spread), scattered], axis=1)

    def own(self, x: Array) -> list[Array]:
        """The additional unknowns (instances, unknowns) of every objective."""
        found, start = [], self.variables.size
        for shape, nominal in zip(self.own_sizes, self.own_starts, strict=True):
            found.append(x[start : start + nominal.size].reshape(shape if nominal.size else (0, 0)))
            start += nominal.size
        return found

    def measured(self, model: Model, x: Array, data: Any, motions: Any = None) -> list[Array]:
        """The quantities that every objective measures of a model.

        motions: if already known, {number of samples: the values (samples,) that each objective with this number of
        samples takes from the motions, in the order of the objectives}.
        """
        out, moving = [], {}
        known = {samples: list(taken) for samples, taken in (motions or {}).items()}
        for o, instances, mine in zip(self.objectives, data, self.own(x), strict=True):
            count = jax.tree.leaves(instances)[0].shape[0]
            rows = mine if mine.size else jnp.zeros((count, 0), x.dtype)
            if not isinstance(o, OfMotion):
                out.append(evaluated(o, model, instances, rows))
            elif motions is not None:
                out.append(known[o.samples].pop(0)[:, None])
            else:  # objectives with the same number of samples share one simulation
                if o.samples not in moving:
                    moving[o.samples] = moved(self.problem.study, model, instances)
                out.append(o.number(moving[o.samples], self.problem.study))
        return out

    def model(self, x: Array) -> Model:
        """The model of the variables x (n,)."""
        return self.variables.at(self.variables.place(x[: self.variables.size]))

    def _taken(self, x: Array, data: Any, motions: Any = None) -> Any:
        """A list of (objective, its measured quantities, its constants) for all objectives."""
        return list(
            zip(self.objectives, self.measured(self.model(x), x, data, motions), self.constants, strict=True)
        )  # fmt: skip

    def residuals(self, x: Array, data: Any) -> tuple[Array, Array]:
        """(weighted residuals of all objectives, the largest of each)."""
        taken = self._taken(x, data)
        found = [missed(o, m, c) for o, m, c in taken]
        return jnp.concatenate([weighted(o, r) for (o, _, _), r in zip(taken, found, strict=True)]), _largest(taken)

    def in_parts(self, x: Array, data: Any, motions: Any = None) -> tuple[Array, Array, Array]:
        """(cost to be minimised, values that must vanish, margins that must not be negative). motions: as in
        `measured`."""
        costs, equal, margins = [jnp.zeros(())], [jnp.zeros(0)], [jnp.zeros(0)]
        for o, m, c in self._taken(x, data, motions):
            limit = limits(o, m, c)
            r = o.residuals(m, c)
            if limit is not None:
                margins.append(limit)
            elif o.goal == "zero":
                equal.append(r)
            else:
                w = weighted(o, r)
                costs.append(o.weight * jnp.mean(r) if o.goal == "lowest" else 0.5 * (w @ w))
        if self.traded:
            costs, margins = costs[:1], [-jnp.stack(costs[1:]), *margins]
        return jnp.stack(costs).sum(), jnp.concatenate(equal), jnp.concatenate(margins)

    def largest(self, x: Array, data: Any, motions: Any = None) -> Array:
        """The largest residual of every objective; for the goal "lowest", the mean of its values."""
        return _largest(self._taken(x, data, motions))

    def digest(self) -> str:
        """Identifies the problem of a checkpoint, by its model, variables, objectives, study, starts and settings."""
        p = self.problem
        settings = (p.seed, p.tolerance, p.method, p.max_steps, p.learning_rate, self.traded)
        numbers = [np.asarray(x, float) for x in (p.model.numbers, self.low, self.high, self.starts())]
        asked = {"free": tuple(p.free), "objectives": tuple(p.objectives), "study": p.study}
        try:
            return content.digest(asked | {"structure": p.model.structure, "settings": settings, "numbers": numbers})
        except content.NotKnownError:  # for example a function that reads a file: another process may get other results
            with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
                return f"{_PROCESS} {(asked, numbers, p.model.structure, settings)!r}"


def _largest(taken: Any) -> Array:
    each = [
        jnp.mean(o.residuals(m, c)) if o.goal == "lowest" else jnp.max(jnp.abs(missed(o, m, c))) for o, m, c in taken
    ]
    return jnp.stack(each)


def residuals_at(prepared: Prepared, x: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[int]]:
    """(residuals (k,) of every objective without its weight, their derivatives (k, n), their numbers k) at x (n,)."""
    data = prepared.data()

    def each(x: Array) -> tuple[Any, Any]:
        found = prepared.measured(prepared.model(x), x, data)
        taken = zip(prepared.objectives, found, prepared.constants, strict=True)
        r = tuple(missed(o, m, c) for o, m, c in taken)
        return r, r

    J, r = compiled(jax.jacfwd(each, has_aux=True))(jnp.asarray(x))
    return [np.asarray(a) for a in r], [np.asarray(a) for a in J], [len(a) for a in r]
