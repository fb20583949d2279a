"""Searches under conditions: published optima, random problems with an independent test of every status, many rows."""

from dataclasses import replace
from importlib import import_module

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.design import (
    ConfigurationIndependence,
    Free,
    Function,
    MassDistribution,
    MeasuredTorques,
    Problem,
    Status,
    synthesize,
)
from jaxmbs.design.local import Local
from jaxmbs.design.optimality import compressed, first_order
from jaxmbs.design.optimisers.constrained import Trace, searched
from jaxmbs.design.optimisers.together import together
from tests.design.published import HOCK_SCHITTKOWSKI, Published, found, problem, random_problem, untrue

QUICK = (14, 40, 71)


def arm():
    return mbs.set(mbs.library.three_link_arm().build(), {"gravity": (0.0, 0.0, 0.0)})


@pytest.mark.parametrize(
    "number", [pytest.param(k, marks=() if k in QUICK else pytest.mark.slow) for k in HOCK_SCHITTKOWSKI]
)
def test_published_optima(number):
    p = HOCK_SCHITTKOWSKI[number]
    design = synthesize(problem(p))
    assert design.status is Status.LEAST, design.reason
    assert design.cost == pytest.approx(p.least, rel=1e-7, abs=1e-7)
    assert untrue(p, found(design, len(p.start)), "LEAST", 1e-9) == ""


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 200), marks=pytest.mark.slow)])
def test_random_problems_end_with_true_statuses(seeds):
    ended = []
    for seed in seeds:
        p = random_problem(seed)
        design = synthesize(problem(p, starts=3))
        ended.append(design.status.name)
        assert untrue(p, found(design, len(p.start)), design.status.name, 1e-9) == "", (seed, design.reason)
    assert set(ended) <= {"LEAST", "INFEASIBLE", "STALLED", "STEPS"}
    assert ended.count("STALLED") + ended.count("STEPS") <= 0.03 * len(ended)


def test_a_status_that_is_not_true_is_noticed():
    """The control of the test above."""
    p = HOCK_SCHITTKOWSKI[12]
    assert "slope" in untrue(p, np.zeros(2), "LEAST", 1e-9) and "missed" in untrue(
        p, np.array([9.0, 0.0]), "LEAST", 1e-9
    )
    assert "met" in untrue(p, np.zeros(2), "INFEASIBLE", 1e-9)


def lightest(model):
    return mbs.get(model, "body_2.mass") + mbs.get(model, "body_3.mass")


def test_the_lightest_counterweights_of_a_constant_mass_matrix():
    """144 conditions on six numbers: both masses go to their bounds, the centres where the arm balances."""
    free = [Free(f"body_{k}.com", components=(0, 1)) for k in (2, 3)]
    free += [Free(f"body_{k}.mass", low=0.5, high=10.0) for k in (2, 3)]
    light = Function(lambda model, q: lightest(model), configurations=1, goal="lowest")
    wanted = [ConfigurationIndependence(), light]
    design = synthesize(Problem(arm(), free, wanted, method="constrained", starts=2, tolerance=1e-9))
    assert design.status is Status.LEAST and "body_2.mass is at its lower bound" in design.reason
    assert lightest(design.model) == pytest.approx(1.0, abs=1e-9)
    assert design.parameters["body_3.com"][:2] == pytest.approx([0.0, 0.0], abs=1e-7)
    length = np.asarray(mbs.get(arm(), "q_3.parent_pose.position"))[:2]
    assert design.parameters["body_2.com"][:2] == pytest.approx(-length, abs=1e-7)


@pytest.mark.slow
def test_a_start_that_meets_the_conditions_is_not_left_for_worse():
    """At the nominal values all holds and little can be gained: the way there leads over a hill, and steps are few."""
    p = Published((0.9, 0.0), lambda x: jnp.sum(x**2) + jnp.sin(9 * x[0]), margins=lambda x: x[0] - 0.8)
    for steps in (1, 2, 50):
        design = synthesize(problem(p, starts=3, max_steps=steps))
        assert design.cost <= p.cost(jnp.array(p.start)) and design.status is not Status.INFEASIBLE
    assert design.status is Status.LEAST


def test_the_best_point_that_was_seen_is_kept():
    """Whatever comes after it: a dearer one, one that misses a condition, one whose cost is no number."""
    trace, none = Trace(1e-9), np.zeros((0, 1))

    def point(cost, margin):
        return Local(
            np.zeros(1), np.zeros(1), cost, np.zeros(0), np.array([margin]), np.zeros(1), none, np.ones((1, 1))
        )

    for cost, margin in ((0.5, -0.1), (2.0, 0.0), (1.0, 0.3), (1.5, 0.0), (0.0, -0.2), (np.nan, 1.0)):
        trace.see(point(cost, margin))
    assert trace.best.cost == 1.0 and len(trace.costs) == 6


