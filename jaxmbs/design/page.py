"""The report of a synthesis as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from jaxmbs.design import plots
from jaxmbs.design.comparison import Comparison
from jaxmbs.design.synthesize import Design
from jaxmbs.design.terminal import changes, estimated, outcome
from jaxmbs.io.pages import POLICY

_CSS = """
:root { --ink:#1d2b3a; --muted:#6b7a8c; --line:#e3e8ee; --good:#2b6cb0; --bad:#c2513a; --paper:#fff; --back:#f4f6f9 }
* { box-sizing:border-box }
body { margin:0; background:var(--back); color:var(--ink); font:15px/1.5 system-ui,"Segoe UI",Roboto,sans-serif }
main { max-width:1060px; margin:0 auto; padding:40px 24px 64px }
h1 { font-size:30px; line-height:1.2; margin:0 0 4px } h2 { font-size:19px; margin:44px 0 12px }
.lead,.note { color:var(--muted) } .bad { color:var(--bad) }
.panel { background:var(--paper); border:1px solid var(--line); border-radius:10px; padding:16px 18px; overflow-x:auto }
.panel + .panel { margin-top:14px }
svg { width:100%; height:auto; display:block } svg text { font-family:inherit !important }
table { border-collapse:collapse; width:100%; font-size:13.5px; font-variant-numeric:tabular-nums }
th,td { border-bottom:1px solid var(--line); padding:5px 14px 5px 0; text-align:left; vertical-align:top }
th { color:var(--muted); font-weight:600 } tr:last-child td { border-bottom:0 }
"""


def page(design: Design, comparison: Comparison) -> str:
    """The HTML text of the report."""
    name = escape(design.problem.model.name)
    title = f"{name}: synthesis"
    lead = f"<p class='{'lead' if design.status.success else 'bad'}'>{escape(outcome(design))}</p>"
    wanted = [(o.describe(design.problem.model), o.goal, f"{o.weight:g}", f"{before:.3g}", f"{largest:.3g}")
              for o, before, largest in zip(
            design.problem.objectives, design.before.values(), design.largest.values(), strict=True
        )]  # fmt: skip
    parts = [
        f"<h1>{title}</h1>{lead}",
        "<h2>What was wanted</h2>"
        + panel(table(("objective", "goal", "weight", "largest residual before", "after"), wanted)),
        _comparison(comparison),
        "<h2>Parameters, SI</h2>" + panel(table(("parameter", "before", "after"), changes(design))),
        _estimates(design),
        _findings(design),
        "<h2>Convergence of all starts</h2>" + panel(plots.convergence(design.history, design.best, design.violations)),
    ]
    return document(title, "".join(parts))


def document(title: str, content: str) -> str:
    """A self-contained page."""
    head = f'<meta charset="utf-8">{POLICY}<meta name="viewport" content="width=device-width"><title>{title}</title>'
    body = f"<body><main>{content}</main></body>"
    return f'<!doctype html><html lang="en"><head>{head}<style>{_CSS}</style></head>{body}</html>'


def panel(content: str) -> str:
    """Content in a box with its own background."""
    return f"<div class=panel>{content}</div>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table of texts."""
    body = "".join("<tr>" + "".join(f"<td>{escape(x)}</td>" for x in row) + "</tr>" for row in rows)
    top = "".join(f"<th>{escape(x)}</th>" for x in head)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _comparison(comparison: Comparison) -> str:
    if not comparison.rows:
        return ""
    rows = [(r.what, f"{r.before:.4g}", f"{r.after:.4g}", r.unit) for r in comparison.rows]
    pictures = "".join(panel(plots.two_histograms(*both, name)) for name, both in comparison.samples.items())
    return (
        f"<h2>Before and after: {escape(comparison.title)}</h2>"
        + panel(table(("", "before", "after", "unit"), rows))
        + pictures
    )


def _estimates(design: Design) -> str:
    if design.uncertainty is None:
        return ""
    estimates = table(("coordinate", "value", "standard deviation", "interval of 95 %"), estimated(design))
    close = "".join(
        f"<p class=note>{escape(a)} and {escape(b)}: correlation {c:.3f}; the data hardly distinguish them.</p>"
        for a, b, c in design.uncertainty.close
    )
    return f"<h2>Estimates</h2>{panel(estimates)}{close}"


def _findings(design: Design) -> str:
    found = design.findings
    if found is None:
        return ""
    where = "everywhere" if found.linear else "at this solution"
    lead = (
        f"<p>The conditions fix {found.rank} independent combinations of {len(found.coordinates)} numbers {where}; "
        f"{len(found.coordinates) - found.rank} remain free.</p>"
    )
    rows = [(r.text, f"{r.residual:.1e}" if r.std is None else f"± {r.std:.2g}", r.unit) for r in found.relations]
    idle = (
        f"<p class=note>Without any effect on the conditions: {escape(', '.join(found.indifferent))}.</p>"
        if found.indifferent
        else ""
    )
    sharp = sorted(found.sensitivity.items(), key=lambda item: -item[1])[:12]
    strong = table(("coordinate", "change of all conditions per unit"), [(n, f"{s:.3g}") for n, s in sharp])
    note = (
        "<p class=note>I: inertia about the pole, I_xy minus the integral of x y dm; h: first moment about it, mass times "
        "centre of mass.</p>"
    )
    relations = panel(table(("relation", "residual", "unit"), rows)) + note
    finite = (
        "" if np.all(np.isfinite(found.singular_values)) else "<p class=bad>Some singular values are not finite.</p>"
    )
    return f"<h2>What the conditions fix</h2>{lead}{relations}{idle}{finite}<h2>Sensitivity</h2>{panel(strong)}"
