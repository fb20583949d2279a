"""Searches under conditions: all starts are searched together, their ends are tested, and saddle points are escaped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.compiling import compiled
from jaxmbs.design.local import Local, Problems
from jaxmbs.design.optimality import Optimality, first_order, optimality, used_up
from jaxmbs.design.optimisers.constrained import Trace, searched
from jaxmbs.design.optimisers.together import together
from jaxmbs.design.problem import Prepared
from jaxmbs.design.search import Kept, Progress
from jaxmbs.design.status import Status
from jaxmbs.design.variables import LARGEST

Array = Any
AT_ONCE = 65_536  # motions in one call: 10 MB for each number that is stored of a motion and its derivatives
EVALUATIONS = 4  # number of evaluations allowed for each of max_steps
ESCAPES = 2  # attempts to leave saddle points
ASIDE = 1e-2  # distance from a saddle point at which a search begins again, in usual sizes of the variables


class Ends(NamedTuple):
    """The end of the search from every start. x (s, n); cost (s,); worst (s, objectives): the largest residuals; status
    (s,); normal (s, n, n): the normal matrix of the conditions and active margins."""

    x: np.ndarray
    cost: np.ndarray
    worst: np.ndarray
    status: np.ndarray
    normal: np.ndarray


def under_conditions(
    prepared: Prepared, checkpoint: Path | None, progress: Progress
) -> tuple[Ends, np.ndarray, np.ndarray, int, np.ndarray]:
    """Search from all starts; returns (ends, best costs and violations so far (evaluations, 2, starts), largest
    residuals at the nominal values, index of the best start, directions that stay undetermined (k, n))."""
    starts = prepared.starts()
    problems = Problems(prepared, at_once(prepared, len(starts)))
    low, high = within_reach(prepared, starts[0])
    tolerance, most = prepared.problem.tolerance, EVALUATIONS * prepared.problem.max_steps
    kept = Kept(checkpoint, prepared.digest())
    least, steps = np.inf, 0

    def evaluate(x: np.ndarray) -> Sequence[Local]:
        nonlocal least, steps
        found = [Local(*row) for row in kept.answers(x, problems)]
        least = min([least, *(float(p.cost) for p in found if p.finite and p.violation <= tolerance)])
        steps += 1
        progress(steps, len(x), least)
        return found

    def run(xs: np.ndarray) -> list[Trace]:
        begin = [partial(searched, x=x, low=low, high=high, tolerance=tolerance, most=most) for x in xs]
        return together(evaluate, begin)

    traces = run(starts)
    kept.write()
    before = evaluate(starts[:1])[0].largest
    still = idle(prepared, traces[0].best.x if traces[0].best is not None else starts[0])
    status = np.array([ended(prepared, t, low, high, still) for t in traces])
    best = best_of(traces, status, tolerance)
    if status[best] == Status.INFEASIBLE:
        _leave_greatest_violation(prepared, traces, status, best, low, high, evaluate, run)
    flat = np.zeros((0, starts.shape[1]))
    if status[best] in (Status.LEAST, Status.STALLED, Status.STEPS) and traces[best].best.violation <= tolerance:
        end, escapes = traces[best].best, 0
        measured = optimality(evaluate, end, low, high, idle(prepared, end.x))
        while measured.down is not None and escapes < ESCAPES:
            escapes += 1
            aside = [np.clip(end.x + s * ASIDE * measured.down, low, high) for s in (1, -1)]
            found = min(run(np.stack(aside)), key=lambda t: t.best.cost if t.best.violation <= tolerance else np.inf)
            if not traces[best].better(found.best, end):
                break
            found.costs, found.violations = (
                traces[best].costs + found.costs,
                traces[best].violations + found.violations,
            )
            traces[best], end = found, found.best
            measured = optimality(evaluate, end, low, high, idle(prepared, end.x))
        status[best], flat = decided(measured, end, Status(int(status[best])), prepared)
    x = np.stack([s if t.best is None else t.best.x for s, t in zip(starts, traces, strict=True)])
    cost = np.array([np.inf if t.best is None else float(t.best.cost) for t in traces])
    worst = np.stack([before * np.nan if t.best is None else t.best.largest for t in traces])
    normal = np.stack([_normal(t.best, starts.shape[1]) for t in traces])
    return Ends(x, cost, worst, status.astype(np.int32), normal), _history(traces), before, best, flat


def at_once(prepared: Prepared, starts: int) -> int:
    """How many points are evaluated in one call."""
    motions = max(getattr(o, "samples", 1) for o in prepared.objectives)
    return max(1, min(starts, AT_ONCE // motions))


def decided(measured: Optimality, end: Local, status: Status, prepared: Prepared) -> tuple[Status, np.ndarray]:
    """(status of a point that meets the conditions, directions (k, n) in which neither cost nor conditions change
    there).

    Such directions leave a fit undetermined; in other problems, they leave a choice between equally good designs.
    """
    none = np.zeros((0, len(end.x)))
    if status is Status.RUNAWAY:
        return status, none
    if not measured.least(float(end.cost)):
        return Status.STEPS if status is Status.STEPS else Status.STALLED, none
    wanted = [o for o, condition in zip(prepared.objectives, prepared.conditions, strict=True) if not condition]
    fitted = any(o.noisy for o in prepared.objectives) or all(o.goal == "least" for o in wanted)
    return Status.UNDETERMINED if len(measured.flat) and fitted else Status.LEAST, measured.flat


def within_reach(prepared: Prepared, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) (n,): the bounds, and limits for a solver where there is no bound. The limits lie beyond the distance
    at which `Variables.away` counts a variable as running away."""
    far = np.full(len(x), 10 * LARGEST)
    far[: prepared.variables.size][prepared.variables.logarithmic] = 2 * np.log(LARGEST)
    return np.maximum(prepared.low, x - far), np.minimum(prepared.high, x + far)


