"""Two runs side by side: what differs in what was run, and in what came out by more than chance."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.study import store as stores
from jaxmbs.study.damage import require_sound
from jaxmbs.study.provenance import differences
from jaxmbs.study.statistics import CONFIDENCE, Summary, summarize

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jaxmbs.study.problem import Study
    from jaxmbs.study.store import Store

ALPHA = 1 - CONFIDENCE


def compared(a: str | Path, b: str | Path, trust: bool = False) -> dict[str, Any]:
    """What differs between two runs, as plain data.

    identical: every sample has the same bits. A difference of criteria and outputs is told with the probability of one as
    large by chance alone (Fisher's exact test; Kolmogorov and Smirnov's). Raises InputError where a run is damaged.
    """
    from scipy.stats import fisher_exact, ks_2samp

    (study_a, store_a, sum_a), (study_b, store_b, sum_b) = (_opened(Path(x), trust) for x in (a, b))
    criteria, outputs = [], []
    right = {v.text: v for v in sum_b.verdicts}
    for v in sum_a.verdicts:
        w = right.get(v.text)
        if w is not None:
            found: Any = fisher_exact([[v.met, v.of - v.met], [w.met, w.of - w.met]])
            criteria.append(
                {"criterion": v.text, "a": v.probability, "b": w.probability, "chance": float(found.pvalue)}
            )
    for name in study_a.outputs:
        if name in study_b.outputs:
            x, y = (s.outputs[name][np.isfinite(s.outputs[name])] for s in (sum_a, sum_b))
            unit = study_a.shown[name]
            medians = [float(np.median(z)) / unit.factor if len(z) else None for z in (x, y)]
            p = float(tuple(ks_2samp(x, y))[1]) if len(x) and len(y) else None
            outputs.append({"output": name, "unit": unit.name, "a": medians[0], "b": medians[1], "chance": p})
    lines = difflib.unified_diff(_text(study_a), _text(study_b), str(a), str(b), lineterm="", n=0)
    return {
        "a": str(a), "b": str(b),
        "samples": {"a": sum_a.done, "b": sum_b.done},
        "identical": _same(store_a, store_b),
        "file": [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")],
        "machine": differences(store_a.provenance, store_b.provenance),
        "seeds": {"a": study_a.seed, "b": study_b.seed},
        "criteria": criteria, "outputs": outputs,
        "only_a": sorted(set(study_a.outputs) - set(study_b.outputs)),
        "only_b": sorted(set(study_b.outputs) - set(study_a.outputs)),
    }  # fmt: skip


def _opened(folder: Path, trust: bool) -> tuple[Study, Store, Summary]:
    store = stores.open_folder(folder)
    study = stores.read_study(store, trust)
    stores.require_results(study, store)
    require_sound(study, store)
    return study, store, summarize(study, store)


def _text(study: Study) -> list[str]:
    return study.content.decode(errors="replace").splitlines()


def _same(a: Store, b: Store) -> bool:
    x, y = a.dataset(), b.dataset()
    if set(x.data_vars) != set(y.data_vars) or a.n != b.n:
        return False
    return all(x[k].values.tobytes() == y[k].values.tobytes() for k in x.data_vars)


def table(found: dict[str, Any]) -> RenderableType:
    """The comparison for the terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = [Text(f"{found['a']} ({found['samples']['a']:,} samples) and {found['b']} "
                                        f"({found['samples']['b']:,} samples)", style="bold")]  # fmt: skip
    parts += [Text("the same bits in every sample", style="green")] if found["identical"] else []
    parts += [Text(line, style="green" if line[0] == "+" else "red") for line in found["file"]]
    parts += [Text(line, style="dim") for line in found["machine"]]
    for key, what in (("criteria", "criterion"), ("outputs", "output")):
        rows = Table(title=key, title_justify="left", title_style="bold")
        rows.add_column(what)
        for name in ("a", "b", "by chance"):
            rows.add_column(name, justify="right")
        rows.add_column("")
        for r in found[key]:
            x, y = ("-" if r[k] is None else f"{r[k]:.2%}" if key == "criteria" else f"{r[k]:.5g}" for k in "ab")
            p = r["chance"]
            said = "differs" if p is not None and p < ALPHA / max(1, len(found[key])) else ""
            unit = f" [{r['unit']}]" if r.get("unit") else ""
            rows.add_row(Text(r[what] + unit), x, y, "-" if p is None else f"{p:.3g}", said)
        if found[key]:
            parts.append(rows)
    for k in ("only_a", "only_b"):
        parts += [Text(f"only in {found[k[-1]]}: {', '.join(found[k])}")] if found[k] else []
    return Group(*parts)
