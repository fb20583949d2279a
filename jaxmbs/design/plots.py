"""Pictures of a synthesis, as SVG text that goes into the page."""

from __future__ import annotations

import numpy as np

from jaxmbs.study.plots import BAD, GOOD, NEUTRAL, _picture

_FLOOR = 1e-34  # costs below are rounding


def convergence(history: np.ndarray, best: int) -> str:
    """Cost of every start (steps, starts) against the step, the best one marked."""
    svg: list[str] = []
    with _picture(9.4, 3.2, svg, "cost of every start against the step") as ax:
        x = np.arange(1, len(history) + 1)
        shown = np.maximum(np.where(np.isfinite(history), history, np.nan), _FLOOR)
        if history.size:
            ax.semilogy(x, shown, color=NEUTRAL, linewidth=0.7, alpha=0.6)
            ax.semilogy(x, shown[:, best], color=GOOD, linewidth=1.8)
        ax.set_xlabel("step")
        ax.set_ylabel("half the sum of squares")
    return svg[0]


def two_histograms(before: np.ndarray, after: np.ndarray, name: str) -> str:
    """An output before and after, on common bins."""
    svg: list[str] = []
    with _picture(9.4, 2.6, svg, f"histograms of {name}") as ax:
        both = [x[np.isfinite(x)] for x in (before, after)]
        whole = np.concatenate(both)
        if len(whole):
            edges = np.linspace(whole.min(), whole.max() + 1e-300, 50).tolist()
            for x, color, label in zip(both, (BAD, GOOD), ("before", "after"), strict=True):
                ax.hist(x, edges, color=color, alpha=0.55, label=label)
            ax.legend()
        ax.set_xlabel(name.replace("_", " "))
    return svg[0]
