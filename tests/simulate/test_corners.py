"""Corners of force elements: ends of strokes, delays, corners of thrust profiles and touches lie between the steps, and cost
no order of accuracy."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.simulate import guards
from jaxmbs.simulate.branches import LOCATING
from tests.cases import relative
from tests.simulate.test_separation import CUT, REDUCED, motion


@pytest.fixture(scope="module")
def pair():
    """Two bodies of a separation on one line, pushed apart by two springs that end with a jump of the force."""
    mech = mbs.Mechanism("pair")
    mech.add_body("stage", mass=3000.0)
    mech.add_body("payload", mass=500.0)
    mech.add_joint("flight", mbs.Prismatic((1, 0, 0)), "world", "stage")
    mech.add_joint("interface", mbs.Prismatic((1, 0, 0)), "stage", "payload")
    for name in ("left", "right"):
        mech.add_force(
            name,
            mbs.Pusher("stage", "payload", (0, 0, 0), (0, 0, 0), (1, 0, 0), stiffness=2e4, preload=3e3, stroke=0.1),
        )
    return mech.build()


def separated(pair, numbers=(0.1, 0.1, 0.0, 0.0, 3e3, 3e3), dt=2e-3):
    """Velocities at the end for strokes, delays and preloads of both springs."""
    names = [f"{name}.{field}" for field in ("stroke", "delay", "preload") for name in ("left", "right")]
    model = mbs.set(pair, dict(zip(names, numbers, strict=True)))
    return mbs.simulate(model, [0.0, 0.0], [0.0, 0.0], 0.4, dt, save_every=None)


@pytest.mark.slow
def test_speeds_of_two_springs_against_the_closed_form(pair):
    _, speed, _ = motion(CUT["stiffness"], CUT["preload"], CUT["stroke"])
    errors = [abs(float(separated(pair, dt=dt).v[-1, 1]) / speed - 1) for dt in (2e-2, 1e-2, 5e-3)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert errors[-1] < 1e-8 and np.all(orders > 3.7)


def test_without_corners_the_order_is_lost(pair, monkeypatch):
    for module in ("simulate", "mode_changes"):
        monkeypatch.setattr(sys.modules[f"jaxmbs.simulate.{module}"], "cornered", lambda structure: False)
    _, speed, _ = motion(CUT["stiffness"], CUT["preload"], CUT["stroke"])
    run = separated(pair, dt=5e-3 * (1 + 1e-9))  # another grid than that of the test above, which is compiled
    assert abs(float(run.v[-1, 1]) / speed - 1) > 1e-4 and abs(float(run.energy_error[-1])) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("how", [jax.jacfwd, jax.jacrev])
def test_derivatives_with_springs_that_end_together(pair, how):
    """Each number of each spring by itself, though all happens at the same instants: half of what both give together, which
    the closed form tells. Rounding decides for each stroke which spring is seen to end first, or both."""

    def end(x):
        return separated(pair, tuple(x)).v[-1, 1]

    s = np.linspace(0.05, 0.1, 12)
    x = jnp.stack([jnp.array([a, a, 0.004, 0.004, 3e3, 3e3]) for a in s])
    J = np.asarray(jax.jit(jax.vmap(how(end)))(x)).T
    k, F = 4e4, 6e3
    speed = np.sqrt((2 * F * s - k * s**2) / REDUCED)
    for one in J[[0, 1]]:
        np.testing.assert_allclose(one, (F - k * s) / REDUCED / speed / 2, rtol=1e-6)
    np.testing.assert_allclose(J[[2, 3]], 0.0, atol=1e-7)  # both later: the same; each by itself as the other
    for one in J[[4, 5]]:
        np.testing.assert_allclose(one, s / REDUCED / speed, rtol=1e-7)


@pytest.mark.slow
def test_a_late_spring_by_differences(pair):
    def end(delay):
        return separated(pair, (0.1, 0.1, 0.004, delay, 3e3, 3e3)).v[-1, 1]

    slope, h = float(jax.jit(jax.grad(end))(0.0111)), 1e-5
    values = [float(end(0.0111 + k * h)) for k in (-2, -1, 1, 2)]
    assert slope == pytest.approx((values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h), rel=1e-7)


def test_a_profile_of_thrust_gives_its_area():
    """Steps that are coarser than the profile and never meet its corners."""
    mech = mbs.Mechanism("rocket")
    mech.add_body("body", mass=2.0)
    mech.add_joint("rail", mbs.Prismatic((1, 0, 0)), "world", "body")
    times, values = (0.0123, 0.02, 0.1, 0.1001, 0.5), (0.0, 1.0, 0.7, 0.2, 0.0)
    mech.add_force("engine", mbs.Thruster("body", direction=(1, 0, 0), thrust=10.0, times=times, values=values))
    model = mech.build()

    def speed(times):
        return mbs.simulate(mbs.set(model, {"engine.times": times}), [0.0], [0.0], 0.7, 0.07, save_every=None).v[-1, 0]

    area = np.trapezoid(values, times)
    assert float(speed(jnp.array(times))) == pytest.approx(10.0 * area / 2.0, rel=1e-13)
    # each corner moves the areas of the two trapezia beside it
    v = np.array([values[0], *values, values[-1]])
    slopes = 5.0 * (v[:-2] - v[2:]) / 2
    np.testing.assert_allclose(jax.grad(speed)(jnp.array(times)), slopes, rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def ball():
    mech = mbs.Mechanism("ball", gravity=(0, 0, -9.81))
    mech.add_body("ball", mass=0.5)
    mech.add_joint("fall", mbs.Prismatic((0, 0, 1)), "world", "ball")
    mech.add_force("floor", mbs.Contact("ball", (0, 0, 0), mbs.Plane(), stiffness=2e4, smoothing=1e-4))
    return mech.build()


def test_touches_are_met(ball):
    """A ball that bounces without loss keeps its energy, though the force rises within less than a step."""
    runs = [mbs.simulate(ball, [0.3], [0.0], 1.0, dt) for dt in (1e-3, 5e-4)]
    errors = [np.abs(run.energy_error).max() for run in runs]
    assert all((np.diff(np.sign(np.asarray(run.v[:, 0]))) > 0).sum() == 2 for run in runs)  # bounces
    assert errors[1] < 2e-6 and np.log2(errors[0] / errors[1]) > 3.7


def test_when_the_turns_are_spent_the_run_goes_on(ball):
    """More touches than there are turns for: the rest is as without corners, and the balance of energy says so."""
    run = mbs.simulate(ball, [0.002], [0.0], 1.0, 1e-3)
    assert run.status == mbs.Status.COARSE
    assert (np.diff(np.sign(np.asarray(run.v[:, 0]))) > 0).sum() > 2 * (LOCATING + 48) / 20
    assert np.asarray(run.q[500:]).max() > 1.5e-3 and np.abs(run.energy_error).max() < 0.5 * 0.5 * 9.81 * 0.002


@pytest.mark.slow
def test_a_batch_equals_single_runs(pair):
    """Every instance meets its corners at its own instants."""
    numbers = np.array([0.1, 0.1, 0.004, 0.004, 3e3, 3e3]) * np.random.default_rng(1).uniform(0.8, 1.2, (70, 6))

    def end(x):
        run = separated(pair, tuple(x))
        return run.v[-1], run.status

    v, status = mbs.jit(end, in_axes=0)(jnp.asarray(numbers))
    alone = [end(jnp.asarray(x))[0] for x in numbers[:3]]
    assert relative(v[:3], np.array(alone)) < 1e-12 and not np.any(status)


def test_elements_without_corners_need_no_search():
    assert not guards.cornered(mbs.library.arm7().build().structure)
    assert guards.cornered(mbs.library.stage_separation().build().structure)


FIRST, SECOND, END, FAST = (
    3.0,
    7.0,
    0.4,
    1.3,
)  # forces [N], where the first one ends [m], from what speed on the second acts


def driven(fn, *surfaces, dt=0.07):
    """Velocity after a second of a cart under a function's force, from (position, velocity, mass)."""
    mech = mbs.Mechanism("cart")
    mech.add_body("cart", mass=2.0)
    mech.add_joint("rail", mbs.Prismatic((1, 0, 0)), "world", "cart")
    mech.add_force("drive", mbs.External(fn, surfaces=surfaces))
    model = mech.build()

    def end(x):
        run = mbs.simulate(mbs.set(model, {"cart.mass": x[2]}), x[:1], x[1:2], 1.0, dt, save_every=None)
        return run.v[-1, 0]

    return end


