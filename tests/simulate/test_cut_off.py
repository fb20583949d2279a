"""How a motor ends: by a controller's command, at a time, with a stated mass left, and when its propellant is used up."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.elements import Force, Kind, element, field, state
from jaxmbs.io import InputError

SPEED = 250 * 9.80665  # of the exhaust [m/s]
FLOW = 1e4 / SPEED  # [kg/s]


def rocket(when=None, then=(), **given):
    """100 kg on a rail, with 50 kg of propellant."""
    mech = mbs.Mechanism("rocket", gravity=(0.0, 0.0, 0.0), **given)
    mech.add_body("stage", mass=100.0, inertia=(10.0, 10.0, 1.0))
    mech.add_joint("flight", mbs.Prismatic(axis=(0, 0, 1)), "world", "stage")
    mech.add_force("motor", mbs.Motor("stage", thrust=1e4, specific_impulse=250.0, propellant=50.0))
    if when is not None:
        mech.add_event("end", when, then)
    return mech


def gained(burnt):
    """Speed [m/s] after this mass is burnt."""
    return -SPEED * np.log1p(-burnt / 150.0)


STEPS = [
    (0.0, {"dt": 0.1}),
    (13.0, {"dt": 0.7}),
    (0.0, {"method": "dop853", "tolerance": 1e-12, "dt": 1.0}),
    (13.0, {"method": "implicit", "dt": 0.1}),
]


@pytest.mark.parametrize(("rest", "options"), STEPS, ids=["rk4", "long", "dop853", "implicit"])
def test_a_mass_that_is_left(rest, options):
    """The event comes also where the motor ends by itself, at no propellant, and the motor does not go on after it."""
    model = rocket(mbs.StateReaches("motor.propellant", rest), mbs.Disable("motor")).build()
    run = mbs.simulate(model, [0.0], [0.0], t_end=16.0, **options)
    assert run.status == mbs.Status.OK and list(run.events.index) == [0]
    assert run.events.time[0] == pytest.approx((50.0 - rest) / FLOW, rel=1e-12)
    assert run.states["motor.propellant"][-1] == pytest.approx(rest, abs=1e-11)
    assert run.v[-1, 0] == pytest.approx(gained(50.0 - rest), rel=1e-7 if options["dt"] == 0.7 else 1e-11)


def test_what_follows_the_end_of_the_propellant():
    """Another thrust begins at the instant at which the motor ends, in every instance at its own, if at all."""
    mech = rocket(mbs.StateReaches("motor.propellant", 0.0, direction="down"), mbs.Enable("second"), off=["second"])
    mech.add_force("second", mbs.Thruster("stage", direction=(0, 0, 1), thrust=300.0))
    model = mech.build()
    masses = jnp.array([10.0, 50.0, 300.0])
    batch, axes = mbs.vary(model, {"motor.propellant": masses})

    def last(model):
        run = mbs.simulate(model, jnp.zeros(1), jnp.zeros(1), t_end=20.0, dt=0.1)
        return run.v[-1, 0], run.events.time[0], run.status

    v, t, status = mbs.jit(last, in_axes=(axes,))(batch)
    burnt = np.minimum(masses, 20.0 * FLOW)
    wanted = -SPEED * np.log1p(-burnt / (100.0 + masses)) + 3.0 * (20.0 - burnt / FLOW)
    np.testing.assert_allclose(v, wanted, rtol=1e-9)
    np.testing.assert_allclose(t[:2], masses[:2] / FLOW, rtol=1e-12)
    assert not status.any()


def test_derivatives():
    """Of the instant and of the speed after it, with respect to the propellant, the thrust and the mass that is left, where
    the motor also ends by itself."""
    full, rest = 50.0, 0.0
    model = rocket(mbs.StateReaches("motor.propellant", rest), mbs.Disable("motor")).build()

    def end(x):
        other = mbs.set(model, dict(zip(("motor.propellant", "motor.thrust", "end.value"), x, strict=True)))
        run = mbs.simulate(other, jnp.zeros(1), jnp.zeros(1), t_end=16.0, dt=0.2)
        return jnp.stack([run.events.time[0], run.v[-1, 0]])

    # of (full - rest) / flow, and of the speed of the exhaust times ln(150 / (100 + rest))
    wanted = np.array(
        [[1 / FLOW, -(full - rest) / FLOW / 1e4, -1 / FLOW], [SPEED / 150.0, 0.0, -SPEED / (100.0 + rest)]]
    )
    x = jnp.array([full, 1e4, rest])
    for found in (jax.jacfwd(end)(x), jax.jacrev(end)(x)):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)


def test_cut_off_by_command():
    """A controller sees the speed at its samples and sets the thrust to zero: from the next sample on it is off, and what
    is left of the propellant stays."""

    def law(model, t, q, v, state, readings):
        off = jnp.where(readings["encoder"][1] >= 300.0, 1.0, state[0])
        return jnp.stack([off]), 1e4 * (1.0 - off)

    mech = rocket()
    mech.add_sensor("encoder", mbs.Encoder("flight"))
    mech.add_controller("law", mbs.Controller(law, 0.25, state=[0.0], reads="encoder", writes="motor.thrust"))
    run = mbs.simulate(mech.build(), [0.0], [0.0], t_end=16.0, dt=0.1)
    time = 0.25 * np.ceil(-np.expm1(-300.0 / SPEED) * 150.0 / FLOW / 0.25)
    assert run.states["motor.propellant"][-1] == pytest.approx(50.0 - FLOW * time, rel=1e-12)
    assert run.v[-1, 0] == pytest.approx(gained(FLOW * time), rel=1e-10)
    assert run.status == mbs.Status.OK and run.states["motor.thrust"][-1] == 0.0


def test_cut_off_at_a_time():
    run = mbs.simulate(rocket(mbs.Time(3.21), mbs.Disable("motor")).build(), [0.0], [0.0], t_end=5.0, dt=0.1)
    assert run.v[-1, 0] == pytest.approx(gained(3.21 * FLOW), rel=1e-10)


FILE = """
[mechanism]
name = "rocket"
gravity = [0.0, 0.0, 0.0]
bodies = [{name = "stage", mass = 100.0, inertia = [10.0, 10.0, 1.0]}]
joints = [{name = "flight", type = "prismatic", axis = [0.0, 0.0, 1.0], parent = "world", child = "stage"}]
forces = [{name = "motor", type = "motor", body = "stage", thrust = 1e4, specific_impulse = 250.0, propellant = 50.0}]

