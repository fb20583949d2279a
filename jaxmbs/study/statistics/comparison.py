"""Compares two runs: finds what differs in the inputs, and what differs in the results by more than chance.

SciPy and rich, which are slow to import, are imported where they are used.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.reports import printed
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import sound_study
from jaxmbs.study.results.provenance import differences
from jaxmbs.study.statistics.equivalence import FEWEST, ROUNDING, Within, means_apart, tolerances, verdict
from jaxmbs.study.statistics.pairs import common_draws, differences_of, mcnemar
from jaxmbs.study.statistics.summary import CONFIDENCE, Summary, summarize

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.results.store import Store
    from jaxmbs.study.units import Unit

ALPHA = 1 - CONFIDENCE


def compared(a: str | Path, b: str | Path, trust: bool = False, within: Sequence[str] = ()) -> dict[str, Any]:
    """What differs between two runs, as plain data.

    identical: every sample has the same bits; paired: number of samples with the same index and the same draws in both
    runs, whose results are compared sample by sample, which detects smaller differences. Each difference of a criterion
    or output comes with the probability that chance alone causes one as large (paired: McNemar's exact test and
    Wilcoxon's test, with the interval of the mean difference; otherwise Fisher's test and the test of Kolmogorov and
    Smirnov), provided that the samples are independent. a, b: folders of the runs; trust: run the Python modules of
    their studies; within: tolerances of the outputs (see `tolerances`); the verdict then states whether the differences
    are within them.

    Raises InputError if a run is damaged.
    """
    from scipy.stats import fisher_exact

    (study_a, store_a, sum_a), (study_b, store_b, sum_b) = (_opened(x, trust) for x in (a, b))
    allowed = tolerances(within, {n: u for n, u in study_a.shown.items() if n in study_b.shown})
    criteria, outputs = [], []
    both = pairs(study_a, store_a, sum_a, study_b, store_b, sum_b)
    dependence = study_a.dependence or study_b.dependence
    right = {v.text: (v, c) for v, c in zip(sum_b.verdicts, study_b.criteria, strict=True)}
    for v, c in zip(sum_a.verdicts, study_a.criteria, strict=True):
        w, other = right.get(v.text, (None, c))
        if w is not None:
            row = {"criterion": v.text, "a": v.probability, "b": w.probability, "chance": None}
            if both is not None:
                met = [k.met(s.outputs[k.output][at]) for k, s, at in ((c, sum_a, both[0]), (other, sum_b, both[1]))]
                row |= paired_shares(*met)
            elif not dependence:
                found: Any = fisher_exact([[v.met, v.of - v.met], [w.met, w.of - w.met]])
                row["chance"] = float(found.pvalue)
            criteria.append(row)
    shared = max(1, len(set(study_a.outputs) & set(study_b.outputs)))
    for name in study_a.outputs:
        if name in study_b.outputs:
            asked = allowed.get(name)
            outputs.append(_output(name, study_a.shown[name], (store_a, store_b), (sum_a, sum_b), both, asked,
                                   ALPHA / shared, dependence))  # fmt: skip
    return {
        "a": str(a), "b": str(b),
        "samples": {"a": sum_a.done, "b": sum_b.done},
        "identical": _same(store_a, store_b),
        "paired": 0 if both is None else len(both[0]),
        "file": changed_lines(study_a, study_b),
        "machine": differences(store_a.provenance, store_b.provenance),
        "seeds": {"a": study_a.seed, "b": study_b.seed},
        "criteria": criteria, "outputs": outputs,
        "only_a": sorted(set(study_a.outputs) - set(study_b.outputs)),
        "only_b": sorted(set(study_b.outputs) - set(study_a.outputs)),
    }  # fmt: skip


def _output(
    name: str, unit: Unit, stores: tuple[Store, Store], sums: tuple[Summary, Summary],
    both: tuple[np.ndarray, np.ndarray] | None, asked: Within | None, alpha: float, dependence: str,
) -> dict[str, Any]:  # fmt: skip
    """How an output differs, in its unit. both: as from `pairs`; alpha: probability below which a difference counts."""
    from scipy.stats import ks_2samp

    a, b = (np.asarray(s.outputs[name]) / unit.factor for s in sums)
    x, y = a[np.isfinite(a)], b[np.isfinite(b)]
    medians = [float(np.median(z)) if len(z) else None for z in (x, y)]
    row = {"output": name, "unit": unit.name, "a": medians[0], "b": medians[1], "chance": None}
    low, high = np.nan, np.nan
    if both is not None:
        row |= paired_numbers(a[both[0]], b[both[1]])
        low, high = row.get("low", np.nan), row.get("high", np.nan)
    elif len(x) and len(y) and not dependence:
        row["chance"] = float(tuple(ks_2samp(x, y))[1])
        low, high = means_apart(x, y, ALPHA)
    size = max(float(np.abs(z).max(initial=0.0)) for z in (x, y))
    rounding = size * max(ROUNDING[s.provenance["precision"]] for s in stores)
    within = asked.of(x) if asked else None
    return row | {"within": within, "verdict": verdict(row, within, rounding, alpha, low, high)}


def pairs(
    study_a: Study, store_a: Store, sum_a: Summary, study_b: Study, store_b: Store, sum_b: Summary
) -> tuple[np.ndarray, np.ndarray] | None:
    """(m,) positions in each of the two summaries of the m samples whose index is in both, if all of them have the same
    draws in both runs, from the dispersions that both studies have. None if one of them has other draws, if there are
    no such samples or dispersions, or if the samples of a run depend on one another."""
    if study_a.dependence or study_b.dependence:
        return None
    common = common_draws(study_a, study_b)
    _, in_a, in_b = np.intersect1d(sum_a.index, sum_b.index, assume_unique=True, return_indices=True)
    if not common or not len(in_a):
        return None
    x, y = store_a.draws(study_a), store_b.draws(study_b)
    if all(np.array_equal(x[k][sum_a.index[in_a]], y[k][sum_b.index[in_b]]) for k in common):
        return in_a, in_b
    return None


def paired_shares(a: np.ndarray, b: np.ndarray) -> dict[str, Any]:
    """McNemar's exact test of a and b (m,) bool: only samples that meet a criterion in exactly one run count."""
    only_a, only_b = int(np.count_nonzero(a & ~b)), int(np.count_nonzero(b & ~a))
    return {"only_a": only_a, "only_b": only_b, "chance": mcnemar(only_a, only_b)}