def idle(prepared: Prepared, x: np.ndarray) -> np.ndarray:
    """(n,) whether a variable changes no coordinate, as happens if an extent of a body has vanished."""
    v = prepared.variables
    slopes = np.asarray(compiled(jax.jacfwd(v.place))(jnp.asarray(x[: v.size])))
    size = np.abs(slopes).max(axis=1, keepdims=True)
    still = np.zeros(len(x), bool)
    still[: v.size] = np.all(np.abs(slopes) <= 1e-7 * size, axis=0)
    return still


def ended(prepared: Prepared, trace: Trace, low: np.ndarray, high: np.ndarray, still: np.ndarray) -> Status:
    """Status by the first-order conditions at the best point; the second order is tested for the best start only."""
    here = trace.best
    if here is None or not (here.finite or here.violation > trace.tolerance):
        return Status.NOT_FINITE
    if np.any(prepared.variables.away(here.x[: prepared.variables.size])):
        return Status.RUNAWAY
    used_up = Status.STEPS if trace.used_up else Status.STALLED
    if here.violation > trace.tolerance:
        return Status.INFEASIBLE if least_violation(here, low, high, still) else used_up
    rest = np.abs(first_order(here, low, high, still).rest).max(initial=0.0)
    small = rest <= 1e-5 * np.abs(here.slope).max(initial=0.0) or rest <= 1e-6 * abs(here.cost)
    return Status.LEAST if small else used_up


def of_violation(here: Local) -> Local:
    """The same point for a problem without conditions, whose cost is half the sum of squares of the violations."""
    r, slopes, empty = *_violated(here), np.zeros((0, len(here.x)))
    none = np.zeros(0)
    return here._replace(
        cost=0.5 * float(r @ r), slope=slopes.T @ r, equal=none, margins=none, equal_slopes=empty, margin_slopes=empty
    )


def _violated(here: Local) -> tuple[np.ndarray, np.ndarray]:
    """(residuals, derivatives) of the conditions, and of the margins that are violated."""
    out = here.margins < 0
    return np.concatenate([here.equal, here.margins[out]]), np.concatenate([here.equal_slopes, here.margin_slopes[out]])


