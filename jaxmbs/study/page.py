"""A report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from jaxmbs.study import plots
from jaxmbs.study.dispersions import Dispersion
from jaxmbs.study.drivers import drivers
from jaxmbs.study.problem import Study
from jaxmbs.study.repeat import History
from jaxmbs.study.statistics import CONFIDENCE, QUANTILES, Summary, Verdict, extremes
from jaxmbs.study.store import Store
from jaxmbs.study.units import si
from jaxmbs.study.words import described

_DRAWS_SHOWN = 20_000
_CSS = """
:root { --ink:#1d2b3a; --muted:#6b7a8c; --line:#e3e8ee; --good:#2b6cb0; --bad:#c2513a; --paper:#fff; --back:#f4f6f9 }
* { box-sizing:border-box }
body { margin:0; background:var(--back); color:var(--ink); font:15px/1.5 system-ui,"Segoe UI",Roboto,sans-serif }
main { max-width:1060px; margin:0 auto; padding:40px 24px 64px }
h1 { font-size:30px; line-height:1.2; margin:0 0 4px; letter-spacing:-.01em }
h2 { font-size:19px; margin:44px 0 12px }
h3 { font-size:14px; margin:18px 0 2px; color:var(--muted); font-weight:600 }
p { margin:6px 0 } .lead,.note { color:var(--muted) } .note { font-size:13px }
.banner { background:#fff6e0; border:1px solid #f0d58a; border-radius:8px; padding:10px 14px; margin:18px 0 0 }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(215px,1fr)); gap:14px; margin-top:22px }
.card,.panel { background:var(--paper); border:1px solid var(--line); border-radius:10px; padding:16px 18px }
.card .big { font-size:32px; font-weight:650; letter-spacing:-.02em; font-variant-numeric:tabular-nums }
.card .what { font-weight:600 }
.bar { position:relative; height:8px; border-radius:4px; background:#f3dcd6; margin:10px 0 8px }
.bar i { position:absolute; left:0; top:0; bottom:0; border-radius:4px; background:var(--good) }
.bar b { position:absolute; top:-3px; bottom:-3px; background:rgba(29,43,58,.28); border-radius:3px; min-width:2px }
.grid { display:grid; grid-template-columns:repeat(auto-fit,minmax(420px,1fr)); gap:14px }
.panel { overflow-x:auto } .panel + .panel { margin-top:14px } .grid .panel { margin-top:0 }
svg { width:100%; height:auto; display:block } svg text { font-family:inherit !important }
table { border-collapse:collapse; width:100%; font-size:13.5px; font-variant-numeric:tabular-nums }
th,td { border-bottom:1px solid var(--line); padding:5px 14px 5px 0; text-align:left; vertical-align:top }
th { color:var(--muted); font-weight:600; white-space:nowrap } tr:last-child td { border-bottom:0 }
th.n,td.n { text-align:right } code { font:12.5px ui-monospace,Menlo,Consolas,monospace }
"""


def page(study: Study, store: Store, summary: Summary, repeated: dict[str, dict[str, tuple[int, History]]]) -> str:
    """The page's text. repeated: output -> worst, median, best -> (sample, its history)."""
    title = f"{escape(study.model.name)}: Monte Carlo report"
    record = store.provenance
    lead = (
        f"{summary.done:,} samples of {study.simulation.t_end:g} s at {study.simulation.dt * 1e3:g} ms, "
        f"seed {study.seed}, {record['precision']}"
    )
    parts = [
        f"<h1>{title}</h1><p class=lead>{lead}</p>",
        _banner(summary),
        *(f"<div class=banner>Warning: {escape(message)}</div>" for message in study.warnings),
        f"<div class=cards>{''.join(map(_card, _verdicts(summary)))}</div>" if summary.verdicts else "",
        "<h2>Outputs</h2>" + _panel(_quantiles(study, summary)),
        f'<div class=grid style="margin-top:14px">{"".join(_histograms(study, summary))}</div>',
        "<h2>Worst, median and best sample</h2>" + "".join(_histories(study, repeated)) if repeated else "",
        _drivers(study, store, summary),
        "<h2>Dispersions</h2>" + _panel(_dispersions(study, store, summary)),
        "<h2>Samples that failed</h2>" + _panel(_failures(summary, store)),
        "<h2>Where this comes from</h2>" + _panel(_provenance(study, store, summary)),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    body = f"<body><main>{''.join(parts)}</main></body>"
    return f'<!doctype html><html lang="en"><head>{head}<style>{_CSS}</style></head>{body}</html>'


def _panel(content: str) -> str:
    return f"<div class=panel>{content}</div>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    """The last `numbers` columns are numbers. Cells are HTML."""
    first = len(head) - numbers

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}{' class=n' if i >= first else ''}>{x}</{tag}>" for i, x in enumerate(row))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    top = f"<thead><tr>{cells('th', head)}</tr></thead>" if any(head) else ""
    return f"<table>{top}<tbody>{body}</tbody></table>"


def _banner(summary: Summary) -> str:
    if summary.done == summary.n:
        return ""
    return (
        f"<div class=banner>This run is not finished: {summary.done:,} of {summary.n:,} samples are computed. "
        "<code>jaxmbs resume</code> computes the rest.</div>"
    )


def _verdicts(summary: Summary) -> list[Verdict]:
    return [*summary.verdicts, *([summary.together] if summary.together else [])]


def _card(v: Verdict) -> str:
    band = f'<b style="left:{v.low:.3%};width:{v.high - v.low:.3%}"></b>'
    return (
        f"<div class=card><div class=what>{escape(v.text)}</div><div class=big>{v.probability:.2%}</div>"
        f'<div class=bar><i style="width:{v.probability:.3%}"></i>{band}</div>'
        f"<div class=note>{CONFIDENCE:.0%} interval {v.low:.2%} to {v.high:.2%}, "
        f"met by {v.met:,} of {v.of:,}</div></div>"
    )


def _quantiles(study: Study, summary: Summary) -> str:
    rows = []
    for name in study.outputs:
        unit = study.shown[name]
        values = summary.outputs[name]
        undefined = int(np.count_nonzero(~np.isfinite(values))) - sum(map(len, summary.failed.values()))
        shown = [f"{q / unit.factor:.4g}" for q in summary.quantiles(name)]
        rows.append([escape(name.replace("_", " ")), escape(unit.name), *shown, f"{undefined:,}" if undefined else ""])
    return _table(["output", "unit", *(f"{q:.0%}" for q in QUANTILES), "undefined"], rows, len(QUANTILES) + 1)


def _histograms(study: Study, summary: Summary) -> Iterable[str]:
    for name in study.outputs:
        criteria = [c for c in study.criteria if c.output == name]
        grid = study.simulation.dt if study.quantities[name] == "time" else 0.0
        yield _panel(plots.histogram(summary.outputs[name], name, study.shown[name], criteria, grid))


def _histories(study: Study, repeated: dict[str, dict[str, tuple[int, History]]]) -> Iterable[str]:
    for name, runs in repeated.items():
        criteria = [c for c in study.criteria if c.output == name and study.quantities[name] != "time"]
        history = next(iter(runs.values()))[1]
        curves = {which: (sample, h.values[name][0]) for which, (sample, h) in runs.items()}
        quantity = study.outputs[name].quantity(study.joints)
        unit = study.shown[name] if study.quantities[name] == quantity else si(quantity)
        yield _panel(plots.history(history.t, curves, name, unit, criteria))


def _drivers(study: Study, store: Store, summary: Summary) -> str:
    found = {name: drivers(study, store, summary, name) for name in dict.fromkeys(c.output for c in study.criteria)}
    bars = "".join(_panel(plots.bars([(d.name, d.share) for d in f.found], name)) for name, f in found.items() if f)
    note = "Share of the variance that a draw explains by itself (first-order Sobol index, estimated from the samples)."
    return f"<h2>What drives the outcome</h2><p class=note>{note}</p><div class=grid>{bars}</div>" if bars else ""


def _dispersions(study: Study, store: Store, summary: Summary) -> str:
    data, rows = store.dataset(), summary.index[:_DRAWS_SHOWN]
    table = []
    for d in study.dispersions.items:
        x = data[d.name][: int(rows.max(initial=-1)) + 1].values[rows].reshape(len(rows), d.k)
        drawn = [f"{m:.4g} ± {s:.2g}" for m, s in zip(x.mean(0), x.std(0), strict=True)] if len(rows) > 1 else []
        name = f"<code>{escape(d.name)}</code>"
        table.append([name, escape(described(d)), d.apply, _nominal(d), "<br>".join(drawn)])
    return _table(["dispersion", "distribution", "acts by", "nominal value (SI)", "drawn, mean ± std (SI)"], table)


def _nominal(d: Dispersion) -> str:
    nominal = d.target.nominal
    if d.target.name.endswith(".inertia"):
        nominal = np.linalg.eigvalsh(nominal)
    return ", ".join(f"{x:.5g}" for x in np.atleast_1d(nominal).reshape(-1))


def _failures(summary: Summary, store: Store) -> str:
    if not summary.failed:
        return "<p>None.</p>"
    rows = []
    for message, index in summary.failed.items():
        some = ", ".join(map(str, index[:12])) + (", ..." if len(index) > 12 else "")
        again = f"jaxmbs simulate {store.folder}/study.toml --sample {index[0]} --of {store.folder}"
        rows.append([escape(message), some, f"<code>{escape(again)}</code>", f"{len(index):,}"])
    return _table(["what happened", "samples", "repeat the first with", "number"], rows, 1)


def _provenance(study: Study, store: Store, summary: Summary) -> str:
    record = store.provenance
    versions = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
    rows = [
        ["study file", f"<code>{escape(str(store.folder / 'study.toml'))}</code>"],
        ["SHA-256", f"<code>{record['file_sha256']}</code>"],
        ["samples", f"{summary.done:,} of {record['n']:,}, in blocks of {record['block_rows']}"],
        ["seed and generator", f"{record['seed']}, {escape(record['generator'])}"],
        ["precision", escape(record["precision"])],
        ["device", escape(record["device"])],
        ["versions", escape(versions)],
        ["largest error of the energy balance", f"{summary.energy_error:.3g} J"],
    ]
    return _table(["", ""], rows)


def wanted(study: Study, summary: Summary) -> dict[str, tuple[int, int, int]]:
    """The samples to repeat: output -> (worst, median, best), for every output that has a criterion."""
    found = {}
    for c in study.criteria:
        picked = extremes(study, summary, c.output, c.sign[0] == ">")
        if picked and c.output not in found:
            found[c.output] = picked
    return found
