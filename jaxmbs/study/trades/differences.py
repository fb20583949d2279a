"""What the runs of a trade study show: shares and medians of every design, and paired differences from the baseline.

Every design has the same draws sample by sample, so differences are those of pairs of samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.problem.study import Study
from jaxmbs.study.results.columns import defined
from jaxmbs.study.results.provenance import differences
from jaxmbs.study.results.store import Store
from jaxmbs.study.statistics.comparison import matched, paired_numbers, paired_shares
from jaxmbs.study.statistics.equivalence import ROUNDING
from jaxmbs.study.statistics.order_statistics import interval
from jaxmbs.study.statistics.summary import CONFIDENCE, QUANTILES, Summary, summarize
from jaxmbs.study.trades.designs import Designs

ALPHA = 1 - CONFIDENCE
SAME, UNKNOWN, NOT_DISTINGUISHED = "the same in all samples", "not known", "not distinguished"


def found_in(designs: Designs, studies: Mapping[str, Study], stores: Mapping[str, Store]) -> dict[str, Any]:
    """A trade study as plain data; numbers of outputs are in the unit given with them. studies, stores: of every
    design, with complete results.

    Raises InputError if the samples of a design do not have the same draws as those of the baseline.
    """
    names, base = list(studies), designs.baseline
    sums = {name: summarize(studies[name], stores[name]) for name in names}
    study, dependence = studies[base], studies[base].dependence
    for name in names:
        _require_same_draws(name, base, studies, stores, sums)
    against = len(names) - 1
    criteria = [
        {
            "text": c.text,
            "required": c.share,
            "designs": [
                _share(name, sums[name], sums[base], studies[name], k, len(names))
                | (_change_of_share(sums[base], sums[name], studies[base], k, against) if name != base else {})
                for name in names
            ],
        }
        for k, c in enumerate(study.criteria)
    ]
    outputs = [
        {
            "output": output,
            "unit": study.shown[output].name,
            "designs": [
                _values(name, sums[name], study, output)
                | (_change_of_output(base, name, sums, stores, study, output, against) if name != base else {})
                for name in names
            ],
        }
        for output in study.outputs
    ]
    machine = {name: differences(stores[base].provenance, stores[name].provenance) for name in names if name != base}
    return {
        "study": study.model.name, "baseline": base, "samples": stores[base].n, "seed": study.seed,
        "confidence": CONFIDENCE, "dependence": dependence or None, "notes": notes(len(names), dependence),
        "designs": [
            {
                "design": name, "values": designs.values[name], "folder": str(stores[name].folder),
                "failed": sum(f.count for f in sums[name].failed.values()),
                "computed_otherwise": machine.get(name, []),
            }
            for name in names
        ],
        "criteria": criteria, "outputs": outputs,
    }  # fmt: skip


def notes(count: int, dependence: str) -> list[str]:
    """What the intervals mean, for `count` designs. dependence: why there are none, "" if there are."""
    if dependence:
        return [f"no intervals: {dependence}; differences are those of pairs of samples with the same points"]
    shares, changes = (f"{100 * (1 - ALPHA / k):.6g} %" for k in (count, count - 1))
    found = [
        f"intervals of one criterion or output hold for all designs at once with {CONFIDENCE:.0%} confidence: each share's "
        f"has {shares}, each difference's {changes} (Bonferroni)"
    ]
    return [
        *found,
        "differences are those of pairs of samples with the same draws; one whose interval contains zero is "
        f"{NOT_DISTINGUISHED}, and that of a criterion also if McNemar's p is above {ALPHA / (count - 1):.3g}",
    ]


def _require_same_draws(
    name: str, base: str, studies: Mapping[str, Study], stores: Mapping[str, Store], sums: Mapping[str, Summary]
) -> None:
    pairs = matched(studies[base], stores[base], sums[base], studies[name], stores[name], sums[name])
    if pairs is None or len(pairs[0]) != stores[base].n:
        said = (
            f'its draws are not those of "{base}", sample by sample, so they cannot be compared; remove the folder, and '
            "give the command again"
        )
        raise InputError(Problem(str(stores[name].folder), said))


def _share(name: str, own: Summary, base: Summary, study: Study, k: int, count: int) -> dict[str, Any]:
    v = own.verdicts[k]
    low, high = interval(v.met, v.of, 1 - ALPHA / count) if not own.dependence else (np.nan, np.nan)
    return {
        "design": name, "met": v.met, "of": v.of, "share": v.probability, "low": float(low), "high": float(high),
        "passed": v.passed,
    }  # fmt: skip


def _change_of_share(base: Summary, own: Summary, study: Study, k: int, against: int) -> dict[str, Any]:
    """The difference of the share that meets a criterion, with its interval and McNemar's test."""
    c = study.criteria[k]
    a, b = (c.met(np.asarray(s.outputs[c.output])) for s in (base, own))
    row = paired_shares(a, b)
    difference = (row["only_b"] - row["only_a"]) / len(a)
    low, high = (np.nan, np.nan) if base.dependence else interval_of_shares(
        row["only_a"], row["only_b"], len(a), ALPHA / against
    )  # fmt: skip
    chance = None if base.dependence else row["chance"]
    if not (row["only_a"] or row["only_b"]):
        said = SAME
    elif chance is None:
        said = UNKNOWN
    else:
        sure = chance < ALPHA / against
        said = "better" if sure and low > 0 else "worse" if sure and high < 0 else NOT_DISTINGUISHED
    return {
        "gained": row["only_b"], "lost": row["only_a"], "difference": difference, "difference_low": low,
        "difference_high": high, "chance": chance, "said": said,
    }  # fmt: skip


