"""The second half of a report's page: inputs, events, failures, and the provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.study.folder.shell import command
from jaxmbs.study.problem.contents import condition_said, element_said, joint_said, pose_said, said
from jaxmbs.study.problem.evidence import FACTORS
from jaxmbs.study.problem.words import described, marks_in_the_file, said_in_the_file
from jaxmbs.study.reports.page_style import panel, table
from jaxmbs.study.results.checked import CONCLUSIONS, kept
from jaxmbs.study.samples.audit import audit
from jaxmbs.study.statistics.requirements import requirements
from jaxmbs.study.statistics.summary import QUANTILES, Summary
from jaxmbs.study.units import si

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.results.store import Store
    from jaxmbs.study.sampling.dispersions import Dispersion
    from jaxmbs.study.statistics.drivers import Drivers


def inputs(study: Study, draws: dict[str, np.ndarray]) -> str:
    """Table of the dispersions: their nominal values, the range of the values with which samples were simulated, and in
    what share of the samples these differ from the nominal ones (`audit`). draws: those of the first samples."""
    found = {a.name: a for a in audit(study, draws)}
    sources, rows = said_in_the_file(study.content), []
    for d in study.dispersions.items:
        a = found.get(d.name)
        unit = _unit(d)
        spans = [f"{low:.5g} to {high:.5g}" for low, high in zip(a.least, a.most, strict=True)] if a else []
        changed = f"<span class={'yes' if a.changed else 'no'}>{a.changed:.1%}</span>" if a else ""
        nominal = "<br>".join(f"{x:.5g}" for x in (a.nominal if a else np.atleast_1d(d.target.nominal).reshape(-1)))
        what = f"<code>{escape(d.name)}</code><br>{escape(described(d))}, {d.apply}"
        rows.append([what, escape(sources.get(d.name, "")), nominal, "<br>".join(spans), escape(unit), changed])
    head = ["dispersion", "as written in the file", "nominal", "applied, least to most", "unit", "changed in"]
    note = (
        "Applied: the numbers with which the samples were simulated (at most the first 2,000), after all dispersions of the "
        "same target. Changed in: the samples in which they differ from the nominal ones."
    )
    return f"<p class=note>{note} {marks(study, sources)}</p>{panel(table(head, rows, 4), 'long')}"


def marks(study: Study, comments: Mapping[str, str]) -> str:
    """HTML of what the marks in comments of the file mean, "" if its head does not say."""
    found = marks_in_the_file(study.content, comments.values())
    each = ", ".join(f"[{mark}] {escape(meaning)}" for mark, meaning in found.items())
    return f"In the file's words: {each}." if found else ""


def _unit(d: Dispersion) -> str:
    """The SI unit of what a dispersion changes; "" if it has none, or several."""
    way = d.target.ways.get("replace") or d.target.ways.get("add")
    return si(way.quantity).name if way and way.quantity else ""


def correlations(tables: Sequence[dict[str, Any]]) -> str:
    """Table of the correlated draws. tables: the entry "correlations" of `contents`."""
    if not tables:
        return ""
    rows = [[escape(", ".join(t["draws"])), t["kind"], escape(said(t["matrix"]))] for t in tables]
    note = "Correlated draws: correlations of the normal scores, or of the ranks."
    return f"<p class=note>{note}</p>{panel(table(['draws', 'of', 'matrix'], rows))}"


def loops(found: Sequence[dict[str, Any]]) -> str:
    """Table of the cut joints with their frames. found: the entry "loops" of `contents`."""
    if not found:
        return ""
    rows = []
    for x in found:
        ends = [escape(f"{x[f'body_{k}']} {pose_said(x[f'pose_{k}'])}".strip()) for k in "ab"]
        rows.append([f"<code>{escape(x['name'])}</code>", escape(joint_said(x)), *ends])
    return "<h2>Loops</h2>" + panel(table(["loop", "joint", "body a, frame in it", "body b, frame in it"], rows))


def events(study: Study, summary: Summary, of: Sequence[dict[str, Any]]) -> str:
    """Table of the events: their conditions and actions, and how often they happened. of: the entry "events" of
    `contents`."""
    if not of:
        return panel("<p>None: nothing is locked, released or switched by an event.</p>")
    rows = []
    for e in of:
        found, then = summary.events[e["name"]], "<br>".join(escape(element_said(a)) for a in e["then"])
        share = f"{found.samples:,} of {found.of:,}" + (f" ({found.samples / found.of:.2%})" if found.of else "")
        times = [f"{t:.5g}" if found.samples else "" for t in found.quantiles]
        when = escape(condition_said(e))
        rows.append([f"<code>{escape(e['name'])}</code>", when, then, share, f"{found.most:,}", *times])
    note = (
        "In how many of the successful samples an event happened, how often at most in one sample, and quantiles of "
        "the time [s] at which it first happened, over the samples in which it did."
    )
    head = ["event", "when", "then", "happened in", "at most", *(f"{q:.0%}" for q in QUANTILES)]
    return f"<p class=note>{note}</p>" + panel(table(head, rows, len(QUANTILES) + 2))


def again(store: Store, sample: int) -> str:
    """The shell command that repeats a sample."""
    words = store.folder / "study.toml", "--sample", sample, "--of", store.folder
    return command("simulate", *words, record=store.provenance)


def failures(summary: Summary, store: Store) -> str:
    """Table of what went wrong, and in which samples first."""
    if not summary.failed:
        return "<p>None.</p>"
    rows = []
    for message, failed in summary.failed.items():
        repeat = again(store, failed.first[0])
        rows.append([escape(message), failed.some, f"<code>{escape(repeat)}</code>", f"{failed.count:,}"])
    return table(["what happened", "samples", "repeat the first with", "number"], rows, 1)


def credibility(study: Study, store: Store, summary: Summary, found: dict[str, Drivers | None]) -> str:
    """Table of the credibility factors of NASA-STD-7009: what a run itself shows about each, and what the study's file
    states about it."""
    failed = sum(f.count for f in summary.failed.values())
    each = [*summary.verdicts, *([summary.together] if summary.together else [])]
    widths = [v.high - v.low for v in each if np.isfinite(v.low)]
    widest = (
        f"the intervals of probabilities, of sampling alone; the widest is {100 * max(widths):.2g} percentage points. "
        if widths
        else ""
    )
    commented = said_in_the_file(study.content)
    sources = sum(bool(commented.get(d.name)) for d in study.dispersions.items)
    driven = [name for name, f in found.items() if f and f.found]
    shown = {
        "verification": f"largest error of the energy balance {summary.energy_said}; {failed:,} of {summary.done:,} samples "
        f"failed, which includes those whose energy shows that their steps are too coarse. {_steps(store, summary)}",
        "input_pedigree": f"{sources} of {len(study.dispersions.items)} dispersions have a comment in the file, which "
        "may name its source",
        "uncertainty": f"{widest}What is not dispersed is taken as exactly known",
        "robustness": f"for {len(driven)} of {len(found)} outputs with criteria, some draw stands above chance"
        if found
        else "",
    }
    missing = "<i>nothing; to state it, write {} in [evidence]</i>"
    rows = [
        [name, shown.get(key, ""), escape(getattr(study.evidence, key)) or missing.format(key)]
        for key, name in FACTORS.items()
    ]
    note = "After the credibility factors of NASA-STD-7009."
    return f"<p class=note>{note}</p>{panel(table(['factor', 'what this run shows', 'what the study states'], rows))}"


def _steps(store: Store, summary: Summary) -> str:
    """What `jaxmbs check-steps` found, as HTML."""
    found = kept(store)
    if found is None:
        again = command("check-steps", store.folder, record=store.provenance)
        return f"The error of the steps was not measured; to measure it: <code>{escape(again)}</code>"
    worst = ", ".join(
        f"{escape(r['output'].replace('_', ' '))} {r['error']:.2g} {escape(r['unit'])}".rstrip()
        for r in found["outputs"]
        if r["error"] is not None
    )
    many = sum(map(len, found["samples"].values()))
    whats = " and with ".join(v["what"] for v in found["variants"] if "fault" not in v)
    then = "" if found["of"] == summary.done else f" This was measured when {found['of']:,} samples were computed."
    return f"Largest change of {many} samples with {whats}: {worst}; {CONCLUSIONS[found['settled']]}.{then}"


def required(study: Study, summary: Summary) -> str:
    """Table of the requirements of a study, with what the run shows of each; "" if it has none."""
    rows = [
        [f"<code>{escape(r.name)}</code>", escape(r.text), escape(r.criterion), escape(r.method),
         escape(r.said(r.margin)), escape(r.said(r.shown)),
         f"<span class={'yes' if r.met else 'no'}>{r.outcome}</span>"]
        for r in requirements(study, summary)
    ]  # fmt: skip
    if not rows:
        return ""
    head = ["requirement", "text", "criterion", "verified by", "margin required", "margin shown", ""]
    note = (
        "Margin shown: how much better than the bound the output is in the share of the samples that the criterion "
        "requires; negative if fewer meet it."
    )
    return f"<h2>Requirements</h2><p class=note>{note}</p>{panel(table(head, rows), 'long')}"


def provenance(study: Study, store: Store, summary: Summary) -> str:
    """Table of what the results were computed from, and on which device and with which versions."""
    record = store.provenance
    versions = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
    try:
        finished = store.finished() or {}
    except ValueError:
        finished = {}
    rows = [
        ["study file", f"<code>{escape(str(store.folder / 'study.toml'))}</code>"],
        ["SHA-256", f"<code>{record['file_sha256']}</code>"],
        ["samples", f"{summary.done:,} of {record['n']:,}, in blocks of {record['block_rows']}"],
        ["seed and generator", f"{record['seed']}, {escape(record['generator'])}"],
        ["precision", escape(record["precision"])],
        ["device", escape(record["device"])],
        ["versions", escape(versions)],
        *_origin(record.get("origin", {})),
        [
            "fingerprint of the results",
            f"<code>{finished.get('fingerprint', 'not finished')}</code>, every sample checked",
        ],
        ["largest error of the energy balance", summary.energy_said],
    ]
    return table(["", ""], rows)


def _origin(found: dict[str, Any]) -> list[list[str]]:
    """When, on what system and from which commits a run was started."""
    rows = [[key, escape(str(found[key]))] for key in ("date", "system", "python") if key in found]
    called = {"study": "commit of the study's folder", "jaxmbs": "commit of jaxmbs"}
    commits = found.get("commits", {})
    return rows + [[said, f"<code>{escape(commits[key])}</code>"] for key, said in called.items() if key in commits]
