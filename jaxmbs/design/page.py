"""The report of a synthesis as one self-contained HTML page."""

from __future__ import annotations

from html import escape

import numpy as np

from jaxmbs.design import plots
from jaxmbs.design.comparison import Comparison
from jaxmbs.design.synthesize import Design
from jaxmbs.design.terminal import changes, estimated, outcome
from jaxmbs.study.reports.page_style import document, panel, picture, table_of_texts


def page(design: Design, comparison: Comparison) -> str:
    """The HTML text of the report."""
    name = escape(design.problem.model.name)
    title = f"{name}: synthesis"
    lead = f"<p class='{'lead' if design.status.success else 'no'}'>{escape(outcome(design))}</p>"
    wanted = [(o.describe(design.problem.model), o.goal, f"{o.weight:g}", f"{before:.3g}", f"{largest:.3g}")
              for o, before, largest in zip(
            design.problem.objectives, design.before.values(), design.largest.values(), strict=True
        )]  # fmt: skip
    parts = [
        f"<h1>{title}</h1>{lead}",
        "<h2>What was wanted</h2>"
        + panel(table_of_texts(("objective", "goal", "weight", "largest residual before", "after"), wanted)),
        _comparison(comparison),
        "<h2>Parameters, SI</h2>" + panel(table_of_texts(("parameter", "before", "after"), changes(design))),
        _estimates(design),
        _findings(design),
        "<h2>Convergence of all starts</h2>"
        + picture(plots.convergence(design.history, design.best, design.violations)),
    ]
    return document(title, "".join(parts))


def _comparison(comparison: Comparison) -> str:
    if not comparison.rows:
        return ""
    rows = [(r.what, f"{r.before:.4g}", f"{r.after:.4g}", r.unit) for r in comparison.rows]
    pictures = "".join(picture(plots.two_histograms(*both, name)) for name, both in comparison.samples.items())
    return (
        f"<h2>Before and after: {escape(comparison.title)}</h2>"
        + panel(table_of_texts(("", "before", "after", "unit"), rows))
        + pictures
    )


def _estimates(design: Design) -> str:
    if design.uncertainty is None:
        return ""
    estimates = table_of_texts(("coordinate", "value", "standard deviation", "interval of 95 %"), estimated(design))
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
    strong = table_of_texts(("coordinate", "change of all conditions per unit"), [(n, f"{s:.3g}") for n, s in sharp])
    note = (
        "<p class=note>I: inertia about the pole, I_xy minus the integral of x y dm; h: first moment about it, mass times "
        "centre of mass.</p>"
    )
    relations = panel(table_of_texts(("relation", "residual", "unit"), rows)) + note
    finite = (
        "" if np.all(np.isfinite(found.singular_values)) else "<p class=no>Some singular values are not finite.</p>"
    )
    return f"<h2>What the conditions fix</h2>{lead}{relations}{idle}{finite}<h2>Sensitivity</h2>{panel(strong)}"
