"""The display in notebooks: a model as its tree and a table of its joints, a solution as plots."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.model import Model, get
from jaxmbs.model.graph import graph_of
from jaxmbs.model.parameters import is_traced
from jaxmbs.view.info import coordinates_text, count, drawn_tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jaxmbs.simulate import Solution

LINES, POINTS, BAND = 8, 400, (0.05, 0.5, 0.95)  # most coordinates and times in a plot; quantiles over a batch


def model_html(model: Model) -> str:
    """The display of a model in notebooks: counts, the drawn tree, bodies with their joints. Starts no JAX backend."""
    s = model.structure
    head = f"{count(len(s.links), 'body', 'bodies')}, {count(model.nv, 'degree')} of freedom (nq = {model.nq})"
    others = (
        (len(s.loops), "cut joint"), (len(s.forces), "force element"), (len(s.constraints), "constraint"),
        (len(s.events), "event"),
    )  # fmt: skip
    head += "".join(f", {count(n, what)}" for n, what in others if n)
    rows = []
    for link in s.links:
        mass = get(model, f"{link.body}.mass")
        said = f"{mass:.4g}" if np.ndim(mass) == 0 else f"{len(np.asarray(mass))} values"
        cells = (link.body, said, link.name, link.joint.type_name, coordinates_text(link.joint.coordinates()))
        rows.append("<tr>" + "".join(f"<td style='text-align:left'>{escape(str(c))}</td>" for c in cells) + "</tr>")
    names = "".join(
        f"<th style='text-align:left'>{x}</th>" for x in ("body", "mass [kg]", "joint", "type", "coordinates")
    )
    tree = escape(drawn_tree(model, graph_of(model)))
    return (
        f"<div><b>{escape(model.name)}</b>: {head}<pre style='line-height:1.2'>{tree}</pre>"
        f"<details><summary>bodies and joints</summary><table><tr>{names}</tr>{''.join(rows)}</table></details></div>"
    )


def solution_html(solution: Solution) -> str:
    """A solution as shown in notebooks: the outcome, and q, v and |energy error| over time; for a batch their median
    and the band from 5 to 95 %."""
    said = f"<pre>{escape(repr(solution))}</pre>"
    if is_traced(solution.status):
        return said
    try:
        import matplotlib
    except ModuleNotFoundError:
        return said
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "jaxmbs"}):
        return f"<div>{said}{_motion(solution)}</div>"


def _motion(solution: Solution) -> str:
    """The plots as SVG text."""
    from matplotlib.figure import Figure

    batch = np.ndim(solution.t) - 1
    t = np.asarray(solution.t, float)[(0,) * batch]
    rows = np.unique(np.linspace(0, len(t) - 1, min(POINTS, len(t))).round().astype(int))
    figure = Figure(figsize=(11, 2.8), layout="constrained")
    panels: Any = figure.subplots(1, 3)
    energy = np.abs(np.asarray(solution.energy_error, float))[..., None]
    for axes, x, label in zip(panels, (solution.q, solution.v, energy), ("q", "v", "|energy error| [J]"), strict=True):
        values = np.asarray(x, float).reshape(-1, *np.shape(x)[batch:])[:, rows]
        _lines(axes, t[rows], values, label)
        if solution.events is not None and not batch:
            for time in np.asarray(solution.events.time)[np.asarray(solution.events.index) >= 0]:
                axes.axvline(time, color="#94a3b5", linewidth=0.8, linestyle=(0, (4, 2)))
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def _lines(axes: Axes, t: np.ndarray, x: np.ndarray, label: str) -> None:
    """Plot the components of x (instances, rows, components) over t; for several instances their median and spread."""
    shown = min(x.shape[2], LINES)
    for k in range(shown):
        name = f"{label}[{k}]" if x.shape[2] > 1 else label
        ok = np.where(np.isfinite(x[:, :, k]), x[:, :, k], np.nan)
        defined = np.isfinite(ok).any(axis=0)  # where no instance has a finite value, there is nothing to show
        low, middle, high = np.full((3, len(t)), np.nan)
        low[defined], middle[defined], high[defined] = np.nanquantile(ok[:, defined], BAND, axis=0)
        (line,) = axes.plot(t, middle, linewidth=1.2, label=name)
        if len(x) > 1:
            axes.fill_between(t, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
    more = f", the first {shown} of {x.shape[2]}" if shown < x.shape[2] else ""
    axes.set(xlabel="t [s]", title=f"{label}{more}")
    axes.grid(alpha=0.3)
    if shown > 1:
        axes.legend(fontsize=7, frameon=False)
