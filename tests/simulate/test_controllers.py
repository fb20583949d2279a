"""Controllers that sample: commands held in between, states of their own, sensors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.elements import Kind, Sensor, element, field


def cart(controller, sensors=(), extra=()):
    """A mass of 2 kg on a rail, pushed by a thruster that the controller commands."""
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", mass=2.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    mech.add_force("push", mbs.Thruster("cart", direction=(1, 0, 0), thrust=0.0))
    mech.add_force("hold", mbs.JointSpring("rail", stiffness=0.0))
    for name, sensor in sensors:
        mech.add_sensor(name, sensor)
    mech.add_controller("law", controller)
    for name, one in extra:
        mech.add_controller(name, one)
    return mech.build()


def law(model, t, q, v, state, readings):
    return None, -3.0 * q[0] - 2.5 * v[0]


def held(x, v, period, samples, mass=2.0, command=lambda x, v: -3.0 * x - 2.5 * v):
    """The motion at the samples, exactly: a double integrator with a held input."""
    out = [(x, v)]
    for _ in range(samples):
        a = command(x, v) / mass
        x, v = x + v * period + 0.5 * a * period**2, v + a * period
        out.append((x, v))
    return np.array(out)


@pytest.mark.parametrize("options", [{"dt": 0.1}, {"dt": 0.03}, {"method": "dop853", "tolerance": 1e-10, "dt": 1.0}])
def test_a_double_integrator_with_a_held_input_is_exact(options):
    """Samples at the ends of steps, within steps, and with steps of any length."""
    model = cart(mbs.Controller(law, 0.1, writes="push.thrust"))
    run = mbs.simulate(model, [1.0], [0.0], t_end=3.0, **options)
    want = held(1.0, 0.0, 0.1, 30)
    np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0]], want[-1], rtol=1e-12, atol=1e-14)
    assert int(run.status) == 0 and abs(run.energy_error[-1]) < 1e-12


@pytest.mark.parametrize("offset", [0.0, 0.013])
def test_samples_do_not_shorten_adaptive_steps(offset):
    """A sample divides the step in which it lies; the steps after it are as long as they were."""
    counts = mbs.Controller(lambda model, t, q, v, state, readings: (state + 1, ()), 0.2, offset=offset, state=[0.0])
    runs = []
    for controllers in ({}, {"log": counts}):
        mech = mbs.library.double_pendulum()
        for name, controller in controllers.items():
            mech.add_controller(name, controller)
        given = {"t_end": 3.0, "dt": None, "method": "dopri5", "tolerance": 1e-8, "save_every": None}
        runs.append(mbs.simulate(mech.build(), [1.5, 0.5], [0.0, 0.0], **given))
    without, sampled = (int(run.steps.taken + run.steps.refused) for run in runs)
    assert runs[1].states["log.state"].ravel()[-1] == 15
    assert without > 150 and sampled <= without + 15 + 2
    np.testing.assert_allclose(runs[1].q[-1], runs[0].q[-1], atol=1e-5)


def test_commands_are_in_the_history():
    model = cart(mbs.Controller(law, 0.1, writes="push.thrust"))
    run = mbs.simulate(model, [1.0], [0.0], t_end=1.0, dt=0.05)
    want = held(1.0, 0.0, 0.1, 10)
    wanted = -3 * want[:-1, 0] - 2.5 * want[:-1, 1]
    np.testing.assert_allclose(run.states["push.thrust"][:-1:2], wanted, rtol=1e-12)
    assert (
        run.states["push.thrust"][-1] == run.states["push.thrust"][-2]
    )  # the sample at the end is that of another run
    np.testing.assert_array_equal(run.states["push.thrust"][1::2], run.states["push.thrust"][:-1:2])


def test_an_offset_and_a_state():
    """A sum of the positions at the samples, from the offset on; before it, the command is that of the model."""

    def summing(model, t, q, v, state, readings):
        total = {"sum": state["sum"] + q[0]}
        return total, {"push.thrust": total["sum"]}

    controller = mbs.Controller(summing, 0.2, offset=0.15, state={"sum": 10.0}, writes="push.thrust")
    model = mbs.set(cart(controller), {"push.thrust": 1.0})
    run = mbs.simulate(model, [0.0], [1.0], t_end=0.5, dt=0.05)
    first = 0.15 + 0.25 * 0.15**2
    sums, commands = (np.asarray(run.states[name]) for name in ("law.state", "push.thrust"))
    np.testing.assert_allclose(sums[[2, 3, 6], 0], [10.0, 10.0 + first, 10.0 + first], rtol=1e-12)
    np.testing.assert_allclose(commands[[2, 3]], [1.0, 10.0 + first], rtol=1e-12)
    assert sums[7, 0] > 10.0 + first


def test_sensors():
    mech = mbs.Mechanism("pendulum", gravity=(0.0, 0.0, -9.81))
    mech.add_body("link", mass=2.0, com=(0.0, 0.0, -0.5), inertia=(0.2, 0.2, 0.01))
    mech.add_joint("hinge", mbs.Revolute(axis=(0, 1, 0)), "world", "link")
    mech.add_force("drive", mbs.TorsionSpring("hinge", stiffness=0.0))
    mech.add_sensor("imu", mbs.Imu("link", point=(0.0, 0.0, -1.0), bias=(0.0, 0.1, 0.0)))
    mech.add_sensor("encoder", mbs.Encoder("hinge", resolution=0.25))
    mech.add_sensor("end", mbs.Switch("hinge", threshold=0.3))

    def keep(model, t, q, v, state, readings):
        return jnp.concatenate([readings[name] for name in ("imu", "encoder", "end")]), ()

    mech.add_controller("log", mbs.Controller(keep, 0.1, state=np.zeros(9), reads=("imu", "encoder", "end")))
    model = mech.build()
    run = mbs.simulate(model, [0.4], [0.7], t_end=0.2, dt=0.01)
    for k in (0, 10):
        q, v = float(run.q[k, 0]), float(run.v[k, 0])
        a = float(mbs.forward_dynamics(model, run.q[k], run.v[k])[0])
        # tip of a pendulum of length 1: tangential a, centripetal v^2, and gravity, in body axes
        force = [-a - 9.81 * np.sin(q), 0.0, v * v + 9.81 * np.cos(q)]
        want = [0.0, v + 0.1, 0.0, *force, 0.25 * np.round(q / 0.25), v, float(q > 0.3)]
        np.testing.assert_allclose(run.states["log.state"][k], want, rtol=1e-9, atol=1e-12)


def test_gradients_through_samples():
    """With respect to a gain in the model, through steps that samples divide."""

    def gain(model, t, q, v, state, readings):
        return state, -mbs.get(model, "law.state")[0] * q[0] - 2.5 * v[0]

    model = cart(mbs.Controller(gain, 0.07, state=jnp.array([3.0]), writes="push.thrust"))

    def miss(k):
        run = mbs.simulate(mbs.set(model, {"law.state": k[None]}), jnp.ones(1), jnp.zeros(1), t_end=1.0, dt=0.05)
        return run.q[-1, 0] ** 2

    k = jnp.asarray(3.0)
    want = (miss(k + 1e-5) - miss(k - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.grad(miss)(k), want, rtol=1e-7)
    np.testing.assert_allclose(jax.jvp(miss, (k,), (1.0,))[1], want, rtol=1e-7)


def test_two_controllers_see_the_motion_before_either_acts():
    def other(model, t, q, v, state, readings):
        return mbs.get(model, "push.thrust")[None], ()

    model = cart(
        mbs.Controller(law, 0.1, writes="push.thrust"), extra=[("log", mbs.Controller(other, 0.1, state=[0.0]))]
    )
    run = mbs.simulate(model, [1.0], [0.0], t_end=0.3, dt=0.1)
    np.testing.assert_array_equal(run.states["log.state"][1:-1, 0], run.states["push.thrust"][:-2])


@pytest.mark.parametrize("end", [0.4, 0.43, 0.47])
def test_a_run_that_goes_on_is_the_whole_run(end):
    """From an instant of a sample, from between a sample and its commands, and from after them."""

    def summing(model, t, q, v, state, readings):
        total = state + q
        return total, -total[0] - v[0]

    model = cart(mbs.Controller(summing, 0.1, delay=0.05, state=np.zeros(1), writes="push.thrust"))
    whole = mbs.simulate(model, [1.0], [0.0], t_end=1.0, dt=0.01)
    first = mbs.simulate(model, [1.0], [0.0], t_end=end, dt=0.01)
    there = mbs.set(model, {name: x[-1] for name, x in first.states.items()})
    rest = mbs.simulate(there, first.q[-1], first.v[-1], t0=end, t_end=1.0, dt=0.01)
    np.testing.assert_allclose(rest.q[-1], whole.q[-1], rtol=1e-12)
    np.testing.assert_allclose(rest.states["law.state"][-1], whole.states["law.state"][-1], rtol=1e-12)


@pytest.mark.parametrize("options", [{"dt": 0.05}, {"dt": 0.03}, {"method": "dop853", "tolerance": 1e-10, "dt": 1.0}])
def test_commands_with_a_delay(options):
    model = cart(mbs.Controller(law, 0.1, delay=0.04, writes="push.thrust"))
    x, v, u = 1.0, 0.0, 0.0
    for _ in range(10):
        new = -3 * x - 2.5 * v
        for a, h in ((u / 2, 0.04), (new / 2, 0.06)):
            x, v = x + v * h + a * h * h / 2, v + a * h
        u = new
    run = mbs.simulate(model, [1.0], [0.0], t_end=1.0, **options)
    np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0]], [x, v], rtol=1e-12)


def noisy(noise=0.1, dt=0.05, key=0, t_end=50.0, **options):
    """An IMU at rest, whose readings and their squares a controller adds."""

    def adds(model, t, q, v, state, readings):
        return state + jnp.stack([readings["imu"], readings["imu"] ** 2]), ()

    sensor = mbs.Imu("cart", noise=(0.1, 0.0, 0.2), bias=(0.3, 0.0, 0.0))
    model = cart(mbs.Controller(adds, 0.05, state=np.zeros((2, 6)), reads="imu"), sensors=[("imu", sensor)])
    model = mbs.set(model, {"imu.noise": noise * jnp.array([1.0, 0.0, 2.0])})
    run = mbs.simulate(model, [0.0], [0.0], t_end=t_end, dt=dt, save_every=None, key=jax.random.key(key), **options)
    return run.states["law.state"][-1].reshape(2, 6)


def test_the_noise_of_a_sensor():
    """Its mean and variance over 1000 samples, within four standard errors; none where there is none."""
    n = 1000
    mean, square = np.asarray(noisy()) / n
    assert abs(mean[0] - 0.3) < 4 * 0.1 / n**0.5 and abs(mean[2]) < 4 * 0.2 / n**0.5
    np.testing.assert_allclose((square - mean**2)[[0, 2]], [0.01, 0.04], rtol=4 * (2 / n) ** 0.5)
    np.testing.assert_array_equal(mean[[1, 3, 4, 5]], 0.0)


def test_noise_is_a_function_of_the_key():
    """And of nothing else: neither of the steps nor of how many instants there is room for."""
    a, b = noisy(t_end=1.0), noisy(t_end=1.0, dt=0.01)
    np.testing.assert_allclose(a, b, rtol=1e-12)
    assert np.all(np.asarray(noisy(t_end=1.0, key=1) != a)[:, [0, 2]])
    inside = jax.jit(lambda: noisy(t_end=1.0))()
    np.testing.assert_allclose(a, inside, rtol=1e-12)
    slope = jax.jacfwd(lambda s: noisy(s, t_end=1.0))(0.1)[0, 0]
    np.testing.assert_allclose(slope, (a[0, 0] - 20 * 0.3) / 0.1, rtol=1e-9)


def test_noise_of_a_run_that_goes_on():
    """With two clocks, which meet at some instants only."""
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", mass=2.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("rail", mbs.Prismatic((1, 0, 0)), "world", "cart")
    mech.add_sensor("fast", mbs.Imu("cart", noise=(0.1, 0.0, 0.0)))
    mech.add_sensor("slow", mbs.Imu("cart", noise=(0.0, 0.2, 0.0), period=0.15))

    def keep(model, t, q, v, state, readings):
        return state + jnp.stack([readings["fast"][0], t * readings["slow"][1]]), ()

    mech.add_controller("log", mbs.Controller(keep, 0.1, state=np.zeros(2), reads=("fast", "slow")))
    model, key = mech.build(), jax.random.key(5)
    whole = mbs.simulate(model, [0.0], [0.0], t_end=1.2, dt=0.05, key=key)
    first = mbs.simulate(model, [0.0], [0.0], t_end=0.6, dt=0.05, key=key)
    there = mbs.set(model, {name: x[-1] for name, x in first.states.items()})
    rest = mbs.simulate(there, first.q[-1], first.v[-1], t0=0.6, t_end=1.2, dt=0.05, key=key)
    np.testing.assert_allclose(rest.states["log.state"], whole.states["log.state"][12:], rtol=1e-12)
    steps = np.diff(np.asarray(whole.states["log.state"])[:, 0])
    assert len(np.unique(steps[steps != 0].round(12))) == 11  # after the first; no two samples have the same noise


def test_a_controller_that_takes_a_key():
    def throws(model, t, q, v, state, readings, key):
        return state, jax.random.normal(key)

    model = cart(mbs.Controller(throws, 0.1, writes="push.thrust"))
    with pytest.raises(mbs.ModelError, match="controller 'law' takes a key; pass key"):
        mbs.simulate(model, [0.0], [0.0], t_end=1.0, dt=0.1)
    run = mbs.simulate(model, [0.0], [0.0], t_end=1.0, dt=0.1, key=jax.random.key(3))
    assert len(set(np.asarray(run.states["push.thrust"]).tolist())) == 10


@pytest.mark.parametrize(
    ("controller", "said"),
    [
        (mbs.Controller(law, 0.1, writes="push.force"), "push.force"),
        (mbs.Controller(law, 0.1, writes="cart.mass"), "parameter of a force element"),
        (
            mbs.Controller(law, 0.1, writes="push.direction"),
            "a controller cannot set; write a parameter, such as 'push.thr",
        ),
        (mbs.Controller(law, 0.1, writes="push"), "'push' is an element, which has several numbers; .* 'push.thrust'"),
        (mbs.Controller(law, 0.1, writes="law.delay"), "'law.delay' belongs to the controller itself"),
        (
            mbs.Controller(law, 0.1, writes="law.state", state=[0.0]),
            r"itself, whose state is what fn returns, \(state, com",
        ),
        (mbs.Controller(law, 0.1, reads="imu"), "imu"),
    ],
)
def test_what_cannot_be_written_or_read(controller, said):
    with pytest.raises(mbs.ModelError, match=said):
        cart(controller)


def test_a_state_of_an_element_cannot_be_written():
    mech = mbs.library.double_pendulum()
    mech.add_force("motor", mbs.Motor("lower", thrust=1.0, propellant=0.1))
    mech.add_controller("law", mbs.Controller(law, 0.1, writes="motor.propellant"))
    with pytest.raises(
        mbs.ModelError, match=r"'law': writes: 'motor\.propellant' is a state, .* such as 'motor.thrust'"
    ):
        mech.build()


@pytest.mark.parametrize("name", ["rate", "frequency", "hz", "sample_rate"])
def test_a_period_is_meant(name):
    with pytest.raises(mbs.ModelError, match=f"Controller: there is no {name}; .* period = 0.01"):
        mbs.Controller(law, writes="push.thrust", **{name: 100})  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(mbs.ModelError, match=f"Imu: there is no {name}; .* period = 0.01"):
        mbs.Imu("cart", **{name: 100})


def test_a_sensor_of_the_users_may_have_a_rate():
    @element
    class Wobble(Sensor):
        rate: float = field(Kind.NUMBER, "Hz", "of its wobble", default=1.0)

    assert Wobble(rate=3.0).rate == 3.0
    with pytest.raises(mbs.ModelError, match="there is no hz"):
        Wobble(hz=3.0)  # pyright: ignore[reportCallIssue]


def test_bad_controllers():
    with pytest.raises(mbs.ModelError, match="positive number of seconds"):
        mbs.Controller(law, 0.0)
    with pytest.raises(mbs.ModelError, match=r"delay must be below the period, 0\.1 s"):
        cart(mbs.Controller(law, 0.1, delay=0.2, writes="push.thrust"))
    with pytest.raises(mbs.ModelError, match="Controller: fn"):
        mbs.Controller(lambda t, x: x, 0.1)
    model = cart(mbs.Controller(lambda model, t, q, v, state, readings: q, 0.1, writes="push.thrust"))
    with pytest.raises(mbs.ModelError, match=r"return \(state, commands\)"):
        mbs.simulate(model, [1.0], [0.0], t_end=1.0, dt=0.1)
    model = cart(mbs.Controller(lambda model, t, q, v, state, readings: (None, q), 0.1, writes="push.thrust"))
    with pytest.raises(mbs.ModelError, match=r"command for .push\.thrust., returned an array \(1,\); return \(\)"):
        mbs.simulate(model, [1.0], [0.0], t_end=1.0, dt=0.1)


LAW = """
import jax.numpy as jnp


