"""Statistics of the samples: probabilities of the criteria with intervals, quantiles, failures, the worst samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from jaxmbs.simulate.status import Status
from jaxmbs.study.outputs.folding import AT_START, EVENT_COUNTS, EVENT_TIMES
from jaxmbs.study.problem.criteria import Criterion
from jaxmbs.study.problem.study import Study
from jaxmbs.study.results.columns import Column, at_ranks, column, column_of, defined, quantiles
from jaxmbs.study.results.store import NOT_RUN, Store
from jaxmbs.study.statistics.order_statistics import Tolerance, anytime_interval, interval, tolerance

QUANTILES = (0.01, 0.05, 0.5, 0.95, 0.99)
CONFIDENCE = 0.95
_NAMED = 12  # at most this many samples with the same failure are named, the first ones


@dataclass(frozen=True)
class Verdict:
    """How often a criterion was met: `met` of `of` samples, with the interval (low, high) of the probability.

    share: the share of the samples that must meet it; limits: tolerance limits of the output, in SI. The interval is
    Clopper and Pearson's, or that of `anytime_interval` if the run had a rule to stop by; it is NaN if the samples are
    not independent.
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
        """Whether the required share of the samples meets it."""
        return self.of > 0 and self.met >= self.share * self.of * (1 - 1e-12)

    @property
    def shown(self) -> bool:
        """Whether the samples show, with confidence, that the probability is at least the required share."""
        return self.low >= self.share

    @property
    def probability(self) -> float:
        return self.met / self.of if self.of else float("nan")

    @property
    def interval(self) -> str:
        """The interval as text."""
        return f"{self.low:.2%} .. {self.high:.2%}" if np.isfinite(self.low) else "-"


@dataclass(frozen=True)
class Happened:
    """An event in the samples that succeeded. samples: in how many of these `of` samples it happened; most: the largest
    number of times in one sample; times: when it happened first [s], NaN if it did not."""

    samples: int
    of: int
    most: int
    times: Column

    @property
    def quantiles(self) -> np.ndarray:
        """QUANTILES of the times of the first occurrence, over the samples in which it happened."""
        return quantiles(self.times, QUANTILES)


@dataclass(frozen=True)
class Failures:
    """How many samples failed in the same way, and the first of them."""

    count: int = 0
    first: tuple[int, ...] = ()

    @property
    def some(self) -> str:
        """The first of them as text."""
        return ", ".join(map(str, self.first)) + (", ..." if self.count > len(self.first) else "")


