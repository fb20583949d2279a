"""States between the rows of a solution against closed forms, through events, and against runs with finer steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.simulate.test_events import ball, bounces, carts
from tests.simulate.test_guards import HERE, cart, driven


def test_a_bouncing_ball_between_coarse_rows():
    """No interpolation across a bounce: three of them within steps of 0.1 s, a batch of two balls."""
    model, heights = ball(), jnp.array([0.9, 1.7])
    t = np.sort(np.random.default_rng(0).uniform(0, 2, 60))

    def one(h):
        run = mbs.simulate(model, h[None], jnp.zeros(1), 2.0, 0.1)
        q, v = run.at(model, t)
        return q[:, 0], v[:, 0]

    q, v = jax.jit(jax.vmap(one))(heights)
    for k, h in enumerate(heights):
        expected = np.array([bounces(float(h), 9.81, 0.8, x)[:2] for x in t])
        np.testing.assert_allclose(np.stack([q[k], v[k]], axis=1), expected, atol=1e-12)


def test_held_released_latched_with_a_drive():
    go = {"name": "go", "when": mbs.Time(0.25), "then": mbs.Release("slide")}
    latch = {"name": "latch", "when": mbs.JointReaches("slide", 0.3, direction="up"), "then": mbs.Lock("slide")}
    model = carts(go, latch, held="slide")
    tau = lambda model, t, q, v: jnp.stack([0 * t, 6.0 + 0 * t])  # noqa: E731
    run = mbs.simulate(model, [0.0, 0.0], [0.0, 0.0], 1.0, 0.2, tau=tau)
    t = np.linspace(0.0, 1.0, 41)
    q, v = run.at(model, t, tau)
    at = 0.25 + np.sqrt(2 * 0.3 / 5.0)
    flown = np.clip(t - 0.25, 0.0, None)
    np.testing.assert_allclose(q[:, 1], np.where(t < at, 2.5 * flown**2, 0.3), atol=1e-12)
    np.testing.assert_allclose(v[:, 1], np.where(t < at, 5.0 * flown, 0.0), atol=1e-12)
    with pytest.raises(
        mbs.ModelError, match="at: the solution does not contain every step; simulate with save_every=1"
    ):
        mbs.simulate(model, [0.0, 0.0], [0.0, 0.0], 1.0, 0.2, tau=tau, save_every=None).at(model, 0.5, tau)


def test_what_a_log_says_of_rebounds():
    """A latch that rebounds, holds, and is let go before the end: whether it held cannot be told from what is left."""
    latch = {"name": "latch", "when": mbs.JointReaches("slide", 0.5), "then": mbs.Lock("slide", 0.5, rest_rate=0.2)}
    go = {"name": "go", "when": mbs.Time(2.5), "then": mbs.Release("slide"), "after": "latch"}
    model = carts(latch, go)
    tau = lambda model, t, q, v: jnp.stack([0 * t, 6.0 + 0 * t])  # noqa: E731
    run = mbs.simulate(model, [0.0, 0.0], [0.0, 0.0], 3.0, 0.1, tau=tau)
    assert run.events.rebounded.tolist()[:5] == [True] * 3 + [False] * 2 and not run.events.rebounded[5:].any()
    assert run.mode_at(model, [1.0, 1.5, 2.4, 2.6]).lock[:, 1].tolist() == [False, True, True, False]
    q, v = run.at(model, [1.55, 2.45, 2.75], tau)
    np.testing.assert_allclose(q[:, 1], 0.5 + np.array([0, 0, 2.5 * 0.25**2]), atol=1e-10)
    np.testing.assert_allclose(v[:, 1], np.array([0, 0, 5.0 * 0.25]), atol=1e-10)


@pytest.mark.slow
def test_a_latch_that_rebounds_and_the_ends_of_a_run():
    model = cart(HERE, mbs.Lock("x", restitution=0.4, rest_rate=0.05))
    run = driven(model, dt=0.25)
    t = np.array([-0.1, 0.0, 1.0, 1.3, 2.5, 3.0, 3.1])
    q, v = run.at(model, t, np.array([3.0]))
    fine = driven(model, dt=0.05)
    rows = np.searchsorted(np.asarray(fine.t) + 1e-9, t[1:-1])
    np.testing.assert_allclose(q[1:-1], fine.q[rows], atol=1e-11)
    np.testing.assert_allclose(v[1:-1], fine.v[rows], atol=1e-11)
    assert np.isnan(np.asarray(q)[[0, -1]]).all() and np.isnan(np.asarray(v)[[0, -1]]).all() and v[-2] == 0


@pytest.mark.slow
def test_a_tumbling_body_stays_on_its_manifold_with_order_four():
    mech = mbs.Mechanism("tumbler")
    mech.add_body("b", 1.0, inertia=(1.0, 2.0, 2.7))
    mech.add_joint("ball", mbs.Spherical(), "world", "b")
    model = mech.build()
    q0, v0, t = [1.0, 0, 0, 0], [0.3, 2.0, 0.1], np.linspace(0.0, 1.0, 33)[1:-1] + 1e-3

    def error(dt):
        run = mbs.simulate(model, q0, v0, 1.0, dt)
        q, v = run.at(model, t)
        assert np.abs(np.linalg.norm(q, axis=1) - 1).max() < 1e-15
        return np.concatenate([q, v], axis=1)

    exact = error(0.1 / 32)
    errors = [np.abs(error(dt) - exact).max() for dt in (0.1, 0.05)]
    assert np.log2(errors[0] / errors[1]) > 3.5 and errors[1] < 1e-5