def integral(model, t, q, v, state, readings):
    total = state + 0.1 * readings["encoder"][:1]
    return total, -3.0 * readings["encoder"][0] - 2.0 * readings["encoder"][1] - total[0]
"""


def test_files(tmp_path):
    """A mechanism with sensors and a controller that is written in a file, read, run, and written again."""
    (tmp_path / "laws.py").write_text(LAW, encoding="utf-8")
    (tmp_path / "cart.toml").write_text(
        """
modules = ["laws.py"]
[mechanism]
gravity = [0.0, 0.0, 0.0]
bodies = [{ name = "cart", mass = 2.0 }]
joints = [{ name = "rail", type = "prismatic", axis = [1.0, 0.0, 0.0], parent = "world", child = "cart" }]
forces = [{ name = "push", type = "thruster", body = "cart", direction = [1.0, 0.0, 0.0] }]
sensors = [{ name = "encoder", type = "encoder", joint = "rail", resolution = 0.01 }]

[[mechanism.controllers]]
name = "law"
fn = "laws.integral"
period = 0.1
delay = 0.01
reads = ["encoder"]
writes = ["push.thrust"]
state = [0.5]
""",
        encoding="utf-8",
    )
    text = (tmp_path / "cart.toml").read_text(encoding="utf-8")
    for old, new, said in (
        ("period = 0.1", "rate = 100", r"controllers\[0\]\.rate: unknown key .*, period = 0.01"),
        ('writes = ["push.thrust"]', 'writes = "push"', r'controllers\[0\]\.writes\[0\]: .*"wheel.torque", got .push.'),
        ('writes = ["push.thrust"]', "writes = []", r"controllers\[0\]\.writes: needs a name or a list of names, got "),
        ('writes = ["push.thrust"]', 'writes = "law.state"', "'law': writes: 'law.state' belongs to the controller"),
        ("delay = 0.01", "delay = [0.01]", r"controllers\[0\]\.delay: needs one number, got \[0.01\]"),
        ("resolution = 0.01", "rate = 50.0", r"sensors\[0\]\.rate: unknown key .*, period = 0.02"),
    ):
        (tmp_path / "bad.toml").write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(mbs.ModelError, match=said):
            mbs.load(tmp_path / "bad.toml", trust=True)
    model = mbs.load(tmp_path / "cart.toml", trust=True)
    single = text.replace('["push.thrust"]', '"push.thrust"').replace('["encoder"]', '"encoder"')
    (tmp_path / "single.toml").write_text(single, encoding="utf-8")
    assert mbs.load(tmp_path / "single.toml", trust=True) == model
    assert mbs.get(model, "law.state").tolist() == [0.5] and mbs.get(model, "law.delay") == 0.01
    (tmp_path / "again").mkdir()
    mbs.save(model, tmp_path / "again" / "cart.toml", modules=[tmp_path / "laws.py"])
    again = mbs.load(tmp_path / "again" / "cart.toml", trust=True)
    assert again.structure == model.structure
    runs = [mbs.simulate(m, [1.0], [0.0], t_end=1.0, dt=0.1) for m in (model, again)]
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=1e-12)
    assert abs(runs[0].q[-1, 0] - 1) > 0.1


@pytest.mark.parametrize("name", ["law.delay", "law.offset"])
def test_derivatives_of_the_instants_through_a_bounce(name):
    """Samples, their commands and an event move in time."""
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", mass=2.0)
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    mech.add_force("push", mbs.Thruster("cart", direction=(1, 0, 0), thrust=0.0))
    mech.add_controller("law", mbs.Controller(law, 0.17, offset=0.013, delay=0.02, writes="push.thrust"))
    mech.add_event("wall", when=mbs.JointReaches("rail", -0.1), then=mbs.Bounce("rail", 0.8))
    model = mech.build()

    def end(x):
        there = mbs.set(model, {name: x})
        return mbs.simulate(there, jnp.array([0.5]), jnp.array([-1.0]), t_end=1.0, dt=0.05).q[-1, 0]

    x, h = jnp.asarray(mbs.get(model, name)), 1e-5
    got = jax.jvp(end, (x,), (jnp.ones(()),))[1]
    np.testing.assert_allclose(got, (end(x + h) - end(x - h)) / (2 * h), rtol=1e-7)
    assert abs(got) > 0.01


def test_a_delay_that_is_set():
    """To zero, it is none; on a controller that was built without one, it is refused, also where it is traced."""
    without = cart(mbs.Controller(law, 0.1, writes="push.thrust"))
    model = mbs.set(cart(mbs.Controller(law, 0.1, delay=0.05, writes="push.thrust")), {"law.delay": 0.0})
    for run in (mbs.simulate(m, [1.0], [0.0], t_end=1.0, dt=0.1) for m in (without, model)):
        want = held(1.0, 0.0, 0.1, 10)
        np.testing.assert_allclose(run.q[:, 0], want[:, 0], rtol=1e-12)
    for run in (lambda x: x, jax.jit):
        with pytest.raises(mbs.ModelError, match=r"'law\.delay' was set, but the controller was built without a delay"):
            run(lambda d: mbs.simulate(mbs.set(without, {"law.delay": d}), [1.0], [0.0], t_end=1.0, dt=0.1))(0.05)


def test_a_delay_of_a_period_has_a_status():
    model = cart(mbs.Controller(law, 0.1, delay=0.05, writes="push.thrust"))
    runs = jax.vmap(lambda d: mbs.simulate(mbs.set(model, {"law.delay": d}), [1.0], [0.0], t_end=1.0, dt=0.1))
    assert runs(jnp.array([0.0, 0.05, 0.1, 0.15])).status.tolist() == [
        0,
        0,
        mbs.Status.UNPHYSICAL,
        mbs.Status.UNPHYSICAL,
    ]


def test_an_offset_that_is_set_in_a_batch():
    """On a controller that was built with none: the samples are no longer at the ends of steps."""
    model = cart(mbs.Controller(law, 0.1, writes="push.thrust"))

    def end(offset):
        run = mbs.simulate(mbs.set(model, {"law.offset": offset}), [1.0], [0.0], t_end=0.5, dt=0.1)
        return run.q[-1, 0], run.status

    offsets = jnp.array([0.0, 0.025, -0.03])
    found, status = jax.vmap(end)(offsets)
    assert status.tolist() == [0, 0, 0]
    np.testing.assert_allclose(found, [end(float(x))[0] for x in offsets], rtol=1e-12)
    slope = (end(0.025 + 1e-6)[0] - end(0.025 - 1e-6)[0]) / 2e-6
    np.testing.assert_allclose(jax.grad(lambda x: end(x)[0])(0.025), slope, rtol=1e-7)


@pytest.mark.parametrize("options", [{}, {"delay": 0.05}, {"offset": 0.1}, {"offset": 0.03, "delay": 0.02}])
@pytest.mark.parametrize("dt", [0.01, 0.05, 0.1])
def test_single_precision(options, dt):
    """As many samples as in double precision, and no iteration too few."""
    counts = lambda model, t, q, v, state, readings: (state + 1, -3.0 * q[0] - 2.5 * v[0])  # noqa: E731
    model = cart(mbs.Controller(counts, 0.1, state=[0.0], writes="push.thrust", **options))
    q, v = np.ones(1, np.float32), np.zeros(1, np.float32)
    for t0 in (0.0, 0.3, 1.1):
        runs = [mbs.simulate(model, x, y, t0=t0, t_end=t0 + 20.0, dt=dt) for x, y in ((q, v), ([1.0], [0.0]))]
        assert [int(run.status) for run in runs] == [0, 0] and runs[0].q.dtype == np.float32
        assert runs[0].states["law.state"][-1, 0] == runs[1].states["law.state"][-1, 0]
        np.testing.assert_allclose(runs[0].q, runs[1].q, atol=2e-4)


def test_periods_below_a_step_and_beyond_the_run():
    for period, number in ((0.003, 334), (7.0, 1)):
        counts = lambda model, t, q, v, state, readings: (state + 1, ())  # noqa: E731
        run = mbs.simulate(cart(mbs.Controller(counts, period, state=[0.0])), [1.0], [0.0], t_end=1.0, dt=0.01)
        assert int(run.status) == 0 and run.states["law.state"][-1, 0] == number


def test_before_its_first_sample_a_controller_changes_nothing():
    """Even where a command of a sample before the start would take effect."""
    model = mbs.set(cart(mbs.Controller(law, 0.1, delay=0.05, writes="push.thrust")), {"push.thrust": 7.0})
    run = mbs.simulate(model, [0.0], [0.0], t0=0.02, t_end=0.14, dt=0.01)
    np.testing.assert_array_equal(run.states["push.thrust"], 7.0)


def test_a_command_that_its_parameter_cannot_have():
    model = cart(mbs.Controller(lambda model, t, q, v, state, readings: (None, -q[0]), 0.1, writes="hold.stiffness"))
    status = jax.vmap(lambda q: mbs.simulate(model, q, [0.0], t_end=0.3, dt=0.1).status)(jnp.array([[1.0], [-1.0]]))
    assert status.tolist() == [mbs.Status.UNPHYSICAL, 0]


@pytest.mark.parametrize(
    ("returned", "state", "said"),
    [
        ((5.0, 1.0), None, "began with None"),
        ((None, None), None, "returned None"),
        ((None, "full"), None, "returned 'full'"),
        ((None, 1j), None, "complex"),
        (([1j], 1.0), [0.0], "began with|complex"),
    ],
)
def test_what_a_controller_cannot_return(returned, state, said):
    fn = lambda model, t, q, v, state, readings: returned  # noqa: E731
    with pytest.raises(mbs.ModelError, match=f"controller 'law': .*({said})"):
        mbs.simulate(cart(mbs.Controller(fn, 0.1, state=state, writes="push.thrust")), [1.0], [0.0], t_end=1.0, dt=0.1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"period": "a"}, "positive number of seconds"), ({"period": True}, "positive number of seconds"),
        ({"period": np.array([0.1, 0.2])}, "positive number of seconds"), ({"writes": 5}, "pass a name or a list"),
        ({"writes": ("push.thrust", "push.thrust")}, "each name once"), ({"state": 1j}, "not real numbers"),
    ],
)  # fmt: skip
def test_what_a_controller_cannot_be_made_of(given, said):
    with pytest.raises(mbs.ModelError, match=said):
        mbs.Controller(law, **{"period": 0.1, **given})


def test_a_key_that_is_none():
    model = cart(mbs.Controller(lambda model, t, q, v, state, readings, key: (None, 0.0), 0.1, writes="push.thrust"))
    with pytest.raises(mbs.ModelError, match="key is 0; pass one such as"):
        mbs.simulate(model, [0.0], [0.0], t_end=1.0, dt=0.1, key=0)
    for key in (jax.random.PRNGKey(1), jax.random.key(1)):
        assert int(mbs.simulate(model, [0.0], [0.0], t_end=1.0, dt=0.1, key=key).status) == 0


def test_sensors_of_a_releasable_hinge():
    """They measure the hinge, not the Free joint that it has become."""
    mech = mbs.Mechanism("door", gravity=(0.0, 0.0, 0.0))
    mech.add_body("door", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    mech.add_joint("hinge", mbs.Revolute(axis=(0, 0, 1)), "world", "door", releasable=True)
    mech.add_sensor("encoder", mbs.Encoder("hinge"))
    mech.add_sensor("end", mbs.Switch("hinge", threshold=0.2))
    reads = ("encoder", "end")
    keeps = lambda model, t, q, v, state, readings: (jnp.concatenate([readings[x] for x in reads]), ())  # noqa: E731
    mech.add_controller("log", mbs.Controller(keeps, 0.1, state=np.zeros(3), reads=reads))
    q0 = np.concatenate([np.zeros(3), mbs.rotation("z", 0.1)])
    run = mbs.simulate(mech.build(), q0, [0.0, 0.0, 0.6, 0.0, 0.0, 0.0], t_end=0.4, dt=0.1)
    np.testing.assert_allclose(run.states["log.state"][::3], [[0.1, 0.6, 0.0], [0.28, 0.6, 1.0]], rtol=1e-7)


def test_what_a_file_cannot_hold(tmp_path):
    (tmp_path / "laws.py").write_text(LAW, encoding="utf-8")
    fn = mbs.io.catalogue._run("laws.py", LAW.encode(), "").integral
    mbs.save(cart(mbs.Controller(fn, 0.1, state=[], writes="push.thrust")), tmp_path / "a.toml")
    model = cart(mbs.Controller(fn, 0.1, delay=0.01, writes="push.thrust"))
    mbs.save(model, tmp_path / "b.toml")
    with pytest.raises(mbs.ModelError, match="commands that wait"):
        mbs.save(mbs.set(model, {"law.commands": [5.0, 1.0]}), tmp_path / "c.toml")
    with pytest.raises(mbs.ModelError, match="one list of numbers"):
        mbs.save(cart(mbs.Controller(fn, 0.1, state=1.0, writes="push.thrust")), tmp_path / "d.toml")


@pytest.mark.cpu
def test_a_run_with_noise_is_one_call_of_machine_code(monkeypatch):
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")

    def damps(model, t, q, v, state, readings):
        return state + readings["imu"][:1], -readings["imu"][3]

    sensor = mbs.Imu("cart", noise=(0.1, 0.0, 0.2))
    controller = mbs.Controller(damps, 0.1, state=[0.0], delay=0.02, reads="imu", writes="push.thrust")
    model = cart(controller, sensors=[("imu", sensor)])

    def end(q, v, key):
        return mbs.simulate(model, q, v, t_end=1.0, dt=0.1, save_every=None, key=key).q[-1]

    q, keys = jnp.ones((64, 1)), jax.random.split(jax.random.key(0), 64)
    said = str(mbs.explain(jax.vmap(end), q, 0 * q, keys))
    assert said.startswith("simulate: machine code, 64 rows, called once\n"), said