def least_violation(here: Local, low: np.ndarray, high: np.ndarray, still: np.ndarray) -> bool:
    """Whether, to first order, no small change reduces the sum of squares of the violations."""
    r, slopes = _violated(here)
    rest = np.abs(first_order(of_violation(here), low, high, still).rest)
    return bool(np.all(rest <= 1e-4 * np.linalg.norm(r) * np.maximum(np.linalg.norm(slopes, axis=0), 1e-9)))


def way_out(
    here: Local, evaluate: Callable[[np.ndarray], Sequence[Local]], low: np.ndarray, high: np.ndarray, still: np.ndarray
) -> np.ndarray | None:
    """A direction (n,) of negative curvature of the violation, at a point where its gradient vanishes; None if there is
    no such direction, so that the violation is at a minimum."""

    def at(x: np.ndarray) -> list[Local]:
        return [of_violation(p) for p in evaluate(x)]

    return optimality(at, of_violation(here), low, high, still).down


def _leave_greatest_violation(
    prepared: Prepared, traces: list[Trace], status: np.ndarray, best: int, low: np.ndarray, high: np.ndarray,
    evaluate: Callable[[np.ndarray], Sequence[Local]], run: Callable[[np.ndarray], list[Trace]],
) -> None:  # fmt: skip
    """Continue the best search if its violation is at a maximum or a saddle point. If it cannot leave that point, its
    status becomes STALLED, not INFEASIBLE."""
    for _ in range(ESCAPES):
        end = traces[best].best
        assert end is not None
        still = idle(prepared, end.x)
        down = way_out(end, evaluate, low, high, still)
        if down is None:
            return
        aside = [np.clip(end.x + s * ASIDE * down, low, high) for s in (1, -1)]
        found = run(np.stack(aside))
        states = np.array([ended(prepared, t, low, high, still) for t in found])
        other = best_of(found, states, traces[best].tolerance)
        if not traces[best].better(found[other].best, end):
            status[best] = Status.STALLED
            return
        found[other].costs = traces[best].costs + found[other].costs
        found[other].violations = traces[best].violations + found[other].violations
        traces[best], status[best] = found[other], states[other]
        if status[best] != Status.INFEASIBLE:
            return


def best_of(traces: list[Trace], status: np.ndarray, tolerance: float) -> int:
    """Index of the start with the smallest cost among those that meet the conditions (among equal costs, one with
    status LEAST); if none meets them, index of the start with the smallest violation."""

    def key(k: int) -> tuple[int, float]:
        here = traces[k].best
        if here is None or status[k] in (Status.RUNAWAY, Status.NOT_FINITE):
            return (2, 0.0)
        if here.violation > tolerance:
            return (1, here.broken)
        return (0, float(here.cost))

    best = min(range(len(traces)), key=key)
    if key(best)[0] == 0:
        near = float(traces[best].best.cost) + 1e-9 * abs(float(traces[best].best.cost))
        proper = [k for k in range(len(traces)) if status[k] == Status.LEAST and traces[k].best.cost <= near]
        return proper[0] if proper else best
    return best


def _normal(here: Local | None, n: int) -> np.ndarray:
    if here is None:
        return np.zeros((n, n))
    rows = np.concatenate([here.equal_slopes, here.margin_slopes[used_up(here)]])
    return rows.T @ rows


def _history(traces: list[Trace]) -> np.ndarray:
    """(evaluations, 2, starts): cost and violation of the best point so far; shorter searches repeat their last
    values."""
    longest = max(len(t.costs) for t in traces)
    out = np.full((longest, 2, len(traces)), np.nan)
    for k, t in enumerate(traces):
        best = (np.inf, np.inf)
        for i, now in enumerate(zip(t.costs, t.violations, strict=True)):
            holds = now[1] <= t.tolerance
            if np.isfinite(now).all() and (
                (holds and (best[1] > t.tolerance or now[0] < best[0])) or (not holds and now[1] < best[1])
            ):
                best = now
            out[i:, :, k] = best
    return out
