"""Parameters found by gradient."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxmbs as mbs
from jaxmbs.design.certificate import certificate
from jaxmbs.design.findings import Findings, findings
from jaxmbs.design.problem import Prepared, Problem
from jaxmbs.design.search import Progress, search, silent
from jaxmbs.design.status import Status
from jaxmbs.model import Model


@dataclass(frozen=True)
class Design:
    """What was found.

    parameters: {name: value}, ready for `set`; status: `Status` of the best start; reason: in words, with what binds;
    largest: {objective: its largest residual}; before: the same at the nominal values; cost: half the sum of squares;
    history (steps, starts): costs; statuses, costs (starts,); x (starts, n): variables of every start; best: its number;
    findings: `Findings`, what the conditions fix and what they leave free (None where the search failed); problem: `Problem`
    that it solves; certificate: where it is proved that no bodies inside their envelopes meet the conditions, what the norm
    of these, relative to the nominal mass matrix, is at least; else None.

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

    @property
    def relations(self) -> tuple[Any, ...]:
        """The relations that the conditions impose, each with its residual; none where the search failed."""
        return self.findings.relations if self.findings else ()

    @property
    def model(self) -> Model:
        """The model with the parameters found."""
        return mbs.set(self.problem.model, self.parameters)


def synthesize(problem: Problem, checkpoint: str | Path | None = None, progress: Progress = silent) -> Design:
    """Search for the parameters that a problem asks for.

    checkpoint: a file that keeps the search, which goes on from it to the same bits; progress: called with (steps, starts
    still running, least cost). The result says whether it is one: look at `status` and `reason`. Needs float64. Raises
    ModelError for what cannot be searched for, before it starts.

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
    state, history, before = search(prepared, None if checkpoint is None else Path(checkpoint), progress)
    if problem.method == "constrained":
        from jaxmbs.design.optimisers.constrained import refined

        state = refined(prepared, state)
    state = jax.tree.map(np.asarray, state)
    best = best_start(prepared, state)
    x = state.x[best][: prepared.variables.size]
    status = Status(int(state.status[best]))
    values = prepared.variables.values(prepared.variables.coordinates_at(x))
    parameters = {name: _plain(value) for name, value in values.items()}
    proved = None if status.success else certificate(prepared, x)
    return Design(
        parameters,
        status,
        _reason(prepared, state, best, proved),
        {_name(prepared, k): float(w) for k, w in enumerate(state.worst[best])},
        {_name(prepared, k): float(w) for k, w in enumerate(before)},
        float(state.cost[best]),
        history,
        state.status,
        state.cost,
        state.x,
        best,
        findings(prepared, state, best) if status.success and hasattr(state, "normal") else None,
        problem,
        proved,
    )


def _plain(value: Any) -> Any:
    """A number or an array; an inertia is made symmetric to the last bit."""
    x = np.asarray(value, float)
    if x.shape == (3, 3):
        x = (x + x.T) / 2
    return float(x) if x.ndim == 0 else x


def best_start(prepared: Prepared, state: Any) -> int:
    """The best of all starts: successes first; of those that meet every condition the nearest to the nominal values."""
    n = prepared.variables.size
    away = np.linalg.norm(state.x[:, :n] - prepared.variables.nominal, axis=1)
    met = state.status == int(Status.MET)
    order = np.lexsort(
        (
            np.where(met, away, state.cost),
            np.where(state.status <= int(Status.LEAST), 0, np.where(state.status <= int(Status.INFEASIBLE), 1, 2)),
        )
    )
    return int(order[0])


def _name(prepared: Prepared, k: int) -> str:
    """Name of an objective: its type, numbered where there are several."""
    from jaxmbs.model.fields import type_name

    types = [type_name(type(o)) for o in prepared.objectives]
    return types[k] if types.count(types[k]) == 1 else f"{types[k]}_{types[: k + 1].count(types[k])}"


def _reason(prepared: Prepared, state: Any, best: int, proved: float | None) -> str:
    status, worst = Status(int(state.status[best])), state.worst[best]
    said, x = status.message, state.x[best][: prepared.variables.size]
    if status in (Status.INFEASIBLE, Status.STALLED, Status.STEPS):
        broken = [
            f"{_name(prepared, int(k))} (largest residual {worst[k]:.2g})"
            for k in np.flatnonzero(prepared.conditions & ~(worst <= prepared.problem.tolerance))
        ]
        said += "; not met: " + ", ".join(broken) if broken else ""
    if status is Status.RUNAWAY:
        gone = np.flatnonzero(np.asarray(prepared.variables.away(x)))
        labels = [prepared.variables.labels()[k] for k in gone]
        said += "; runs away: " + ", ".join(dict.fromkeys(labels))
    binding = prepared.variables.binding(x)
    if binding:
        said += "; what binds: " + "; ".join(binding)
    if proved is not None:
        said += f"; no bodies inside the envelopes meet the conditions, whose norm is at least {proved:.2g} (proved)"
    return said
