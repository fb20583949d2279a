"""Stops: what comes to rest on them never passes them unsaid, and what just touches them costs no run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.elements import Force, Kind, element, field
from jaxmbs.simulate.locating import Search
from jaxmbs.spatial import ZERO3, Vector3

OK, UNFINISHED = int(mbs.Status.OK), int(mbs.Status.UNFINISHED)
G = 9.81


def ball(direction="down", value=0.0, then=None, repeat=True, gravity=G):
    mech = mbs.Mechanism("ball", gravity=(0, 0, -gravity))
    mech.add_body("ball", mass=1.0)
    mech.add_joint("z", mbs.Prismatic((0, 0, 1)), "world", "ball")
    mech.add_event("stop", mbs.JointReaches("z", value, direction), then or mbs.Bounce("z", 0.5), repeat=repeat)
    return mech


def test_a_bounce_that_repeats_needs_a_restitution():
    for action in (mbs.Bounce("z", 0.0), [mbs.Finish(), mbs.Bounce("z")]):
        with pytest.raises(mbs.ModelError, match=r"event 'stop'.*restitution=.*Lock\(joint\).*Contact"):
            ball(then=action)
    assert ball(then=mbs.Bounce("z", 0.0), repeat=False).build().event_names == ("stop",)


def test_rebounds_that_fade_never_let_the_ball_through():
    """Each ends on the floor, by its rest or by the number of its rebounds, and says so."""
    model = ball().build()

    def end(e):
        run = mbs.simulate(mbs.set(model, {"stop.restitution": e}), [1.0], [0.0], 1.5, 1e-2, max_events=12)
        return run.status, run.q.min(), (run.events.index >= 0).sum()

    es = jnp.array([0.0, 1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.5, 0.9])
    status, least, events = jax.jit(jax.vmap(end))(es)
    assert status.tolist() == [UNFINISHED] * 11 + [OK]
    assert np.all(least > -1e-3)  # a step of rest before it shows, and no more
    assert events.tolist()[:2] == [1, 1] and np.all(np.diff(events[:11]) >= 0) and events[10] == 12 and events[11] == 2


def test_more_room_for_rebounds_that_do_not_fade():
    model = mbs.set(ball().build(), {"stop.restitution": 1.0})
    few, many = (mbs.simulate(model, [0.05], [0.0], 4.0, 1e-2, max_events=n) for n in (None, 40))
    assert few.status == UNFINISHED and len(few.events.index) == 16
    times = np.sqrt(2 * 0.05 / G) * (1 + 2 * np.arange(20))
    n = int((times < 4.0).sum())
    assert many.status == OK and np.allclose(many.events.time[:n], times[:n], atol=1e-10)


def test_the_limits_are_errors_where_they_have_no_use():
    model = ball().build()
    with pytest.raises(mbs.ModelError, match=r"max_steps limits the steps of a run with a tolerance.*max_events"):
        mbs.simulate(model, [1.0], [0.0], 1.0, max_steps=5000)
    with pytest.raises(mbs.ModelError, match="max_events is 0"):
        mbs.simulate(model, [1.0], [0.0], 1.0, max_events=0)
    with pytest.raises(mbs.ModelError, match="no event of this model repeats"):
        mbs.simulate(mbs.library.double_pendulum().build(), [1.0, 0.0], [0.0, 0.0], 1.0, max_events=20)


def test_what_begins_on_its_stop():
    """Pressed on it, or moving into it; thrown off it; without a force; with a stop that has two sides."""
    model = ball().build()

    def started(x):
        changed = mbs.set(model, {"gravity": jnp.stack([0 * x[0], 0 * x[0], -x[0]])})
        return mbs.simulate(changed, jnp.zeros(1), x[1:], 0.3, 1e-2, save_every=None).status

    cases = jnp.array([[G, 0.0], [G, -1.0], [G, 1.0], [0.0, 0.0], [-G, 0.0]])
    assert jax.vmap(started)(cases).tolist() == [UNFINISHED, UNFINISHED, OK, OK, OK]
    both = ball("either").build()
    assert mbs.simulate(both, [0.0], [1.0], 0.1, 1e-2).status == OK


def test_a_rest_that_something_pulls_away_goes_on():
    """A spring with its rest length above the floor takes the ball off after an impact without rebound."""
    mech = ball(then=mbs.Bounce("z", 1e-12), gravity=0.0)
    mech.add_force("spring", mbs.TorsionSpring("z", stiffness=100.0, rest_angle=0.5))
    run = mbs.simulate(mech.build(), [1.5], [0.0], 1.0, 1e-3)
    fall = (np.pi / 2 + np.arcsin(0.5)) / 10  # 0.5 + cos(10 t) = 0
    assert run.status == OK and np.allclose(run.events.time[0], fall, atol=1e-8)
    assert np.allclose(run.q[-1], 0.5 - 0.5 * np.cos(10 * (1.0 - fall) % (2 * np.pi)), atol=1e-6)


def test_events_that_strike_by_a_clock_are_no_stops():
    """Every time the clock passes a whole second the mass is turned round, and nothing stops it."""
    mech = mbs.Mechanism("clock")
    mech.add_body("mass", mass=1.0)
    mech.add_joint("x", mbs.Prismatic((1, 0, 0)), "world", "mass")
    tick = mbs.When(lambda model, t, q, v: jnp.sin(2 * jnp.pi * (t - 0.25)))
    mech.add_event("tick", tick, mbs.Bounce("x", 1e-13), repeat=True)
    run = mbs.simulate(mech.build(), [0.0], [1.0], 3.0, 0.05)
    assert run.status == OK and np.allclose(run.events.time[:3], [0.25, 1.25, 2.25], atol=1e-9)


# --- grazing -----------------------------------------------------------------------------------------------------------


def grazing(n, seed=0):
    """(launch speeds, heights of the stop) of n throws whose apex, at or about a point of the grid, is at, below or
    above it: by nothing, or by 1e-17 to 1e-4 m."""
    rng = np.random.default_rng(seed)
    over = np.where(rng.random(n) < 0.1, 0.0, 10.0 ** rng.uniform(-17, -4, n)) * rng.choice([1, -1], n)
    off = np.where(rng.random(n) < 0.5, 0.0, 10.0 ** rng.uniform(-12, -3.5, n)) * rng.choice([1, -1], n)
    apex = 0.1 + off
    return jnp.asarray(G * apex), jnp.asarray(G * apex**2 / 2 - over), over


@pytest.mark.parametrize("kind", ["lock", "bounce", "bounce again"])
def test_apexes_about_the_value_are_events_or_none(kind):
    then = mbs.Lock("z") if kind == "lock" else mbs.Bounce("z", 0.9)
    model = ball("up", 1.0, then, repeat=kind.endswith("again")).build()

    def thrown(v, height):
        run = mbs.simulate(mbs.set(model, {"stop.value": height}), [0.0], v[None], 0.15, 1e-3)
        return run.status, run.q.max() - height, run.events.index[0] >= 0, run.events.time[0]

    speed, height, over = grazing(400)
    status, beyond, happened, time = map(np.asarray, jax.jit(jax.vmap(thrown))(speed, height))
    assert np.all(status == OK)
    assert np.all(happened[over > 1e-12]) and not np.any(happened[over < -1e-14])
    assert np.all(beyond < 1e-12)
    speed, height = (np.asarray(x)[happened] for x in (speed, height))
    z = speed * time[happened] - G * time[happened] ** 2 / 2
    assert np.allclose(z, height, atol=1e-11)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "implicit", "symplectic"])
def test_an_apex_within_one_step_is_an_event(method):
    """However far from the points of the grid: above by 1e-9 m to the most that fits between two of them, 1.2e-4 m."""
    model = ball("up", 0.5, mbs.Lock("z"), repeat=False).build()
    over = np.array([1e-9, 1e-6, 1e-5, 1.2e-4, -1e-9, -1e-4])
    rise = np.sqrt(2 * G * (0.5 + over))
    run = jax.vmap(lambda v: mbs.simulate(model, [0.0], v[None], 0.6, 1e-2, method=method))(rise)
    assert run.status.tolist() == [OK] * 6 and run.events.index[:, 0].tolist() == [0] * 4 + [-1] * 2
    assert np.allclose(run.events.time[:4, 0], (rise - np.sqrt(2 * G * np.abs(over)))[:4] / G, atol=1e-10)
    assert np.allclose(run.q[:4, -1, 0], 0.5, atol=1e-13)


@pytest.mark.slow
def test_looking_for_peaks_is_bounded_and_said():
    """A guard that nearly rises in every other step: each is looked at while there is room, and then the run ends."""
    mech, dt = ball("up", then=mbs.Finish(), gravity=0.0, repeat=False), 0.02
    wave = lambda t: 1 - jnp.cos(jnp.pi * (t / dt - 0.5))  # noqa: E731
    ripple = mbs.When(lambda model, t, q, v: -0.1 - jnp.where(v[0] > 1, 0.1, 1.0) * wave(t) ** 2)
    mech.add_event("ripple", ripple, mbs.Finish())
    model = mech.build()
    run = jax.vmap(lambda v: mbs.simulate(model, [-9.0], v[None], 1.0, dt, save_every=None))(jnp.array([0.0, 5.0]))
    assert run.status.tolist() == [UNFINISHED, OK] and np.all(run.events.index == -1)


def test_a_stop_without_a_rebound_that_is_passed_ends_the_run():
    """A bounce happens once if it does not repeat; what then falls through its stop is not completed."""
    model = ball(then=mbs.Bounce("z", 0.0), repeat=False).build()
    run = mbs.simulate(model, [1.0], [0.0], 3.0, 1e-2)
    assert run.status == UNFINISHED and run.q.min() > -1e-3 and run.events.index.tolist() == [0]
    weightless = mbs.set(model, {"gravity": (0.0, 0.0, 0.0)})
    run = mbs.simulate(weightless, [1.0], [-1.0], 3.0, 1e-2)
    assert run.status == OK and np.allclose(run.q[-1], 0.0, atol=1e-12)


@pytest.mark.slow
def test_a_pendulum_that_just_reaches_its_stop_in_both_precisions():
    """No parabola: the apex is the amplitude, and the stop is there, a little below, a little above."""
    mech = mbs.Mechanism("pendulum", gravity=(0, 0, -G))
    mech.add_body("bob", mass=1.0, com=(0, 0, -1.0))
    mech.add_joint("pivot", mbs.Revolute((0, 1, 0)), "world", "bob")
    mech.add_event("stop", mbs.JointReaches("pivot", 1.0, "up"), mbs.Finish())
    model = mech.build()
    over = np.array([-1e-3, -1e-9, 0.0, 1e-15, 1e-12, 1e-9, 1e-7, 1e-6, 1e-5, 1e-3])
    for dtype in (jnp.float64, jnp.float32):
        rate = jnp.asarray(np.sqrt(2 * G * (1 - np.cos(1.0 + over))), dtype)
        run = jax.vmap(lambda v: mbs.simulate(model, jnp.zeros(1, v.dtype), v[None], 1.0, 1e-2, save_every=None))(rate)
        assert run.status.tolist() == [OK] * len(over)
        assert run.events.index[:, 0].tolist()[::9] == [-1, 0]


@pytest.mark.slow
def test_a_guard_that_lies_flat_on_zero_is_as_good_as_zero_there():
    """Of fourth order, from below: Newton's method takes a quarter of its error off, a parabola a third."""
    mech = mbs.Mechanism("flat")
    mech.add_body("ball", mass=1.0)
    mech.add_joint("z", mbs.Prismatic((0, 0, 1)), "world", "ball")
    mech.add_event("flat", mbs.When(lambda model, t, q, v: q[0] - (t - 0.5) ** 4), mbs.Lock("z"))
    model, start = mech.build(), np.append(0.0, 10.0 ** np.arange(-18.0, -5))
    run = jax.vmap(lambda x: mbs.simulate(model, x[None], [0.0], 1.0, 0.1))(jnp.asarray(start))
    assert np.all(run.status == OK) and np.all(run.events.index[:, 0] == 0)
    assert np.all(np.abs(start - (run.events.time[:, 0] - 0.5) ** 4) < 1e-9)


