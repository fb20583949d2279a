"""Intervals, tolerance limits and stopping rules: figures of the literature, and the coverage that they state."""

import doctest
import json
import subprocess
import sys

import mpmath
import numpy as np
import pytest
from scipy import stats

from jaxmbs.io import InputError
from jaxmbs.simulate.status import Status
from jaxmbs.study import read, report, resume, run
from jaxmbs.study.folder.layout import labels
from jaxmbs.study.reports import plots
from jaxmbs.study.results import columns
from jaxmbs.study.results.columns import Column, at_ranks, quantiles
from jaxmbs.study.results.store import NOT_RUN
from jaxmbs.study.runs.stopping import Stopping
from jaxmbs.study.statistics import order_statistics as orders
from jaxmbs.study.statistics.order_statistics import (
    anytime_interval,
    discards,
    interval,
    samples_needed,
    settled,
    tolerance,
)
from jaxmbs.study.statistics.summary import converging, document, extremes, summarize, worst
from tests.study.conftest import CART, ROOT, environment

STUDIES = 1000
INTERVALS = anytime_interval, interval


def test_examples():
    assert doctest.testmod(orders).failed == 0 and doctest.testmod(columns).failed == 0


def at_least(covered, stated):
    """Whether so many of the studies are no fewer than stated, but for one chance in a thousand."""
    return stats.binomtest(int(covered.sum()), len(covered), stated, alternative="less").pvalue > 1e-3


def test_numbers_of_samples_of_the_literature():
    assert [samples_needed(0.9973, 0.9, k) for k in (0, 1)] == [852, 1440]
    assert samples_needed(0.95, 0.95) == 59 and samples_needed(0.95, 0.95, 1) == 93  # Wilks' 95/95, one- and two-sided
    assert samples_needed(0.99865, 0.9) == 1705
    for n in (100, 3000):
        f = discards(n, 0.99)
        assert stats.binom.cdf(f, n, 0.01) <= 0.1 < stats.binom.cdf(f + 1, n, 0.01)


@pytest.mark.parametrize(("content", "confidence", "failures"), [
    (0.999999999, 0.9, 0), (0.999999999, 0.9, 2), (1 - 1e-12, 0.99, 1), (1 - 2**-53, 0.9, 0), (0.99, 1 - 1e-14, 0),
    (1e-9, 0.9, 0), (0.5, 1 - 2**-53, 3), (0.9999999, 1e-9, 5),
])  # fmt: skip
def test_numbers_of_samples_are_exact_near_one(content, confidence, failures):
    """The tail of the binomial distribution in 60 digits, at the number that is told and at one less."""
    found = samples_needed(content, confidence, failures)
    with mpmath.workdps(60):
        c, missed = mpmath.mpf(content), 1 - mpmath.mpf(confidence)

        def tail(n):
            return sum(mpmath.binomial(n, k) * c ** (n - k) * (1 - c) ** k for k in range(failures + 1))

        assert tail(found) <= missed and (found == failures + 1 or tail(found - 1) > missed)
    assert discards(found, content, confidence) >= failures > discards(found - 1, content, confidence)


@pytest.mark.parametrize("sides", ["low", "high", "both"])
def test_tolerance_limits_hold_as_often_as_they_say(sides):
    rng, law, n = np.random.default_rng(5), stats.gamma(2.0), 600
    values = law.rvs(size=(STUDIES, n), random_state=rng)
    found = [tolerance(x, sides, 0.99) for x in values]
    content = np.array([law.cdf(t.high) - law.cdf(t.low) for t in found])
    assert at_least(content >= 0.99, 0.9)
    assert np.mean(content >= 0.99) < 0.97, "and not much more often"
    # the control: limits one sample further in
    ranks = found[0].ranks
    inner = np.sort(values, axis=1)
    low = inner[:, ranks[0] + 1] if ranks[0] else np.full(STUDIES, -np.inf)
    high = inner[:, n - 2 - ranks[1]] if ranks[1] else np.full(STUDIES, np.inf)
    assert not at_least(law.cdf(high) - law.cdf(low) >= 0.99, 0.9)


def test_failed_samples_count_as_beyond_the_limits():
    x = np.arange(2000.0)
    assert tolerance(x, "low", 0.99).low == x[discards(2000, 0.99)]
    for sides in ("low", "high", "both"):
        lost = np.where(x < 3, np.nan, x) if sides == "low" else np.where(x > 1996, np.nan, x)
        whole, some = tolerance(x, sides, 0.99), tolerance(lost, sides, 0.99)
        assert sum(some.ranks) == sum(whole.ranks) - 3
    lost = np.where(x < 30, np.nan, x)
    assert np.isnan(tolerance(lost, "low", 0.99).low) and "failed" in tolerance(lost, "low", 0.99).why
    refused = tolerance(x, "low", 0.99, dependence="Sobol points are not independent")
    assert np.isnan(refused.low) and "Sobol" in refused.why
    with pytest.raises(InputError, match="not between 0 and 1"):
        tolerance(x, "low", 99.0)