def test_margins_that_the_solver_was_not_shown_do_not_end_the_search():
    """The point of a polygon of 400 sides that is nearest to one outside, from the other end, where other sides are near."""
    turn = 2 * np.pi * np.arange(400) / 400
    sides = np.stack([np.cos(turn), np.sin(turn)], axis=1)

    def ask(x):
        away = x - 3 * sides[40]
        return Local(x, np.zeros(1), away @ away, np.zeros(0), 1 - sides @ x, 2 * away, np.zeros((0, 2)), -sides)

    far = np.full(2, 10.0)
    trace = searched(ask, np.array([-0.9, 0.1]), -far, far, 1e-9, 400)
    assert trace.best.x == pytest.approx(sides[40], abs=1e-7) and not trace.used_up


def test_a_gain_by_the_tolerance_alone_is_none():
    """The end of a search is taken for a point that costs less only by as much as it violates a margin, and only then."""
    low, high, still = np.full(2, -9.0), np.full(2, 9.0), np.zeros(2, bool)

    def point(x, y, less=0.0):  # x is at most 1; the margin is so small that 1e-5 more is within the tolerance
        given = np.array([[-1e-4, 0.0]])
        return Local(
            np.array([x, y]), np.zeros(1), 8 - 2 * x + y**2 - less, np.zeros(0), np.array([1e-4 * (1 - x)]),
            np.array([-2.0, 2 * y]), np.zeros((0, 2)), given,
        )  # fmt: skip

    end = point(1.0, 0.0)
    for less, taken in ((0.0, True), (1e-5, False)):
        trace = Trace(1e-9)
        trace.see(point(1 + 9e-6, 1e-4, less))
        trace.prefer(end, low, high, still)
        assert (trace.best is end) == taken


def test_a_saddle_is_left():
    p = Published((0.0, 1.0), lambda x: x[0] ** 4 - x[0] ** 2 + x[1] ** 2, margins=lambda x: 4 - x @ x)
    design = synthesize(problem(p))
    assert design.status is Status.LEAST and design.cost == pytest.approx(-0.25, abs=1e-9)


def test_what_the_data_leave_free_is_named():
    """A torque that holds a pendulum tells mass times distance, neither of both."""
    model = mbs.library.double_pendulum().build()
    free = [Free("lower.mass"), Free("lower.com", components=(2,))]
    q = np.linspace(-1, 1, 12)[:, None] * np.array([[0.3, 1.0]])
    still = {"q": q, "v": 0 * q, "a": 0 * q}
    noise = 0.01 * np.random.default_rng(0).standard_normal(q.shape)
    tau = jax.vmap(lambda q: mbs.inverse_dynamics(model, q, 0 * q, 0 * q))(jnp.asarray(q))
    # the upper arm carries the lower at a distance: that weight alone would tell the mass
    tau = np.asarray(tau) + noise
    fixed = mbs.set(model, {"elbow.parent_pose.position": (0.0, 0.0, 0.0)})
    hinge = jax.vmap(lambda q: mbs.inverse_dynamics(fixed, q, 0 * q, 0 * q))(jnp.asarray(q))
    wanted = [MeasuredTorques(still | {"tau": np.asarray(hinge) + noise}, noise=0.01, goal="least")]
    design = synthesize(Problem(fixed, free, wanted, starts=2))
    assert design.status is Status.UNDETERMINED and not design.status.success and len(design.undetermined) == 1
    assert (
        "lower.mass" in design.reason and "lower.com.z" in design.reason and "1 combination stays free" in design.reason
    )
    (alone,) = synthesize(Problem(fixed, free[1:], wanted, starts=2)).relations
    angle = q.sum(axis=1)  # both torques are that of the weight, of known mass 1 kg
    assert alone.std == pytest.approx(0.01 / (9.81 * np.sqrt(2 * np.sum(np.sin(angle) ** 2))), rel=1e-6)
    known = synthesize(
        Problem(model, free, [MeasuredTorques(still | {"tau": tau}, noise=0.01, goal="least")], starts=2)
    )
    assert known.status is Status.LEAST and known.undetermined == ()


def test_a_needle_is_called_one_and_thickness_can_be_demanded():
    free = MassDistribution("body_3")
    inertia = Function(lambda model, q: mbs.get(model, "body_3.inertia")[0, 0], configurations=1, goal="lowest")
    length = Function(lambda model, q: jnp.trace(mbs.get(model, "body_3.inertia")) - 0.02, configurations=1)
    p = Problem(arm(), [free], [inertia, length], method="constrained", starts=1)
    design = synthesize(p)
    assert "body_3 has become a needle" in design.reason and "least_thickness" in design.reason
    thick = synthesize(replace(p, free=[replace(free, least_thickness=0.05)]))
    moments = np.linalg.eigvalsh(np.asarray(thick.parameters["body_3.inertia"]))
    second = moments.sum() / 2 - moments
    assert "degenerate" not in thick.reason
    assert second.min() >= mbs.get(arm(), "body_3.mass") * 0.05**2 / 12 * (1 - 1e-9)
    with pytest.raises(mbs.ModelError, match="body 'body_3' with the least thickness"):
        replace(free, least_thickness=3.0, half_axes=(0.5, 0.5, 0.5)).part(arm())


