"""When events may happen and what counts: armed from a time, distances along a direction, latches that rebound, more events
than there is room for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.simulate.test_events import ball, carts

DRIVE = np.array([3.0])
HERE = mbs.JointReaches("x", 0.5, direction="up")


def cart(when, then, **guards):
    """A body of 2 kg on a line."""
    mech = mbs.Mechanism("cart")
    mech.add_body("b", mass=2.0)
    mech.add_joint("x", mbs.Prismatic((1, 0, 0)), "world", "b")
    mech.add_event("e", when, then, **guards)
    return mech.build()


def driven(model, t_end=3.0, dt=0.1, v=(1.0,), **options):
    """From x = 0 at 1 m/s, with 1.5 m/s²."""
    return mbs.simulate(model, [0.0], v, t_end, dt, tau=DRIVE, **options)


ARRIVAL = (np.sqrt(1 + 2 * 1.5 * 0.5) - 1) / 1.5  # at x = 0.5


def rebounds(e, rest_rate):
    """(times, energies lost) of a latch at x = 0.5 that rebounds until it is slow enough."""
    t, v, times, lost = ARRIVAL, np.sqrt(1 + 2 * 1.5 * 0.5), [], []
    while True:
        times.append(t)
        if e * v <= rest_rate:
            return times, [*lost, v**2]
        lost.append((1 - e**2) * v**2)
        v *= e
        t += 2 * v / 1.5


def test_a_latch_rebounds_until_it_is_slow_and_then_holds():
    model = cart(HERE, mbs.Lock("x", restitution=0.4, rest_rate=0.05))
    run = driven(model)
    times, lost = rebounds(0.4, 0.05)
    n = len(times)
    assert n == 4 and run.status == mbs.Status.OK and bool(run.mode.lock[0])
    assert np.allclose(run.events.time[:n], times, atol=1e-11) and run.events.index[n] == -1
    assert np.allclose(run.events.energy_lost[:n], lost, rtol=1e-11)
    assert np.allclose(run.q[-1], 0.5, atol=1e-12) and abs(run.v[-1]) < 1e-13

    def last(e):
        return driven(mbs.set(model, {"e.restitution": e}), t_end=2.5, save_every=None).events.time[n - 1]

    slope = (rebounds(0.4 + 1e-5, 0.05)[0][-1] - rebounds(0.4 - 1e-5, 0.05)[0][-1]) / 2e-5
    for how in (jax.jacfwd, jax.jacrev):
        assert np.allclose(jax.jit(how(last))(0.4), slope, rtol=1e-8)


@pytest.mark.slow
def test_a_latch_that_is_met_again_within_one_step_is_met_wherever_rounding_left_it():
    model = cart(HERE, mbs.Lock("x", restitution=0.3, rest_rate=0.01))
    first = np.linspace(0.8, 1.2, 32)
    run = jax.jit(jax.vmap(lambda v: driven(model, 3.0, 0.5, v=v[None])))(first)
    assert np.all(run.status == mbs.Status.OK) and np.all(run.mode.lock)
    np.testing.assert_allclose(run.q[:, -1], 0.5, atol=1e-12)
    rates = np.sqrt(first**2 + 2 * 1.5 * 0.5)
    counts = 1 + np.ceil(np.log(rates * 0.3 / 0.01) / np.log(1 / 0.3))
    assert np.array_equal((run.events.index >= 0).sum(axis=1), counts)


def test_what_comes_after_a_latch_waits_until_it_holds():
    rest = {"name": "end", "when": mbs.Time(0.0), "then": mbs.Finish(), "after": "latch"}
    latch = {"name": "latch", "when": mbs.JointReaches("slide", 0.5), "then": mbs.Lock("slide", 0.5, rest_rate=0.2)}
    model = carts(latch, rest)
    pushed = lambda model, t, q, v: jnp.stack([0 * t, 6.0 + 0 * t])  # noqa: E731
    run = mbs.simulate(model, [0.0, 0.0], [0.0, 0.0], 3.0, 0.1, tau=pushed)
    kinds = [model.event_names[k] for k in run.events.index if k >= 0]
    assert kinds == ["latch"] * 4 + ["end"] and run.events.time[3] == run.events.time[4]  # 2.2, 1.1, 0.56, 0.28 m/s


def test_two_actions_of_one_event_have_numbers_of_their_own():
    both = [mbs.Lock("rail", 0.1), mbs.Bounce("slide", 0.2)]
    model = carts({"name": "e", "when": mbs.Time(1.0), "then": both})
    assert mbs.get(model, "e.rail.restitution") == 0.1 and mbs.get(model, "e.slide.restitution") == 0.2
    assert mbs.get(carts({"name": "e", "when": mbs.Time(1.0), "then": both[1]}), "e.restitution") == 0.2


@pytest.mark.parametrize(("armed_from", "time"), [(0.33, ARRIVAL), (ARRIVAL + 0.01, None)])
def test_an_event_is_armed_from_its_time_on(armed_from, time):
    """Both within one step; what is true by then does not count."""
    run = driven(cart(HERE, mbs.Finish(), armed_from=armed_from), save_every=None)
    assert run.events.index[0] == (-1 if time is None else 0)
    assert np.allclose(run.events.time[0], 3.0 if time is None else time, atol=1e-11)


@pytest.mark.slow
def test_a_time_that_has_passed_counts_when_its_event_is_armed():
    model = cart(mbs.Time(0.1), mbs.Finish(), armed_from=0.33)
    assert mbs.get(model, "e.armed_from") == 0.33
    early = lambda t: driven(mbs.set(model, {"e.armed_from": t}), save_every=None)  # noqa: E731
    slope, run = jax.jacfwd(lambda t: (early(t).q[-1, 0], early(t)), has_aux=True)(0.33)
    assert np.allclose(run.events.time, 0.33) and np.allclose(run.q[-1], 0.33 + 0.75 * 0.33**2, atol=1e-14)
    assert np.allclose(slope, 1 + 1.5 * 0.33, atol=1e-12)


@pytest.fixture(scope="module")
def flight():
    """A stage that turns with 0.7 rad/s, and a point that leaves it straight on in the world."""
    mech = mbs.Mechanism("flight")
    mech.add_body("stage", mass=1.0, inertia=(1, 1, 1))
    mech.add_body("b", mass=1.0, inertia=(1, 1, 1))
    mech.add_joint("turn", mbs.Revolute((0, 0, 1)), "world", "stage")
    mech.add_joint("fly", mbs.Free(), "world", "b")
    ends = {"point_a": (0.2, 0.0, 0.0), "point_b": (0.0, 0.1, 0.0)}
    mech.add_event("of_stage", mbs.Distance("stage", "b", 0.5, along=(0, 2.0, 0), direction="up", **ends))
    mech.add_event("of_world", mbs.Distance("world", "b", -0.4, along=(-1.0, 0, 0), direction="down"))
    mech.add_event("straight", mbs.Distance("stage", "b", 0.9, **ends))
    return mech.build()


def test_distances_along_a_direction_are_in_axes_of_the_first_body(flight):
    q, v = flight.neutral(), np.zeros(7)
    v[0], v[4:] = 0.7, (0.3, 0.8, 0.0)
    run = mbs.simulate(flight, q, v, 2.0, 0.1, save_every=None)
    found = {flight.event_names[k]: t for k, t in zip(run.events.index, run.events.time, strict=True)}

    def apart(t):
        c, s = np.cos(0.7 * t), np.sin(0.7 * t)
        d = np.array([0.3 * t, 0.8 * t + 0.1]) - 0.2 * np.array([c, s])
        return d, np.array([-s, c])

    d, e = apart(found["of_stage"])
    assert d @ e == pytest.approx(0.5, abs=1e-11)
    assert found["of_world"] == pytest.approx(0.4 / 0.3, abs=1e-11)
    assert np.linalg.norm(apart(found["straight"])[0]) == pytest.approx(0.9, abs=1e-11)


def test_a_distance_of_zero_or_less_needs_a_direction():
    with pytest.raises(mbs.ModelError, match="event 'e': value: a distance must be more than zero; pass along"):
        cart(mbs.Distance("world", "b", -0.1), mbs.Finish())


def test_more_events_than_there_is_room_for_stop_the_run():
    """A ball that goes on bouncing must not fall through its floor."""
    run = mbs.simulate(mbs.set(ball(), {"floor.restitution": 0.9}), [0.05], np.zeros(1), 4.0, 0.02)
    assert run.status == mbs.Status.UNFINISHED and np.all(run.events.index == 0)
    assert np.all(np.asarray(run.q) > -1e-12)


@pytest.mark.parametrize("how", [jax.jacfwd, jax.jacrev])
def test_of_two_events_at_one_instant_each_has_its_own_derivative(how):
    """Two equal bodies that gravity slows down: after the first bounce, the second is due at the very start of its step."""
    mech = mbs.Mechanism("pair", gravity=(-9.81, 0, 0))
    for name in ("a", "b"):
        mech.add_body(name, mass=1.0)
        mech.add_joint(f"{name}_rail", mbs.Prismatic((1, 0, 0)), "world", name)
        mech.add_event(f"{name}_stop", mbs.JointReaches(f"{name}_rail", 0.5), mbs.Bounce(f"{name}_rail", 0.5))
    model = mech.build()

    def times(places, speed):
        own = mbs.set(model, {"a_stop.value": places[0], "b_stop.value": places[1]})
        run = mbs.simulate(own, [0.0, 0.0], jnp.full(2, speed), 0.3, 0.1, save_every=None)
        return jnp.zeros(2).at[run.events.index].set(run.events.time)

    speeds = np.linspace(4.0, 6.0, 8)
    slopes = jax.jit(jax.vmap(how(times)))(jnp.full((8, 2), 0.5), speeds)
    expected = np.eye(2) / np.sqrt(speeds**2 - 2 * 9.81 * 0.5)[:, None, None]
    np.testing.assert_allclose(slopes, expected, atol=1e-12)


def test_an_event_in_a_long_step_has_the_derivative_of_the_numerical_motion():
    """Steps of a quarter of a second, in which the pendulum's numerical motion is 1 % off: the rate by which an event is
    located is that of the exact motion, its derivative is not."""
    mech = mbs.Mechanism("pendulum", gravity=(0, 0, -9.81))
    mech.add_body("rod", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "world", "rod")
    mech.add_event("stop", mbs.JointReaches("hinge", 0.4), mbs.Bounce("hinge", 0.5))
    model = mech.build()

    def end(speed):
        run = mbs.simulate(model, [0.0], speed[None], 1.0, 0.25, save_every=None)
        return jnp.array([run.q[-1, 0], run.v[-1, 0], run.events.time[0]])

    h = 1e-4
    values, slopes = jax.jit(jax.vmap(lambda v: jax.jvp(end, (v,), (1.0,))))(2.0 + h * jnp.arange(-2.0, 3.0))
    differences = (values[0] - 8 * values[1] + 8 * values[3] - values[4]) / (12 * h)
    np.testing.assert_allclose(slopes[2], differences, rtol=1e-8)
