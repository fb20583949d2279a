"""Minimises a cost under conditions that hold exactly: sequential quadratic programming from all starts together.

SciPy's SLSQP [D. Kraft, A software package for sequential quadratic programming, 1988] takes bounds, equalities and
inequalities with their exact derivatives. Its result is not trusted. All points that it evaluates are recorded, so that
no search ends worse than at the best of them. SLSQP is given only as many equalities as have independent gradients,
because many more equalities than variables overrun its memory. If it stops at a point that is not an optimum, it is
restarted from the best point so far, with the smallest margins at that point and those that it violated because they had
not been given to it. A gain that comes only from using up the tolerance of the conditions does not count. The result is
tested by `optimality`. Where the conditions do not hold, only the sum of squares of their residuals is minimised within
the bounds (SciPy's `least_squares`), which finds a point that meets them or shows that there is no such point nearby.

Why not another solver: on 16 problems of Hock and Schittkowski (exact first derivatives, one start) this search found all
optima with a median of 20 evaluations, 85 at most, in under 2 s altogether; SciPy's trust-constr found 14 of them (21,
122 and 7.3 s); Ipopt (ipyopt 0.12.10, quasi-Newton) found all (15, 55 and 3.1 s), but it is one more compiled library to
install on every system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxmbs.design.local import Local
from jaxmbs.design.optimality import compressed, first_order

# rounds of SLSQP from one start, each from the best point so far; a round that ends where it violates margins that SLSQP
# was not given does not count
ROUNDS = 6
MARGINS = 50  # SLSQP gets this many of the smallest margins, plus four for each variable; a round adds as many at most
INDEPENDENT = 1e-7  # relative singular value below which equalities are combinations of others


@dataclass
class Trace:
    """What one search evaluated: costs and violations in their order, and the best point."""

    tolerance: float
    costs: list[float] = field(default_factory=list)
    violations: list[float] = field(default_factory=list)
    best: Any = None  # Local
    used_up: bool = False  # whether the number of evaluations was used up

    def see(self, here: Local) -> None:
        self.costs.append(float(here.cost))
        self.violations.append(here.violation)
        if here.conditioned and (self.best is None or self.better(here, self.best)):
            self.best = here

    def better(self, a: Local, b: Local) -> bool:
        """Whether a is better than b: by violation until both meet the conditions with a finite cost, then by cost."""
        meets = [p.violation <= self.tolerance and p.finite for p in (a, b)]
        if all(meets):
            return bool(a.cost < b.cost)
        return meets[0] or (not meets[1] and a.broken < b.broken)

    def prefer(self, end: Local, low: np.ndarray, high: np.ndarray, still: np.ndarray) -> None:
        """Take the end of a search as the best point if the best point so far costs less only because it uses up the
        tolerance, and if less of the gradient remains at the end.

        The multipliers at the end bound the gain from the tolerance: in a convex problem, a point that violates the
        conditions costs less by at most the multipliers times its violations.
        """
        best = self.best
        if best is None or not (best.finite and end.finite and max(best.violation, end.violation) <= self.tolerance):
            return
        first = first_order(end, low, high, still)
        taken = np.abs(first.equal) @ np.abs(best.equal) + first.margins @ np.maximum(-best.margins, 0.0)
        rest = [np.abs(r).max(initial=0.0) for r in (first.rest, first_order(best, low, high, still).rest)]
        if end.cost - best.cost <= taken and rest[0] < rest[1]:
            self.best = end


class Enough(Exception):
    """Raised when the number of evaluations is used up."""


def searched(
    ask: Callable[[np.ndarray], Local], x: np.ndarray, low: np.ndarray, high: np.ndarray, tolerance: float, most: int
) -> Trace:
    """The search from one start x; ask: returns `Local` at a point; most: number of evaluations allowed."""
    trace = Trace(tolerance)
    last: list[Local] = []

    def at(y: np.ndarray) -> Local:
        y = np.clip(y, low, high)
        if not last or not np.array_equal(last[0].x, y):
            if len(trace.costs) >= most:
                raise Enough
            last[:] = [ask(y)]
            trace.see(last[0])
        return last[0]

    still = low >= high
    try:
        begin = at(x)
        if begin.conditioned and begin.violation > tolerance and (len(begin.equal) or not begin.finite):
            # First meet the conditions: dependent equalities are recognised only there, and the load of a latch is
            # finite only if the latch closes.
            _restored(at, trace, low, high, still)
        rounds, broken = 0, np.zeros(0, int)
        while rounds < ROUNDS:
            before: Any = trace.best
            if before is None or not before.finite:
                break
            end, unseen = _by_slsqp(at, before, low, high, still, tolerance, broken)
            trace.prefer(end, low, high, still)
            broken = np.concatenate([broken, unseen])
            now: Any = trace.best
            if now.violation > tolerance:
                _restored(at, trace, low, high, still)
                now = trace.best
            elif len(unseen):  # SLSQP is given these margins in the next round; their number grows, so this ends
                continue
            rounds += 1
            if now is before or _settled(now, before, low, high, still, tolerance):
                break
    except Enough:
        trace.used_up = True
    return trace


def _settled(
    here: Local, before: Local, low: np.ndarray, high: np.ndarray, still: np.ndarray, tolerance: float
) -> bool:
    """Whether another round would change nothing."""
    if here.violation > tolerance:
        return here.broken > 0.99 * before.broken
    if before.violation <= tolerance and before.cost - here.cost <= 1e-12 * abs(here.cost):
        return True
    return _least(here, low, high, still)


def _least(here: Local, low: np.ndarray, high: np.ndarray, still: np.ndarray) -> bool:
    """Whether conditions, margins and bounds balance the gradient, almost to rounding."""
    if not here.finite:
        return False
    rest = np.abs(first_order(here, low, high, still).rest).max(initial=0.0)
    return bool(rest <= 1e-8 * np.abs(here.slope).max(initial=0.0) or rest <= 1e-9 * abs(here.cost))


def _by_slsqp(
    at: Callable[[np.ndarray], Local],
    here: Local,
    low: np.ndarray,
    high: np.ndarray,
    still: np.ndarray,
    tolerance: float,
    broken: np.ndarray,
) -> tuple[Local, np.ndarray]:
    """(end point, margins violated there that SLSQP was not given); broken: such margins of earlier rounds."""
    from scipy.optimize import Bounds, minimize

    free = ~still
    if not free.any():
        return here, np.zeros(0, int)
    rows = here.equal_slopes[:, free]
    U, s, _ = np.linalg.svd(rows, full_matrices=False)
    combinations = U[:, : int(np.sum(s > INDEPENDENT * s[0])) if len(s) and s[0] > 0 else 0].T
    many = MARGINS + 4 * len(here.x)
    shown = np.union1d(np.argsort(here.margins, kind="stable")[:many], broken)
    size = max(abs(float(here.cost)), float(np.abs(here.slope[free]).max()), 1e-300)

    def point(y: np.ndarray) -> Local:
        x = here.x.copy()
        x[free] = y
        return at(x)

    def usable(value: Any) -> Any:  # SLSQP cannot handle values that are not finite
        return np.nan_to_num(value, nan=1e20, posinf=1e20, neginf=-1e20)

    def stop_where_least(y: np.ndarray) -> None:
        now = point(y)
        if now.violation <= tolerance and _least(now, low, high, still):
            raise StopIteration

    within: Any = (low[free], high[free])
    rules: list[Any] = []
    if len(combinations):
        rules.append({"type": "eq", "fun": lambda y: combinations @ usable(point(y).equal),
                      "jac": lambda y: combinations @ usable(point(y).equal_slopes[:, free])})  # fmt: skip
    if len(shown):
        rules.append({"type": "ineq", "fun": lambda y: usable(point(y).margins[shown]),
                      "jac": lambda y: usable(point(y).margin_slopes[shown][:, free])})  # fmt: skip
    found = minimize(
        lambda y: float(usable(point(y).cost / size)), here.x[free], jac=lambda y: usable(point(y).slope[free] / size),
        method="SLSQP", bounds=Bounds(*within), constraints=rules,
        options={"maxiter": 100, "ftol": 1e-14}, callback=stop_where_least,
    )  # fmt: skip
    end = point(found.x) if np.isfinite(found.x).all() else here
    unseen = np.setdiff1d(np.flatnonzero(end.margins < -tolerance), shown)
    return end, unseen[np.argsort(end.margins[unseen], kind="stable")[:many]]


def _restored(
    at: Callable[[np.ndarray], Local], trace: Trace, low: np.ndarray, high: np.ndarray, still: np.ndarray
) -> None:
    """Minimise the violation of conditions and margins alone, by least squares."""
    from scipy.optimize import Bounds, least_squares, minimize

    here, free = trace.best, ~still
    n = int(free.sum())
    if n == 0:
        return

    within: Any = (low[free], high[free])

    def broken(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = here.x.copy()
        x[free] = y
        found = at(x)
        out = found.margins < 0
        r = np.concatenate([found.equal, found.margins[out]])
        slopes = np.concatenate([found.equal_slopes, found.margin_slopes[out]])[:, free]
        r, slopes = compressed(np.nan_to_num(r, nan=1e20, posinf=1e20, neginf=-1e20), np.nan_to_num(slopes))
        more = n + 1 - len(r)
        return np.append(r, np.zeros(more)), np.vstack([slopes, np.zeros((more, n))])

    solve: Any = least_squares
    solve(
        lambda y: broken(y)[0], np.clip(here.x[free], low[free], high[free]), jac=lambda y: broken(y)[1],
        bounds=within, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=60,
    )  # fmt: skip
    if trace.best.violation <= trace.tolerance:
        return
    # a violation may remain because least_squares approaches bounds only slowly; SLSQP reaches them
    size = max(trace.best.broken, 1e-300)
    minimize(
        lambda y: float(np.sum(broken(y)[0] ** 2)) / size, trace.best.x[free],
        jac=lambda y: 2 * broken(y)[1].T @ broken(y)[0] / size, method="SLSQP", bounds=Bounds(*within),
        options={"maxiter": 100, "ftol": 1e-15},
    )  # fmt: skip
