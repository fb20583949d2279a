"""Pictures of a trade study, as SVG text: a dot with its interval for every design, or a curve with its band."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxmbs.study.reports.plots import GOOD, INK, NEUTRAL, axes

_LETTER = 0.08  # [inch] average width of a letter
_LONGEST = 26  # letters of a name that are shown


def dots(names: Sequence[str], rows: np.ndarray, label: str, zero: bool = False) -> str:
    """A number with its interval for each design, from top to bottom. rows (designs, 3): number, ends of its interval
    (NaN: none); zero: mark zero."""
    svg: list[str] = []
    half = _LONGEST // 2  # names of a sweep differ at their ends, too
    shown = [name if len(name) <= _LONGEST else f"{name[: half - 1]}…{name[-half:]}" for name in names]
    left = 0.25 + _LETTER * max(map(len, shown))
    with axes(4.6, 0.75 + 0.28 * len(names), svg, f"{label} of every design", left) as ax:
        at = np.arange(len(names))[::-1]
        if zero:
            ax.axvline(0.0, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
        ax.hlines(at, rows[:, 1], rows[:, 2], color=NEUTRAL, linewidth=2.0)
        ax.plot(rows[:, 0], at, "o", color=GOOD, markersize=4.5)
        ax.set_yticks(at, shown)
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.set_xlabel(label)
        ax.grid(axis="y", visible=False)
    return svg[0]


def curve(x: Sequence[float], name: str, rows: np.ndarray, label: str, zero: bool = False) -> str:
    """A number with its band against the parameter that is swept. x: values of the parameter `name`, one per design;
    rows, zero: as for `dots`."""
    svg: list[str] = []
    order = np.argsort(x)
    at, rows = np.asarray(x)[order], rows[order]
    with axes(4.6, 2.7, svg, f"{label} over {name}") as ax:
        if zero:
            ax.axhline(0.0, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
        ax.fill_between(at, rows[:, 1], rows[:, 2], color=NEUTRAL, alpha=0.3, linewidth=0)
        ax.plot(at, rows[:, 0], "o-", color=GOOD, linewidth=1.5, markersize=4)
        ax.set_xlabel(name)
        ax.set_ylabel(label)
    return svg[0]
