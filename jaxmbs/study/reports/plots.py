"""Plots of a report, as SVG text for the page."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from jaxmbs.study.problem.criteria import Criterion
from jaxmbs.study.results.columns import Column, column, defined, quantiles
from jaxmbs.study.units import Unit

INK, MUTED, GRID = "#1d2b3a", "#6b7a8c", "#e3e8ee"
GOOD, BAD, NEUTRAL = "#2b6cb0", "#c2513a", "#94a3b5"
_STYLE: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "jaxmbs", "font.size": 9, "font.family": "sans-serif",
    "axes.edgecolor": MUTED, "axes.labelcolor": INK, "axes.linewidth": 0.7, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": GRID, "grid.linewidth": 0.7,
    "xtick.color": MUTED, "ytick.color": MUTED, "text.color": INK, "legend.frameon": False,
}  # fmt: skip


_LEFT, _BELOW, _MARGIN = 0.72, 0.46, 0.1  # [inch] margins, with room for the numbers and names of axes
_LINE, _ABREAST = 0.27, 3  # [inch] height of a row of a legend, and its number of entries
_LETTER = 0.068  # [inch] average width of a letter


@contextmanager
def axes(
    width: float, height: float, svg: list[str], label: str, left: float = _LEFT, above: float = _MARGIN
) -> Iterator[Axes]:
    """Axes in a figure of this size [inch], whose SVG is appended to `svg`. matplotlib's own layouts would draw
    everything twice."""
    with matplotlib.rc_context(_STYLE):
        sides = left / width, _BELOW / height, 1 - (left + _MARGIN) / width, 1 - (_BELOW + above) / height
        yield (figure := Figure(figsize=(width, height))).add_axes(sides)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    body = text.getvalue()
    svg.append(f'<svg role="img" aria-label="{escape(label)}" ' + body[body.index("<svg") + 4 :])


def histogram(values: Any, name: str, unit: Unit, criteria: Sequence[Criterion], grid: float = 0.0) -> str:
    """Histogram of an output (an array or a column of values). Samples that miss a criterion have another colour, and
    the bounds of the criteria are marked.

    grid: spacing of the values that can occur, in SI, for times that are multiples of a step; 0 if all values can.
    Every bin then covers equally many of them.
    """
    x = column(values)
    m, svg = defined(x), []
    with axes(4.6, 2.7, svg, f"histogram of {name}") as ax:
        if m:
            low, high = _window(
                x.mapped(lambda v: v / unit.factor), [b / unit.factor for c in criteria for _, b in c.marks]
            )
            width = (high - low) / np.clip(np.sqrt(m), 12, 60)
            if grid:
                width = np.ceil(width / grid * unit.factor) * grid / unit.factor
                low = (np.round(low / grid * unit.factor) - 0.5) * grid / unit.factor
            edges = np.arange(low, high + width, width)
            good, bad = np.zeros((2, len(edges) - 1))
            for part in x.parts():
                part = part[np.isfinite(part)]
                met = np.all([c.met(part) for c in criteria], axis=0) if criteria else np.ones(len(part), bool)
                shown = np.clip(part / unit.factor, low, edges[-1])
                good += np.histogram(shown[met], edges)[0]
                bad += np.histogram(shown[~met], edges)[0]
            for low_ends, counts, color in ((np.zeros_like(good), good, GOOD), (good, bad, BAD)):
                if counts.any():  # one shape: a hundred separate bars would take twice as long as all the rest
                    ax.stairs(low_ends + counts, edges, baseline=low_ends, fill=True, color=color, linewidth=0)
            ax.set_ylim(0, None)
        for sign, bound in (mark for c in criteria for mark in c.marks):
            at = bound / unit.factor
            ax.axvline(at, color=INK, linewidth=1.1, linestyle=(0, (4, 2)))
            place = {"xycoords": ("data", "axes fraction"), "va": "top", "fontsize": 8}
            ax.annotate(f" {sign} {at:g}", (at, 1.0), **place)
        ax.set_xlabel(_label(name, unit))
        ax.set_ylabel("samples")
        ax.grid(axis="x", visible=False)
    return svg[0]


def _window(x: Column, bounds: Sequence[float]) -> tuple[float, float]:
    """Range that shows most of the values and the bounds near them; the outermost bins include the values beyond."""
    low, high = quantiles(x, [0.0005, 0.9995])
    reach = high - low
    near = [b for b in bounds if low - 2 * reach <= b <= high + 2 * reach]
    low, high = min([low, *near]), max([high, *near])
    pad = 0.03 * (high - low) or max(abs(low), 1.0) * 1e-3
    return float(low - pad), float(high + pad)


def history(
    t: np.ndarray, curves: Mapping[str, tuple[int, np.ndarray]], name: str, unit: Unit, criteria: Sequence[Criterion],
    band: np.ndarray | None = None,
) -> str:  # fmt: skip
    """Plot of what an output measures over time, for the worst, median and best sample. curves: {which: (sample, values
    in SI)}; band (4, T): ranges over many samples, of all (first and last row) and of most (rows between)."""
    colors, svg = {"worst": BAD, "median": NEUTRAL, "best": GOOD}, []
    with axes(9.2, 3.3, svg, f"history of {name}", above=_LINE) as ax:
        if band is not None:
            for low, high, alpha in ((0, 3, 0.18), (1, 2, 0.28)):
                ax.fill_between(
                    t, band[low] / unit.factor, band[high] / unit.factor, color=MUTED, alpha=alpha, linewidth=0
                )
        for which, (sample, values) in curves.items():
            ax.plot(t, values / unit.factor, color=colors[which], linewidth=1.6, label=f"{which} (sample {sample})")
        for _, bound in (mark for c in criteria for mark in c.marks):
            ax.axhline(bound / unit.factor, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
        ax.set_xlim(t[0], t[-1])
        ax.set_xlabel("time [s]")
        ax.set_ylabel(_label(name, unit))
        _legend(ax)
    return svg[0]


def bars(found: Sequence[tuple[str, float, float, float]], name: str, rest: float) -> str:
    """Plot of the shares of an output's variance that draws explain, with their intervals, the largest on top, and of
    the rest that they leave unexplained. found: (draw, share, low, high)."""
    svg: list[str] = []
    rows = [*found, ("rest", rest, rest, rest)][::-1]
    left = 0.2 + _LETTER * max(len(r[0]) for r in rows)
    with axes(4.6, 0.75 + 0.28 * len(rows), svg, f"what drives {name}", left) as ax:
        names, values = [r[0] for r in rows], [100 * r[1] for r in rows]
        reach = [[max(0.0, 100 * (r[1] - r[2])) for r in rows], [max(0.0, 100 * (r[3] - r[1])) for r in rows]]
        reach = [[x if x > 0 else np.nan for x in side] for side in reach]
        ax.barh(names, values, color=[NEUTRAL, *[GOOD] * len(found)], height=0.62)
        ax.errorbar(values, names, xerr=reach, fmt="none", ecolor=INK, elinewidth=1.0, capsize=2)
        ax.set_xlabel(f"share of the variance of {name.replace('_', ' ')} [%]")
        ax.grid(axis="y", visible=False)
    return svg[0]


def scatter(x: np.ndarray, label: str, values: np.ndarray, name: str, unit: Unit, criteria: Sequence[Criterion]) -> str:
    """Plot of an output against a draw; samples that miss a criterion have another colour."""
    svg: list[str] = []
    met = np.all([c.met(values) for c in criteria], axis=0) if criteria else np.ones(len(x), bool)
    with axes(4.6, 2.7, svg, f"{name} over {label}") as ax:
        for some, color in ((met, GOOD), (~met & np.isfinite(values), BAD)):
            ax.plot(x[some], values[some] / unit.factor, ".", color=color, markersize=3.5, alpha=0.7, linestyle="none")
        for _, bound in (mark for c in criteria for mark in c.marks):
            ax.axhline(bound / unit.factor, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
        ax.set_xlabel(label)
        ax.set_ylabel(_label(name, unit))
    return svg[0]


def convergence(curves: Mapping[str, np.ndarray]) -> str:
    """Plot of the share of samples that meet each criterion, with its interval, against the number of samples. curves:
    {criterion: (4, points)}, rows of numbers of samples, shares, and lower and upper ends of the intervals."""
    svg: list[str] = []
    above = _LINE * -(-len(curves) // _ABREAST)
    with axes(9.2, 2.5 + above, svg, "convergence of the criteria", above=above) as ax:
        for k, (text, (n, share, low, high)) in enumerate(curves.items()):
            color = (GOOD, BAD, NEUTRAL, INK)[k % 4]
            ax.fill_between(n, 100 * low, 100 * high, color=color, alpha=0.15, linewidth=0)
            ax.plot(n, 100 * share, color=color, linewidth=1.5, label=text)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_ylim(None, 100.5)
        ax.set_xlabel("samples")
        ax.set_ylabel("met [%]")
        _legend(ax)
    return svg[0]


def _legend(ax: Axes) -> None:
    """Legend above the axes, where it covers nothing."""
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=_ABREAST, borderaxespad=0.2, borderpad=0)


def _label(name: str, unit: Unit) -> str:
    return name.replace("_", " ") + (f" [{unit.name}]" if unit.name else "")


def across(bodies: Sequence[Sequence[np.ndarray]], gap: np.ndarray) -> tuple[list[list[np.ndarray]], np.ndarray]:
    """What is seen of two bodies and the gap between them, across the gap: the outlines (n, 2) of their pieces, and the
    ends (2, 2) of the gap. bodies: the corners (n, 3) of their pieces, in world axes; gap (2, 3)."""
    along = gap[1] - gap[0]
    every = np.concatenate([x for pieces in bodies for x in pieces])
    spread = np.linalg.svd(every - every.mean(0), full_matrices=False)[2]
    length = float(np.linalg.norm(along))
    x = along / length if length > 1e-9 * np.ptp(every) else spread[0]
    y = max((v - x * (x @ v) for v in spread), key=np.linalg.norm)
    frame = np.stack([x, y / np.linalg.norm(y)], 1)
    return [[_outline(p @ frame) for p in pieces] for pieces in bodies], gap @ frame


def approach(outlines: Mapping[str, tuple[Sequence[np.ndarray], int]], ends: np.ndarray, shown: str, name: str) -> str:
    """Picture of two bodies and the gap between them: all of them, and near the gap.

    outlines: {what it is called: (outlines (n, 2) of its pieces, the number of the nearest piece)}; ends (2, 2): of the
    gap; shown: its size, as text.
    """
    svg: list[str] = []
    size = np.ptp(np.concatenate([p for pieces, _ in outlines.values() for p in pieces]), axis=0).max()
    near = max(4 * float(np.linalg.norm(ends[1] - ends[0])), size / 15)
    with axes(9.2, 4.2, svg, f"the closest approach of {name}") as left:
        left.set_position((0.02, 0.04, 0.5, 0.86))
        right = left.figure.add_axes((0.55, 0.04, 0.43, 0.86))
        for ax in (left, right):
            for (pieces, nearest), color in zip(outlines.values(), (GOOD, NEUTRAL), strict=True):
                for k, p in enumerate(pieces):
                    fill = 0.55 if k == nearest else 0.22
                    ax.fill(*p.T, facecolor=color, alpha=fill, edgecolor=color, linewidth=0.6)
            ax.plot(*ends.T, color=BAD, linewidth=1.8, marker="o", markersize=3)
            ax.set_aspect("equal")
            ax.grid(visible=False)
            ax.axis("off")
        for label, color in zip(outlines, (GOOD, NEUTRAL), strict=True):
            left.fill([], [], facecolor=color, alpha=0.55, label=label)
        _legend(left)
        a, b = ends.mean(0)
        right.set_xlim(a - near, a + near)
        right.set_ylim(b - near, b + near)
        right.annotate(shown, (a, b), xytext=(0, 8), textcoords="offset points", ha="center", color=BAD)
        left.plot([a - near, a + near, a + near, a - near, a - near], [b - near, b - near, b + near, b + near, b - near],
                  color=MUTED, linewidth=0.7)  # fmt: skip
    return svg[0]


def _outline(points: np.ndarray) -> np.ndarray:
    """The corners of the hull of points (n, 2) in order."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return points[ConvexHull(points).vertices]
    except QhullError:  # a piece that is seen as a line
        return points
