"""The ready-made control laws, against closed forms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.model.control import laws
from tests.cases import relative


def called(law, parameters, *readings, t=0.0, state=None):
    named = {f"sensor {k}": jnp.asarray(x) for k, x in enumerate(readings)}
    return law(None, t, None, None, state, named, {name: jnp.asarray(x) for name, x in parameters.items()})


def test_the_describing_function_of_the_dead_band():
    """The first harmonic of the command to a sine of amplitude A, with d = dead band / A: 1 - 2/pi (asin d + d sqrt(1 -
    d²)) times the stiffness."""
    n, amplitude, width = 200_000, 1.5, 0.4
    angle = (np.arange(n) + 0.5) * 2 * np.pi / n
    gains = {"stiffness": 3.0, "damping": 0.0, "dead_band": width}
    command = jax.vmap(lambda x: called(laws.proportional_derivative, gains, jnp.stack([x, 0.0]))[1])(
        amplitude * np.sin(angle)
    )
    found = -2 / n * np.sum(np.asarray(command) * np.sin(angle)) / amplitude
    d = width / amplitude
    want = 3 * (1 - 2 / np.pi * (np.arcsin(d) + d * np.sqrt(1 - d * d)))
    assert abs(found / want - 1) < 1e-8


@pytest.mark.parametrize("flip", [1, -1])
def test_quaternion_feedback(flip):
    """About one axis: -stiffness 2 sin(angle / 2), on the shorter way; towards a target, as from the attitude to it."""
    axis, gains = np.array([2.0, -1.0, 2.0]) / 3, {"stiffness": 4.0, "damping": (0.5, 0.6, 0.7)}
    for angle in (0.0, 0.3, 3.0):
        attitude = flip * np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])
        w = np.array([0.1, 0.2, -0.3, 9.0, 9.0, 9.0])
        _, torque = called(laws.quaternion_feedback, gains, attitude, w)
        want = -8 * np.sin(angle / 2) * axis - np.array(gains["damping"]) * w[:3]
        np.testing.assert_allclose(torque, want, atol=1e-14)
        _, still = called(laws.quaternion_feedback, {**gains, "target": tuple(attitude)}, attitude, 0 * w)
        np.testing.assert_allclose(still, np.zeros(3), atol=1e-15)
        _, longer = called(laws.quaternion_feedback, {**gains, "target": (1.4, 0.0, 0.0, 0.0)}, attitude, w)
        np.testing.assert_allclose(longer, torque, atol=1e-14)
    axes = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1] / np.sqrt(3)])
    _, four = called(laws.quaternion_feedback, {**gains, "axes": tuple(axes.ravel())}, attitude, w)
    assert len(four) == 4 and relative(axes.T @ np.stack(four), want) < 1e-14
    for some in (4, 3, 2, 1):
        own = axes[:some]
        _, commands = called(laws.quaternion_feedback, {**gains, "axes": tuple(own.ravel())}, attitude, w)
        np.testing.assert_allclose(commands, np.linalg.pinv(own.T) @ want, rtol=1e-12)


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("law", "parameters", "shapes"),
    [
        ("quaternion_feedback", {"stiffness": 4.0, "damping": 0.5, "axes": np.ones(3)}, (4, 6)),
        ("quaternion_feedback", {"stiffness": 4.0, "damping": 0.5, "axes": np.eye(3)[:2].ravel()}, (4, 6)),
        ("quaternion_feedback", {"stiffness": 4.0, "damping": 0.5, "axes": np.ones(12)}, (4, 6)),
        ("gain_table", {"times": np.arange(3.0), "gains": np.ones(12)}, (2,)),
    ],
)
def test_a_law_is_arithmetic_on_numbers_so_that_a_batch_of_flights_is_one_program(law, parameters, shapes):
    def commands(t, *readings):
        return called(getattr(laws, law), parameters, *readings, t=t)[1]

    [found] = mbs.explain(commands, np.ones(64), *(np.ones((64, n)) for n in shapes), in_axes=0).programs
    assert (found.runs, found.reason) == ("machine code", "")


def test_gains_from_a_table():
    rng = np.random.default_rng(5)
    times, table, x = (0.0, 1.0, 3.0), rng.normal(size=(3, 2, 4)), rng.normal(size=4)
    gains = {"times": times, "gains": tuple(table.ravel())}
    for t in (-1.0, 0.0, 0.4, 1.0, 2.5, 3.0, 9.0):
        _, commands = called(laws.gain_table, gains, x[:3], x[3:], t=t)
        K = np.array([[np.interp(t, times, table[:, i, j]) for j in range(4)] for i in range(2)])
        np.testing.assert_allclose(commands, -K @ x, rtol=1e-12)
    _, one = called(laws.gain_table, {"times": 0.0, "gains": tuple(table[0].ravel())}, x)
    np.testing.assert_allclose(one, -table[0] @ x, rtol=1e-12)
    jumping = {"times": (0.0, 1.0, 1.0, 2.0), "gains": (0.0, 1.0, 5.0, 6.0)}
    for t, gain in ((0.5, 0.5), (1.0, 5.0), (1.5, 5.5), (2.5, 6.0)):  # a time that is given twice
        assert called(laws.gain_table, jumping, np.ones(1), t=t)[1][0] == pytest.approx(-gain, rel=1e-12)
    with pytest.raises(mbs.ModelError, match="24 gains for 3 times and 5 readings; give a whole number of rows of 5"):
        called(laws.gain_table, gains, np.zeros(5))


def test_the_pulses_of_a_modulator():
    """For a constant error, the times on and off are those in which the filter moves between its thresholds [Wie 1998,
    7.6], up to one sample."""
    step, lag, gain, on, off, error = 1e-4, 0.15, 4.5, 0.45, 0.15, 0.3
    gains = {
        "stiffness": 1.0,
        "damping": 0.0,
        "full": 1.0,
        "lag": lag,
        "gain": gain,
        "on": on,
        "off": off,
        "thrust": 7.0,
    }

    def pulses(**more):
        law = functools.partial(called, laws.pulse_width_pulse_frequency, gains | more, jnp.array([-error, 0.0]))

        def sampled(state, k):
            state, (plus, minus) = law(t=k * step, state=state)
            return state, plus - minus

        return np.asarray(jax.lax.scan(sampled, jnp.zeros(4), jnp.arange(20_000))[1])

    thrust = pulses()
    assert set(thrust) == {0.0, 7.0}
    changes = np.flatnonzero(np.diff(thrust))[2:]
    spans = np.diff(changes) * step
    first_on = thrust[changes[0] + 1] > 0
    lasts_on, lasts_off = (spans[::2], spans[1::2]) if first_on else (spans[1::2], spans[::2])
    e = gain * error
    want_off = lag * np.log((e - off) / (e - on))
    want_on = lag * np.log((on - (e - gain)) / (off - (e - gain)))
    assert len(lasts_on) > 3 and np.all(abs(lasts_on - want_on) < 1.5 * step)
    assert np.all(abs(lasts_off - want_off) < 1.5 * step)
    changes = np.flatnonzero(np.diff(pulses(minimum=0.1)))
    assert np.min(np.diff(changes)[::2] * step) >= 0.1 - 1.5 * step > np.max(lasts_on)


def test_the_shortest_pulse_of_a_modulator_does_not_depend_on_the_rounding_of_times():
    """Of 0.05 s at a period of 0.01 s: five samples, whenever it begins."""
    gains = HOLD | PULSES | {"off": 0.4, "minimum": 0.05}
    state, k = jnp.array([0.0, 1.0, 0.0, 0.0]), np.arange(2000) * 0.01
    state = jnp.broadcast_to(state, (2000, 4)).at[:, 2:].set(k[:, None])  # has just begun, and is no longer wanted

    def fires(after):
        law = functools.partial(called, MODULATOR, gains, jnp.zeros(2))
        return jax.vmap(lambda t, x: law(t=t, state=x)[1][0])((np.arange(2000) + after) * 0.01, state)

    assert np.all(fires(4) > 0) and not np.any(fires(5))


@pytest.mark.parametrize(
    ("law", "gains", "readings", "said"),
    [
        (laws.proportional_derivative, {"damping": 1.0}, [np.zeros(2)], "needs the parameter 'stiffness'"),
        (laws.proportional_derivative, {"stiffness": 1.0}, [np.zeros(1)], "needs a coordinate and its rate"),
        (laws.quaternion_feedback, {"stiffness": 1.0}, [np.zeros(4)], "needs an attitude"),
    ],
)
def test_what_a_law_lacks_is_told(law, gains, readings, said):
    with pytest.raises(mbs.ModelError, match=said):
        called(law, gains, *readings)


def cart(law, gains, reads="encoder", joint=None, state=None):
    """Built, with two thrusters and the sensors encoder, gyro and tracker for the controller c."""
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", 2.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("rail", joint or mbs.Prismatic((1, 0, 0)), "world", "cart")
    mech.add_force("plus", mbs.Thruster("cart", direction=(1, 0, 0)))
    mech.add_force("minus", mbs.Thruster("cart", direction=(-1, 0, 0)))
    for name, sensor in (
        ("encoder", mbs.Encoder("rail")),
        ("gyro", mbs.Imu("cart")),
        ("tracker", mbs.StarTracker("cart")),
    ):
        mech.add_sensor(name, sensor)
    writes = ("plus.thrust", "minus.thrust")
    mech.add_controller("c", mbs.Controller(law, 0.1, reads=reads, writes=writes, parameters=gains, state=state))
    return mech.build()


HOLD, PULSES = {"stiffness": 4.0, "damping": 1.0}, {"full": 1.0, "lag": 0.1, "on": 0.5, "off": 0.1, "thrust": 3.0}
TABLE = {"times": (0.0, 1.0, 1.0), "gains": tuple(np.ones(12))}
MODULATOR = laws.pulse_width_pulse_frequency


@pytest.mark.parametrize(
    ("law", "gains", "more", "said"),
    [
        (laws.gain_table, TABLE | {"times": (2.0, 1.0, 0.0)}, {}, "times: a time must not be less than the one before"),
        (laws.gain_table, TABLE, {"reads": ()}, "laws.gain_table needs at least one sensor"),
        (laws.proportional_derivative, HOLD, {"joint": mbs.Universal()}, r"sensor 'encoder' \(Encoder\) gives 4 numbers; .*"
         "one degree of freedom"),
        (laws.proportional_derivative, HOLD, {"reads": "gyro"}, r"'gyro' \(Imu\) gives 6 .* a coordinate and its rate"),
        (laws.proportional_derivative, HOLD, {"reads": ("encoder", "gyro")}, r"'gyro'\]; .* needs a coordinate"),
        (laws.quaternion_feedback, HOLD, {"reads": ("gyro", "tracker")}, "'gyro' .* gives 6 numbers; .* needs an attitude"),
        (laws.quaternion_feedback, HOLD | {"axes": (1.0, 0.0)}, {"reads": ("tracker", "gyro")}, "three numbers for each"),
        (laws.quaternion_feedback, HOLD | {"axes": (0.0,) * 3}, {"reads": ("tracker", "gyro")}, "one must not be zero"),
        (laws.quaternion_feedback, HOLD | {"axes": (1.0, 0.0, 2.0) * 2}, {"reads": ("tracker", "gyro")}, "two not parallel"),
        (laws.quaternion_feedback, HOLD | {"axes": (1.0, 0.3, 2.0, 0.1, 0.7, 0.2, 1.1, 1.0, 2.2)},
         {"reads": ("tracker", "gyro")}, "three or more not in one plane"),
        (laws.quaternion_feedback, HOLD | {"target": (0.0,) * 4}, {"reads": ("tracker", "gyro")}, "not zero"),
        (laws.proportional_derivative, HOLD | {"deadband": 0.1}, {}, "named 'deadband'; did you mean 'dead_band'"),
        (laws.proportional_derivative, {"stiffness": 1.0}, {}, "needs the parameter 'damping'; it has .'stiffness'"),
        (laws.proportional_derivative, HOLD | {"damping": (1.0, 2.0)}, {}, "'damping' .* has shape .2,.; pass one number"),
        (laws.proportional_derivative, HOLD | {"dead_band": -0.1}, {}, "dead_band must be at least 0"),
        (MODULATOR, HOLD | PULSES | {"off": 0.6}, {}, "off must not be more than on"),
        (MODULATOR, HOLD | PULSES | {"lag": 0.0}, {}, "lag must be more than 0"),
        (MODULATOR, HOLD | PULSES, {"state": (0.0, 0.0)}, "remembers 4 numbers; leave state out"),
    ],
)  # fmt: skip
def test_what_a_law_cannot_use_is_refused_when_the_mechanism_is_built(law, gains, more, said):
    with pytest.raises(mbs.ModelError, match=f"controller 'c': .*{said}"):
        cart(law, gains, **more)


def test_gains_are_checked_when_they_are_set():
    model = cart(laws.gain_table, TABLE)
    with pytest.raises(mbs.ModelError, match="times: a time must not be less"):
        mbs.set(model, {"c.times": (2.0, 1.0, 0.0)})
    with pytest.raises(mbs.ModelError, match="instance 1: times"):
        mbs.vary(model, {"c.times": np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 1.0]])})
    one = cart(laws.gain_table, {"times": 0.0, "gains": tuple(np.ones(4))})
    batch, _ = mbs.vary(one, {"c.times": np.array([2.0, 1.0, 0.0])})  # of three instances, not of one
    assert batch.overrides["c.times"].shape == (3,)


def test_a_law_brings_its_own_state():
    model = cart(MODULATOR, HOLD | PULSES)
    assert mbs.get(model, "c.state").tolist() == [0.0] * 4
    run = mbs.simulate(model, [1.0], [0.0], t_end=0.2, dt=0.1)
    np.testing.assert_allclose(run.v[-1, 0], -0.5 * 3.0 * 0.1, rtol=1e-12)  # output 0 at the start, then below -on
    for law, more in ((laws.pulse_width, {"period": 0.1, "delay": 0.0}), (MODULATOR, {})):
        with pytest.raises(mbs.ModelError, match="needs a state of 4 numbers, all zero at the start; got None"):
            called(law, HOLD | PULSES | more, np.zeros(2))


def test_what_a_law_lacks_in_a_controller_of_ones_own_is_told_with_its_name():
    def law(model, t, q, v, state, readings, parameters):
        return laws.proportional_derivative(model, t, q, v, state, readings, parameters)

    model = cart(law, HOLD, reads="gyro")
    with pytest.raises(mbs.ModelError, match=r"controller 'c': .* needs a coordinate and its rate"):
        mbs.simulate(model, [0.0], [0.0], t_end=0.2, dt=0.1)


def test_files_name_laws(tmp_path):
    mech = mbs.library.double_pendulum()
    mech.add_force("motor", mbs.Actuator("shoulder", lag=0.01))
    mech.add_sensor("encoder", mbs.Encoder("shoulder"))
    gains = {"stiffness": 80.0, "damping": 20.0}
    own = mbs.Controller(laws.proportional_derivative, 0.01, reads="encoder", writes="motor.command", parameters=gains)
    mech.add_controller("hold", own)
    mbs.save(mech.build(), tmp_path / "arm.toml")
    text = (tmp_path / "arm.toml").read_text(encoding="utf-8")
    assert '"laws.proportional_derivative"' in text and "modules" not in text
    assert mbs.get(mbs.load(tmp_path / "arm.toml"), "hold.stiffness") == 80.0
    (tmp_path / "arm.toml").write_text(text.replace("laws.prop", "mine.prop"), encoding="utf-8")
    with pytest.raises(mbs.ModelError, match=r"did you mean .laws.proportional_derivative"):
        mbs.load(tmp_path / "arm.toml")
    (tmp_path / "arm.toml").write_text(text.replace("laws.proportional_derivative", "mine.hold"), encoding="utf-8")
    with pytest.raises(mbs.ModelError, match=r'name its module: modules = \["mine.py"\]'):
        mbs.load(tmp_path / "arm.toml")


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_a_star_tracker(noise):
    """Its quaternion turns body axes to world axes; bias and noise are small rotations in body axes."""
    mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    mech.add_body("bus", mass=10.0, inertia=(1.0, 2.0, 2.5))
    mech.add_joint("flight", mbs.Free(), "world", "bus")
    bias = np.array([1e-3, -2e-3, 5e-4])
    mech.add_sensor("tracker", mbs.StarTracker("bus", bias=bias, noise=(noise, 0, 0), period=0.1))
    attitude = np.array([0.5, -0.1, 0.7, 0.2])
    attitude /= np.linalg.norm(attitude)
    start = [1.0, 2.0, 3.0, *attitude]
    run = mbs.simulate(mech.build(), start, np.zeros(6), t_end=20.0, dt=0.1, key=jax.random.key(3))
    found = np.asarray(run.states["tracker.reading"])[1:]
    w, x, y, z = attitude
    back = np.array([[w, x, y, z], [-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])  # conjugate times a quaternion
    small = 2 * (found @ back.T) / (found @ attitude)[:, None]
    np.testing.assert_allclose(small[:, 2:], np.broadcast_to(bias[1:], (len(small), 2)), atol=1e-8)
    errors = small[:, 1] - bias[0]
    assert np.all(abs(errors) < 1e-8) if noise == 0 else abs(np.std(errors) / noise - 1) < 0.2