def test_searches_ask_together_and_errors_come_out():
    sizes = []

    def evaluate(x):
        sizes.append(len(x))
        return list(x[:, 0] ** 2)

    def search(k):
        return lambda ask: sum(ask(np.array([float(i)])) for i in range(k))

    assert together(evaluate, [search(k) for k in (3, 0, 5)]) == [5.0, 0, 30.0]
    assert sizes == [2, 2, 2, 1, 1]

    def broken(ask):
        ask(np.zeros(1))
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        together(evaluate, [search(9), broken])


@pytest.mark.parametrize("seed", range(6))
def test_compressed_rows_have_the_same_sum_of_squares(seed):
    rng = np.random.default_rng(seed)
    J, r, d = rng.normal(size=(216, 6)), rng.normal(size=216), rng.normal(size=6)
    small, slopes = compressed(r, J)
    assert slopes.shape == (7, 6)
    assert np.sum((small + slopes @ d) ** 2) == pytest.approx(np.sum((r + J @ d) ** 2), rel=1e-12)


def test_what_the_first_order_leaves_of_a_slope():
    """A bound and a margin take up what pushes against them, and nothing else."""
    here = Local(np.array([0.0, 1.0, 2.0]), np.zeros(1), 1.0, np.zeros(0), np.array([0.0]), np.array([3.0, -2.0, 5.0]),
                 np.zeros((0, 3)), np.array([[0.0, 0.0, 1.0]]))  # fmt: skip
    low, high, still = np.array([0.0, 0.0, -9.0]), np.array([9.0, 9.0, 9.0]), np.zeros(3, bool)
    first = first_order(here, low, high, still)
    assert first.rest == pytest.approx([0.0, -2.0, 0.0]) and first.margins == pytest.approx([5.0])
    pulled = first_order(here._replace(slope=-here.slope), low, high, still)
    assert pulled.rest == pytest.approx([-3.0, 2.0, -5.0]) and pulled.tangent.shape == (3, 3)


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e-6])
def test_margins_in_any_unit(scale):
    """A polygon about the unit circle whose margins are small numbers everywhere: not one is used up inside."""
    a = np.linspace(0, 2 * np.pi, 20, endpoint=False)
    p = Published(
        (0.0, 0.0), lambda x: jnp.exp(-x[0]) + 0.3 * jnp.exp(-x[1]),
        margins=lambda x: scale * (1 - jnp.cos(a) * x[0] - jnp.sin(a) * x[1]),
    )  # fmt: skip
    design = synthesize(problem(p))
    assert design.status is Status.LEAST and design.cost == pytest.approx(0.5951634, abs=1e-5)


@pytest.mark.parametrize("kind", ["equal", "margins"])
def test_the_greatest_violation_is_not_the_least(kind):
    """x² = 1, and x² >= 1, from x = 0, where the slope of what is violated vanishes."""
    p = Published((0.0, 0.3), lambda x: (x[1] - 1) ** 2, **{kind: lambda x: x[0] ** 2 - 1})
    design = synthesize(problem(p))
    assert design.status is Status.LEAST and abs(mbs.get(design.model, "b0.com")[0]) > 1 - 1e-6
    assert mbs.get(design.model, "b0.com")[1] == pytest.approx(1.0, abs=1e-4)


def test_least_squares_leave_a_saddle():
    p = Published((0.0, 0.5), lambda x: jnp.stack([x[0] ** 2 - 1, x[1]]))
    wanted = problem(p, method="least_squares")
    fit = synthesize(replace(wanted, objectives=[replace(wanted.objectives[0], goal="least")]))
    assert fit.status is Status.LEAST and fit.cost < 1e-12 and len(fit.history) > 3
    assert np.all(np.diff(fit.history[:, fit.best]) <= 0)
    met = synthesize(replace(wanted, objectives=[replace(wanted.objectives[0], goal="zero")]))
    assert met.status is Status.MET and abs(mbs.get(met.model, "b0.com")[0]) == pytest.approx(1.0)


def test_a_saddle_that_cannot_be_left_is_not_called_least(monkeypatch):
    monkeypatch.setattr(import_module("jaxmbs.design.synthesize"), "ESCAPES", 0)
    p = Published((0.0, 0.5), lambda x: jnp.stack([x[0] ** 2 - 1, x[1]]))
    for goal in ("least", "zero"):
        wanted = problem(p, method="least_squares")
        assert (
            synthesize(replace(wanted, objectives=[replace(wanted.objectives[0], goal=goal)])).status is Status.STALLED
        )