@dataclass(frozen=True)
class Summary:
    """Statistics of a run, or of the part of it that has been computed.

    outputs: values in SI of the m computed samples `index`, read on demand, NaN if a sample failed; failed: message ->
    samples; dependence: why there are no intervals, "" if there are; at_start: for each output that is an extreme, the
    share of the successful samples in which it is the value at the start.
    """

    n: int
    index: Column
    status: Column
    outputs: Mapping[str, Column]
    verdicts: tuple[Verdict, ...]
    together: Verdict | None
    failed: Mapping[str, Failures]
    energy_error: float
    dependence: str = ""
    events: dict[str, Happened] = field(default_factory=dict)
    at_start: dict[str, float] = field(default_factory=dict)
    _quantiles: dict[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def done(self) -> int:
        return len(self.index)

    @property
    def energy_said(self) -> str:
        """The largest error of the energy balance [J] as text, or why there is none."""
        if np.isnan(self.energy_error):
            return "none, because no sample succeeded"
        return f"{self.energy_error:.3g} J" if np.isfinite(self.energy_error) else "not finite"

    @property
    def passed(self) -> bool:
        """Whether every sample is computed and every criterion is met by the required share of them."""
        return self.done == self.n and all(v.passed for v in self.verdicts)

    def quantiles(self, name: str) -> np.ndarray:
        """QUANTILES of an output in SI, over the samples in which it is defined."""
        if name not in self._quantiles:
            self._quantiles[name] = quantiles(self.outputs[name], QUANTILES)
        return self._quantiles[name]

    def undefined(self, name: str) -> int:
        """Number of samples that succeeded, but in which an output is not defined."""
        return self.done - defined(self.outputs[name]) - sum(f.count for f in self.failed.values())

    def good(self, most: int) -> np.ndarray:
        """The first samples that succeeded, at most `most` of them."""
        found: list[int] = []
        for index, status in zip(self.index.parts(), self.status.parts(), strict=True):
            found += index[status == 0][: most - len(found)].tolist()
            if len(found) >= most:
                break
        return np.array(found, int)


def verdict(text: str, k: int, m: int, share: float = 1.0, stopped: bool = False, dependence: str = "") -> Verdict:
    """Verdict on a criterion that k of m samples meet. stopped: whether the run had a rule by which it might
    end early."""
    low, high = (0.0, 1.0) if not m else (anytime_interval if stopped else interval)(k, m, CONFIDENCE)
    low, high = (float("nan"), float("nan")) if dependence else (float(low), float(high))
    return Verdict(text, k, m, low, high, share)


def limits(criterion: Criterion, values: Any, dependence: str = "") -> Tolerance:
    """Tolerance limits of a criterion's output, on the sides that it bounds, for the share that it requires."""
    signs = {sign[0] for sign, _ in criterion.bounds}
    sides = "both" if len(signs) > 1 else "high" if "<" in signs else "low"
    x = column(values).mapped(np.abs) if criterion.absolute else values
    return tolerance(x, sides, criterion.share if criterion.share < 1 else None, dependence=dependence)


def summarize(study: Study, store: Store) -> Summary:
    """Statistics of all samples computed so far, read part by part: exact, in memory that does not grow with the number
    of samples. A failed sample meets no criterion."""
    arrays = store.arrays()
    spans = tuple(_spans(column_of(arrays["status"], ((0, store.n),))))
    status = column_of(arrays["status"], spans)
    outputs = {name: _where_good(arrays, label, spans) for name, label in store.labels(study).outputs.items()}
    met, met_all, worst_error = np.zeros(len(study.criteria), int), 0, -np.inf
    messages, failed = {int(s): s.message for s in Status}, dict[str, Failures]()
    index = Column(np.arange, spans)
    for first, now, error, *values in zip(
        index.parts(), status.parts(), _where_good(arrays, "energy_error", spans).parts(),
        *(x.parts() for x in outputs.values()), strict=True,
    ):  # fmt: skip
        own, ok = dict(zip(outputs, values, strict=True)), now == int(Status.OK)
        each = np.array([ok & c.met(own[c.output]) for c in study.criteria], bool).reshape(len(met), len(ok))
        met += np.count_nonzero(each, axis=1)
        met_all += int(np.count_nonzero(np.all(each, axis=0)))
        sizes = np.where(np.isnan(error[ok]), np.inf, np.abs(error[ok]))
        worst_error = max(worst_error, float(sizes.max(initial=-np.inf)))
        for s in np.unique(now[~ok]):
            these, message = first[now == s], messages.get(int(s), f"status {s}")
            known = failed.get(message, Failures())
            failed[message] = Failures(known.count + len(these), (*known.first, *these[:_NAMED].tolist())[:_NAMED])
    m, said = len(index), {"stopped": "until" in store.provenance, "dependence": study.dependence}
    together = verdict("all of them", met_all, m, **said) if len(met) > 1 else None
    verdicts = tuple(
        replace(verdict(c.text, int(k), m, c.share, **said), limits=limits(c, outputs[c.output], study.dependence))
        for c, k in zip(study.criteria, met, strict=True)
    )
    events = {name: _happened(arrays, k, spans) for k, name in enumerate(study.model.event_names)}
    worst_error = worst_error if worst_error >= 0 else np.nan
    return Summary(store.n, index, status, outputs, verdicts, together, failed, worst_error, study.dependence, events,
                   _at_start(store.starting(study), arrays, spans))  # fmt: skip


def _at_start(names: Sequence[str], arrays: Mapping[str, Any], spans: tuple[tuple[int, int], ...]) -> dict[str, float]:
    found = {}
    for k, name in enumerate(names):
        flags = _where_good(arrays, AT_START, spans, k)
        found[name] = sum(int(np.sum(part == 1)) for part in flags.parts()) / max(defined(flags), 1)
    return found


def _happened(arrays: Mapping[str, Any], event: int, spans: tuple[tuple[int, int], ...]) -> Happened:
    counts, times = (_where_good(arrays, name, spans, event) for name in (EVENT_COUNTS, EVENT_TIMES))
    most = max((int(part.max(initial=0, where=part > 0)) for part in counts.parts()), default=0)
    samples = sum(int(np.count_nonzero(part > 0)) for part in counts.parts())
    return Happened(samples, defined(counts), most, times)


def first_draws(study: Study, store: Store, summary: Summary, most: int = 20_000) -> dict[str, np.ndarray]:
    """Draws of the first computed samples, at most `most` of them: name -> (m, k)."""
    rows = summary.index[:most]
    read = store.draws(study, slice(0, int(rows.max(initial=-1)) + 1))
    return {name: x[rows] for name, x in read.items()}


def _where_good(arrays: Mapping[str, Any], name: str, spans: tuple[tuple[int, int], ...], k: int = 0) -> Column:
    """A variable, or its k-th component if it has several, with NaN in samples that failed."""

    def read(first: int, stop: int) -> np.ndarray:
        x = arrays[name][first:stop]
        return np.where(arrays["status"][first:stop] == 0, x if x.ndim == 1 else x[:, k], np.nan)

    return Column(read, spans)


def _spans(status: Column) -> list[tuple[int, int]]:
    """(first, stop) of every contiguous range of samples that were computed."""
    found: list[tuple[int, int]] = []
    at = 0
    for part in status.parts():
        there = np.concatenate([[False], part != NOT_RUN, [False]])
        edges = np.flatnonzero(there[1:] != there[:-1]).reshape(-1, 2)
        for first, stop in edges.tolist():
            if found and found[-1][1] == at + first:
                found[-1] = (found[-1][0], at + stop)
            else:
                found.append((at + first, at + stop))
        at += len(part)
    return found


def document(study: Study, store: Store, summary: Summary | None = None) -> dict[str, Any]:
    """A run as plain data; numbers of outputs are in the unit that is given with them."""
    s = summary or summarize(study, store)
    outputs = {}
    for name in study.outputs:
        unit = study.shown[name]
        told = {f"{q:g}": float(v / unit.factor) for q, v in zip(QUANTILES, s.quantiles(name), strict=True)}
        outputs[name] = {"unit": unit.name, "defined": defined(s.outputs[name]), "quantiles": told}
    return {
        "study": study.model.name,
        "folder": str(store.folder),
        "samples": s.n,
        "done": s.done,
        "passed": s.passed,
        "criteria": [_verdict_entry(v) for v in s.verdicts],
        "together": _verdict_entry(s.together) if s.together else None,
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
        "failed": [{"message": m, "samples": f.count, "first": f.first[0]} for m, f in s.failed.items()],
        "energy_error": s.energy_error if np.isfinite(s.energy_error) else None,
        "warnings": study.warnings,
        "at_start": s.at_start,
        "dependence": s.dependence or None,
    }


def _verdict_entry(v: Verdict) -> dict[str, Any]:
    found = {"criterion": v.text, "met": v.met, "of": v.of, "probability": v.probability, "low": v.low, "high": v.high}
    return found | {
        "share": v.share,
        "passed": v.passed,
        "shown": v.shown,
        "limits": asdict(v.limits) if v.limits else None,
    }


def worst(study: Study, summary: Summary, most: int = 10) -> list[tuple[int, str, float]]:
    """The samples that are nearest to missing a criterion, or farthest beyond it: (sample, criterion, its output in
    SI), worst first.

    Margins are divided by the interquartile range of the output, so that all criteria can be ranked in one list.
    Samples without a value, such as failed ones, are left out.
    """
    found: dict[int, tuple[float, str, float]] = {}
    for c in study.criteria:
        low, high = quantiles(summary.outputs[c.output], (0.25, 0.75))
        spread = float(high - low) or 1.0
        for sample, x in least(c, summary, most):
            entry = (float(c.margin(np.array([x]))[0]) / spread, c.text, x)
            found[sample] = min(found.get(sample, entry), entry)
    order = sorted(found.items(), key=lambda pair: pair[1][0])[:most]
    return [(sample, text, x) for sample, (_, text, x) in order]


def least(criterion: Criterion, summary: Summary, most: int) -> list[tuple[int, float]]:
    """(sample, value of the output) of the samples that are nearest to missing a criterion, or farthest beyond it."""
    index, values = np.zeros(0, int), np.zeros(0)
    for own, x in zip(summary.index.parts(), summary.outputs[criterion.output].parts(), strict=True):
        fine = np.isfinite(x)
        index, values = np.concatenate([index, own[fine]]), np.concatenate([values, x[fine]])
        first = np.argsort(criterion.margin(values), kind="stable")[:most]
        index, values = index[first], values[first]
    return list(zip(index.tolist(), values.tolist(), strict=True))


def extremes(study: Study, summary: Summary, criterion: Criterion) -> tuple[int, int, int] | None:
    """Samples with the worst, the median and the best value of a criterion's output; None if it is defined in none."""
    margins = summary.outputs[criterion.output].mapped(lambda x: np.where(np.isfinite(x), criterion.margin(x), np.nan))
    m = defined(margins)
    if not m:
        return None
    three = at_ranks(margins, [0, m // 2, m - 1])
    found: dict[int, int] = {}
    for own, x in zip(summary.index.parts(), margins.parts(), strict=True):
        for k in range(3):
            equal = np.flatnonzero(x == three[k])
            if k not in found and len(equal):
                found[k] = int(own[equal[0]])
        if len(found) == 3:
            break
    return found[0], found[1], found[2]


def converging(study: Study, summary: Summary, points: int = 40) -> dict[str, np.ndarray]:
    """For each criterion (4, points): number of samples, share of them that meets it, ends of the interval of the
    share."""
    n = np.unique(np.geomspace(1, summary.done, points).astype(int))
    found = {}
    for c in study.criteria:
        k, before, seen = np.zeros(len(n), int), 0, 0
        for status, x in zip(summary.status.parts(), summary.outputs[c.output].parts(), strict=True):
            met = np.cumsum((status == 0) & c.met(x))
            here = (n > seen) & (n <= seen + len(x))
            k[here] = before + met[n[here] - seen - 1]
            before, seen = before + int(met[-1]), seen + len(x)
        none = np.full(len(n), np.nan)
        found[c.text] = np.stack([n, k / n, *((none, none) if summary.dependence else interval(k, n, CONFIDENCE))])
    return found
