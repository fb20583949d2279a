"""Constrained designs whose optimum is known in closed form: a four-bar's counterweights, a quantile, bounds on torque."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import jaxmbs as mbs
from jaxmbs.design import Free, Function, OutputValue, Problem, StaticBalance, Status, synthesize
from jaxmbs.design.file import read
from tests.design.test_failed_samples import SLIDER


@pytest.mark.slow
def test_static_balance_with_a_bound_on_the_torque():
    """A fifth of the torque may be left: the centre of mass comes to a fifth of its distance, and no nearer."""
    mech = mbs.Mechanism("lever", gravity=(0, 0, -9.81))
    mech.add_body("lever", mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    mech.add_joint("hinge", mbs.Revolute(axis=(0, 1, 0)), parent="world", child="lever")
    near = Function(lambda model, q: mbs.get(model, "lever.com")[0] - 0.5, configurations=1, goal="least")
    free = [Free("lever.com", low=-1.0, high=1.0, components=(0,))]
    design = synthesize(
        Problem(mech.build(), free, [StaticBalance(within=0.2), near], method="constrained", starts=3, tolerance=1e-9)
    )
    assert design.status is Status.LEAST and design.parameters["lever.com"][0] == pytest.approx(0.1, abs=1e-8)


@pytest.mark.slow
def test_a_robust_design_with_a_known_quantile(tmp_path):
    """The way of a cart is (1 - exp(-10 d)) / d times its normal first speed; the least damper by which 95 % stop in 1 m."""
    i, j = SLIDER.index("[dispersions"), SLIDER.index("[simulation]")
    text = '[dispersions."initial.rail.v"]\ndistribution = "normal"\napply = "add"\nmean = 0.0\nstd = 0.1\n'
    (tmp_path / "cart.toml").write_text(SLIDER[:i] + text + SLIDER[j:], encoding="utf-8")
    problem = read(tmp_path / "cart.toml").problem
    stops = OutputValue("travel", statistic="quantile", level=0.95, at_most=1.0, samples=256)
    small = Function(lambda model, q: mbs.get(model, "damper.damping") ** 2, configurations=1, goal="lowest")
    design = synthesize(replace(problem, objectives=[stops, small], method="constrained", starts=2, tolerance=1e-9))
    speed = 1 + 0.1 * norm.ppf(0.95) * np.sqrt(1 + 256**-0.5)  # as wide as the quantile is smoothed
    known = brentq(lambda d: speed * (1 - np.exp(-10 * d)) / d - 1, 0.5, 3.0)
    assert design.status is Status.LEAST and design.failed == ()
    assert design.parameters["damper.damping"] == pytest.approx(known, rel=5e-3)


@pytest.mark.slow
def test_the_lightest_counterweights_of_a_four_bar():
    """Its centre of mass rests [R. Berkof, G. Lowen, 1969]: crank and rocker carry moments m (1 - s) a and m s c against
    the coupler's mass m at the part s of its length; the lightest weights are as far out as they may be."""
    a, b, c, d, m, s, out = 0.2, 0.5, 0.4, 0.5, 3.0, 0.3, 0.25
    mech = mbs.Mechanism("four-bar", gravity=(0, 0, 0))
    angle = np.linspace(0.0, 2 * np.pi, 13)[:-1]
    crank = a * np.stack([np.cos(angle), np.sin(angle)])
    way = np.array([[d], [0.0]]) - crank
    long = np.linalg.norm(way, axis=0)
    along = (b**2 - c**2 + long**2) / (2 * long)
    across = np.sqrt(b**2 - along**2) * (np.array([[0.0, -1.0], [1.0, 0.0]]) @ way) / long
    joint = crank + along * way / long + across
    turns = {"crank": crank / a, "rocker": (joint - np.array([[d], [0.0]])) / c}
    for name in turns:
        mech.add_body(name, mass=1.0, com=(0.1, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        mech.add_joint(f"{name}_hinge", mbs.Revolute(axis=(0, 0, 1)), parent="world", child=name)

    def resting(model, q):
        moment = m * ((1 - s) * crank + s * joint)
        for name, (cos, sin) in turns.items():
            x, y = mbs.get(model, f"{name}.mass") * jnp.asarray(mbs.get(model, f"{name}.com"))[:2]
            moment = moment + jnp.stack([x * cos - y * sin, x * sin + y * cos])
        return (moment - moment.mean(axis=1, keepdims=True)).reshape(-1)

    def total(model, q):
        return mbs.get(model, "crank.mass") + mbs.get(model, "rocker.mass")

    free = [Free(f"{k}.com", low=-out, high=out, components=(0, 1)) for k in turns]
    free += [Free(f"{k}.mass", low=0.1, high=20.0) for k in turns]
    wanted = [Function(resting, configurations=1), Function(total, configurations=1, goal="lowest")]
    design = synthesize(Problem(mech.build(), free, wanted, method="constrained", starts=2, tolerance=1e-9))
    assert design.status is Status.LEAST
    assert design.cost == pytest.approx((m * (1 - s) * a + m * s * c) / out, rel=1e-8)
    assert design.parameters["crank.com"][:2] == pytest.approx([-out, 0.0], abs=1e-7)