def interval_of_shares(only_a: int, only_b: int, m: int, alpha: float) -> tuple[float, float]:
    """Interval of the share that b meets minus the share that a meets, of m pairs, of which `only_a` and `only_b` meet a
    condition in one of the two only.

    Bonett and Price's (2012), which Fagerland, Lydersen and Laake (Statistics in Medicine 33, 2014) recommend; it has a
    width even if the two never differ.

    >>> [round(x, 4) for x in interval_of_shares(5, 20, 1000, 0.05)]
    [0.0048, 0.0251]
    """
    from scipy.stats import norm

    a, b = (only_a + 1) / (m + 2), (only_b + 1) / (m + 2)
    reach = float(norm.isf(alpha / 2)) * np.sqrt((a + b - (b - a) ** 2) / (m + 2))
    return max(-1.0, float(b - a - reach)), min(1.0, float(b - a + reach))


def _values(name: str, own: Summary, study: Study, output: str) -> dict[str, Any]:
    shown = own.quantiles(output) / study.shown[output].factor
    told = {f"{q:g}": float(x) for q, x in zip(QUANTILES, shown, strict=True)}
    return {"design": name, "defined": defined(own.outputs[output]), "median": told["0.5"], "quantiles": told}


def _change_of_output(
    base: str,
    name: str,
    sums: Mapping[str, Summary],
    stores: Mapping[str, Store],
    study: Study,
    output: str,
    against: int,
) -> dict[str, Any]:
    """The mean difference of an output, in its unit, with its interval."""
    a, b = (np.asarray(sums[k].outputs[output]) / study.shown[output].factor for k in (base, name))
    row = paired_numbers(a, b, ALPHA / against)
    size = max(float(np.abs(x[np.isfinite(x)]).max(initial=0.0)) for x in (a, b))
    rounding = size * max(ROUNDING[stores[k].provenance["precision"]] for k in (base, name))
    independent = not sums[base].dependence
    low, high = (row.get("low", np.nan), row.get("high", np.nan)) if independent else (np.nan, np.nan)
    if not np.any(np.isfinite(a) & np.isfinite(b)):
        said = UNKNOWN
    elif row["largest"] <= rounding and not row["lost"]:
        said = SAME if row["largest"] == 0 else "differs by rounding only"
    elif np.isnan(low):
        said = UNKNOWN
    else:
        said = "higher" if low > 0 else "lower" if high < 0 else NOT_DISTINGUISHED
    return {
        "difference": row.get("difference", np.nan), "difference_low": low, "difference_high": high,
        "largest": row["largest"], "in_one_only": row["lost"], "said": said,
    }  # fmt: skip
