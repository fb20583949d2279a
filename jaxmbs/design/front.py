"""Pareto fronts of two objectives: designs for which no other is better in both.

Each point minimises one objective while the other stays below a bound [Y. Haimes, L. Lasdon, D. Wismer, 1971], which also
finds parts of a front that are not convex. Half of the points bound one objective, half the other, so that neither a steep
nor a flat part is left out. All points are searched at once; each starts from its neighbours and from the best point that
any search has evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxmbs.design.failed_samples import FailedSamples, failed_samples
from jaxmbs.design.local import Local, Problems
from jaxmbs.design.optimality import optimality
from jaxmbs.design.optimisers.constrained import Trace, searched
from jaxmbs.design.optimisers.together import together
from jaxmbs.design.problem import Prepared, Problem
from jaxmbs.design.search import Kept, Progress, silent
from jaxmbs.design.status import Status
from jaxmbs.design.synthesize import named, plain
from jaxmbs.design.under_conditions import EVALUATIONS, at_once, best_of, decided, ended, idle, within_reach
from jaxmbs.model import ModelError

ROUNDS = 4  # number of rounds in which points are searched again from their neighbours
SAME = 1e-6  # relative to the front's extent: points nearer to each other than this count as one


class FrontPoint(NamedTuple):
    """One design of a front.

    values: of both objectives; parameters: {name: value}, ready for `set`; x (n,): the variables; status: `Status` of its
    search; failed: `FailedSamples`, the samples whose motions failed there.

    >>> point = mbs.design.FrontPoint((0.5, 2.0), {"link.mass": 0.5}, np.array([0.5]), mbs.design.Status.LEAST)
    >>> point.parameters
    {'link.mass': 0.5}
    """

    values: tuple[float, float]
    parameters: dict[str, Any]
    x: np.ndarray
    status: Status
    failed: tuple[FailedSamples, ...] = ()


@dataclass(frozen=True)
class Front:
    """Designs none of which is better than another in both objectives, in the order of the first objective.

    names: of both objectives; points: `FrontPoint`; dropped: how many searches ended where others are better in both, at the
    same point as another, without reaching a minimum, or where too many motions fail; problem: the `Problem` that was
    solved.

    >>> problem = mbs.design.Problem(mbs.library.double_pendulum().build(), [], [])
    >>> point = mbs.design.FrontPoint((0.5, 2.0), {"link.mass": 0.5}, np.array([0.5]), mbs.design.Status.LEAST)
    >>> mbs.design.Front(("mass", "rate"), (point,), 0, problem).values
    array([[0.5, 2. ]])
    """

    names: tuple[str, str]
    points: tuple[FrontPoint, ...]
    dropped: int
    problem: Problem

    @property
    def values(self) -> np.ndarray:
        """(points, 2) values of both objectives."""
        return np.array([p.values for p in self.points]).reshape(-1, 2)


class _Goal(NamedTuple):
    """The goal of one search: minimise objective k while the other is at most `bound`."""

    k: int
    bound: float
    size: np.ndarray  # (2,) typical differences of both objectives


def pareto(
    problem: Problem, points: int = 9, checkpoint: str | Path | None = None, progress: Progress = silent
) -> Front:
    """The Pareto front of the two objectives of a problem with the goal "least" (half the sum of squares) or "lowest".

    Conditions hold at every point, whatever `problem.method` is. points: number of searches between the two ends, 1 or
    more; checkpoint, progress: as for `synthesize`, but the cost that progress receives is the smallest value of the
    first objective. The ends are searched from all starts. Raises ModelError if there are not exactly two such
    objectives, or if an end is not found.

    >>> model = mbs.library.double_pendulum().build()
    >>> free = [mbs.design.Free("lower.com", low=-1.0, high=1.0, components=(0,))]
    >>> def distance(to):
    ...     at = lambda model, q: mbs.get(model, "lower.com")[0] - to
    ...     return mbs.design.Function(at, configurations=1, goal="least")
    >>> with jax.enable_x64():
    ...     front = mbs.design.pareto(mbs.design.Problem(model, free, [distance(0.0), distance(0.4)], starts=1), 1)
    >>> front.values.shape
    (3, 2)
    """
    prepared = Prepared(replace(problem, method="constrained"), traded=True)
    if (~prepared.conditions).sum() != 2:
        raise ModelError(
            f'pareto: {int((~prepared.conditions).sum())} objectives have the goal "least" or "lowest"; a front needs '
            "exactly two"
        )
    if points < 1:
        raise ModelError(f"pareto: {points} points; ask for 1 or more")
    search = _Search(prepared, None if checkpoint is None else Path(checkpoint), progress)
    wanted = np.flatnonzero(~prepared.conditions)
    names = tuple(named(prepared, int(k)) for k in wanted)
    free = np.ones(2)
    alone = [search.best([_Goal(k, np.inf, free)], [list(prepared.starts())])[0] for k in (0, 1)]
    for k in (0, 1):
        if alone[k] is None:
            raise ModelError(
                f"pareto: no design was found that meets the conditions with the least {names[k]}; examine this with "
                "synthesize"
            )
    ends = np.array([search.values(a) for a in alone])
    size = np.maximum(np.abs(ends[0] - ends[1]), 1e-12 * np.abs(ends).max() + 1e-300)
    # of all minima of one objective, find the one with the smallest value of the other; the slack allows for rounding
    goals = [_Goal(1 - k, ends[k, k] + 1e-9 * size[k], size) for k in (0, 1)]
    part = np.arange(1, points + 1) / (points + 1)
    goals += [
        _Goal(int(i % 2), (1 - t) * ends[0, 1 - i % 2] + t * ends[1, 1 - i % 2], size) for i, t in enumerate(part)
    ]
    found = _by_neighbours(search, goals, [a.x for a in alone])
    proper = [(trace, goal) for trace, goal in zip(found, goals, strict=True) if trace is not None]
    made = [_point(prepared, search, trace, goal) for trace, goal in proper]
    kept = _not_dominated(made, SAME * size)
    search.kept.write()
    return Front((names[0], names[1]), tuple(kept), len(goals) - len(kept), problem)


def _by_neighbours(search: _Search, goals: list[_Goal], ends: list[np.ndarray]) -> list[Trace | None]:
    """The best search for every goal: first from both ends and the best point known, then, for up to ROUNDS rounds,
    from the points that its neighbours have reached, until no goal improves."""
    found = search.best(goals, [[*ends, *search.nearby(goal)] for goal in goals])
    for _ in range(ROUNDS):
        values = [search.values(t.best)[0] if t is not None else np.inf for t in found]
        order = [int(k) for k in np.argsort(values, kind="stable") if found[k] is not None]
        starts: list[list[np.ndarray]] = [[] for _ in goals]
        for a, b in pairwise(order):
            starts[a].append(found[b].best.x)  # type: ignore[union-attr]
            starts[b].append(found[a].best.x)  # type: ignore[union-attr]
        again = search.best(goals, starts)
        gained = False
        for k, new in enumerate(again):
            old = found[k]
            if new is not None and (old is None or new.best.cost < old.best.cost - 1e-9 * goals[k].size[goals[k].k]):
                found[k], gained = new, True
        if not gained:
            break
    return found


def _point(prepared: Prepared, search: _Search, trace: Trace, goal: _Goal) -> FrontPoint:
    x = trace.best.x
    low, high = within_reach(prepared, x)
    status = ended(prepared, trace, low, high, idle(prepared, x))
    if status in (Status.LEAST, Status.STALLED, Status.STEPS):
        measured = optimality(lambda xs: search.seen(xs, goal), trace.best, low, high, idle(prepared, x))
        status = decided(measured, trace.best, status, prepared)[0]
        status = Status.LEAST if status is Status.UNDETERMINED else status  # the other objective decides between them
    failed = failed_samples(prepared, x)
    if any(f.too_many for f in failed):
        status = Status.UNRELIABLE
    v = prepared.variables
    parameters = {name: plain(value) for name, value in v.values(v.coordinates_at(x)).items()}
    return FrontPoint(tuple(map(float, search.values(trace.best))), parameters, x, status, failed)  # type: ignore[arg-type]


def _not_dominated(points: list[FrontPoint], near: np.ndarray) -> list[FrontPoint]:
    """The points with status LEAST for which no other is better in both, each once, in the order of the first
    objective; near (2,): smaller differences of the two objectives do not count."""
    kept: list[FrontPoint] = []
    for p in sorted((p for p in points if p.status is Status.LEAST), key=lambda p: p.values):
        if not kept or p.values[1] < kept[-1].values[1] - near[1]:
            same = kept and abs(p.values[0] - kept[-1].values[0]) <= near[0]
            kept = [*kept[:-1], p] if same else [*kept, p]
    return kept


class _Search:
    """Searches for all goals with one program, which evaluates both objectives and the conditions with their derivatives."""

    def __init__(self, prepared: Prepared, checkpoint: Path | None, progress: Progress):
        self.prepared, self.progress, self.steps = prepared, progress, 0
        self.problems = Problems(prepared, at_once(prepared, prepared.problem.starts))
        self.kept = Kept(checkpoint, prepared.digest(), traded=2)
        self.archive: list[Local] = []

    def ask(self, x: np.ndarray) -> list[Local]:
        """`Local` at points x (s, n); the first two margins are the objectives, with opposite sign."""
        found = [Local(*row) for row in self.kept.answers(x, self.problems)]
        tolerance = self.prepared.problem.tolerance
        self.archive += [p for p in found if p.finite and _rest(p).violation <= tolerance]
        self.steps += 1
        least = min((float(-p.margins[0]) for p in self.archive), default=np.inf)
        self.progress(self.steps, len(x), least)
        return found

    def values(self, here: Local) -> np.ndarray:
        """(2,) values of both objectives at a point that was evaluated."""
        found = next(p for p in reversed(self.archive) if np.array_equal(p.x, here.x))
        return -found.margins[:2]

    def seen(self, x: np.ndarray, goal: _Goal) -> list[Local]:
        """`Local` at points x (s, n) for the problem of a goal."""
        return [_seen(p, goal) for p in self.ask(x)]

    def nearby(self, goal: _Goal) -> list[np.ndarray]:
        """The best point for a goal that any search has evaluated, in a list, which is empty if none meets the goal."""
        tolerance = self.prepared.problem.tolerance
        fit = [p for p in (_seen(p, goal) for p in self.archive) if p.violation <= tolerance]
        return [min(fit, key=lambda p: p.cost).x] if fit else []

    def best(self, goals: list[_Goal], starts: list[list[np.ndarray]]) -> list[Any]:
        """For each goal, the `Trace` of the best search from its starts, or its best point, a `Local`, if the goal has
        no bound; None if no search meets the conditions at its end without running away."""
        p = self.prepared
        low, high = within_reach(p, p.starts()[0])
        rules: dict[str, Any] = {
            "low": low, "high": high, "tolerance": p.problem.tolerance, "most": EVALUATIONS * p.problem.max_steps,
        }  # fmt: skip
        runs = [(k, x) for k, own in enumerate(starts) for x in own]

        def one(ask: Callable[[np.ndarray], Local], k: int, x: np.ndarray) -> Trace:
            return searched(lambda y: _seen(ask(y), goals[k]), np.clip(x, low, high), **rules)

        traces = together(self.ask, [partial(one, k=k, x=x) for k, x in runs])
        out: list[Any] = []
        for k, goal in enumerate(goals):
            own = [t for (j, _), t in zip(runs, traces, strict=True) if j == k]
            own = [t for t in own if t.best is not None and t.best.finite and t.best.violation <= t.tolerance]
            own = [t for t in own if not p.variables.away(t.best.x[: p.variables.size]).any()]
            status = np.array([ended(p, t, low, high, idle(p, t.best.x)) for t in own])
            chosen = own[best_of(own, status, p.problem.tolerance)] if own else None
            out.append(chosen.best if chosen is not None and np.isinf(goal.bound) else chosen)
        return out


def _rest(here: Local) -> Local:
    """The same point, without the two objectives among its margins."""
    return here._replace(margins=here.margins[2:], margin_slopes=here.margin_slopes[2:])


def _seen(here: Local, goal: _Goal) -> Local:
    """The same point for the problem of a goal: one objective is the cost, the other becomes a margin or, without a
    bound, is left out."""
    values, slopes = -here.margins[:2], -here.margin_slopes[:2]
    k, other = goal.k, 1 - goal.k
    rest = _rest(here)._replace(cost=float(values[k]), slope=slopes[k])
    if np.isinf(goal.bound):
        return rest
    margin = (goal.bound - values[other]) / goal.size[other]
    return rest._replace(
        margins=np.concatenate([[margin], rest.margins]),
        margin_slopes=np.concatenate([-slopes[other][None] / goal.size[other], rest.margin_slopes]),
    )