def test_a_late_search_takes_what_is_zero_to_rounding():
    """A microsecond of a guard that bends by 1 m/s² is as near as that; sooner only the instant tells."""
    search = Search.none(jnp.zeros(()))
    early, late, last = (search._replace(tries=jnp.int32(n)).enough() for n in (5, 6, 7))
    assert early < 0 < 0.5e-12 < late < 4e-12 < last < 1e-9


@pytest.mark.slow
def test_a_grazing_event_has_finite_derivatives_and_others_exact_ones():
    model = ball("up", 1.0, mbs.Finish(), repeat=False).build()
    when = lambda v: mbs.simulate(model, [0.0], v[None], 1.0, 1e-2, save_every=None).events.time[0]  # noqa: E731
    clear, touching = np.sqrt(2 * G * 1.01), np.sqrt(2 * G)
    root = np.sqrt(clear**2 - 2 * G)
    assert jax.grad(when)(clear) == pytest.approx((1 - clear / root) / G, rel=1e-10)
    assert np.isfinite(jax.grad(when)(touching)) and np.isfinite(jax.jacfwd(when)(touching))


@element
class Unequal(Force):
    """Pushes one body with cos 2t and another one with ten times as much."""

    one: str = field(Kind.BODY, "", "body that is pushed with the single force")
    other: str = field(Kind.BODY, "", "body that is pushed with the tenfold force")

    def apply(self, p, scene, loads):
        for body, size in ((self.other, 10.0), (self.one, 1.0)):
            loads.force(body, Vector3(size * jnp.cos(2.0 * scene.t), 0, 0), ZERO3)

    def power(self, p, scene):
        return jnp.cos(2.0 * scene.t) * (scene.velocity(self.one, ZERO3).x + 10 * scene.velocity(self.other, ZERO3).x)


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("b", "a")])
def test_of_unequal_forces_that_on_the_body_named_first_counts(one, other):
    """Whatever the bodies are called, and in whichever order the element loads them."""
    mech = mbs.Mechanism("two")
    for name in "ab":
        mech.add_body(name, mass=2.0)
        mech.add_joint(f"x_{name}", mbs.Prismatic((1, 0, 0)), "world", name)
    mech.add_force("push", Unequal(one, other))
    mech.add_event("slack", mbs.ForceBelow("push", 0.5), mbs.Finish())
    run = mbs.simulate(mech.build(), [0.0, 0.0], [0.0, 0.0], 1.0, 0.01, save_every=None)
    assert run.events.time[0] == pytest.approx(np.arccos(0.5) / 2.0, abs=1e-9)


def test_a_spring_between_two_bodies_counts_once():
    """Both ends carry its force; ForceBelow compares the force, not what both bodies feel together."""
    mech = mbs.Mechanism("two")
    for name in "ab":
        mech.add_body(name, mass=2.0)
        mech.add_joint(f"x_{name}", mbs.Prismatic((1, 0, 0)), "world", name)
    mech.add_force("coil", mbs.LinearSpring("a", "b", stiffness=4.0, rest_length=0.5))
    mech.add_event("slack", mbs.ForceBelow("coil", 2.0), mbs.Finish())
    run = mbs.simulate(mech.build(), [0.0, 1.5], [0.0, 0.0], 1.0, 0.01, save_every=None)
    assert run.events.time[0] == pytest.approx(np.arccos(0.5) / 2.0, abs=1e-9)  # 4 N cos 2t falls to 2 N
