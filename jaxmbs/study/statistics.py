"""What the samples say: probabilities of the criteria with intervals, quantiles, failures, drivers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxmbs.study.problem import Study
from jaxmbs.study.store import NOT_RUN, Store

QUANTILES = (0.01, 0.05, 0.5, 0.95, 0.99)
CONFIDENCE = 0.95
_DRIVER_SAMPLES = 20_000  # ranks of more say no more


@dataclass(frozen=True)
class Verdict:
    """How often a criterion was met: `met` of `of` samples, and the Clopper-Pearson interval of the probability."""

    text: str
    met: int
    of: int
    low: float
    high: float

    @property
    def probability(self) -> float:
        return self.met / self.of if self.of else float("nan")


@dataclass(frozen=True)
class Summary:
    """A run, or the part of it that is done.

    outputs: (m,) values in SI of the m samples `index` that were computed; failed: message -> indices.
    """

    n: int
    index: np.ndarray
    status: np.ndarray
    outputs: dict[str, np.ndarray]
    verdicts: tuple[Verdict, ...]
    together: Verdict | None
    failed: dict[str, np.ndarray]
    energy_error: float

    @property
    def done(self) -> int:
        return len(self.index)

    def quantiles(self, name: str) -> np.ndarray:
        """QUANTILES of an output in SI, over the samples in which it is defined."""
        values = self.outputs[name][np.isfinite(self.outputs[name])]
        return np.quantile(values, QUANTILES) if len(values) else np.full(len(QUANTILES), np.nan)


def verdict(text: str, met: np.ndarray) -> Verdict:
    """Verdict of (m,) bool."""
    from scipy.stats import binomtest

    k, m = int(np.count_nonzero(met)), len(met)
    interval = binomtest(k, m).proportion_ci(CONFIDENCE, method="exact") if m else None
    return Verdict(text, k, m, *((float(interval.low), float(interval.high)) if interval else (0.0, 1.0)))


def summarize(study: Study, store: Store) -> Summary:
    """Statistics of all samples computed so far. A failed sample meets no criterion."""
    import jaxmbs as mbs

    data = store.dataset()
    status = data["status"].values
    index = np.flatnonzero(status != NOT_RUN)
    status = status[index]
    ok = status == int(mbs.Status.OK)
    outputs = {name: np.where(ok, data[name].values[index], np.nan) for name in study.outputs}
    met = [ok & c.met(outputs[c.output]) for c in study.criteria]
    together = verdict("all of them", np.all(met, axis=0)) if len(met) > 1 else None
    messages = {int(s): s.message for s in mbs.Status}
    failed = {messages.get(int(s), f"status {s}"): index[status == s] for s in np.unique(status[~ok])}
    errors = np.abs(data["energy_error"].values[index][ok])
    verdicts = tuple(verdict(c.text, m) for c, m in zip(study.criteria, met, strict=True))
    return Summary(store.n, index, status, outputs, verdicts, together, failed, float(errors.max(initial=0.0)))


def extremes(study: Study, summary: Summary, output: str, low_is_bad: bool) -> tuple[int, int, int] | None:
    """Samples with the worst, the median and the best value of an output."""
    values = summary.outputs[output]
    order = np.argsort(values)[: np.count_nonzero(np.isfinite(values))]  # what is not a number is sorted to the end
    if not len(order):
        return None
    picked = summary.index[order[[0, len(order) // 2, -1]]]
    worst, median, best = (int(i) for i in (picked if low_is_bad else picked[::-1]))
    return worst, median, best


def drivers(study: Study, store: Store, summary: Summary, output: str, most: int = 8) -> list[tuple[str, float]]:
    """Draws that explain most of an output's variance by themselves: (name, share), the largest first.

    The share is the first-order Sobol index estimated from the samples at hand: the variance of the output's mean over
    slices of equal number along the draw, less what slices of unrelated samples would show. It sees relations that go
    down and up again, as those of rates and clearances do.
    """
    y = summary.outputs[output][:_DRIVER_SAMPLES]
    keep = np.isfinite(y)
    rows, y = summary.index[:_DRIVER_SAMPLES][keep], y[keep]
    slices = min(60, len(rows) // 25)
    if slices < 4 or np.ptp(y) == 0:
        return []
    columns: dict[str, np.ndarray] = {}
    data = store.dataset().isel(sample=slice(0, int(rows.max()) + 1))
    for d in study.dispersions.items:
        x = data[d.name].values[rows].reshape(len(rows), -1)
        columns |= {d.name if d.k == 1 else f"{d.name}[{i}]": x[:, i] for i in range(d.k)}
    found = [(name, _explained(x, y, slices)) for name, x in columns.items() if np.ptp(x) > 0]
    return sorted((pair for pair in found if pair[1] > 0), key=lambda pair: -pair[1])[:most]


def _explained(x: np.ndarray, y: np.ndarray, slices: int) -> float:
    parts = np.array_split(y[np.argsort(x, kind="stable")], slices)
    sizes, means = np.array([len(p) for p in parts]), np.array([p.mean() for p in parts])
    between = float(sizes @ (means - y.mean()) ** 2) / len(y)
    within = float(y.var()) - between
    return (between - within * (slices - 1) / (len(y) - slices)) / float(y.var())
