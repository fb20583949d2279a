"""Events in a motion against closed forms: bounces, latches, releases, switches; their derivatives, batches, limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs

REST = np.zeros(1)


def ball(**event):
    m = mbs.Mechanism("ball", gravity=(0, 0, -9.81))
    m.add_body("ball", mass=1.5)
    m.add_joint("z", mbs.Prismatic(axis=(0, 0, 1)), parent="world", child="ball")
    m.add_event("floor", mbs.JointReaches("z", 0.0, direction="down"), mbs.Bounce("z", 0.8), repeat=True, **event)
    return m.build()


def bounces(height, gravity, restitution, t):
    """(z, v, times) of a ball that falls from rest."""
    at, v, times = np.sqrt(2 * height / gravity), 0.0, []
    v = restitution * gravity * at
    while at < t:
        times.append(at)
        if at + 2 * v / gravity >= t:
            return v * (t - at) - gravity * (t - at) ** 2 / 2, v - gravity * (t - at), times
        at, v = at + 2 * v / gravity, v * restitution
    return height - gravity * t**2 / 2, -gravity * t, times


def carts(*events, held=()):
    """Two carts on a line: the second one slides on the first."""
    m = mbs.Mechanism("carts", held=held)
    m.add_body("a", mass=2.0)
    m.add_body("b", mass=3.0)
    m.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), parent="world", child="a")
    m.add_joint("slide", mbs.Prismatic(axis=(1, 0, 0)), parent="a", child="b")
    for event in events:
        m.add_event(**event)
    return m.build()


def test_a_bouncing_ball_follows_its_closed_form_with_exact_derivatives():
    model = ball()

    def end(p):
        changed = mbs.set(model, {"gravity": jnp.array([0, 0, -1.0]) * p[0], "floor.restitution": p[1]})
        run = mbs.simulate(changed, p[2:], REST, t_end=2.0, dt=0.02, save_every=None)
        return jnp.concatenate([run.q[-1], run.v[-1]]), run

    p = jnp.array([9.81, 0.8, 0.9])
    forward, run = jax.jit(jax.jacfwd(end, has_aux=True))(p)
    backward, _ = jax.jit(jax.jacrev(end, has_aux=True))(p)
    z, v, times = bounces(0.9, 9.81, 0.8, 2.0)
    assert np.allclose([run.q[-1, 0], run.v[-1, 0]], [z, v], atol=1e-12)
    assert np.allclose(run.events.time[: len(times)], times, atol=1e-12) and len(times) == 3
    assert run.events.index.tolist()[:4] == [0, 0, 0, -1]
    assert np.allclose(run.events.energy_lost[0], 0.36 * 1.5 * 9.81 * 0.9, rtol=1e-12)
    assert run.status == mbs.Status.OK and abs(run.energy_error[-1]) < 1e-12

    def closed(change):
        gravity, restitution, height = np.asarray(p) + change
        return np.array(bounces(height, gravity, restitution, 2.0)[:2])

    differences = np.stack([(closed(s) - closed(-s)) / 2e-5 for s in np.eye(3) * 1e-5], axis=1)
    assert np.allclose(forward, backward, atol=1e-11)
    assert np.allclose(forward, differences, rtol=1e-7, atol=1e-7)


def test_rows_stay_on_the_grid_whatever_happens_between_them():
    run = mbs.simulate(ball(), [0.9], REST, t_end=1.0, dt=0.02, save_every=3)
    assert np.allclose(run.t, np.append(np.arange(0, 1.0, 0.06), 1.0))
    expected = [bounces(0.9, 9.81, 0.8, t)[0] for t in np.asarray(run.t)]
    assert np.allclose(run.q[:, 0], expected, atol=1e-12)


def test_a_latch_is_an_inelastic_impact_that_keeps_the_momentum():
    model = carts({"name": "latch", "when": mbs.JointReaches("slide", 0.5, direction="up"), "then": mbs.Lock("slide")})
    run = mbs.simulate(model, [0.0, 0.0], [0.3, 1.0], t_end=1.0, dt=0.3)
    momentum = 2 * 0.3 + 3 * 1.3
    assert np.allclose(run.events.time, [0.5], atol=1e-12)
    assert np.allclose(run.v[-1], [momentum / 5, 0.0], atol=1e-13)
    assert np.allclose(run.q[-1], [0.3 * 0.5 + momentum / 5 * 0.5, 0.5], atol=1e-12)
    assert np.allclose(run.events.energy_lost, [0.5 * (2 * 3 / 5) * 1.0**2], rtol=1e-12)
    assert bool(run.mode.lock[1]) and not bool(run.mode.lock[0])
    assert abs(run.energy_error[-1]) < 1e-12
    (_, after), (_, before) = (run.at(model, run.events.time, before=early) for early in (False, True))
    assert np.allclose(after - before, [[momentum / 5 - 0.3, -1.0]], atol=1e-12)


def test_held_joints_wait_for_their_release_and_events_for_one_another():
    model = carts(
        {"name": "go", "when": mbs.Time(0.25), "then": mbs.Release("slide")},
        {"name": "stop", "when": mbs.Time(0.1), "then": mbs.Finish(), "after": "far"},
        {"name": "far", "when": mbs.Distance("a", "b", value=0.2)},
        held="slide",
    )
    swing = mbs.simulate(
        model, [0.0, 0.0], [0.0, 0.0], t_end=2.0, dt=0.1, tau=lambda model, t, q, v: jnp.stack([0.0 * t, 6.0 + 0.0 * t])
    )
    # relative acceleration 6 (1/2 + 1/3) after the release
    far = 0.25 + np.sqrt(2 * 0.2 / 5.0)
    assert np.allclose(swing.events.time, [0.25, far, far], atol=1e-10)
    assert [model.event_names[k] for k in swing.events.index] == ["go", "far", "stop"]
    assert np.allclose(swing.q[-1, 1], 0.2, atol=1e-10)  # it stands still from there
    assert np.allclose(swing.q[2], 0.0) and swing.status == mbs.Status.OK


def ramp(model, t, q, v):
    return jnp.stack([10 * t, 0 * t])


def test_a_reaction_above_its_limit_releases_a_lock():
    model = carts({"name": "bolt", "when": mbs.ReactionExceeds("slide", force=3.0), "then": mbs.Release("slide")})
    rest = [0.0, 0.0]
    ramp = lambda model, t, q, v: jnp.stack([10 * t, 0 * t])  # noqa: E731
    run = mbs.simulate(model, rest, rest, t_end=2.0, dt=0.1, tau=ramp, held=["slide"])
    with pytest.raises(mbs.ModelError, match="slide"):
        mbs.simulate(model, rest, rest, t_end=2.0, held=["slid"])
    with pytest.raises(mbs.ModelError, match="impact"):
        mbs.simulate(model, rest, [0.0, 1.0], t_end=2.0, held="slide")
    # the lock carries 3/5 of the drive 10 t until it gives way
    assert np.allclose(run.events.time, [0.5], atol=1e-9)
    assert np.allclose(run.v[-1].sum(), 0.5 * 10 * 0.5**2 / 5, atol=1e-9)


def test_elements_switch_with_the_energy_that_they_bring_and_take():
    m = mbs.Mechanism("spring")
    m.add_body("b", mass=2.0)
    m.add_joint("x", mbs.Prismatic(axis=(1, 0, 0)), parent="world", child="b")
    m.add_force("spring", mbs.LinearSpring("b", "world", stiffness=8.0, rest_length=0.0))
    m.add_event("off", mbs.ForceBelow("spring", value=4.0), mbs.Disable("spring"))
    run = mbs.simulate(m.build(), [1.0], REST, t_end=1.0, dt=0.05)
    at = np.arccos(0.5) / 2  # x = cos 2t falls to 1/2
    assert np.allclose(run.events.time, [at], atol=1e-7)
    assert np.allclose(run.events.energy_lost, [0.5 * 8 * 0.25], rtol=1e-6)
    assert np.allclose(run.v[-1], -2 * np.sin(2 * at), atol=1e-6)
    assert abs(run.energy_error[-1]) < 1e-6


def test_instances_of_a_batch_have_their_own_events_and_do_not_disturb_one_another():
    model = ball()
    heights = jnp.linspace(0.1, 2.0, 7)
    batch, axes = mbs.vary(model, {"floor.restitution": jnp.array([0.9, 0.8, 0.1, 0.8, 0.75, 0.7, 0.75])})

    def end(m, h):
        run = mbs.simulate(m, h[None], REST, t_end=2.0, dt=0.02, save_every=None)
        return run.q[-1], run.events.time, run.status

    q, times, status = jax.jit(jax.vmap(end, (axes, 0)))(batch, heights)
    by_rows = mbs.jit(end, in_axes=(axes, 0))(batch, heights)
    for k, (h, e) in enumerate(zip(heights, batch.overrides["floor.restitution"], strict=True)):
        if k == 2:  # infinitely many bounces
            assert status[k] == mbs.Status.UNFINISHED
            continue
        z, _, at = bounces(float(h), 9.81, float(e), 2.0)
        assert status[k] == mbs.Status.OK and np.allclose(q[k, 0], z, atol=1e-11)
        assert np.allclose(times[k, : len(at)], at, atol=1e-11)
    assert np.array_equal(by_rows[2], status) and np.allclose(by_rows[0], q, atol=1e-12)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"when": mbs.JointReaches("slid", 1.0), "then": ()}, "slide"),
        ({"when": mbs.Time(1.0), "then": mbs.Enable("spring")}, "no force element or constraint"),
        ({"when": mbs.Time(1.0), "then": mbs.Finish(), "after": "never"}, "never"),
        ({"when": mbs.Time(1.0), "then": mbs.Finish(), "after": "e"}, "no event named 'e'"),
        ({"when": 1.0, "then": mbs.Finish()}, "not a condition"),
        ({"when": mbs.Time(1.0), "then": mbs.Lock}, "not an action"),
    ],
)
def test_wrong_events_are_refused_by_name(event, said):
    with pytest.raises(mbs.ModelError, match=said):
        carts({"name": "e", **event})


def test_events_in_a_file_are_those_in_python(tmp_path):
    path = tmp_path / "carts.toml"
    path.write_text(
        """