[[mechanism.events]]
name = "cut_off"
when = {type = "state_reaches", state = "motor.propellant", value = 13.0, direction = "down"}
then = [{type = "disable", name = "motor"}]
"""


def test_in_files(tmp_path):
    (tmp_path / "rocket.toml").write_text(FILE, encoding="utf-8")
    model = mbs.load(tmp_path / "rocket.toml")
    mbs.save(model, tmp_path / "saved.toml")
    assert mbs.load(tmp_path / "saved.toml") == model
    run = mbs.simulate(model, [0.0], [0.0], t_end=12.0, dt=0.5)
    assert run.events.time[0] == pytest.approx(37.0 / FLOW, rel=1e-12)
    (tmp_path / "rocket.toml").write_text(FILE.replace("motor.propellant", "motor.fuel"), encoding="utf-8")
    with pytest.raises(InputError, match=r"StateReaches: no state named 'motor\.fuel'"):
        mbs.load(tmp_path / "rocket.toml")


@element
class Tanks(Force):
    """Two tanks that run empty at different rates."""

    level: Any = state("m", "of both", default=(1.0, 1.0), kind=Kind.LIST)
    rate: Any = field(Kind.NUMBER, "m/s", "of the second", default=0.4)

    def rates(self, p, scene):
        return {"level": (-0.25 + 0.0 * p["rate"], -p["rate"])}

    def apply(self, p, scene, loads):
        pass


def test_a_component_of_a_list():
    mech = rocket(mbs.StateReaches("tanks.level", 0.3, component=1), mbs.Finish())
    mech.add_force("tanks", Tanks())
    run = mbs.simulate(mech.build(), [0.0], [0.0], t_end=5.0, dt=0.1)
    assert run.events.time[0] == pytest.approx(0.7 / 0.4, rel=1e-12)
    np.testing.assert_allclose(run.states["tanks.level"][-1], [1 - 0.25 * 0.7 / 0.4, 0.3], rtol=1e-12)


@pytest.mark.parametrize(
    ("when", "says"),
    [
        (mbs.StateReaches("motor.fuel", 1.0), r"event 'end': StateReaches: no state named 'motor\.fuel'"),
        (mbs.StateReaches("motor.thrust", 1.0), "controller 'law' sets 'motor.thrust', which is constant between"),
        (mbs.StateReaches("motor.specific_impulse", 1.0), "no state named 'motor.specific_impulse'"),
        (mbs.StateReaches("law.state", 1.0), "no state named 'law.state'"),
        (mbs.StateReaches("motor.propellant", 1.0, component=1), "component 1 is out of range; 'motor.propellant' has"),
        (mbs.StateReaches("motor.propellant", 1.0, "below"), "direction is 'below'; pass one of 'up', 'down'"),
    ],
)  # fmt: skip
def test_what_is_refused(when, says):
    with pytest.raises(mbs.ModelError, match=says):
        mech = rocket(when, mbs.Finish())
        law = mbs.Controller(
            lambda model, t, q, v, state, readings: (state, 1.0), 0.1, state=[0.0], writes="motor.thrust"
        )
        mech.add_controller("law", law)
        mech.build()
