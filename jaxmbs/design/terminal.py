"""The design as tables for the terminal, and the texts that these tables share with the HTML page."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

import jaxmbs as mbs
from jaxmbs.design.comparison import Comparison
from jaxmbs.design.status import Status
from jaxmbs.design.synthesize import Design
from jaxmbs.design.uncertainty import Estimate
from jaxmbs.io.reports import printed


def estimates(design: Design) -> tuple[Estimate, ...]:
    """The estimates of a fit, with their standard deviations; none for other problems."""
    return design.uncertainty.estimates if design.uncertainty else ()


def estimated(design: Design) -> list[tuple[str, str, str, str]]:
    """(coordinate, value, standard deviation, interval of 95 %) of a fit, with units."""
    return [
        (
            e.name,
            f"{e.value:.6g} {e.unit}",
            f"{e.std:.2g}",
            f"{e.low:.6g} to {e.high:.6g}{' (profile)' if e.profiled else ''}",
        )
        if np.isfinite(e.std)
        else (e.name, f"{e.value:.6g} {e.unit}", "not determined", "")
        for e in estimates(design)
    ]


def outcome(design: Design) -> str:
    """Status, reason and the number of starts with each status, in one line."""
    counts = zip(*np.unique(design.statuses, return_counts=True), strict=True)
    each = ", ".join(f"{n} {Status(int(s)).name}" for s, n in counts)
    return f"{design.status.name}: {design.reason} (starts: {each}; {len(design.history)} steps)"


def changes(design: Design) -> list[tuple[str, str, str]]:
    """(parameter, before, after) of every free parameter."""
    return [(n, said(mbs.get(design.problem.model, n)), said(x)) for n, x in design.parameters.items()]


def said(x: Any) -> str:
    """A value with few digits; a matrix row by row."""
    x = np.asarray(x, float)
    if x.ndim == 2:
        return "; ".join(" ".join(f"{v:.4g}" for v in row) for row in x)
    return ", ".join(f"{v:.6g}" for v in np.atleast_1d(x))


def table(design: Design, comparison: Comparison) -> RenderableType:
    """The design as tables for the terminal."""
    parts: list[RenderableType] = [Text(outcome(design), style="green" if design.status.success else "red")]
    wanted = [(n, f"{design.before[n]:.4g}", f"{x:.4g}") for n, x in design.largest.items()]
    parts.append(printed("largest residuals", ("objective", "before", "after"), wanted))
    parts.append(printed("parameters [SI]", ("parameter", "before", "after"), changes(design)))
    if comparison.rows:
        rows = [(r.what, f"{r.before:.4g}", f"{r.after:.4g}", r.unit) for r in comparison.rows]
        parts.append(printed(comparison.title, ("", "before", "after", "unit"), rows))
    if design.uncertainty:
        head = ("coordinate", "value", "standard deviation", "95 %")
        parts.append(printed("estimates", head, estimated(design)))
        parts += [Text(f"{a} and {b}: correlation {c:.3f}") for a, b, c in design.uncertainty.close]
    if design.findings:
        parts.append(Text(str(design.findings)))
    return Group(*parts)
