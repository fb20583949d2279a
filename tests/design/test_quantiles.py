"""Quantiles over dispersed motions as objective and condition: exact slopes, known values, a panel on other samples."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import expon, lognorm, norm, uniform

import jaxmbs as mbs
from jaxmbs.design import EventTime, Failure, Free, OutputValue, Problem, Status, synthesize
from jaxmbs.design.comparison import compare
from jaxmbs.design.file import read
from jaxmbs.design.local import Problems
from jaxmbs.design.objectives.base import Setting
from jaxmbs.design.objectives.motion import quantile
from jaxmbs.design.problem import Prepared
from jaxmbs.design.samples import draws_of, even_draws

MANUAL = Path(__file__).parents[2] / "docs" / "theory" / "formulas.md"
PANEL = Path(mbs.__file__).parent / "study" / "problem" / "template_files" / "synthesis.toml"


@pytest.fixture(scope="module")
def panel():
    return read(PANEL)


@pytest.fixture(scope="module")
def found(panel):
    return synthesize(panel.problem)


@pytest.mark.slow
def test_the_panel_latches_slowly_and_in_time(panel, found):
    """On 5000 samples that the search did not see."""
    assert found.status is Status.LEAST and len(found.history) < 120, found.reason
    rows = {row.what: (row.before, row.after) for row in compare(found, 5000, panel.study).rows}
    before, after = rows["rate, 99 %"]
    assert after < 0.6 * before and after == pytest.approx(found.largest["output_value"], rel=0.05)
    assert rows["probability of latched < 3 s in 95 %"][1] >= 0.95


@pytest.mark.slow
def test_nothing_on_a_grid_is_better(panel, found):
    """Some 400 pairs of stiffness and damping, each with its 256 motions."""
    prepared = Prepared(panel.problem)
    a, b = np.meshgrid(*(np.linspace(low, high, 20) for low, high in zip(prepared.low, prepared.high, strict=True)))
    points = Problems(prepared, 400)(np.stack([a.ravel(), b.ravel()], axis=1))
    holds = [p.cost for p in points if p.finite and p.margins.min() >= 0]
    assert len(holds) > 40 and found.cost <= min(holds) + 1e-9


def test_where_no_latch_closes_the_search_sees_which_way_it_would(panel):
    """All rates are undefined at the start, and times beyond the end of the run."""
    weak = mbs.set(panel.problem.model, {"spring.stiffness": 0.6, "spring.damping": 11.0})
    problem = replace(panel.problem, model=weak, starts=1)
    design = synthesize(replace(problem, study=replace(panel.study, model=weak)))
    assert np.isnan(design.before["output_value"]) and design.before["event_time"] > 1
    assert design.status is Status.LEAST and design.largest["event_time"] <= 1e-6


def test_the_quantile_of_normal_samples_and_its_bias():
    """Out by what is said: the square root of 1 + n^(-1/2) times as far from the median."""
    for n in (256, 4096):
        x = jnp.asarray(2.0 + 0.5 * norm.ppf((np.arange(n) + 0.5) / n))
        for level in (0.05, 0.5, 0.99):
            wide = 2.0 + 0.5 * norm.ppf(level) * np.sqrt(1 + n**-0.5)
            assert quantile(x, jnp.full(n, 1 / n), level) == pytest.approx(wide, abs=0.01)


def two_lots(level):
    """Quantile of two normal distributions at -2 and 2 with deviations of 0.5, each with half of the samples."""
    return brentq(lambda x: (norm.cdf(x, -2, 0.5) + norm.cdf(x, 2, 0.5)) / 2 - level, -9, 9)


LAWS = {
    "normal": norm.ppf, "exponential": expon.ppf, "lognormal, sigma = 1": lognorm(1.0).ppf, "uniform": uniform.ppf,
    "two lots, 4 apart, 0.5 wide": two_lots,
}  # fmt: skip


def bias(law, level, n=256):
    """How much farther from the median than it should the quantile of n even samples lies, in percent."""
    x = jnp.asarray([law((k + 0.5) / n) for k in range(n)])
    return 100 * (float(quantile(x, jnp.full(n, 1 / n), level)) - law(level)) / (law(level) - law(0.5))


def rows_of_the_manual():
    head, _, *rows = (
        MANUAL.read_text(encoding="utf-8").split("## Quantiles of few samples")[1].split("\n\n")[2].splitlines()
    )
    levels = [float(x.strip(" %")) / 100 for x in head.strip("|").split("|")[1:]]
    cells = [[c.strip() for c in row.strip("|").split("|")] for row in rows]
    return levels, {name: [float(c) for c in row] for name, *row in cells}


@pytest.mark.parametrize("name", LAWS)
def test_the_bias_of_a_quantile_is_what_the_manual_says(name):
    """By closed forms, on samples that are laid out as evenly as those of a search."""
    levels, rows = rows_of_the_manual()
    assert set(rows) == set(LAWS)
    assert [bias(LAWS[name], level) for level in levels] == pytest.approx(rows[name], abs=0.51)


@pytest.mark.slow
def test_the_bias_is_not_on_the_safe_side_everywhere():
    """The control: inwards between the median and the tail, less of it with more samples."""
    inwards = {n: [bias(LAWS[k], 0.3, n) for k in ("exponential", "two lots, 4 apart, 0.5 wide")] for n in (256, 4096)}
    assert max(inwards[256]) < -2.5 and np.all(np.abs(inwards[4096]) < 0.5 * np.abs(inwards[256]))


@pytest.mark.parametrize("law", [expon.ppf, uniform.ppf, two_lots])
def test_the_slope_of_a_quantile_of_samples_that_are_not_normal(law):
    """A shift moves it as far, a stretch in proportion."""
    x, weights = jnp.asarray([law((k + 0.5) / 64) for k in range(64)]), jnp.full(64, 1 / 64)
    for level in (0.05, 0.3, 0.95):
        value, moved = jax.jvp(lambda x, p=level: quantile(x, weights, p), (x,), (jnp.ones(64),))
        assert moved == pytest.approx(1.0, abs=1e-12)
        assert jax.jvp(lambda x, p=level: quantile(x, weights, p), (x,), (x,))[1] == pytest.approx(
            float(value), abs=1e-12
        )


def test_the_slope_of_a_quantile():
    rng = np.random.default_rng(0)
    x, along, weights = jnp.asarray(rng.normal(size=64)), jnp.asarray(rng.normal(size=64)), jnp.full(64, 1 / 64)

    def moved(h):
        return quantile(x + h * along, weights, 0.9)

    ends = [float(moved(h)) for h in (1e-5, -1e-5)]
    assert jax.jvp(moved, (0.0,), (1.0,))[1] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-7)


def test_samples_that_are_not_defined_are_left_out():
    x = jnp.array([1.0, 2.0, jnp.nan, 3.0])[:, None]
    value = OutputValue("rate", statistic="mean")
    assert value.residuals(x, None) == pytest.approx([2.0])
    worst = OutputValue("rate", statistic="worst", at_most=1.0)
    assert 1.5 < float(worst.residuals(x, None)[0]) < 2.0
    assert np.isnan(value.residuals(x * jnp.nan, None)).all()


def test_even_draws_are_those_of_the_dispersions(panel):
    """Their moments come nearer than those of random ones."""
    even, random = np.asarray(even_draws(panel.study, 256)), np.asarray(draws_of(panel.study, 256))
    assert even.shape == random.shape and np.abs(even.mean(axis=0) - 1).max() < 1e-3
    assert even.std(axis=0) == pytest.approx([0.05, 0.1], rel=0.02)
    wanted, setting = OutputValue("rate", samples=256), Setting(panel.study.model, 2_000_000, panel.study)
    assert np.array_equal(wanted.data(setting), even), "a large seed is one like others"
    assert not np.array_equal(wanted.data(replace(setting, fresh=True)), even)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"statistic": "quantile"}, "needs a level"),
        ({"level": 0.9}, "needs a level"),
        ({"statistic": "quantile", "level": 0.999}, "take more samples"),
        ({"statistic": "quantile", "level": 1.5}, "take more samples"),
    ],
)
def test_levels_that_samples_do_not_reach_are_refused(panel, options, message):
    free = [Free("spring.stiffness")]
    with pytest.raises(mbs.ModelError, match=message):
        Prepared(Problem(panel.problem.model, free, [EventTime("latch", **options)], study=panel.study))


@pytest.mark.parametrize("output", ["latched", "rate"])
def test_a_latch_that_never_closes_is_missed_with_a_slope_to_where_it_does(panel, output):
    """Of its time and of what is taken at its instant; a stronger spring and a weaker damper bring the hinge nearer."""
    weak = mbs.set(panel.problem.model, {"spring.stiffness": 0.6, "spring.damping": 11.0})
    criteria = (replace(panel.study.criteria[0], output=output),)
    study = replace(panel.study, model=weak, criteria=criteria)
    never = [Failure(0, width=0.1, goal="lowest", samples=4)]
    prepared = Prepared(replace(panel.problem, model=weak, study=study, objectives=never, starts=1))
    x, h = prepared.starts()[:1], 1e-4 * np.array([[1.0, 0.0], [0.0, 1.0]])
    here, *beside = Problems(prepared, 5)(np.concatenate([x, x + h, x - h]))
    assert 0.9 < here.cost < 1.0 and here.slope[0] < -1e-4 and here.slope[1] > 1e-4
    differences = [(a.cost - b.cost) / 2e-4 for a, b in zip(beside[:2], beside[2:], strict=True)]
    assert here.slope == pytest.approx(differences, rel=1e-5)


@pytest.mark.parametrize("bounds", [(("<", 20.0),), ((">", 3.0),), ((">", 3.0), ("<", 20.0))])
def test_what_never_happens_is_missed_whatever_the_bound(panel, bounds):
    """A latch that closes after 5 s, one that lacks half its way at the end (8 s), and an event that no joint waits for."""
    study = replace(panel.study, criteria=(replace(panel.study.criteria[0], bounds=bounds),))
    motions = SimpleNamespace(
        outputs={"latched": jnp.array([5.0, jnp.nan, jnp.nan])}, time={"latch": jnp.array([5.0, 12.0, 8.0])},
        happened={"latch": jnp.array([True, False, False])},
    )  # fmt: skip
    failure = Failure(0, width=0.01, samples=3)
    far = failure.taken(motions, study)[:, 0]
    assert far[0] >= 2 and far[1] <= -4 and jnp.isnan(far[2])
    assert failure.residuals(far, None)[0] == pytest.approx(2 / 3, abs=2e-3)
