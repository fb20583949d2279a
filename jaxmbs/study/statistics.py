"""What the samples say: probabilities of the criteria with intervals, quantiles, failures, the worst of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from jaxmbs.study.criteria import Criterion
from jaxmbs.study.order_statistics import Tolerance, anytime_interval, interval, tolerance
from jaxmbs.study.outputs.folding import EVENT_COUNTS, EVENT_TIMES
from jaxmbs.study.problem import Study
from jaxmbs.study.store import NOT_RUN, Store

QUANTILES = (0.01, 0.05, 0.5, 0.95, 0.99)
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Verdict:
    """How often a criterion was met: `met` of `of` samples, and the Clopper-Pearson interval of the probability.

    share: of the samples that must meet it; limits: between which the output's share of all samples lies, in SI. The
    interval is not a number where the samples are not independent.
    """

    text: str
    met: int
    of: int
    low: float
    high: float
    share: float = 1.0
    limits: Tolerance | None = None

    @property
    def passed(self) -> bool:
        """Whether as many samples meet it as must."""
        return self.of > 0 and self.met >= self.share * self.of * (1 - 1e-12)

    @property
    def shown(self) -> bool:
        """Whether the samples show, with confidence, that the probability is what it must be."""
        return self.low >= self.share

    @property
    def probability(self) -> float:
        return self.met / self.of if self.of else float("nan")

    @property
    def interval(self) -> str:
        """The interval in words."""
        return f"{self.low:.2%} .. {self.high:.2%}" if np.isfinite(self.low) else "-"


@dataclass(frozen=True)
class Happened:
    """An event over the samples that went well: in how many of them it happened, how often at most, and when first
    (happened,) [s]."""

    samples: int
    of: int
    most: int
    times: np.ndarray

    @property
    def quantiles(self) -> np.ndarray:
        """QUANTILES of the times at which it happened first, over the samples in which it did."""
        return np.quantile(self.times, QUANTILES) if len(self.times) else np.full(len(QUANTILES), np.nan)


@dataclass(frozen=True)
class Summary:
    """A run, or the part of it that is done.

    outputs: (m,) values in SI of the m samples `index` that were computed; failed: message -> indices; dependence: why there
    are no intervals.
    """

    n: int
    index: np.ndarray
    status: np.ndarray
    outputs: dict[str, np.ndarray]
    verdicts: tuple[Verdict, ...]
    together: Verdict | None
    failed: dict[str, np.ndarray]
    energy_error: float
    dependence: str = ""
    events: dict[str, Happened] = field(default_factory=dict)

    @property
    def done(self) -> int:
        return len(self.index)

    @property
    def passed(self) -> bool:
        """Whether every sample is there and every criterion is met by as many as must."""
        return self.done == self.n and all(v.passed for v in self.verdicts)

    def quantiles(self, name: str) -> np.ndarray:
        """QUANTILES of an output in SI, over the samples in which it is defined."""
        values = self.outputs[name][np.isfinite(self.outputs[name])]
        return np.quantile(values, QUANTILES) if len(values) else np.full(len(QUANTILES), np.nan)


def verdict(text: str, met: np.ndarray, share: float = 1.0, stopped: bool = False, dependence: str = "") -> Verdict:
    """Verdict of (m,) bool. stopped: as soon as enough was seen."""
    k, m = int(np.count_nonzero(met)), len(met)
    low, high = (0.0, 1.0) if not m else (anytime_interval if stopped else interval)(k, m, CONFIDENCE)
    low, high = (float("nan"), float("nan")) if dependence else (float(low), float(high))
    return Verdict(text, k, m, low, high, share)


def limits(criterion: Criterion, values: np.ndarray, dependence: str = "") -> Tolerance:
    """Tolerance limits of a criterion's output on the sides that it bounds, for the share that it asks for."""
    signs = {sign[0] for sign, _ in criterion.bounds}
    sides = "both" if len(signs) > 1 else "high" if "<" in signs else "low"
    x = np.abs(values) if criterion.absolute else values
    return tolerance(x, sides, criterion.share if criterion.share < 1 else None, dependence=dependence)


def summarize(study: Study, store: Store) -> Summary:
    """Statistics of all samples computed so far. A failed sample meets no criterion."""
    import jaxmbs as mbs

    events = study.model.event_names
    data = store.read(("status", "energy_error", *study.outputs, *((EVENT_COUNTS, EVENT_TIMES) if events else ())))
    status = data["status"]
    index = np.flatnonzero(status != NOT_RUN)
    status = status[index]
    ok = status == int(mbs.Status.OK)
    outputs = {name: np.where(ok, data[name][index], np.nan) for name in study.outputs}
    met = [ok & c.met(outputs[c.output]) for c in study.criteria]
    said = {"stopped": "until" in store.provenance, "dependence": study.dependence}
    together = verdict("all of them", np.all(met, axis=0), **said) if len(met) > 1 else None
    messages = {int(s): s.message for s in mbs.Status}
    failed = {messages.get(int(s), f"status {s}"): index[status == s] for s in np.unique(status[~ok])}
    errors = np.abs(data["energy_error"][index][ok])
    verdicts = tuple(
        replace(verdict(c.text, m, c.share, **said), limits=limits(c, outputs[c.output], study.dependence))
        for c, m in zip(study.criteria, met, strict=True)
    )
    worst_error = float(errors.max(initial=0.0))
    happened = {}
    for k, name in enumerate(events):
        counts, times = (data[x].reshape(store.n, -1)[index[ok], k] for x in (EVENT_COUNTS, EVENT_TIMES))
        did = counts > 0
        happened[name] = Happened(int(did.sum()), len(counts), int(counts.max(initial=0)), times[did])
    return Summary(store.n, index, status, outputs, verdicts, together, failed, worst_error, study.dependence, happened)