@pytest.mark.parametrize("p", [0.003, 0.1, 0.5])
def test_intervals_hold_as_often_as_they_say(p):
    k = np.random.default_rng(1).binomial(400, p, size=STUDIES)
    low, high = interval(k, 400, 0.9)
    assert at_least((low <= p) & (p <= high), 0.9)
    exact = stats.binomtest(int(k[0]), 400).proportion_ci(0.9, method="exact")
    assert np.allclose((low[0], high[0]), exact, rtol=1e-9)
    short = (k - 1.2 * np.sqrt(k * (1 - k / 400)), k + 1.2 * np.sqrt(k * (1 - k / 400)))
    assert not at_least((short[0] <= 400 * p) & (400 * p <= short[1]), 0.9), "the control: too short"


@pytest.mark.parametrize(("rule", "share", "p"), [("decided", 0.97, 0.985), (0.05, 0.9, 0.95)])
def test_stopping_keeps_the_coverage(rule, share, p):
    """Looked at after forty samples, and stopped by the rule: the interval then holds as often as it says."""
    rng, n = np.random.default_rng(2), np.arange(40, 4001, 40)
    k = np.cumsum(rng.binomial(40, p, size=(STUDIES, len(n))), axis=1)
    stop = settled(k, n, share, rule, 0.9)
    at = np.where(stop.any(1), stop.argmax(1), len(n) - 1)
    met, of = k[np.arange(STUDIES), at], n[at]
    low, high = anytime_interval(met, of, 0.9)
    assert at_least((low <= p) & (p <= high), 0.9)
    assert stop.any(1).mean() > 0.9 and np.median(of) < 2000, "they do stop"


def test_samples_that_failed_do_not_count_for_a_rule(cart):
    """Half of them failed with values that would meet the criterion: the share is a half, and its interval wide."""
    study = read(cart('"reach > 90 mm", "speed < 0.9 m/s"', '"reach > 90 mm"'))
    arrays = {"status": np.arange(200) % 2 * int(Status.NOT_FINITE), "reach": np.full(200, 0.1)}

    class Kept:
        n, chunk_rows, provenance, labels = 200, 100, {"until": 0.1}, staticmethod(labels)

    assert Stopping(study, Kept, arrays)() is None
    assert Stopping(study, Kept, {**arrays, "status": np.zeros(200, int)})() == 100, "the control: none failed"


@pytest.mark.slow
def test_stopping_by_intervals_of_a_fixed_number_would_lie():
    """The control of the rule: Clopper and Pearson's interval, looked at again and again, loses the probability."""
    p, n = 0.97, np.arange(40, 4001, 40)
    k = np.cumsum(np.random.default_rng(3).binomial(40, p, size=(STUDIES, len(n))), axis=1)
    lost = [np.any((p < low) | (p > high), axis=1) for low, high in (interval(k, n, 0.9), anytime_interval(k, n, 0.9))]
    assert lost[0].mean() > 0.15 and at_least(~lost[1], 0.9)


def test_rules_ask_the_interval_that_holds_at_all_times():
    n = np.arange(10, 2001, 10)
    k = np.round(0.97 * n)
    first = [np.argmax(settled(k, n, 0.9, rule, 0.9)) for rule in (0.05, "decided")]
    at_all_times, once = ((high - low <= 0.05, low >= 0.9) for low, high in (f(k, n, 0.9) for f in INTERVALS))
    assert first == [np.argmax(x) for x in at_all_times]
    assert all(np.argmax(x) < at for x, at in zip(once, first, strict=True)), "the other would stop before"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    text = CART.replace('"speed < 0.9 m/s"]', '"speed < 0.9 m/s in 50 %"]').replace('"reach > 90 mm", ', "")
    (folder / "cart.toml").write_text(text, encoding="utf-8")
    return folder, run(read(folder / "cart.toml"), 20_000, folder / "run", 64, until=0.1)


@pytest.mark.slow
def test_a_run_ends_when_it_has_seen_enough(stopped):
    _, store = stopped
    assert store.n < 20_000 and store.n % store.chunk_rows == 0 and store.provenance["most"] == 20_000
    data = store.dataset()
    met = np.cumsum(data["speed"].values < 0.9)[store.chunk_rows - 1 :: store.chunk_rows]
    ends = np.arange(store.chunk_rows, store.n + 1, store.chunk_rows)
    low, high = anytime_interval(met, ends)
    assert np.flatnonzero(high - low <= 0.1)[0] == len(ends) - 1, "at the first chunk that is enough"
    written = report(store.folder)
    assert written.document["criteria"][0]["low"] == pytest.approx(low[-1]) and written.document["done"] == store.n
    assert resume(store.folder).n == store.n