[mechanism]
name = "carts"
held = ["slide"]
bodies = [{name = "a", mass = 2.0}, {name = "b", mass = 3.0}]
joints = [
  {name = "rail", type = "prismatic", axis = [1, 0, 0], parent = "world", child = "a"},
  {name = "slide", type = "prismatic", axis = [1, 0, 0], parent = "a", child = "b"},
]

[[mechanism.events]]
name = "go"
when = {type = "time", t = 0.25}
then = [{type = "release", joint = "slide"}]

[[mechanism.events]]
name = "end"
after = "go"
when = {type = "joint_reaches", joint = "slide", value = 0.5, direction = "up"}
then = [{type = "lock", joint = "slide"}, {type = "finish"}]
""",
        encoding="utf-8",
    )
    same = carts(
        {"name": "go", "when": mbs.Time(0.25), "then": mbs.Release("slide")},
        {
            "name": "end",
            "when": mbs.JointReaches("slide", 0.5, "up"),
            "then": [mbs.Lock("slide"), mbs.Finish()],
            "after": "go",
        },
        held=["slide"],
    )
    assert mbs.load(path) == same
    path.write_text(path.read_text(encoding="utf-8").replace('"release"', '"relese"'), encoding="utf-8")
    with pytest.raises(mbs.ModelError, match="release"):
        mbs.load(path)


def test_derivatives_where_an_event_falls_on_the_grid():
    """A push of 1 N on 1 kg ends at T: v = T. A cart that bounces at w: x = w - e v0 (t - w / v0)."""
    mech = mbs.Mechanism("cart", gravity=(0, 0, 0))
    mech.add_body("cart", 1.0, inertia=(1, 1, 1))
    mech.add_joint("rail", mbs.Prismatic((1, 0, 0)), "world", "cart")
    mech.add_force("push", mbs.Thruster("cart", direction=(1, 0, 0), thrust=1.0))
    mech.add_event("off", mbs.Time(0.1), mbs.Disable("push"))
    mech.add_event("stop", mbs.JointReaches("rail", 1.0, direction="up"), mbs.Bounce("rail", 0.5))
    model = mech.build()

    def run(T, w, v0):
        moving = mbs.set(model, {"off.t": T, "stop.value": w})
        s = mbs.simulate(moving, jnp.zeros(1), v0 * jnp.ones(1), 0.3, 2.5e-3, save_every=None)
        return s.q[-1, 0], s.v[-1, 0]

    slopes = jax.jit(jax.vmap(jax.jacrev(run, (0, 1, 2)), (0, 0, None)))
    T, w = jnp.array([0.1, 0.05, 0.0, 0.0]), jnp.array([9.0, 9.0, 0.1, 0.2])
    of_x, of_v = (np.stack(x) for x in slopes(T, w, 1.0))
    np.testing.assert_allclose(of_v[0, :2], 1.0, rtol=1e-12)
    np.testing.assert_allclose(of_x[0, :2], 0.3 - T[:2], rtol=1e-12)
    np.testing.assert_allclose(of_x[1, 2:], 1.5, rtol=1e-10)
    np.testing.assert_allclose(of_x[2, 2:], -0.15, rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_repeated_switch_is_logged_once_at_each_passage(dtype):
    """cos 2t passes 0.1 in both senses; the guard is not exactly zero where it has been located."""
    mech = mbs.Mechanism("oscillator", gravity=(0, 0, 0))
    mech.add_body("block", 1.0)
    mech.add_joint("x", mbs.Prismatic(axis=(1, 0, 0)), "world", "block")
    mech.add_force("spring", mbs.JointSpring("x", stiffness=4.0))
    mech.add_force("light", mbs.Thruster("block", thrust=0.0))
    mech.add_event("passes", when=mbs.JointReaches("x", 0.1, "either"), then=mbs.Enable("light"), repeat=True)
    start = np.array([1.0], dtype), np.array([0.0], dtype)
    run = mbs.simulate(mech.build(), *start, t_end=20.0, dt=0.05, save_every=None, max_events=24)
    first = np.arccos(0.1) / 2
    passages = np.sort(np.r_[first + np.pi * np.arange(7), np.pi - first + np.pi * np.arange(7)])
    passages = passages[passages < 20.0]
    happened = np.asarray(run.events.time)[np.asarray(run.events.index) >= 0]
    assert len(happened) == len(passages) and np.abs(happened - passages).max() < 1e-3
