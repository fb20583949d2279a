"""How seldom a criterion of a study is missed: its probability where no Monte Carlo run reaches, and the worst case in
words."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.io.errors import InputError, Problem, choices
from jaxmbs.study.batch import precision, samples_of, study_key
from jaxmbs.study.layout import ANEW, labels
from jaxmbs.study.reliability import (
    Estimate,
    LimitState,
    design_points,
    first_order,
    importance_sampling,
    second_order,
    subset_simulation,
    worst_cases,
)
from jaxmbs.study.reliability.limit_state import in_blocks
from jaxmbs.study.slopes import slopes_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jaxmbs.study.criteria import Criterion
    from jaxmbs.study.problem import Study

_ROWS = 64  # samples that are computed at once
_TOLD = 6  # inputs of a point that are told, the largest


def limit_state_of(study: Study, criterion: Criterion) -> LimitState:
    """The limit state of a study's criterion: its margin [SI], over one standard normal number per input of the dispersions.

    Values come from the program of `run`; a sample that fails is a failure of the criterion, as in a report.
    """
    from scipy.special import ndtr

    dtype, inputs, label = precision(), len(study.dispersions.inputs), labels(study).outputs[criterion.output]
    samples, keys = samples_of(study, dtype), study.dispersions.keys(study_key(study.seed))

    def results(u: np.ndarray) -> dict[str, Any]:
        points, index = ndtr(u).astype(dtype), np.zeros(len(u), np.uint32)
        found = {k: np.array(x) for k, x in samples(keys, index, points).items()}
        for k in np.flatnonzero(found.pop(ANEW)):
            one = samples(keys, index[:1], points[k : k + 1], fused=False)
            for name, x in found.items():
                x[k] = one[name][0]
        return {"margin": np.where(found["status"] == 0, criterion.margin(found[label]), np.nan)}

    found = slopes_of(study)

    def slopes(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return criterion.margin_slopes(*found(u, criterion.output))

    return LimitState(lambda u: in_blocks(results, u, _ROWS)["margin"], slopes, inputs)


def picked(study: Study, text: str | None) -> Criterion:
    """The criterion that is meant: its sentence, its output's name, or the only one. Raises InputError."""
    found = [c for c in study.criteria if text is None or text in (c.text, c.output)]
    if len(found) == 1:
        return found[0]
    known = [c.text for c in study.criteria]
    what = f"several criteria; {choices(text or '', known, 'criteria')}" if found or text is None else None
    message = what or f'there is no criterion "{text}"; {choices(text or "", known, "criteria")}'
    raise InputError(Problem("--criterion", message if known else "the study has no criteria; write some"))


def rare(
    study: Study, criterion: str | None = None, method: str = "importance", n: int = 4000, radius: float = 3.0,
    of: str | Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Probability that a criterion is missed, most probable way and worst case within `radius` standard deviations, as
    plain data.

    method: "importance" (around the most probable failures, found by gradient) or "subset" (n samples in each of
    about eight levels, no gradients); of: a run of the study, whose worst sample is told beside the worst case.
    """
    c = picked(study, criterion)
    if method not in ("importance", "subset"):
        raise InputError(Problem("--method", f'"{method}" is none; take importance or subset'))
    g = limit_state_of(study, c)
    unit = study.shown[c.output]
    estimates: list[Estimate] = []
    points, worst = [], None
    if method == "subset":
        estimates.append(subset_simulation(g, max(n // 8, 20), seed=study.seed))
    else:
        try:
            points = design_points(g, seed=study.seed)
        except ModelError as error:
            raise InputError(Problem("--method", f"no gradients here: {error}; take subset")) from None
        estimates += [first_order(g, points), second_order(g, points)] if points else []
        estimates.append(importance_sampling(g, points, n, seed=study.seed))
        found = worst_cases(g, radius, seed=study.seed)
        worst = {
            "radius": radius, "margin": found.value / unit.factor, "replayed": float(g(found.u[None])[0]) / unit.factor,
            "inputs": told(study, found.u), "starts": found.found,
        }  # fmt: skip
    return {
        "study": study.model.name, "criterion": c.text, "unit": unit.name, "inputs": g.inputs,
        "margin_of_the_median": float(g(np.zeros((1, g.inputs)))[0]) / unit.factor,
        "estimates": [asdict(e) for e in estimates],
        "points": [{"beta": p.beta, "converged": p.converged, "inputs": told(study, p.u)} for p in points],
        "worst": worst, "worst_sample": _worst_sample(study, c, of) if of else None, "simulations": g.simulations,
    }  # fmt: skip


def told(study: Study, u: np.ndarray) -> dict[str, float]:
    """The inputs of a point that are farthest out, in standard deviations."""
    names = study.dispersions.inputs
    return {names[k]: float(u[k]) for k in np.argsort(-np.abs(u))[:_TOLD]}


def _worst_sample(study: Study, criterion: Criterion, folder: str | Path) -> dict[str, Any]:
    from jaxmbs.study import store as stores
    from jaxmbs.study.damage import require_sound
    from jaxmbs.study.statistics import least, summarize

    store = stores.open_folder(folder)
    if store.provenance["file_sha256"] != study.sha256:
        raise InputError(Problem("--of", f"{folder} is a run of another file; take {folder}/study.toml"))
    study = study.of_size(store.n)
    stores.require_results(study, store)
    require_sound(study, store)
    summary = summarize(study, store)
    found = least(criterion, summary, 1)
    if not found:
        return {"sample": None, "of": summary.done, "margin": np.nan}
    ((sample, x),) = found
    margin = float(criterion.margin(np.array([x]))[0]) / study.shown[criterion.output].factor
    return {"sample": sample, "of": summary.done, "margin": margin}


def table(found: dict[str, Any]) -> RenderableType:
    """The same for the terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = Table(title=f"misses: {found['criterion']}", title_justify="left", title_style="bold")
    for name in ("method", "probability", "95% interval", "simulations", ""):
        rows.add_column(name, justify="left" if name in ("method", "") else "right")
    for e in found["estimates"]:
        interval = f"{e['low']:.2e} .. {e['high']:.2e}" if np.isfinite(e["low"]) and np.isfinite(e["high"]) else "-"
        rows.add_row(
            e["method"], f"{e['probability']:.2e}", interval, f"{e['simulations']:,}", Text(e["remark"], style="yellow")
        )
    parts: list[RenderableType] = [rows]
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
