"""Design synthesis: runs the searches and collects their result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxmbs as mbs
from jaxmbs.design.certificate import certificate
from jaxmbs.design.directions import NAMED, in_words, lost
from jaxmbs.design.failed_samples import FailedSamples, failed_samples
from jaxmbs.design.findings import Findings, findings
from jaxmbs.design.local import Problems
from jaxmbs.design.optimality import FLAT, optimality
from jaxmbs.design.optimisers.stochastic import Iterate as StochasticIterate
from jaxmbs.design.problem import Prepared, Problem
from jaxmbs.design.search import Progress, search, silent
from jaxmbs.design.status import Status
from jaxmbs.design.uncertainty import Uncertainty, uncertainty, with_profiles
from jaxmbs.design.under_conditions import ASIDE, ESCAPES, decided, idle, under_conditions, way_out, within_reach
from jaxmbs.io.physical import nearest_inertia
from jaxmbs.model import Model
from jaxmbs.model.fields import type_name


@dataclass(frozen=True)
class Design:
    """The result of a synthesis.

    parameters: {name: value}, ready for `set`; status: `Status` of the best start; reason: in words, with the active
    bounds; largest: {objective: its largest residual, or its mean for the goal "lowest"}; before: the same at the
    nominal values; cost: half the sum of squares, plus the weighted mean of objectives with the goal "lowest"; history
    (steps, starts): costs, where each evaluation counts as a step with method "constrained"; statuses, costs (starts,);
    x (starts, n): variables of every start; best: index of the best start; findings: `Findings`, what the conditions fix
    and what they do not fix (None if the search failed, and with "adam" or another optimiser of optax); problem: the
    `Problem` that was solved; certificate: if it is proved that no bodies inside their envelopes meet the conditions, a
    lower bound of the norm of the conditions, which are dimensionless (`Objective.conditions`), else None; undetermined:
    combinations of parameters that change neither the cost nor the conditions, in words (the status of a fit is then
    UNDETERMINED); violations (steps, starts): violations of the conditions, with method "constrained"; uncertainty:
    `Uncertainty` of a fit, a problem whose objectives, apart from conditions, are all "least"; failed: `FailedSamples`,
    the samples whose motions failed at the result (status UNRELIABLE if there are too many).

    >>> model = mbs.set(mbs.library.three_link_arm().build(), {"gravity": (0, 0, 0)})
    >>> free = [mbs.design.Free(f"body_{k}.com", components=(0, 1)) for k in (2, 3)]
    >>> problem = mbs.design.Problem(model, free, [mbs.design.ConfigurationIndependence()], starts=4)
    >>> with jax.enable_x64():
    ...     design = mbs.design.synthesize(problem)
    >>> design.status.name, len(design.relations)
    ('MET', 4)
    """

    parameters: dict[str, Any]
    status: Status
    reason: str
    largest: dict[str, float]
    before: dict[str, float]
    cost: float
    history: np.ndarray
    statuses: np.ndarray
    costs: np.ndarray
    x: np.ndarray
    best: int
    findings: Findings | None
    problem: Problem
    certificate: float | None = None
    undetermined: tuple[str, ...] = ()
    violations: np.ndarray | None = None
    uncertainty: Uncertainty | None = None
    failed: tuple[FailedSamples, ...] = ()

    @property
    def relations(self) -> tuple[Any, ...]:
        """The relations that the conditions impose, each with its residual; empty without `findings`."""
        return self.findings.relations if self.findings else ()

    @property
    def model(self) -> Model:
        """The model with the parameters found."""
        return mbs.set(self.problem.model, self.parameters)


def synthesize(problem: Problem, checkpoint: str | Path | None = None, progress: Progress = silent) -> Design:
    """Search for the parameters that a problem asks for.

    checkpoint: a file in which the search is saved, and from which it continues with bitwise identical results;
    progress: called with (steps, points evaluated in the last step, smallest cost). A search may fail without an error:
    look at `status` and `reason` of the result. Searches need float64. Raises ModelError, before the search starts, for a
    problem that cannot be searched.

    >>> model = mbs.set(mbs.library.three_link_arm().build(), {"gravity": (0, 0, 0)})
    >>> free = [mbs.design.Free("body_3.com", components=(0, 1))]
    >>> wish = mbs.design.ConfigurationIndependence(rows="q_3")
    >>> with jax.enable_x64():
    ...     design = mbs.design.synthesize(mbs.design.Problem(model, free, [wish], starts=2))
    >>> print(design.reason)
    every condition holds
    >>> print(abs(np.round(design.parameters["body_3.com"], 9)))
    [0. 0. 0.]
    """
    prepared = Prepared(problem)
    kept = None if checkpoint is None else Path(checkpoint)
    free = np.zeros((0, len(prepared.low)))
    if problem.method == "constrained" and not prepared.conditions.all():
        state, trace, before, best, free = under_conditions(prepared, kept, progress)
        history = trace[:, 0]
    else:
        state, history, before = search(prepared, kept, progress)
        state, trace = jax.tree.map(np.asarray, state), None
        best = best_start(prepared, state)
        state, history, free = _settled(prepared, state, history, best, progress)
    x = state.x[best][: prepared.variables.size]
    failed = failed_samples(prepared, np.asarray(state.x[best], float))
    if any(f.too_many for f in failed):
        state.status[best] = int(Status.UNRELIABLE)
    status = Status(int(state.status[best]))
    values = prepared.variables.values(prepared.variables.coordinates_at(x))
    parameters = {name: plain(value) for name, value in values.items()}
    known = status.success or status is Status.UNDETERMINED
    proved = None if known or status in (Status.NOT_FINITE, Status.UNRELIABLE) else certificate(prepared, x)
    if proved is not None:
        status = Status.IMPOSSIBLE
        state.status[best] = int(status)
    undetermined = in_words(prepared, state.x[best], free)
    design = Design(
        parameters,
        status,
        _reason(prepared, state, best, proved, undetermined, lost(prepared, parameters), failed),
        {named(prepared, k): float(w) for k, w in enumerate(state.worst[best])},
        {named(prepared, k): float(w) for k, w in enumerate(before)},
        float(state.cost[best]),
        history,
        state.status,
        state.cost,
        state.x,
        best,
        findings(prepared, state, best) if known and not isinstance(state, StochasticIterate) else None,
        problem,
        proved,
        undetermined,
        None if trace is None else trace[:, 1],
        uncertainty(prepared, np.asarray(state.x[best], float)) if known else None,
        failed,
    )
    return replace(design, uncertainty=with_profiles(design))


def _settled(
    prepared: Prepared, state: Any, history: np.ndarray, best: int, progress: Progress
) -> tuple[Any, np.ndarray, np.ndarray]:
    """(state, history, directions that stay undetermined (k, n)). The best start continues if it has stopped at a
    saddle point."""
    state, free, down = _measured(prepared, state, best)
    for _ in range(ESCAPES):
        if down is None:
            break
        aside = np.stack([state.x[best] + ASIDE * down, state.x[best] - ASIDE * down])
        found, costs, _ = search(prepared, None, progress, np.clip(aside, prepared.low, prepared.high))
        k = int(np.argmin(np.where(np.isfinite(found.cost), found.cost, np.inf)))
        if not found.cost[k] < state.cost[best]:
            break
        state = jax.tree.map(np.array, state)
        for rows, new in zip(state, found, strict=True):
            rows[best] = new[k]
        history = np.concatenate([history, np.tile(history[-1], (len(costs), 1))])
        history[-len(costs) :, best] = np.minimum(costs[:, k], history[-1, best])
        state, free, down = _measured(prepared, state, best)
    return state, history, free


def _measured(prepared: Prepared, state: Any, best: int) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """(state with the tested status of the best start, directions that stay undetermined (k, n), direction (n,) of
    negative curvature at a saddle point or None).

    If all objectives are conditions, only a point that misses them is tested: whether its violation is at a minimum.
    Otherwise a point is tested in three cases: the search stalled there; the search could not test it, because it took
    random samples in each step; or the normal matrix is nearly singular, so that other parameters may do equally well.
    """
    state = state._replace(status=np.array(state.status))
    status, x = Status(int(state.status[best])), np.asarray(state.x[best], float)
    none = np.zeros((0, len(x)))
    if prepared.conditions.all():
        if isinstance(state, StochasticIterate) and status is Status.LEAST:
            state.status[best] = int(Status.MET)
        if status is Status.INFEASIBLE:
            problems = Problems(prepared, len(x))
            bounds = within_reach(prepared, x)
            here = problems(x[None])[0]
            out = way_out(here, problems, *bounds, idle(prepared, x)) if here.conditioned else None
            if out is not None:
                state.status[best] = int(Status.STALLED)  # the violation is at a maximum or a saddle point
            return state, none, out
        return state, none, None
    normal = np.asarray(state.normal[best]) if hasattr(state, "normal") else None
    if status not in (Status.LEAST, Status.STALLED):
        return state, none, None
    if status is Status.LEAST and normal is not None and not _deficient(prepared, normal, x):
        return state, none, None
    problems = Problems(prepared, len(x))
    here = problems(x[None])[0]
    if not here.finite:
        return state, none, None
    measured = optimality(problems, here, *within_reach(prepared, x), idle(prepared, x))
    found, free = decided(measured, here, Status.STEPS if normal is None else status, prepared)
    if normal is not None and found is Status.STALLED and measured.down is None:
        found = status  # the search compares the gradient with the remaining residuals, not with rounding errors
    state.status[best] = int(found)
    return state, free, None if normal is None else measured.down


def _deficient(prepared: Prepared, normal: np.ndarray, x: np.ndarray) -> bool:
    """Whether the residuals do not depend on some combination of the variables that are not at a bound."""
    inside = (x > prepared.low) & (x < prepared.high) & (np.diagonal(normal) >= 0)
    values = np.linalg.eigvalsh(normal[np.ix_(inside, inside)])
    return bool(len(values) and values[0] <= 10 * FLAT * values[-1])


def plain(value: Any) -> Any:
    """A float or an array of floats. An inertia is made exactly symmetric, and negative second moments of mass are set
    to zero, so that it remains the inertia of a body."""
    x = np.asarray(value, float)
    if x.shape == (3, 3):
        x = nearest_inertia(x)
    return float(x) if x.ndim == 0 else x


def best_start(prepared: Prepared, state: Any) -> int:
    """Index of the best start: successful starts come first, runaway and infinite ones last. Within each group the
    smallest cost is best; among starts with status MET, the one nearest to the nominal values."""
    n = prepared.variables.size
    away = np.linalg.norm(state.x[:, :n] - prepared.variables.nominal, axis=1)
    met = state.status == int(Status.MET)
    success = [Status(int(s)).success for s in state.status]
    escaped = np.isin(state.status, (int(Status.RUNAWAY), int(Status.NOT_FINITE)))
    order = np.lexsort((np.where(met, away, state.cost), np.where(success, 0, np.where(escaped, 2, 1))))
    return int(order[0])


def named(prepared: Prepared, k: int) -> str:
    """Name of objective k: its type, numbered where there are several of that type."""
    types = [type_name(type(o)) for o in prepared.objectives]
    return types[k] if types.count(types[k]) == 1 else f"{types[k]}_{types[: k + 1].count(types[k])}"


def _reason(
    prepared: Prepared,
    state: Any,
    best: int,
    proved: float | None,
    undetermined: tuple[str, ...],
    gone: list[str],
    failed: tuple[FailedSamples, ...],
) -> str:
    status, worst = Status(int(state.status[best])), state.worst[best]
    said, x = status.message, state.x[best][: prepared.variables.size]
    if proved is not None:
        said = f"no bodies inside the envelopes meet the conditions, whose norm is at least {proved:.2g} (proved)"
    if status in (Status.INFEASIBLE, Status.IMPOSSIBLE, Status.STALLED, Status.STEPS):
        broken = [
            f"{named(prepared, int(k))} (largest residual {worst[k]:.2g})"
            for k in np.flatnonzero(prepared.conditions & ~(worst <= prepared.problem.tolerance))
        ]
        said += "; not met: " + ", ".join(broken) if broken else ""
    if status is Status.NOT_FINITE:
        bad = [named(prepared, int(k)) for k in np.flatnonzero(~np.isfinite(worst))]
        said = (
            f"{said}; not finite: {', '.join(bad)}" if bad else "the objective is finite here, its derivatives are not"
        )
    if status is Status.RUNAWAY:
        away = np.flatnonzero(np.asarray(prepared.variables.away(x)))
        labels = [prepared.variables.labels()[k] for k in away]
        said += "; grows without bound: " + ", ".join(dict.fromkeys(labels))
    if undetermined:
        more = f" and {len(undetermined) - NAMED} more" if len(undetermined) > NAMED else ""
        several = "combinations stay" if len(undetermined) > 1 else "combination stays"
        said += f"; {len(undetermined)} {several} free: {'; '.join(undetermined[:NAMED])}{more}"
    said += "".join(f"; {one}" for one in failed)
    binding = prepared.variables.binding(x)
    if binding:
        said += "; active bounds: " + "; ".join(binding)
    if gone:
        said += "; degenerate: " + "; ".join(gone)
    return said
