"""What several runs with the same draws show: shares and medians of each, and paired differences from a baseline.

The designs of a trade study are such runs, and so are those that `jaxmbs compare` compares with the first. Every run has
the same draws sample by sample, so differences are those of pairs of samples. Runs are read one after another, each together
with the baseline: memory grows neither with their number nor with that of their samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.problem.criteria import Criterion
from jaxmbs.study.problem.study import Study
from jaxmbs.study.results.columns import defined
from jaxmbs.study.results.provenance import differences
from jaxmbs.study.results.store import Store
from jaxmbs.study.statistics.equivalence import ROUNDING
from jaxmbs.study.statistics.order_statistics import interval
from jaxmbs.study.statistics.pairs import (
    differences_of,
    interval_of_shares,
    mcnemar,
    met_in_one_only,
    parts,
    same_draws,
)
from jaxmbs.study.statistics.summary import CONFIDENCE, QUANTILES, Summary, summarize
from jaxmbs.study.units import Unit

ALPHA = 1 - CONFIDENCE
SAME, UNKNOWN, NOT_DISTINGUISHED = "the same in all samples", "not known", "not distinguished"
NO_NUMBERS = (float("nan"), float("nan"))


@dataclass(frozen=True)
class Run:
    """A run with complete results, and its statistics."""

    study: Study
    store: Store
    summary: Summary


@dataclass(frozen=True)
class Compared:
    """What is the same for all rows of a comparison. criteria (by text), outputs (by name): those of the baseline that every
    run has, with the baseline's required shares and units; count: number of runs; dependence: why there are no intervals,
    "" if there are."""

    criteria: Mapping[str, Criterion]
    outputs: Mapping[str, Unit]
    count: int
    dependence: str

    @property
    def alpha(self) -> float:
        """1 minus the confidence of each interval of a difference, so that the intervals of all runs hold at once."""
        return ALPHA / (self.count - 1)


def found_in(
    base: str, studies: Mapping[str, Study], stores: Mapping[str, Store], remedy: str, called: str = "design"
) -> dict[str, Any]:
    """A comparison of runs with complete results as plain data; numbers of outputs are in the unit given with them.

    base: name of the baseline; studies, stores: of every run, by name; remedy: what to do if the samples of a run do not
    have the same draws as those of the baseline, for which InputError is raised; called: what a run is called, "design" or
    "run", which is also the key of its name.
    """
    whole = Run(studies[base], stores[base], summarize(studies[base], stores[base]))
    common = _common(whole.study, studies, stores)
    told: dict[str, dict[str, Any]] = {}
    for name in studies:
        if name == base:
            told[name] = _rows(whole, None, common)
            continue
        study, store = studies[name], stores[name]
        if not same_draws(whole.study, whole.store, study, store, min(whole.store.n, store.n)):
            said = f'its draws are not those of "{base}", sample by sample, so they cannot be compared; {remedy}'
            raise InputError(Problem(str(store.folder), said))
        told[name] = _rows(Run(study, store, summarize(study, store)), whole, common)

    def listed(kind: str, key: str) -> list[dict[str, Any]]:
        return [{called: name} | rows[kind][key] for name, rows in told.items()]

    return {
        "study": whole.study.model.name, "baseline": base, "samples": whole.store.n, "seed": whole.study.seed,
        "confidence": CONFIDENCE, "dependence": common.dependence or None,
        "notes": notes(common.count, common.dependence, called),
        f"{called}s": [
            {
                called: name, "folder": str(stores[name].folder), "samples": stores[name].n, "failed": rows["failed"],
                "computed_otherwise": differences(whole.store.provenance, stores[name].provenance),
            }
            for name, rows in told.items()
        ],
        "criteria": [
            {"text": text, "required": c.share, f"{called}s": listed("criteria", text)}
            for text, c in common.criteria.items()
        ],
        "outputs": [
            {"output": name, "unit": unit.name, f"{called}s": listed("outputs", name)}
            for name, unit in common.outputs.items()
        ],
    }  # fmt: skip


def notes(count: int, dependence: str, called: str) -> list[str]:
    """What the intervals mean, for `count` runs. dependence: why there are none, or ""; called: see `found_in`."""
    if dependence:
        return [f"no intervals: {dependence}; differences are those of pairs of samples with the same points"]
    shares, changes = (f"{100 * (1 - ALPHA / k):.6g} %" for k in (count, count - 1))
    found = [
        f"intervals of one criterion or output hold for all {called}s at once with {CONFIDENCE:.0%} confidence: each "
        f"share's has {shares}, each difference's {changes} (Bonferroni)"
    ]
    return [
        *found,
        "differences are those of pairs of samples with the same draws; one whose interval contains zero is "
        f"{NOT_DISTINGUISHED}, and that of a criterion also if McNemar's p is above {ALPHA / (count - 1):.3g}",
    ]


def _common(study: Study, studies: Mapping[str, Study], stores: Mapping[str, Store]) -> Compared:
    texts = [{c.text for c in s.criteria} for s in studies.values()]
    criteria = {c.text: c for c in study.criteria if all(c.text in own for own in texts)}
    outputs = {name: study.shown[name] for name in study.outputs if all(name in s.outputs for s in studies.values())}
    dependence = next((s.dependence for s in studies.values() if s.dependence), "")
    if not dependence and any("until" in store.provenance for store in stores.values()):
        dependence = "a run ended by a rule, at a number of samples that depends on its results"
    return Compared(criteria, outputs, len(studies), dependence)


def _rows(run: Run, base: Run | None, common: Compared) -> dict[str, Any]:
    """What is shown of a run. base: the baseline, None if it is the run itself."""
    of = {c.text: c for c in run.study.criteria}
    verdicts = {v.text: v for v in run.summary.verdicts}
    criteria = {}
    for text, asked in common.criteria.items():
        v = verdicts[text]
        low, high = NO_NUMBERS if common.dependence else interval(v.met, v.of, 1 - ALPHA / common.count)
        criteria[text] = {"met": v.met, "of": v.of, "share": v.probability, "low": float(low), "high": float(high),
                          "passed": v.passed}  # fmt: skip
        if base is not None:
            criteria[text] |= _change_of_share(base, run, asked, of[text], common)
    outputs = {}
    for name, unit in common.outputs.items():
        shown = run.summary.quantiles(name) / unit.factor
        told = {f"{q:g}": float(x) for q, x in zip(QUANTILES, shown, strict=True)}
        values = run.summary.outputs[name]
        outputs[name] = {"defined": defined(values), "median": told["0.5"], "quantiles": told}
        if base is not None:
            outputs[name] |= _change_of_output(base, run, name, unit.factor, common)
    return {"criteria": criteria, "outputs": outputs, "failed": sum(f.count for f in run.summary.failed.values())}


def _change_of_share(base: Run, run: Run, asked: Criterion, own: Criterion, common: Compared) -> dict[str, Any]:
    """The difference of the share that meets a criterion, with its interval and McNemar's test."""
    m = min(base.store.n, run.store.n)
    pairs = parts(base.summary.outputs[asked.output], run.summary.outputs[own.output], m)
    lost, gained = met_in_one_only(pairs, (asked.met, own.met))
    low, high = NO_NUMBERS if common.dependence else interval_of_shares(lost, gained, m, common.alpha)
    chance = None if common.dependence else mcnemar(lost, gained)
    if not (lost or gained):
        said = SAME
    elif chance is None:
        said = UNKNOWN
    else:
        sure = chance < common.alpha
        said = "better" if sure and low > 0 else "worse" if sure and high < 0 else NOT_DISTINGUISHED
    return {
        "gained": gained, "lost": lost, "difference": (gained - lost) / m, "difference_low": low,
        "difference_high": high, "chance": chance, "said": said,
    }  # fmt: skip


def _change_of_output(base: Run, run: Run, name: str, factor: float, common: Compared) -> dict[str, Any]:
    """The mean difference of an output with its interval, in the unit that is `factor` in SI."""
    m = min(base.store.n, run.store.n)
    pairs = parts(base.summary.outputs[name], run.summary.outputs[name], m)
    seen = differences_of((a / factor, b / factor) for a, b in pairs)
    low, high = NO_NUMBERS if common.dependence else seen.interval(common.alpha)
    rounding = seen.size * max(ROUNDING[x.store.provenance["precision"]] for x in (base, run))
    if not seen.count:
        said = UNKNOWN
    elif seen.largest <= rounding and not seen.lost:
        said = SAME if seen.largest == 0 else "differs by rounding only"
    elif np.isnan(low):
        said = UNKNOWN
    else:
        said = "higher" if low > 0 else "lower" if high < 0 else NOT_DISTINGUISHED
    return {
        "difference": seen.mean, "difference_low": low, "difference_high": high, "largest": seen.largest,
        "in_one_only": seen.lost, "said": said,
    }  # fmt: skip
