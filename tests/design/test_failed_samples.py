"""Samples whose motion fails are counted and named; they do not enter an objective as if they were good."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.design import EventTime, Failure, Free, MeasuredMotion, OutputValue, Problem, Status, synthesize
from jaxmbs.design.comparison import compare
from jaxmbs.design.file import read
from jaxmbs.design.local import Problems
from jaxmbs.design.problem import Prepared
from jaxmbs.design.samples import Moved

SLIDER = """
criteria = ["travel < 0.5 m in 50 %"]
[mechanism]
name = "slider"
gravity = [0.0, 0.0, 0.0]
[[mechanism.bodies]]
name = "cart"
mass = 1.0
inertia = [1.0, 1.0, 1.0]
[[mechanism.joints]]
name = "rail"
type = "prismatic"
axis = [1.0, 0.0, 0.0]
parent = "world"
child = "cart"
[[mechanism.forces]]
name = "damper"
type = "damper"
joint = "rail"
damping = 1.0
[initial.rail]
v = [1.0]
[dispersions."damper.damping"]
distribution = "lognormal"
apply = "multiply"
sigma = 0.5
[simulation]
t_end = 10.0
dt = 0.25
[outputs.travel]
type = "joint_position"
joint = "rail"
reduce = "final"
unit = "m"
[design]
[[design.free]]
type = "parameter"
names = ["damper.damping"]
low = 0.1
high = 9.0
[[design.objectives]]
type = "output_value"
output = "travel"
statistic = "mean"
target = 0.3
goal = "least"
"""


@pytest.fixture(scope="module")
def slider(tmp_path_factory):
    path = tmp_path_factory.mktemp("slider") / "slider.toml"
    path.write_text(SLIDER, encoding="utf-8")
    return read(path)


def wanted(slider, *objectives, **options):
    return replace(slider.problem, objectives=list(objectives), starts=1, **options)


def mean(target, **options):
    return OutputValue("travel", statistic="mean", target=target, goal="least", samples=64, **options)


@pytest.mark.slow
def test_a_few_failed_samples_are_left_out_and_named(slider):
    """Those with the stiffest dampers, whose motions are too coarse, or end at 1e10 m."""
    design = synthesize(wanted(slider, mean(1.3)))
    assert design.status is Status.LEAST and design.cost < 1e-18
    (failed,) = design.failed
    assert failed.samples == 64 and 1 <= sum(failed.statuses.values()) <= 3 and not failed.too_many
    assert mbs.Status.COARSE in failed.statuses
    assert f"motions of {sum(failed.statuses.values())} of 64 samples failed (" in design.reason
    rows = {row.what: row.after for row in compare(design, 200, slider.study).rows}
    assert 1 <= rows["samples whose motion failed"] <= 20 and 0.5 < rows["travel, median"] < 2.0


@pytest.mark.parametrize("method", ["least_squares", "constrained", "adam"])
def test_what_rests_on_too_many_is_no_success(slider, method):
    """A damper so stiff that most motions fail, or the way to it."""
    stiff = mbs.set(slider.problem.model, {"damper.damping": 8.0})
    problem = wanted(slider, mean(0.2), model=stiff, method=method, max_steps=3)
    design = synthesize(replace(problem, study=replace(slider.study, model=stiff)))
    assert design.status is Status.UNRELIABLE and not design.status.success and design.failed[0].too_many
    assert "too many motions" in design.reason and "of 64 samples failed" in design.reason


def test_the_way_into_failures_is_not_taken(slider):
    design = synthesize(wanted(slider, mean(0.2)))
    assert not design.status.success and design.cost > 1e-3 and not any(f.too_many for f in design.failed)


def test_slopes_of_the_rest_are_those_without_the_failed(slider):
    prepared = Prepared(wanted(slider, mean(1.3), method="constrained"))
    x = prepared.starts()[:1]
    here, *beside = Problems(prepared, 3)(np.concatenate([x, x + 1e-5, x - 1e-5]))
    assert here.finite
    assert here.slope[0] == pytest.approx((beside[0].cost - beside[1].cost) / 2e-5, rel=1e-5)


def test_only_motions_that_completed_have_a_number():
    """Whatever the others left as their value."""
    status = jnp.array([int(s) for s in (mbs.Status.OK, mbs.Status.COARSE, mbs.Status.NOT_FINITE, mbs.Status.OK)])
    x = jnp.array([1.0, 2.0, 3.0, jnp.inf])
    moved = Moved({"travel": x}, {}, {}, {}, status)
    np.testing.assert_array_equal(
        OutputValue("travel").number(moved, None)[:, 0], [1.0, np.inf, np.inf, np.nan]
    )  # an infinite value of a motion that completed is not defined


def test_failures_are_on_the_bad_side_of_shares_and_quantiles():
    x = jnp.linspace(0.0, 1.0, 64)[:, None]
    broken = x.at[:2].set(jnp.inf)
    late = EventTime("latch", statistic="quantile", level=0.9, at_most=1.0, samples=64)
    early = replace(late, level=0.1, at_most=None, at_least=0.0)
    assert late.margins(broken, None)[0] < late.margins(x, None)[0]
    other = x.at[-2:].set(jnp.inf)
    assert early.margins(other, None)[0] < early.margins(x, None)[0]
    assert np.isnan(late.margins(x.at[:4].set(jnp.inf), None)).all()
    failure = Failure(0, width=0.01, samples=64)
    assert failure.residuals(broken, None)[0] == pytest.approx(
        float(failure.residuals(1 + x, None)[0]) + 2 / 64, abs=0.01
    )


@pytest.mark.parametrize("options", [{"statistic": "worst"}, {"statistic": "each", "at_most": 2.0}])
def test_no_sample_may_be_missing_from_the_worst_or_from_a_condition_on_each(options):
    x = jnp.linspace(0.0, 1.0, 64)[:, None]
    value = OutputValue("travel", samples=64, **options)
    assert np.isfinite(value.residuals(x, None)).all() and np.isnan(value.residuals(x.at[5].set(jnp.inf), None)).any()


@pytest.mark.slow
def test_an_experiment_whose_motion_fails_explains_nothing(slider):
    model = mbs.set(slider.problem.model, {"damper.damping": 12.0})
    given = {"t": np.linspace(0.5, 5.0, 10), "rail.q": np.full(10, 1 / 12)}
    motion = MeasuredMotion(given, columns="rail.q", noise=(0.01,), q0=(0.0,), v0=(1.0,), dt=0.25, goal="least")
    design = synthesize(Problem(model, [Free("damper.damping", 11.5, 13.0)], [motion], starts=1))
    assert design.status is Status.NOT_FINITE
