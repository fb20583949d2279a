"""python -m benchmarks.solvers [--keep]: solvers for constrained problems, on published problems and the hinged panel.

All solvers get the same: values and exact first derivatives by `Problems`, whose programs are compiled before timing begins,
and one start. SciPy's SLSQP gets all rows as they are (ftol 1e-9), which is safe because they are few; trust-constr has its
defaults, and BFGS for second derivatives; both may take 1000 steps. The library's solver is the search of method
"constrained"; whether it claims an optimum is the status of `synthesize`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import jaxmbs as mbs
from benchmarks import made_from
from jaxmbs.design import Problem, Status, synthesize
from jaxmbs.design.local import Local, Problems
from jaxmbs.design.optimisers.constrained import searched
from jaxmbs.design.problem import Prepared
from jaxmbs.design.under_conditions import EVALUATIONS, within_reach

RESULTS = Path(__file__).parent / "results" / "solvers.json"
PANEL = Path(mbs.__file__).parent / "study" / "problem" / "template_files" / "synthesis.toml"
NEAR = 1e-6  # largest relative error, and largest violation, of an optimum that counts as found
STEPS = 1000
Answer = tuple[np.ndarray, bool]  # where a solver ended, and whether it claims that this is an optimum


class Asked:
    """`Local` at the points that a solver asks for; a point that is asked for again immediately is counted once."""

    def __init__(self, evaluate: Callable[[np.ndarray], list[Local]]):
        self.evaluate, self.count = evaluate, 0
        self.last: Local | None = None

    def __call__(self, x: np.ndarray) -> Local:
        if self.last is None or not np.array_equal(self.last.x, x):
            self.count += 1
            self.last = self.evaluate(np.array(x, float)[None])[0]  # a copy: solvers change their points in place
        return self.last


def problems() -> Iterator[tuple[str, Problem, float]]:
    """(name, problem, its least cost, NaN if it is not known)."""
    from jaxmbs.design.file import read
    from tests.design.published import HOCK_SCHITTKOWSKI, problem

    for number, published in HOCK_SCHITTKOWSKI.items():
        yield f"HS {number}", problem(published), float(published.least)
    yield "panel", replace(read(PANEL).problem, starts=1), float("nan")


def by_library(ask: Asked, prepared: Prepared) -> Answer:
    """The library's own search."""
    x = prepared.starts()[0]
    most = EVALUATIONS * prepared.problem.max_steps
    trace = searched(ask, x, *within_reach(prepared, x), prepared.problem.tolerance, most)
    return trace.best.x, False  # its claim is the status of `synthesize`


def _usable(value: Any) -> Any:
    return np.nan_to_num(value, nan=1e20, posinf=1e20, neginf=-1e20)


def _bounds(prepared: Prepared) -> Any:
    from scipy.optimize import Bounds

    if not np.isfinite([prepared.low, prepared.high]).any():
        return None
    low: Any = prepared.low
    high: Any = prepared.high
    return Bounds(low, high)


def by_slsqp(ask: Asked, prepared: Prepared) -> Answer:
    """SciPy's SLSQP on the rows as they are."""
    from scipy.optimize import minimize

    x, rules = prepared.starts()[0], []
    here = ask(x)
    if len(here.equal):
        rules.append(
            {"type": "eq", "fun": lambda y: _usable(ask(y).equal), "jac": lambda y: _usable(ask(y).equal_slopes)}
        )
    if len(here.margins):
        rules.append({
            "type": "ineq", "fun": lambda y: _usable(ask(y).margins), "jac": lambda y: _usable(ask(y).margin_slopes)
        })  # fmt: skip
    found = minimize(
        lambda y: float(_usable(ask(y).cost)), x, jac=lambda y: _usable(ask(y).slope), method="SLSQP",
        bounds=_bounds(prepared), constraints=rules, options={"ftol": 1e-9, "maxiter": STEPS},
    )  # fmt: skip
    return found.x, bool(found.success)


