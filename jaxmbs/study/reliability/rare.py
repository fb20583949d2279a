"""How rarely a criterion of a study is missed: probabilities too small for a Monte Carlo run to estimate, and the worst
case.

SciPy and rich are imported when something is computed or shown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxmbs.io.errors import InputError, Problem, choices
from jaxmbs.io.reports import printed
from jaxmbs.study.folder.layout import labels
from jaxmbs.study.reliability import (
    DesignPoint,
    Estimate,
    Failures,
    LimitState,
    design_points,
    failures,
    first_order,
    importance_sampling,
    second_order,
    subset_simulation,
    worst_cases,
)
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import require_sound
from jaxmbs.study.samples.batch import cached_program, is_random, keys_of, on_all_devices, precision, samples_of
from jaxmbs.study.samples.blocks import in_blocks
from jaxmbs.study.statistics.summary import least, summarize

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jaxmbs.study.problem.criteria import Criterion
    from jaxmbs.study.problem.study import Study

_ROWS = 16  # samples that a core computes at once: a search asks for few at a time
_STARTS = 3  # starting points of a search by gradient
_TOLD = 6  # number of inputs of a point that are reported, the largest

Progress = Callable[[str, int, float], None]


def limit_state_of(study: Study, criterion: Criterion) -> LimitState:
    """The limit state of a study's criterion: its margin [SI], as a function of one standard normal number per input of
    the dispersions.

    Values come from the program of `run`; a sample that fails counts as a failure of the criterion, as in a report.
    Gradients are finite differences of values: a search needs only some dozens of them, too few to be worth
    compiling a program in reverse mode.
    """
    from scipy.special import ndtr

    dtype, inputs, label = precision(), len(study.dispersions.inputs), labels(study).outputs[criterion.output]
    if is_random(study):
        raise InputError(
            Problem(
                "mechanism",
                "rare: the noise of sensors and the random numbers of controllers are no inputs of a search",
            )
        )
    samples, keys = samples_of(study, dtype), keys_of(study)
    rows = _ROWS * jax.device_count()

    @functools.cache
    def program() -> Any:
        points = np.zeros((rows, inputs), dtype)
        return cached_program(study, "rare", on_all_devices(samples), keys, np.zeros(rows, np.uint32), points)

    def results(u: np.ndarray) -> dict[str, Any]:
        points, index = ndtr(u).astype(dtype), np.zeros(len(u), np.uint32)
        found = {k: np.array(x) for k, x in program()(keys, index, points).items()}
        return {"margin": np.where(found["status"] == 0, criterion.margin(found[label]), np.nan)}

    return LimitState(lambda u: in_blocks(results, u, rows)["margin"], None, inputs)


def picked(study: Study, text: str | None) -> Criterion:
    """The criterion whose sentence or output is `text`; None: the only one. Raises InputError unless one matches."""
    found = [c for c in study.criteria if text is None or text in (c.text, c.output)]
    if len(found) == 1:
        return found[0]
    known = [c.text for c in study.criteria]
    what = f"several criteria; {choices(text or '', known, 'criteria')}" if found or text is None else None
    message = what or f'there is no criterion "{text}"; {choices(text or "", known, "criteria")}'
    raise InputError(Problem("--criterion", message if known else "the study has no criteria; write some"))


def rare(
    study: Study, criterion: str | None = None, method: str = "importance", n: int = 4000, radius: float = 3.0,
    of: str | Path | None = None, progress: Progress | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Probability that a criterion is missed, the most probable way to miss it, and the worst case within `radius`
    standard deviations, as plain data.

    criterion: its sentence or its output, None for the only one; method: "importance" (n samples around failures, which
    are searched for first) or "subset" (ten runs with n / 20 samples, at least 100, in each level, where each level is
    reached by a tenth of the samples of the previous one; without the most probable way and the worst case); of: a run of
    the study, whose worst sample is reported as well; progress: called with (stage, simulations so far, margin that was
    reached, in the unit that reports show).
    """
    c = picked(study, criterion)
    if method not in ("importance", "subset"):
        raise InputError(Problem("--method", f'"{method}" is not a method; take importance or subset'))
    unit = study.shown[c.output]
    g = limit_state_of(study, c)
    if progress:
        g.progress = lambda stage, done, level: progress(stage, done, level / unit.factor)
    g.at("compiling")
    median = float(g(np.zeros((1, g.inputs)))[0])
    points, worst = [], None
    if method == "subset":
        estimates = [subset_simulation(g, max(n // 20, 100), seed=study.seed)]
    else:
        found = failures(g, max(n // 13, 100), study.seed)
        points, flat = _points(g, found, n, study.seed)
        sampled = importance_sampling(g, points, n, seed=study.seed, found=found)
        estimates = [*(_compared(e, sampled) for e in flat), sampled]
        if not any(s.flat for s in found.searches):
            g.at("worst case")
            least = worst_cases(g, radius, starts=4, seed=study.seed, near=_near(found), most=n // 8)
            worst = {
                "radius": radius, "margin": least.value / unit.factor,
                "replayed": float(g(least.u[None])[0]) / unit.factor,
                "inputs": told(study, least.u), "starts": least.found,
            }  # fmt: skip
    return {
        "study": study.model.name, "criterion": c.text, "unit": unit.name, "inputs": g.inputs,
        "margin_of_the_median": median / unit.factor,
        "estimates": [asdict(e) for e in estimates],
        "points": [{"beta": p.beta, "converged": p.converged, "inputs": told(study, p.u)} for p in points],
        "worst": worst, "worst_sample": _worst_sample(study, c, of) if of else None, "simulations": g.simulations,
    }  # fmt: skip


def _near(found: Failures) -> np.ndarray | None:
    """Failures (k, d) from which a search by gradient starts; None if none was found."""
    return found.apart(_STARTS) if found.reached else None


def _points(g: LimitState, found: Failures, n: int, seed: int) -> tuple[list[DesignPoint], list[Estimate]]:
    """The design points, and the estimates of the probability from them: to first order and, if the curvatures need at
    most n / 8 simulations, to second order."""
    if not found.reached:
        return [], []
    g.at("most probable failure")
    points = design_points(g, seed=seed, near=_near(found), most=n // 4)
    flat = [first_order(g, points)] if points else []
    if points and 4 * g.inputs**2 * len(points) <= n // 8:
        g.at("curvatures")
        flat.append(second_order(g, points))
    return points, flat


def _compared(e: Estimate, sampled: Estimate) -> Estimate:
    """The estimate e, which comes from design points, with a remark if it is outside the interval of `sampled`, the
    estimate from samples."""
    if e.remark or not sampled.high > 0 or sampled.low <= e.probability <= sampled.high:
        return e
    return replace(
        e,
        remark=(
            "outside the interval of the samples: the failure boundary does not have the shape that the method assumes"
        ),
    )


def told(study: Study, u: np.ndarray) -> dict[str, float]:
    """The inputs that are farthest from their medians at a point u (d,), in standard deviations: name -> component."""
    names = study.dispersions.inputs
    return {names[k]: float(u[k]) for k in np.argsort(-np.abs(u))[:_TOLD]}


def _worst_sample(study: Study, criterion: Criterion, folder: str | Path) -> dict[str, Any]:
    store = stores.open_folder(folder)
    if store.provenance["file_sha256"] != study.sha256:
        raise InputError(Problem("--of", f"{folder} is a run of another study file; take {folder}/study.toml"))
    study = study.of_size(store.n)
    require_sound(study, store)
    summary = summarize(study, store)
    found = least(criterion, summary, 1)
    if not found:
        return {"sample": None, "of": summary.done, "margin": np.nan}
    ((sample, x),) = found
    margin = float(criterion.margin(np.array([x]))[0]) / study.shown[criterion.output].factor
    return {"sample": sample, "of": summary.done, "margin": margin}


def table(found: dict[str, Any]) -> RenderableType:
    """What `rare` found, as a table for the terminal."""
    from rich.console import Group
    from rich.text import Text

    rows = []
    for e in found["estimates"]:
        interval = f"{e['low']:.2e} .. {e['high']:.2e}" if np.isfinite(e["low"]) and np.isfinite(e["high"]) else "-"
        remark = Text(e["remark"], style="yellow")
        rows.append((e["method"], f"{e['probability']:.2e}", interval, f"{e['simulations']:,}", remark))
    right = ("probability", "95% interval", "simulations")
    parts: list[RenderableType] = [printed(f"misses: {found['criterion']}", ("method", *right, ""), rows, right)]
    for p in found["points"]:
        parts.append(Text(f"most probable failure at {p['beta']:.2f} standard deviations: {_said(p['inputs'])}"))
    w, unit = found["worst"], found["unit"]
    if w:
        head = f"worst case within {w['radius']:g} standard deviations: margin {w['margin']:.5g} {unit}"
        parts.append(Text(f"{head} (replayed {w['replayed']:.5g}): {_said(w['inputs'])}"))
    s = found["worst_sample"]
    if s and s["sample"] is not None:
        parts.append(Text(f"worst of {s['of']:,} samples: number {s['sample']}, margin {s['margin']:.5g} {unit}"))
    return Group(*parts)


def _said(inputs: dict[str, float]) -> str:
    return ", ".join(f"{name} {x:+.2f}" for name, x in inputs.items())