def pushed(model, t, q, v, beyond):
    """A push that ends with a jump."""
    return jnp.where(beyond[0], 0.0, FIRST) * jnp.ones(1)


def relayed(model, t, q, v, beyond):
    """A second force takes over at a speed."""
    return jnp.where(beyond[0], SECOND, FIRST) * jnp.ones(1)


def way(model, t, q, v):
    return q[0] - END


def speed(model, t, q, v):
    return v[0] - FAST


def after_push(x, v, m):
    """From v² / 2 + FIRST x / m, which is kept until END."""
    last = np.sqrt(v**2 + 2 * FIRST * (END - x) / m)
    return last, np.array([-FIRST / m, v, -FIRST * (END - x) / m**2]) / last


def after_relay(x, v, m):
    """m (FAST - v) / FIRST seconds of the first force, the rest of a second of the other one."""
    before = m * (FAST - v) / FIRST
    slope = -SECOND * (1 - before) / m**2 - SECOND * (FAST - v) / FIRST / m
    return FAST + SECOND * (1 - before) / m, np.array([0.0, SECOND / FIRST, slope])


@pytest.mark.parametrize("fn, surface, exact", [(pushed, way, after_push), (relayed, speed, after_relay)])
def test_surfaces_of_a_users_force_against_the_closed_form(fn, surface, exact):
    """Value and derivatives, in both modes; the function is told on which side it is, and the balance of energy holds."""
    end, x = driven(fn, surface), jnp.array([0.1, 0.5, 2.0])
    value, slopes = exact(*np.asarray(x))
    found, forward = jax.jit(lambda x: (end(x), jax.jacfwd(end)(x)))(x)
    assert float(found) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(forward, slopes, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.grad(end))(x), slopes, rtol=1e-9, atol=1e-12)


def test_without_surfaces_a_users_force_loses_accuracy():
    """The same force, that asks for itself where it is."""
    end = driven(lambda model, t, q, v: jnp.where(q > END, 0.0, FIRST))
    assert abs(float(end(jnp.array([0.1, 0.5, 2.0]))) - after_push(0.1, 0.5, 2.0)[0]) > 1e-3


def test_a_users_force_without_surfaces_needs_no_search():
    mech = mbs.library.double_pendulum()
    mech.add_force("drag", mbs.External(lambda model, t, q, v: -v))
    assert not guards.cornered(mech.build().structure)
    mech.add_force("push", mbs.External(lambda model, t, q, v: -v, surfaces=[speed]))
    assert guards.cornered(mech.build().structure)
