"""A report as one self-contained HTML page: the verdict on top, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from jaxmbs.io.pages import POLICY
from jaxmbs.study import plots
from jaxmbs.study.audit import audit
from jaxmbs.study.dispersions import Dispersion
from jaxmbs.study.drivers import Drivers, drivers
from jaxmbs.study.lock import holder
from jaxmbs.study.page_style import CSS, themed
from jaxmbs.study.problem import Study
from jaxmbs.study.repeated import PLACES, Repeated
from jaxmbs.study.report import limits_said, notes
from jaxmbs.study.statistics import (
    CONFIDENCE,
    QUANTILES,
    Summary,
    Verdict,
    converging,
    extremes,
    first_draws,
    worst,
)
from jaxmbs.study.store import Store
from jaxmbs.study.units import si
from jaxmbs.study.words import described, said_in_the_file

Draws = dict[str, np.ndarray]
_POINTS = 500  # of a scatter


def page(
    study: Study, store: Store, summary: Summary, picked: dict[str, tuple[int, int, int]], repeated: Repeated
) -> str:
    """The page's text. picked: output -> samples that are worst, median and best."""
    title = f"{escape(study.model.name)}: Monte Carlo report"
    record = store.provenance
    lead = (
        f"{summary.done:,} samples of {study.simulation.t_end:g} s at {study.simulation.dt * 1e3:g} ms, "
        f"seed {study.seed}, {record['precision']}"
    )
    draws = first_draws(study, store, summary)
    found = {name: drivers(draws, summary, name) for name in dict.fromkeys(c.output for c in study.criteria)}
    parts = [
        f"<h1>{title}</h1><p class=lead>{lead}</p>",
        _verdict(summary),
        _banner(summary, holder(store.folder)),
        *(f"<div class=banner>Warning: {escape(message)}</div>" for message in study.warnings),
        f"<div class=cards>{''.join(map(_card, _verdicts(summary)))}</div>" if summary.verdicts else "",
        _limits(study, summary),
        "<h2>Outputs</h2>" + _panel(_quantiles(study, summary)),
        f'<div class=grid style="margin-top:14px">{"".join(_histograms(study, summary))}</div>',
        "<h2>Convergence</h2>" + _panel(_convergence(study, summary), "broad")
        if summary.verdicts and summary.done
        else "",
        "<h2>Worst, median and best sample</h2>" + "".join(_histories(study, picked, repeated)) if picked else "",
        _motion(repeated),
        _worst(study, store, summary),
        _drivers(study, draws, summary, found),
        "<h2>Inputs</h2>" + _inputs(study, draws),
        "<h2>Events</h2>" + _events(study, summary),
        "<h2>Samples that failed</h2>" + _panel(_failures(summary, store)),
        "<h2>Credibility</h2>" + _credibility(study, summary, found),
        "<h2>Where this comes from</h2>" + _panel(_provenance(study, store, summary)),
    ]
    head = f'<meta charset="utf-8">{POLICY}<meta name="viewport" content="width=device-width"><title>{title}</title>'
    body = f"<body><main>{''.join(parts)}</main></body>"
    return f'<!doctype html><html lang="en"><head>{head}<style>{CSS}</style></head>{body}</html>'


def _panel(content: str, kind: str = "") -> str:
    return f'<div class="panel {kind}">{content}</div>'


def _picture(svg: str, kind: str = "") -> str:
    return _panel(themed(svg), kind)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    """The last `numbers` columns are numbers. Cells are HTML; each says what it is, for screens without room for columns."""
    kinds = [" class=n" if i >= len(head) - numbers else "" for i in range(len(head))]

    def cells(row: Sequence[str]) -> str:
        cells = zip(head, kinds, row, strict=True)
        return "".join(f'<td{kind} data-head="{name}">{x}</td>' for name, kind, x in cells)

    body = "".join(f"<tr>{cells(row)}</tr>" for row in rows)
    names = "".join(f"<th{kind}>{name}</th>" for name, kind in zip(head, kinds, strict=True))
    top = f"<thead><tr>{names}</tr></thead>" if any(head) else ""
    return f"<table>{top}<tbody>{body}</tbody></table>"