def paired_numbers(a: np.ndarray, b: np.ndarray) -> dict[str, Any]:
    """Mean of b - a with its interval of the confidence 1 - `ALPHA`, the largest difference, the number of samples in which
    only one of a and b is defined, and Wilcoxon's signed-rank test of the differences."""
    from scipy.stats import wilcoxon

    seen = differences_of(iter([(a, b)]))
    told = {"largest": seen.largest, "lost": seen.lost}
    if seen.count < FEWEST:
        return {"chance": None, **told}
    d = (b - a)[np.isfinite(a) & np.isfinite(b)]
    found: Any = wilcoxon(d) if np.any(d) else None
    low, high = seen.interval(ALPHA)
    chance = float(found.pvalue) if found is not None else 1.0
    return {"difference": seen.mean, "low": low, "high": high, "chance": chance, **told}


def _opened(folder: str | Path, trust: bool) -> tuple[Study, Store, Summary]:
    store = stores.open_folder(folder)
    study = sound_study(store, trust)
    return study, store, summarize(study, store)


def changed_lines(a: Study, b: Study) -> list[str]:
    """The lines of two studies' files that differ, after - those of a, after + those of b."""
    one, other = (study.content.decode(errors="replace").splitlines() for study in (a, b))
    return [
        x for x in difflib.unified_diff(one, other, lineterm="", n=0) if x[:1] in "+-" and x[:3] not in ("+++", "---")
    ]


def _same(a: Store, b: Store) -> bool:
    x, y = a.dataset(), b.dataset()
    if set(x.data_vars) != set(y.data_vars) or a.n != b.n:
        return False
    return all(x[k].values.tobytes() == y[k].values.tobytes() for k in x.data_vars)


def table(found: dict[str, Any]) -> RenderableType:
    """The comparison for the terminal."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(f"{found['a']} ({found['samples']['a']:,} samples) and {found['b']} "
                                        f"({found['samples']['b']:,} samples)", style="bold")]  # fmt: skip
    parts += [Text("the same bits in every sample", style="green")] if found["identical"] else []
    parts += [Text(line, style="green" if line[0] == "+" else "red") for line in found["file"]]
    parts += [Text(line, style="dim") for line in found["machine"]]
    if found["paired"]:
        parts.append(Text(f"{found['paired']:,} samples have the same draws in both: compared one by one", style="dim"))
    for key, what in (("criteria", "criterion"), ("outputs", "output")):
        rows = []
        for r in found[key]:
            x, y = ("-" if r[k] is None else f"{r[k]:.2%}" if key == "criteria" else f"{r[k]:.5g}" for k in "ab")
            p = r["chance"]
            said = "differs" if p is not None and p < ALPHA / max(1, len(found[key])) else ""
            said = r.get("verdict", said) + (f" {r['within']:.3g}" if r.get("verdict") and r.get("within") else "")
            unit = f" [{r['unit']}]" if r.get("unit") else ""
            rows.append((r[what] + unit, x, y, _change(r), "-" if p is None else f"{p:.3g}", said))
        if rows:
            right = ("a", "b", "b - a", "by chance")
            parts.append(printed(key, (what, *right, ""), rows, right))
    for k in ("only_a", "only_b"):
        parts += [Text(f"only in {found[k[-1]]}: {', '.join(found[k])}")] if found[k] else []
    return Group(*parts)


def _change(row: dict[str, Any]) -> str:
    """The difference of paired samples, as text."""
    if "difference" in row:
        return f"{row['difference']:+.3g} ({row['low']:+.3g} .. {row['high']:+.3g})"
    return f"+{row['only_b']:,} -{row['only_a']:,}" if "only_a" in row else "-"