@pytest.mark.parametrize(
    ("until", "said"),
    [("soon", "is not a stopping rule"), (2.0, "is not a stopping rule"), ("decided", "never decided")],
)
def test_rules_that_are_none(cart, tmp_path, until, said):
    with pytest.raises(InputError, match=said):
        run(read(cart()), 100, tmp_path / "run", 64, until=until)


def test_plans_have_no_intervals(cart, tmp_path):
    store = run(read(cart("seed = 7", 'seed = 7\ndesign = "sobol"')), 128, tmp_path / "run", 64)
    written = report(store.folder)
    assert np.isnan(written.document["criteria"][0]["low"]) and "Sobol" in written.document["dependence"]
    assert "no interval" in written.path.read_text(encoding="utf-8") and "95% interval 0" not in written.path.read_text(
        encoding="utf-8"
    )
    with pytest.raises(InputError, match="Sobol"):
        run(read(cart("seed = 7", 'seed = 7\ndesign = "sobol"')), 128, tmp_path / "other", 64, until=0.1)


@pytest.fixture
def in_parts(monkeypatch):
    """As if there were many samples: parts of some hundreds, too many to be sorted before their first bits are known."""
    monkeypatch.setattr(columns, "PART", 300)
    monkeypatch.setattr(columns, "_MOST", 100)


@pytest.mark.parametrize("spans", [((0, 4000),), ((0, 1), (7, 2500), (2501, 4000))])
def test_numbers_by_rank_part_by_part(in_parts, spans):
    """Ties, infinities, zeros of both signs, numbers that are none: as NumPy sorts them all at once."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=1500), rng.normal(size=1486).round(1), rng.lognormal(0, 20, 1000)])
    x = rng.permutation(np.concatenate([x, [np.nan] * 10, [np.inf, -np.inf, 0.0, -0.0]]))
    values = Column(lambda first, stop: x[first:stop], spans)
    whole = np.concatenate([x[first:stop] for first, stop in spans])
    ranks = [0, 1, 17, 900, 2000, 2001, len(whole) - 11, len(whole) - 1]
    assert np.array_equal(at_ranks(values, ranks), np.sort(whole)[ranks], equal_nan=True)
    shares = [0.0, 0.01, 0.5, 0.95, 1.0]
    assert np.array_equal(quantiles(values, shares), np.quantile(whole[np.isfinite(whole)], shares))
    assert np.array_equal(values[:700], whole[:700], equal_nan=True) and len(values) == len(whole)


def test_a_report_of_parts_says_the_same(tmp_path, in_parts, monkeypatch):
    """Numbers, worst samples, curves and pictures of a run with failures, as if it were too large for the memory."""
    (tmp_path / "cart.toml").write_text(CART, encoding="utf-8")
    study = read(tmp_path / "cart.toml")
    store = run(study, 1000, tmp_path / "run", 64)
    status = store.arrays()["status"]
    status[[3, 450, 999]] = int(Status.NOT_FINITE)
    status[640:704] = NOT_RUN

    def told():
        s = summarize(study, store)
        c = study.criteria[0]
        picture = plots.histogram(s.outputs[c.output], c.output, study.shown[c.output], [c])
        curves = [x.tolist() for x in converging(study, s).values()]
        return document(study, store, s), worst(study, s), extremes(study, s, c), curves, s.good(700).tolist(), picture

    parts = told()
    monkeypatch.undo()
    assert columns.PART > 1000
    whole = told()
    assert parts == whole
    assert parts[0]["done"] == 936 and [(f["samples"], f["first"]) for f in parts[0]["failed"]] == [(3, 3)]


@pytest.mark.slow
def test_memory_of_a_summary_does_not_grow():
    """Eight million samples take little more than two million, which fill a part; their quantiles are those of the law.

    Measured: 16 to 24 MB more, while the lists that are sorted and the buffers of the chunks fill up; from eight million
    to a hundred million another 9 MB. One of the two variables held whole would be 48 MB.
    """
    found = []
    for n in (2_000_000, 8_000_000):
        command = [sys.executable, "-m", "benchmarks.many_samples", "-n", str(n)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(), cwd=ROOT, check=False, encoding="utf-8"
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    few, many = found
    assert many["peak_MB"] - few["peak_MB"] < 8 * 6 * 2 / 3, "two thirds of one variable of 6 million numbers more"
    for q, x in many["quantiles"].items():
        level = float(q)
        reach = 5 * np.sqrt(level * (1 - level) / 8e6) / stats.norm.pdf(stats.norm.ppf(level))
        assert abs(x - stats.norm.ppf(level)) < reach
