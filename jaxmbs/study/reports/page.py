"""Writes a report as one self-contained HTML page: first the verdict, then the results that it rests on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from jaxmbs.study.folder.lock import holder
from jaxmbs.study.folder.shell import command
from jaxmbs.study.problem.contents import contents, reduction_said
from jaxmbs.study.problem.study import Study
from jaxmbs.study.problem.words import said_in_the_file
from jaxmbs.study.reports import page_inputs, plots
from jaxmbs.study.reports.page_style import document, panel, picture, table, themed
from jaxmbs.study.reports.repeated import PLACES, Repeated
from jaxmbs.study.reports.terminal import limits_said, notes, required_said, shortfall, start_notes
from jaxmbs.study.results.store import Store
from jaxmbs.study.sampling.dispersions import Dispersion
from jaxmbs.study.statistics.drivers import Drivers, drivers
from jaxmbs.study.statistics.requirements import requirements
from jaxmbs.study.statistics.summary import (
    CONFIDENCE,
    QUANTILES,
    Summary,
    Verdict,
    converging,
    extremes,
    first_draws,
    worst,
)
from jaxmbs.study.units import si, units_of

_POINTS = 500  # most points of a scatter plot


def page(
    study: Study, store: Store, summary: Summary, picked: dict[str, tuple[int, int, int]], repeated: Repeated
) -> str:
    """Text of the page. picked: output -> (worst, median, best) sample."""
    title = f"{escape(study.model.name)}: Monte Carlo report"
    record = store.provenance
    lead = (
        f"{summary.done:,} samples of {study.simulation.t_end:g} s at {study.simulation.dt * 1e3:g} ms, "
        f"seed {study.seed}, {record['precision']}"
    )
    draws = first_draws(study, store, summary)
    found = {name: drivers(draws, summary, name) for name in dict.fromkeys(c.output for c in study.criteria)}
    says = contents(study)
    parts = [
        f"<h1>{title}</h1><p class=lead>{lead}</p>",
        _verdict(study, summary),
        _banner(summary, store),
        *(f"<div class=banner>Warning: {escape(message)}</div>" for message in study.warnings),
        f"<div class=cards>{''.join(_card(v, v is summary.together) for v in _verdicts(summary))}</div>"
        if summary.verdicts
        else "",
        page_inputs.required(study, summary),
        _limits(study, summary),
        "<h2>Outputs</h2>" + _measured(study, says["outputs"]) + panel(_quantiles(study, summary)),
        *(f"<p class=note>{escape(line)}.</p>" for line in start_notes(study, summary)),
        f'<div class=grid style="margin-top:14px">{"".join(_histograms(study, summary))}</div>',
        "<h2>Convergence</h2>" + panel(_convergence(study, summary), "broad")
        if summary.verdicts and summary.done
        else "",
        "<h2>Worst, median and best sample</h2>" + "".join(_histories(study, picked, repeated)) if picked else "",
        _motion(picked, repeated),
        closest_approach(repeated.closest),
        _worst(study, store, summary),
        _drivers(study, draws, summary, found),
        "<h2>Inputs</h2>" + page_inputs.inputs(study, draws) + page_inputs.correlations(says["correlations"]),
        "<h2>Events</h2>" + page_inputs.events(study, summary, says["events"]),
        page_inputs.loops(says["loops"]),
        "<h2>Simulations that failed</h2>" + panel(page_inputs.failures(summary, store)),
        "<h2>Credibility</h2>" + page_inputs.credibility(study, store, summary, found),
        "<h2>Where this comes from</h2>" + panel(page_inputs.provenance(study, store, summary)),
    ]
    return document(title, _with_contents("".join(parts)))


def _with_contents(content: str) -> str:
    """The page with a list of its sections below its first lines, each with a link."""
    found = re.findall(r"(<section class=moving>)?<h2>(.*?)</h2>", content)
    for k, (_, head) in enumerate(found):
        content = content.replace(f"<h2>{head}</h2>", f'<h2 id="section-{k}">{head}</h2>', 1)
    links = ""
    for k, (moves, head) in enumerate(found):
        link = f'<a href="#section-{k}">{head}</a>'
        links += f"<span class=moving>{link}</span>" if moves else link  # what moves is not printed
    return content.replace("</p>", f'</p><nav aria-label="Contents">{links}</nav>', 1)


# --- results ----------------------------------------------------------------------------------------------------------


def _verdict(study: Study, summary: Summary) -> str:
    if not summary.verdicts:
        return ""
    failed = [v for v in summary.verdicts if not v.passed]
    unshown = [v for v in summary.verdicts if v.passed and v.share < 1 and not v.shown]
    if summary.done < summary.n:
        head, kind = "No verdict yet", "failed"
    elif failed:
        head, kind = f"{len(failed)} of {len(summary.verdicts)} criteria not met", "failed"
    else:
        head, kind = "Every criterion is met", ""
    missed = {v.text for v in failed}
    short = [r for r in requirements(study, summary) if not r.met and r.criterion not in missed]
    if short and not failed and summary.done == summary.n:
        head, kind = f"{len(short)} of {len(study.evidence.requirements)} requirements not met", "failed"
    notes = [f"Not met: {escape(v.text)}: {escape(shortfall(study, summary, v))}." for v in failed]
    notes += [
        f"Requirement {escape(r.name)} not met: the margin shown is {escape(r.said(r.shown))}, required "
        f"{escape(r.said(r.margin))}."
        for r in short
        if summary.done == summary.n
    ]
    notes += [
        f"Met, but {v.of:,} samples do not show it with {CONFIDENCE:.0%} confidence: {escape(v.text)}." for v in unshown
    ]
    return f'<div class="verdict {kind}">{head}{"".join(f"<p>{n}</p>" for n in notes)}</div>'


def _banner(summary: Summary, store: Store) -> str:
    if summary.done == summary.n:
        return ""
    who, again = holder(store.folder), command("resume", store.folder, record=store.provenance)
    rest = f"{escape(who)} computes" if who else f"<code>{escape(again)}</code> computes"
    said = f"This run is not finished: {summary.done:,} of {summary.n:,} samples are computed. {rest} the rest."
    return f"<div class=banner>{said}</div>"


def _verdicts(summary: Summary) -> list[Verdict]:
    return [*summary.verdicts, *([summary.together] if summary.together else [])]


def _card(v: Verdict, together: bool = False) -> str:
    certain = np.isfinite(v.low)
    band = f'<b style="left:{v.low:.3%};width:{v.high - v.low:.3%}"></b>' if certain else ""
    reach = f"{CONFIDENCE:.0%} interval {v.low:.2%} to {v.high:.2%}" if certain else "no interval"
    said = "<span class=yes>met</span>" if v.passed else "<span class=no>not met</span>"
    must = "" if together else f"required in {required_said(v)}; "
    return (
        f"<div class=card><div class=what>{escape(v.text)}</div><div class=big>{v.probability:.2%}</div>"
        f'<div class=bar><i style="width:{v.probability:.3%}"></i>{band}</div>'
        f"<div class=note>{must}{reach}, met by {v.met:,} of {v.of:,}: {said}</div></div>"
    )


def _limits(study: Study, summary: Summary) -> str:
    if not summary.verdicts:
        return ""
    said = [escape(line[0].upper() + line[1:]) + "." for line in notes(study, summary)]
    note = "".join(f"<p class=note>{line}</p>" for line in said)
    rows = [
        [escape(v.text), escape(limits_said(v.limits, c.unit)), " and ".join(f"{r}" for r in v.limits.ranks if r)]
        for v, c in zip(summary.verdicts, study.criteria, strict=True)
        if v.limits and not summary.dependence
    ]
    head = ["criterion", "tolerance limit", "samples at or beyond it"]
    return f"<h2>Tolerance limits</h2>{note}" + (panel(table(head, rows, 1)) if rows else "")


def _measured(study: Study, outputs: Sequence[Mapping[str, Any]]) -> str:
    """Table of what the outputs mean. outputs: the entry "outputs" of `contents`."""
    comments = said_in_the_file(study.content, "outputs")
    rows = [
        [escape(o["name"].replace("_", " ")), escape(f"{o['type'].replace('_', ' ')}: {o['of']}".removesuffix(": ")),
         escape(reduction_said(o).replace("_", " ")), escape(comments.get(o["name"], ""))]
        for o in outputs
    ]  # fmt: skip
    note = f"Each output is one number of a motion of {study.simulation.t_end:g} s."
    head = ["output", "measured", "of the motion", "as written in the file"]
    return f"<p class=note>{note} {page_inputs.marks(study, comments)}</p>{panel(table(head, rows), 'long')}"


def _quantiles(study: Study, summary: Summary) -> str:
    rows = []
    for name in study.outputs:
        unit = study.shown[name]
        undefined = summary.undefined(name)
        shown = [f"{q / unit.factor:.4g}" for q in summary.quantiles(name)]
        rows.append([escape(name.replace("_", " ")), escape(unit.name), *shown, f"{undefined:,}" if undefined else ""])
    return table(["output", "unit", *(f"{q:.0%}" for q in QUANTILES), "undefined"], rows, len(QUANTILES) + 1)


def _histograms(study: Study, summary: Summary) -> Iterable[str]:
    for name in study.outputs:
        criteria = [c for c in study.criteria if c.output == name]
        grid = study.simulation.dt if study.quantities[name] == "time" else 0.0
        yield picture(plots.histogram(summary.outputs[name], name, study.shown[name], criteria, grid))


def _convergence(study: Study, summary: Summary) -> str:
    note = f"Share of the samples that meet a criterion, against the number of samples, with its {CONFIDENCE:.0%} interval."
    curves = converging(study, summary)
    return f"<p class=note>{note}</p>{themed(plots.convergence(curves))}"


def _histories(study: Study, picked: dict[str, tuple[int, int, int]], repeated: Repeated) -> Iterable[str]:
    if repeated.bands:
        said = f"Light grey: the range of the first {repeated.of_band} samples at each time; darker: their middle 90 %."
        yield f"<p class=note>{said}</p>"
    used = units_of(study)
    for name, three in picked.items():
        curves = {which: (i, repeated.history(name, i)) for which, i in zip(PLACES, three, strict=True)}
        band = repeated.bands.get(name)
        same = study.quantities[name] == study.outputs[name].quantity(study.joints)
        criteria = [c for c in study.criteria if c.output == name and same]
        yield picture(plots.history(repeated.t, curves, name, used[name], criteria, band), "broad")


def _motion(picked: dict[str, tuple[int, int, int]], repeated: Repeated) -> str:
    if not repeated.motion:
        return ""
    name, (sample, *_) = next(iter(picked.items()))
    note = (
        f"Sample {sample}, the worst for {escape(name.replace('_', ' '))}, with the median one and the nominal motion."
    )
    said = 'class=motion title="worst and median sample" sandbox="allow-scripts"'
    frame = f'<iframe {said} srcdoc="{escape(repeated.motion)}"></iframe>'
    return f"<section class=moving><h2>The worst sample in motion</h2><p class=note>{note}</p>{frame}</section>"


def closest_approach(found: str) -> str:
    """HTML of what `jaxmbs.study.reports.closest` found; "" if it is nothing, or not as that writes it."""
    try:
        panels = "".join(map(_approach, json.loads(found or "[]")))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return ""
    return f"<h2>The closest approach</h2>{panels}" if panels else ""


def _approach(x: Mapping[str, Any]) -> str:
    outlines = {
        str(label): ([np.array(p, float).reshape(-1, 2) for p in pieces], int(nearest))
        for label, pieces, nearest in x["bodies"]
    }
    svg = plots.approach(outlines, np.array(x["ends"], float).reshape(2, 2), str(x["shown"]), str(x["name"]))
    return f"<p class=note>{escape(x['said'])}</p>{picture(svg, 'broad')}"


def _worst(study: Study, store: Store, summary: Summary) -> str:
    found = worst(study, summary)
    if not found:
        return ""
    data = store.draws(study, [sample for sample, _, _ in found])
    draws = [(d, data[d.name]) for d in study.dispersions.items]
    rows = []
    for row, (sample, text, x) in enumerate(found):
        output = next(c.output for c in study.criteria if c.text == text)
        unit = study.shown[output]
        inputs = "<br>".join(f"<span class=one>{escape(name)} {z:+.1f}</span>" for name, z in _unusual(draws, row))
        value = f"<span class=one>{x / unit.factor:.5g} {escape(unit.name)}</span>"
        rows.append(
            [f"{sample}", escape(text), value, inputs, f"<code>{escape(page_inputs.again(store, sample))}</code>"]
        )
    note = (
        "The samples that violate a criterion most, or come nearest to it, relative to the spread of its output; each is "
        "listed once, with this criterion. Inputs: the five draws that are farthest from their medians, in standard "
        "deviations (of a lognormal draw, of its logarithm)."
    )
    rows_said = table(["sample", "criterion", "its output", "inputs", "repeat it with"], rows)
    return f"<h2>The ten worst samples</h2><p class=note>{note}</p>{panel(rows_said, 'long')}"


def _unusual(draws: Sequence[tuple[Dispersion, np.ndarray]], row: int) -> list[tuple[str, float]]:
    found = []
    for d, x in draws:
        z = d.components.deviations(x[row])
        names = [d.name] if d.k == 1 else [f"{d.name}[{k}]" for k in range(d.k)]
        found += [(name, float(y)) for name, y in zip(names, z, strict=True) if np.isfinite(y)]
    return sorted(found, key=lambda pair: -abs(pair[1]))[:5]


def _drivers(study: Study, draws: dict[str, np.ndarray], summary: Summary, found: dict[str, Drivers | None]) -> str:
    panels, less = [], []
    for name, f in found.items():
        if f is None:
            continue
        if f.found:
            first, explained = f.found[0], 1 - f.rest
            what = name.replace("_", " ")
            reduced = 1 - np.sqrt(max(1 - first.share, 0.0))
            less.append(
                f"The draws shown explain {explained:.0%} of the variance of {what}. If {first.name} did not scatter, the "
                f"standard deviation of {what} would be {reduced:.1%} less, on average."
            )
            panels.append(picture(plots.bars([(d.name, d.share, d.low, d.high) for d in f.found], name, f.rest)))
            panels.append(picture(_scatter(study, draws, summary, name, f.found[0].name)))
        else:
            panels.append(panel(f"<p>No draw has a share above noise for {escape(name.replace('_', ' '))}.</p>"))
    if not panels:
        return ""
    limits = ", ".join(f"{escape(n.replace('_', ' '))} {f.noise:.1%}" for n, f in found.items() if f)
    note = (
        "Share of the variance that a draw explains by itself (first-order Sobol index, estimated from the samples), with "
        f"{CONFIDENCE:.0%} interval; only draws whose share is above the largest that as many draws without effect "
        f"would reach by chance ({limits}). The rest is not explained by any single one of these: interactions, "
        "small shares, and the error of the estimates."
    )
    notes = "".join(f"<p class=note>{escape(line)}</p>" for line in (note, *less))
    return f"<h2>What drives the outcome</h2>{notes}<div class=grid>{''.join(panels)}</div>"


def _scatter(study: Study, draws: dict[str, np.ndarray], summary: Summary, output: str, draw: str) -> str:
    d = next(d for d in study.dispersions.items if draw in (d.name, *(f"{d.name}[{k}]" for k in range(d.k))))
    k = 0 if d.name == draw else int(draw[len(d.name) + 1 : -1])
    x = draws[d.name][:_POINTS, k]
    criteria = [c for c in study.criteria if c.output == output]
    usual = "factor" if d.apply == "multiply" else si(d.quantity).name if d.quantity else ""
    factor, name = (d.unit.factor, d.unit.name) if d.unit else (1.0, usual)
    return plots.scatter(x / factor, f"{draw} [{name}]" if name else draw, summary.outputs[output][:_POINTS], output,
                         study.shown[output], criteria)  # fmt: skip


def wanted(study: Study, summary: Summary) -> dict[str, tuple[int, int, int]]:
    """Samples to repeat: output -> (worst, median, best), for every output that has a criterion."""
    found = {}
    for c in study.criteria:
        picked = extremes(study, summary, c)
        if picked and c.output not in found:
            found[c.output] = picked
    return found