# --- what came out ----------------------------------------------------------------------------------------------------


def _verdict(summary: Summary) -> str:
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
    notes = [f"Not met: {escape(v.text)} ({v.met:,} of {v.of:,} samples)." for v in failed]
    notes += [
        f"Met, but {v.of:,} samples do not show it with {CONFIDENCE:.0%} confidence: {escape(v.text)}." for v in unshown
    ]
    return f'<div class="verdict {kind}">{head}{"".join(f"<p>{n}</p>" for n in notes)}</div>'


def _banner(summary: Summary, computing: str) -> str:
    if summary.done == summary.n:
        return ""
    rest = f"{escape(computing)} computes" if computing else "<code>jaxmbs resume</code> computes"
    said = f"This run is not finished: {summary.done:,} of {summary.n:,} samples are computed. {rest} the rest."
    return f"<div class=banner>{said}</div>"


def _verdicts(summary: Summary) -> list[Verdict]:
    return [*summary.verdicts, *([summary.together] if summary.together else [])]


def _card(v: Verdict) -> str:
    certain = np.isfinite(v.low)
    band = f'<b style="left:{v.low:.3%};width:{v.high - v.low:.3%}"></b>' if certain else ""
    reach = f"{CONFIDENCE:.0%} interval {v.low:.2%} to {v.high:.2%}" if certain else "no interval"
    said = "<span class=yes>met</span>" if v.passed else "<span class=no>not met</span>"
    return (
        f"<div class=card><div class=what>{escape(v.text)}</div><div class=big>{v.probability:.2%}</div>"
        f'<div class=bar><i style="width:{v.probability:.3%}"></i>{band}</div>'
        f"<div class=note>{reach}, met by {v.met:,} of {v.of:,}: {said}</div></div>"
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
    return f"<h2>Tolerance limits</h2>{note}" + (_panel(_table(head, rows, 1)) if rows else "")


def _quantiles(study: Study, summary: Summary) -> str:
    rows = []
    for name in study.outputs:
        unit = study.shown[name]
        undefined = summary.undefined(name)
        shown = [f"{q / unit.factor:.4g}" for q in summary.quantiles(name)]
        rows.append([escape(name.replace("_", " ")), escape(unit.name), *shown, f"{undefined:,}" if undefined else ""])
    return _table(["output", "unit", *(f"{q:.0%}" for q in QUANTILES), "undefined"], rows, len(QUANTILES) + 1)


def _histograms(study: Study, summary: Summary) -> Iterable[str]:
    for name in study.outputs:
        criteria = [c for c in study.criteria if c.output == name]
        grid = study.simulation.dt if study.quantities[name] == "time" else 0.0
        yield _picture(plots.histogram(summary.outputs[name], name, study.shown[name], criteria, grid))


def _convergence(study: Study, summary: Summary) -> str:
    note = f"Share of the samples that meet a criterion, after so many of them, with its {CONFIDENCE:.0%} interval."
    curves = converging(study, summary)
    return f"<p class=note>{note}</p>{themed(plots.convergence(curves))}"


def _histories(study: Study, picked: dict[str, tuple[int, int, int]], repeated: Repeated) -> Iterable[str]:
    if repeated.bands:
        yield f"<p class=note>Grey: the first {repeated.of_band} samples, all of them and 90 % of them at each time.</p>"
    for name, three in picked.items():
        curves = {which: (i, repeated.history(name, i)) for which, i in zip(PLACES, three, strict=True)}
        band = repeated.bands.get(name)
        quantity = study.outputs[name].quantity(study.joints)
        same = study.quantities[name] == quantity
        criteria = [c for c in study.criteria if c.output == name and same]
        unit = study.shown[name] if same else si(quantity)
        yield _picture(plots.history(repeated.t, curves, name, unit, criteria, band), "broad")


def _motion(repeated: Repeated) -> str:
    if not repeated.motion:
        return ""
    said = 'class=motion title="worst and median sample" sandbox="allow-scripts"'
    frame = f'<iframe {said} srcdoc="{escape(repeated.motion)}"></iframe>'
    return f"<section class=moving><h2>The worst sample in motion</h2>{frame}</section>"


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
        command = f"jaxmbs simulate {store.folder}/study.toml --sample {sample} --of {store.folder}"
        inputs = "<br>".join(f"<span class=one>{escape(name)} {z:+.1f}</span>" for name, z in _unusual(draws, row))
        value = f"<span class=one>{x / unit.factor:.5g} {escape(unit.name)}</span>"
        rows.append([f"{sample}", escape(text), value, inputs, f"<code>{escape(command)}</code>"])
    note = "Nearest to missing a criterion, or farthest beyond. Inputs: the five most unusual draws, in standard deviations."
    table = _table(["sample", "criterion", "its output", "inputs", "repeat it with"], rows)
    return f"<h2>The ten worst samples</h2><p class=note>{note}</p>{_panel(table, 'long')}"


def _unusual(draws: Sequence[tuple[Dispersion, np.ndarray]], row: int, most: int = 5) -> list[tuple[str, float]]:
    found = []
    for d, x in draws:
        middle, width = d.components.middle, d.components.spread
        for k in range(d.k):
            if width[k] > 0:
                name = d.name if d.k == 1 else f"{d.name}[{k}]"
                found.append((name, float((x[row, k] - middle[k]) / width[k])))
    return sorted(found, key=lambda pair: -abs(pair[1]))[:most]


def _drivers(study: Study, draws: Draws, summary: Summary, found: dict[str, Drivers | None]) -> str:
    panels = []
    for name, f in found.items():
        if f is None:
            continue
        if f.found:
            panels.append(_picture(plots.bars([(d.name, d.share, d.low, d.high) for d in f.found], name, f.rest)))
            panels.append(_picture(_scatter(study, draws, summary, name, f.found[0].name)))
        else:
            panels.append(_panel(f"<p>No draw stands above noise for {escape(name.replace('_', ' '))}.</p>"))
    if not panels:
        return ""
    limits = ", ".join(f"{escape(n.replace('_', ' '))} {f.noise:.1%}" for n, f in found.items() if f)
    note = (
        "Share of the variance that a draw explains by itself (first-order Sobol index, estimated from the samples), with "
        f"{CONFIDENCE:.0%} interval; only draws above what the largest of as many unrelated ones reaches ({limits}). "
        "The rest is noise, small shares and what draws do together."
    )
    return f"<h2>What drives the outcome</h2><p class=note>{note}</p><div class=grid>{''.join(panels)}</div>"


def _scatter(study: Study, draws: Draws, summary: Summary, output: str, draw: str) -> str:
    d = next(d for d in study.dispersions.items if draw in (d.name, *(f"{d.name}[{k}]" for k in range(d.k))))
    k = 0 if d.name == draw else int(draw[len(d.name) + 1 : -1])
    x = draws[d.name][:_POINTS, k]
    criteria = [c for c in study.criteria if c.output == output]
    factor, name = (d.unit.factor, d.unit.name) if d.unit else (1.0, si(d.quantity).name if d.quantity else "")
    return plots.scatter(x / factor, f"{draw} [{name}]" if name else draw, summary.outputs[output][:_POINTS], output,
                         study.shown[output], criteria)  # fmt: skip


# --- what went in -----------------------------------------------------------------------------------------------------


def _inputs(study: Study, draws: Draws) -> str:
    found = {a.name: a for a in audit(study, draws)}
    sources, rows = said_in_the_file(study.content), []
    for d in study.dispersions.items:
        a = found.get(d.name)
        spans = [f"{low:.5g} to {high:.5g}" for low, high in zip(a.least, a.most, strict=True)] if a else []
        changed = f"<span class={'yes' if a.changed else 'no'}>{a.changed:.1%}</span>" if a else ""
        nominal = "<br>".join(f"{x:.5g}" for x in (a.nominal if a else np.atleast_1d(d.target.nominal).reshape(-1)))
        what = f"<code>{escape(d.name)}</code><br>{escape(described(d))}, {d.apply}"
        rows.append([what, escape(sources.get(d.name, "")), nominal, "<br>".join(spans), changed])
    head = ["dispersion", "said in the file", "nominal (SI)", "applied, least to most (SI)", "changed in"]
    note = (
        "Applied: the numbers with which the first 2,000 samples were simulated, after all dispersions of one target."
    )
    return f"<p class=note>{note}</p>{_panel(_table(head, rows, 3), 'long')}"


def _events(study: Study, summary: Summary) -> str:
    from jaxmbs.model.fields import type_name

    events = study.model.structure.events
    if not events:
        return _panel("<p>None: the structure of the mechanism does not change.</p>")
    rows = []
    for e in events:
        found, then = summary.events[e.name], ", ".join(type_name(type(a)) for a in e.then)
        share = f"{found.samples:,} of {found.of:,}" + (f" ({found.samples / found.of:.2%})" if found.of else "")
        times = [f"{t:.5g}" if found.samples else "" for t in found.quantiles]
        rows.append([f"<code>{escape(e.name)}</code>", type_name(type(e.when)), then, share, f"{found.most:,}", *times])
    note = (
        "In how many of the samples that went well an event happened, how often in one of them at most, and quantiles of "
        "the time [s] at which it happened first, over the samples in which it did."
    )
    head = ["event", "when", "then", "happened in", "at most", *(f"{q:.0%}" for q in QUANTILES)]
    return f"<p class=note>{note}</p>" + _panel(_table(head, rows, len(QUANTILES) + 2))


def _failures(summary: Summary, store: Store) -> str:
    if not summary.failed:
        return "<p>None.</p>"
    rows = []
    for message, failed in summary.failed.items():
        again = f"jaxmbs simulate {store.folder}/study.toml --sample {failed.first[0]} --of {store.folder}"
        rows.append([escape(message), failed.some, f"<code>{escape(again)}</code>", f"{failed.count:,}"])
    return _table(["what happened", "samples", "repeat the first with", "number"], rows, 1)


def _credibility(study: Study, summary: Summary, found: dict[str, Drivers | None]) -> str:
    """The factors of NASA-STD-7009, as far as a run can speak for them; the rest is for those who sign."""
    failed = sum(f.count for f in summary.failed.values())
    widest = max((v.high - v.low for v in summary.verdicts), default=float("nan"))
    commented = said_in_the_file(study.content)
    sources = sum(bool(commented.get(d.name)) for d in study.dispersions.items)
    driven = [name for name, f in found.items() if f and f.found]
    state = "<i>to be stated by those who sign</i>"
    rows = [
        ["data pedigree",
         f"{sources} of {len(study.dispersions.items)} dispersions have a comment on their source in the file"],
        ["verification of the code", f"versions below; the tests that belong to them: {state}"],
        ["verification of the solution",
         f"largest error of the energy balance {summary.energy_said}; {failed:,} of {summary.done:,} samples failed, "
         "too coarse steps among what counts as failed"],
        ["validation", f"comparison with tests of the real system: {state}"],
        ["uncertainty of the results",
         f"intervals above, of sampling only; the widest is {widest:.2%} of probability. What is not dispersed is taken as "
         "certain"],
        ["robustness of the results", f"drivers found for {len(driven)} of {len(found)} outputs with criteria"],
        ["history of use, management, people", state],
    ]  # fmt: skip
    note = "After the credibility factors of NASA-STD-7009."
    return f"<p class=note>{note}</p>{_panel(_table(['factor', 'what this run shows'], rows))}"


def _provenance(study: Study, store: Store, summary: Summary) -> str:
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
        [
            "fingerprint of the results",
            f"<code>{finished.get('fingerprint', 'not finished')}</code>, every sample checked",
        ],
        ["largest error of the energy balance", summary.energy_said],
    ]
    return _table(["", ""], rows)


def wanted(study: Study, summary: Summary) -> dict[str, tuple[int, int, int]]:
    """The samples to repeat: output -> (worst, median, best), for every output that has a criterion."""
    found = {}
    for c in study.criteria:
        picked = extremes(study, summary, c)
        if picked and c.output not in found:
            found[c.output] = picked
    return found