def first_draws(study: Study, store: Store, summary: Summary, most: int = 20_000) -> dict[str, np.ndarray]:
    """Draws of the first samples that were computed, at most so many: name -> (m, k)."""
    rows = summary.index[:most]
    read = store.read([d.name for d in study.dispersions.items], slice(0, int(rows.max(initial=-1)) + 1))
    return {d.name: read[d.name][rows].reshape(len(rows), d.k) for d in study.dispersions.items}


def document(study: Study, store: Store, summary: Summary | None = None) -> dict[str, Any]:
    """A run as plain data, numbers of outputs in the unit that is shown beside them."""
    s = summary or summarize(study, store)
    outputs = {}
    for name in study.outputs:
        unit, x = study.shown[name], s.outputs[name]
        quantiles = {f"{q:g}": float(v / unit.factor) for q, v in zip(QUANTILES, s.quantiles(name), strict=True)}
        defined = int(np.count_nonzero(np.isfinite(x)))
        outputs[name] = {"unit": unit.name, "defined": defined, "quantiles": quantiles}
    return {
        "study": study.model.name,
        "folder": str(store.folder),
        "samples": s.n,
        "done": s.done,
        "passed": s.passed,
        "criteria": [_told(v) for v in s.verdicts],
        "together": _told(s.together) if s.together else None,
        "outputs": outputs,
        "events": {
            name: {
                "samples": e.samples,
                "of": e.of,
                "most": e.most,
                "first": {f"{q:g}": float(t) for q, t in zip(QUANTILES, e.quantiles, strict=True)},
            }
            for name, e in s.events.items()
        },
        "failed": [{"message": m, "samples": len(i), "first": int(i[0])} for m, i in s.failed.items()],
        "energy_error": s.energy_error,
        "warnings": study.warnings,
        "dependence": s.dependence or None,
    }


def _told(v: Verdict) -> dict[str, Any]:
    found = {"criterion": v.text, "met": v.met, "of": v.of, "probability": v.probability, "low": v.low, "high": v.high}
    return found | {
        "share": v.share,
        "passed": v.passed,
        "shown": v.shown,
        "limits": asdict(v.limits) if v.limits else None,
    }


def worst(study: Study, summary: Summary, most: int = 10) -> list[tuple[int, str, float]]:
    """The samples nearest to missing a criterion, or farthest beyond: (sample, criterion, its output in SI), worst first.

    How far is counted in the interquartile range of the output, so that criteria can stand in one list.
    """
    found: dict[int, tuple[float, str, float]] = {}
    for c in study.criteria:
        x = summary.outputs[c.output]
        fine = np.isfinite(x)
        if not fine.any():
            continue
        spread = float(np.subtract(*np.quantile(x[fine], [0.75, 0.25]))) or 1.0
        margin = np.where(fine, c.margin(x) / spread, np.inf)
        for k in np.argsort(margin, kind="stable")[:most]:
            if np.isfinite(margin[k]):
                entry = (float(margin[k]), c.text, float(x[k]))
                found[int(summary.index[k])] = min(found.get(int(summary.index[k]), entry), entry)
    order = sorted(found.items(), key=lambda pair: pair[1][0])[:most]
    return [(sample, text, x) for sample, (_, text, x) in order]


def extremes(study: Study, summary: Summary, criterion: Criterion) -> tuple[int, int, int] | None:
    """Samples with the worst, the median and the best value of a criterion's output."""
    values = summary.outputs[criterion.output]
    order = np.argsort(criterion.margin(values))[: np.count_nonzero(np.isfinite(values))]  # not a number comes last
    if not len(order):
        return None
    worst, median, best = (int(i) for i in summary.index[order[[0, len(order) // 2, -1]]])
    return worst, median, best


def converging(study: Study, summary: Summary, points: int = 40) -> dict[str, np.ndarray]:
    """Per criterion (4, points): number of samples, share of them that meets it, ends of the share's interval."""
    n = np.unique(np.geomspace(1, summary.done, points).astype(int))
    ok = np.isin(np.arange(summary.done), np.flatnonzero(summary.status == 0))
    found = {}
    for c in study.criteria:
        k = np.cumsum(ok & c.met(summary.outputs[c.output]))[n - 1]
        none = np.full(len(n), np.nan)
        found[c.text] = np.stack([n, k / n, *((none, none) if summary.dependence else interval(k, n, CONFIDENCE))])
    return found