def by_trust_constr(ask: Asked, prepared: Prepared) -> Answer:
    """SciPy's trust-constr."""
    from scipy import optimize
    from scipy.optimize import BFGS, minimize

    constraint: Any = optimize.NonlinearConstraint
    x, rules = prepared.starts()[0], []
    here = ask(x)
    if len(here.equal):
        rules.append(constraint(
            lambda y: _usable(ask(y).equal), 0, 0, lambda y: _usable(ask(y).equal_slopes), BFGS()
        ))  # fmt: skip
    if len(here.margins):
        rules.append(constraint(
            lambda y: _usable(ask(y).margins), 0, np.inf, lambda y: _usable(ask(y).margin_slopes), BFGS()
        ))  # fmt: skip
    found = minimize(
        lambda y: float(_usable(ask(y).cost)), x, jac=lambda y: _usable(ask(y).slope), hess=BFGS(),
        method="trust-constr", bounds=_bounds(prepared), constraints=rules, options={"maxiter": STEPS},
    )  # fmt: skip
    return found.x, bool(found.status in (1, 2) and found.success)


SOLVERS = {"jaxmbs": by_library, "SLSQP": by_slsqp, "trust-constr": by_trust_constr}


def measured(name: str, problem: Problem, least: float) -> list[dict[str, Any]]:
    """One result row for every solver."""
    prepared = Prepared(problem)
    evaluate = Problems(prepared, 1)
    evaluate(prepared.starts()[:1])
    status = synthesize(problem).status
    rows = []
    for solver, solve in SOLVERS.items():
        ask = Asked(evaluate)
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, says = solve(ask, prepared)
        taken = time.process_time() - begin
        end = evaluate(np.asarray(x)[None])[0]
        rows.append({
            "problem": name, "solver": solver, "evaluations": ask.count, "cpu_s": round(taken, 4), "cost": float(end.cost),
            "violation": end.violation, "says": status is Status.LEAST if solver == "jaxmbs" else says,
        })  # fmt: skip
    held = [r["cost"] for r in rows if r["violation"] <= NEAR]
    least = min(held) if np.isnan(least) else least  # the best that any solver found, if none is published
    for row in rows:
        row["error"] = abs(row.pop("cost") - least) / max(1.0, abs(least))
        row["found"] = bool(row["error"] <= NEAR and row["violation"] <= NEAR)
    return rows


def ended(row: dict[str, Any]) -> str:
    """Whether the solver claimed an optimum and had found it ("yes"), had not ("wrongly"), or made no claim ("no")."""
    return {(True, True): "yes", (False, True): "wrongly"}.get((row["found"], row["says"]), "no")


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row as text."""
    error = f"{row['error']:.0e}" if row["violation"] <= NEAR else f"violated by {row['violation']:.0e}"
    return row["problem"], row["solver"], f"{row['evaluations']}", f"{row['cpu_s']:.2f}", error, ended(row)


def summary(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Per solver: optima found, found and claimed, wrongly claimed; median and largest number of evaluations; processor time
    of all problems [s]."""
    out = []
    for solver in SOLVERS:
        own = [r for r in rows if r["solver"] == solver]
        word, counts = [ended(r) for r in own], [r["evaluations"] for r in own]
        out.append((
            solver, f"{sum(r['found'] for r in own)} of {len(own)}", f"{word.count('yes')}", f"{word.count('wrongly')}",
            f"{np.median(counts):.0f}", f"{max(counts)}", f"{sum(r['cpu_s'] for r in own):.1f}",
        ))  # fmt: skip
    return out


def main(keep: Annotated[bool, typer.Option(help="Keep the figures.")] = False) -> None:
    """Problem, solver, evaluations, processor time [s], error of the optimum, whether the solver ended properly."""
    from jaxmbs.cli.common import compute

    compute("float64")
    rows = []
    for name, problem, least in problems():
        rows += measured(name, problem, least)
        for row in rows[-len(SOLVERS) :]:
            print("{:8}{:14}{:>5}{:>8} s  {:22}{}".format(*cells(row)), flush=True)
    for line in summary(rows):
        print(
            "{:14}found {}, ended properly {}, wrongly {}; {} evaluations in the median, {} at most; {} s".format(*line)
        )
    if keep:
        made_from.keep(RESULTS, {"problems": rows})


if __name__ == "__main__":
    typer.run(main)
