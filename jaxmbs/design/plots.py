"""Pictures of a synthesis, as SVG text that goes into the page."""

from __future__ import annotations

import numpy as np

from jaxmbs.study.reports.plots import BAD, GOOD, NEUTRAL, axes

_FLOOR = 1e-34  # costs below this are rounding


def convergence(history: np.ndarray, best: int, violations: np.ndarray | None = None) -> str:
    """Cost of every start (steps, starts) against the step, with the best one marked; violations (steps, starts): of the
    conditions, shown in a separate picture."""
    if violations is None:
        return _against_step(history, best, "half the sum of squares", _FLOOR)
    found = _against_step(history, best, "best value so far", None)
    return found + _against_step(violations, best, "largest violation there", _FLOOR**0.5)


def _against_step(values: np.ndarray, best: int, label: str, floor: float | None) -> str:
    """Values (steps, starts) against the step; floor: the smallest value shown, on a logarithmic scale (None: linear)."""
    svg: list[str] = []
    with axes(9.4, 3.2, svg, f"{label} of every start against the step") as ax:
        shown = np.where(np.isfinite(values), values, np.nan)
        if values.size:
            shown = shown if floor is None else np.maximum(shown, floor)
            x = np.arange(1, len(values) + 1)
            ax.plot(x, shown, color=NEUTRAL, linewidth=0.7, alpha=0.6)
            ax.plot(x, shown[:, best], color=GOOD, linewidth=1.8)
            ax.set_yscale("linear" if floor is None else "log")
        ax.set_xlabel("step")
        ax.set_ylabel(label)
    return svg[0]


def front(values: np.ndarray, names: tuple[str, str]) -> str:
    """Both objectives (points, 2) of the designs of a front, one plotted against the other."""
    svg: list[str] = []
    with axes(9.4, 4.2, svg, f"front of {names[0]} and {names[1]}") as ax:
        ax.plot(values[:, 0], values[:, 1], color=NEUTRAL, linewidth=0.8)
        ax.plot(values[:, 0], values[:, 1], "o", color=GOOD, markersize=5)
        ax.set_xlabel(names[0].replace("_", " "))
        ax.set_ylabel(names[1].replace("_", " "))
    return svg[0]


def two_histograms(before: np.ndarray, after: np.ndarray, name: str) -> str:
    """Histograms of an output before and after, with common bins."""
    svg: list[str] = []
    with axes(9.4, 2.6, svg, f"histograms of {name}") as ax:
        both = [x[np.isfinite(x)] for x in (before, after)]
        whole = np.concatenate(both)
        if len(whole):
            edges = np.linspace(whole.min(), whole.max() + 1e-300, 50).tolist()
            for x, color, label in zip(both, (BAD, GOOD), ("before", "after"), strict=True):
                ax.hist(x, edges, color=color, alpha=0.55, label=label)
            ax.legend()
        ax.set_xlabel(name.replace("_", " "))
    return svg[0]
