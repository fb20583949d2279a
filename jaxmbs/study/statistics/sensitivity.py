"""Finds which inputs an output depends on, from a finished run with a suitable sampling plan.

SciPy, rich, SALib (an optional dependency) and the module that differentiates are imported where they are used.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.reports import printed
from jaxmbs.study.folder.shell import command
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import sound_study
from jaxmbs.study.sampling.designs import MORRIS_LEVELS, MORRIS_REACH, group_size
from jaxmbs.study.statistics.summary import CONFIDENCE, summarize

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.sampling.designs import SamplingPlan

_FEWEST = 8  # measures need at least this many complete groups of samples
# by sampling plan: the measures that are reported of each input; the inputs are sorted by the first
MEASURES = {
    "saltelli": ("total", "total_reach", "first", "first_reach"),
    "morris": ("mean_size", "mean_size_reach", "mean", "deviation"),
    "ranks": ("rank_correlation", "low", "high"),
}
_HEADS = {
    "total": "total index", "total_reach": "+-", "first": "first index", "first_reach": "+-", "mean_size": "mean |effect|",
    "mean_size_reach": "+-", "mean": "mean effect", "deviation": "deviation", "rank_correlation": "rank correlation",
    "low": "from", "high": "to",
}  # fmt: skip


def sensitivity(folder: str | Path, trust: bool = False) -> dict[str, Any]:
    """How each output depends on each input of a finished run, as plain data, the strongest input first.

    folder: that of the run; trust: run the Python modules of its study.
    design = "saltelli": Sobol's first and total indices (shares of the variance); "morris": sizes of elementary
    effects, in the output's SI unit per unit of an input's probability; any other sampling: rank correlations with
    their intervals. Groups with a failed sample are left out and counted; if too few remain, no inputs are given, but
    the reason (`why`). Raises InputError if samples are missing, or if the sampling plan is a sweep.
    """
    store = stores.open_folder(folder)
    study = sound_study(store, trust)
    summary = summarize(study, store)
    if summary.done < store.n:
        again = command("resume", folder, record=store.provenance)
        raise InputError(Problem(str(folder), f"is not finished; `{again}` computes the rest"))
    kind = study.plan.design if study.plan.design in MEASURES else "ranks"
    if study.plan.design in ("factorial", "one_at_a_time"):
        message = "the points of a sweep are chosen, not drawn; take saltelli, morris or random"
        raise InputError(Problem("study.design", message))
    outputs = {}
    for name in study.outputs:
        outputs[name] = _of(study, store, kind, np.asarray(summary.outputs[name]))
    return {"study": study.model.name, "measure": kind, "samples": store.n, "outputs": outputs}


def _of(study: Study, store: stores.Store, kind: str, y: np.ndarray) -> dict[str, Any]:
    names = study.dispersions.inputs
    group = group_size(study.plan.design, len(names))
    whole = np.isfinite(y).reshape(-1, group).all(1)
    rows = np.repeat(whole, group)
    found: dict[str, Any] = {"left_out": int(np.count_nonzero(~whole))}
    if np.count_nonzero(whole) < _FEWEST:
        return found | {"inputs": {}, "why": f"only {np.count_nonzero(whole)} groups of samples are complete"}
    if np.ptp(y[rows]) == 0:
        return found | {"inputs": {}, "why": "the output is the same in all samples"}
    if kind == "ranks":
        values = _ranks(study, store, y)
    else:
        design = study.design
        assert design is not None
        values = (sobol_indices if kind == "saltelli" else elementary_effects)(design, y, rows)
    order = sorted(values, key=lambda name: -abs(np.nan_to_num(values[name][MEASURES[kind][0]])))
    return found | {"inputs": {name: values[name] for name in order}}


def sobol_indices(design: SamplingPlan, y: np.ndarray, rows: np.ndarray) -> dict[str, dict[str, float]]:
    """First and total indices with half the widths of their intervals, by SALib. y (n,); rows (n,) bool: which samples
    belong to complete groups."""
    analyze = _salib("sobol")
    x = y[rows]
    found = analyze(_problem(design), (x - x.mean()) / x.std(), calc_second_order=False, conf_level=CONFIDENCE, seed=1)
    return {
        name: {"first": float(found["S1"][k]), "first_reach": float(found["S1_conf"][k]),
               "total": float(found["ST"][k]), "total_reach": float(found["ST_conf"][k])}
        for k, name in enumerate(design.names)
    }  # fmt: skip


def elementary_effects(design: SamplingPlan, y: np.ndarray, rows: np.ndarray) -> dict[str, dict[str, float]]:
    """Morris' measures by SALib: change of the output per unit of an input's probability (its place between 0 and 1 in
    its distribution). y (n,); rows (n,) bool: which samples belong to complete walks."""
    analyze = _salib("morris")
    points, reach = (
        design.points(0, design.n)[rows],
        MORRIS_REACH[1] - MORRIS_REACH[0],
    )  # SALib assumes a grid over the unit cube
    found = analyze(_problem(design), points, y[rows] / reach, conf_level=CONFIDENCE, num_levels=MORRIS_LEVELS, seed=1)
    return {
        name: {"mean_size": float(found["mu_star"][k]), "mean_size_reach": float(found["mu_star_conf"][k]),
               "mean": float(found["mu"][k]), "deviation": float(found["sigma"][k])}
        for k, name in enumerate(design.names)
    }  # fmt: skip


def _ranks(study: Study, store: stores.Store, y: np.ndarray) -> dict[str, dict[str, float]]:
    """Spearman's coefficients of the draws, with Fisher's intervals (their variance by Bonett and Wright 2000)."""
    from scipy.stats import norm, spearmanr

    data, fine = store.draws(study), np.isfinite(y)
    m, values = int(np.count_nonzero(fine)), {}
    for d in study.dispersions.items:
        x = data[d.name][fine]
        for k, label in enumerate(d.labels):
            if np.ptp(x[:, k]) == 0:
                continue
            r = float(np.clip(np.asarray(spearmanr(x[:, k], y[fine]))[0], -1 + 1e-12, 1 - 1e-12))
            reach = float(norm.isf((1 - CONFIDENCE) / 2)) * np.sqrt((1 + r * r / 2) / max(m - 3, 1))
            low, high = np.tanh(np.arctanh(r) + np.array([-reach, reach]))
            if study.dependence:
                low = high = np.nan
            values[label] = {"rank_correlation": r, "low": float(low), "high": float(high)}
    return values


def _problem(design: SamplingPlan) -> dict[str, Any]:
    return {"num_vars": len(design.names), "names": list(design.names), "bounds": [[0.0, 1.0]] * len(design.names)}


def _salib(name: str) -> Any:
    try:
        return import_module(f"SALib.analyze.{name}").analyze
    except ImportError:
        message = "these indices need SALib: pip install 'jaxmbs[sensitivity]'"
        raise InputError(Problem("study.design", message)) from None


def derivatives(study: Study, samples: int = 16) -> dict[str, np.ndarray]:
    """{criterion: (samples, inputs)} derivatives of the margin of each criterion of a study with respect to each input, in
    the margin's SI unit per standard deviation of the input, at this number of random samples. They are exact (automatic
    differentiation), and show how the sensitivity varies between samples."""
    from scipy.special import ndtri

    from jaxmbs.study.statistics.slopes import slopes_of

    rng = np.random.default_rng(study.seed)
    u = ndtri(rng.uniform(size=(samples, len(study.dispersions.inputs))))
    slopes = slopes_of(study)
    return {c.text: c.margin_slopes(*slopes(u, c.output))[1] for c in study.criteria}


def table(found: dict[str, Any], most: int = 10) -> RenderableType:
    """What `sensitivity` found, as a table for the terminal: the strongest inputs of each output."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    keys = MEASURES[found["measure"]]
    heads = [_HEADS[key] for key in keys]
    for name, of in found["outputs"].items():
        rows = [(label, *(f"{x[k]:.3g}" for k in keys)) for label, x in list(of["inputs"].items())[:most]]
        shown = printed(name, ("input", *heads), rows, heads)
        parts.append(shown if rows else Text(f"{name}: {of['why']}", style="yellow"))
        if of["left_out"]:
            parts.append(Text(f"{of['left_out']:,} groups with a failed sample are left out", style="yellow"))
    return Group(*parts)
