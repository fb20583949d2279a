"""Thrusters that fire pulses, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs


def cart(mass=2.0, both=True, **jet):
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", mass, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    mech.add_force("plus", mbs.PulsedThruster("cart", direction=(1, 0, 0), thrust=10.0, **jet))
    if both:
        mech.add_force("minus", mbs.PulsedThruster("cart", direction=(-1, 0, 0), thrust=10.0, **jet))
    return mech


PULSES = [
    ({"start": 0.013, "width": 0.02}, 0.02),
    ({"start": 0.013, "width": 0.02, "rise": 0.004, "minimum": 0.01}, 0.018),
    ({"start": 0.0, "width": 0.05, "rise": 0.004, "fall": 0.01, "minimum": 0.05}, 0.053),
    ({"start": 0.013, "width": 0.0499, "minimum": 0.05}, 0.0),
    ({"start": 0.013, "width": 0.0, "fall": 0.01}, 0.0),
    ({"start": -0.01, "width": 0.03}, 0.02),  # begun before the run
]


@pytest.fixture(scope="module")
def general():
    """A cart whose pulses may have any numbers."""
    return cart(start=0.1, width=0.1, minimum=0.1, rise=0.1, fall=0.1).build()


@pytest.mark.parametrize(("jet", "open_for"), PULSES)
def test_the_impulse_of_a_pulse(general, jet, open_for):
    numbers = {"start": 0.0, "width": 0.0, "minimum": 0.0, "rise": 0.0, "fall": 0.0} | jet
    model = mbs.set(general, {"minus.width": 0.0, **{f"plus.{name}": x for name, x in numbers.items()}})
    run = mbs.simulate(model, [0.0], [0.0], t_end=0.1, dt=0.007)
    assert run.status == mbs.Status.OK
    np.testing.assert_allclose(run.v[-1, 0], 10 * open_for / 2, rtol=1e-12, atol=1e-14)


def test_a_pulse_within_one_step():
    """Built without ramps, which leaves their formulas out."""
    run = mbs.simulate(cart(both=False, start=0.013, width=0.02).build(), [0.0], [0.0], t_end=0.1, dt=0.1)
    assert run.status == mbs.Status.OK
    np.testing.assert_allclose(run.v[-1, 0], 0.1, rtol=1e-13)
    assert abs(run.energy_error[-1]) < 1e-12


def test_derivatives_of_a_pulse():
    model = cart(both=False, start=0.01, width=0.02, rise=0.004, fall=0.002, minimum=0.01).build()

    def end(x):
        own = mbs.set(model, {"plus.start": x[0], "plus.width": x[1], "plus.rise": x[2], "plus.fall": x[3]})
        run = mbs.simulate(own, [0.0], [0.0], t_end=0.1, dt=0.1)
        return jnp.stack([run.q[-1, 0], run.v[-1, 0]])

    # v = 5 (width + (fall - rise) / 2); q = integral of 5 level (0.1 - t)
    start, width, rise, fall = x = jnp.array([0.013, 0.021, 0.004, 0.002])
    left = 0.1 - start
    for of in (jax.jacfwd, jax.jacrev):
        slope = of(end)(x)
        np.testing.assert_allclose(slope[1], [0.0, 5.0, -2.5, 2.5], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            slope[0][:2], [-5 * (width + (fall - rise) / 2), 5 * (left - width - fall / 2)], rtol=1e-9
        )
    np.testing.assert_allclose(end(x)[0], 5 * _second(left, width, rise, fall), rtol=1e-12)


def _second(left, width, rise, fall):
    """Integral of level (left - s) over the time s since the start, from ramps."""

    def ramp(at, slope):
        return slope * (left - at) ** 3 / 6

    return ramp(0, 1 / rise) + ramp(rise, -1 / rise) + ramp(width, -1 / fall) + ramp(width + fall, 1 / fall)


def law(model, t, q, v, state, readings):
    return state, (t, 0.04 * v[0], t, 0.0)


WRITES = ("plus.start", "plus.width", "minus.start", "minus.width")


def test_a_controller_commands_pulses_shorter_than_its_period():
    mech = cart(minimum=0.01)
    mech.add_controller("law", mbs.Controller(law, 0.1, writes=WRITES))
    run = mbs.simulate(mech.build(), [0.0], [0.5], t_end=0.55, dt=0.05)
    assert run.status == mbs.Status.OK
    v, found = 0.5, []
    for _ in range(6):
        width = 0.04 * v
        v += 5 * width
        found.append(v)
    np.testing.assert_allclose(run.v[2::2, 0], found[:5], rtol=1e-12)
    batch, axes = mbs.vary(mech.build(), {"cart.mass": jnp.array([2.0, 3.0, 2.0])})
    ends = jax.vmap(lambda m: mbs.simulate(m, [0.0], [0.5], t_end=0.55, dt=0.05).v[-1, 0], in_axes=(axes,))(batch)
    np.testing.assert_allclose(ends[jnp.array([0, 2])], run.v[-1, 0], rtol=1e-13)


def test_a_full_demand_fires_without_a_gap():
    """With a rise: it would be seen if a pulse began again at every sample."""
    mech = cart(rise=0.01, minimum=0.01)
    mech.add_sensor("encoder", mbs.Encoder("rail"))
    gains = {"stiffness": 1000.0, "damping": 0.0, "full": 10.0, "target": 5.0}
    own = mbs.Controller(mbs.laws.pulse_width, 0.05, delay=0.02, state=np.zeros(4), reads="encoder", writes=WRITES,
                         parameters=gains)  # fmt: skip
    mech.add_controller("law", own)
    run = mbs.simulate(mech.build(), [0.0], [0.0], t_end=0.4, dt=0.05)
    assert run.status == mbs.Status.OK
    np.testing.assert_allclose(run.v[-1, 0], 5 * (0.4 - 0.02 - 0.005), rtol=1e-12)


def test_a_full_demand_fires_without_a_gap_late_in_single_precision():
    gains = {"stiffness": 1.0, "damping": 0.0, "target": 1e9, "full": 10.0, "period": 0.02, "delay": 0.0}
    state, reading = jnp.zeros(4, jnp.float32), {"encoder": jnp.zeros(2, jnp.float32)}
    for k in range(50):
        t = jnp.float32(20.0) + jnp.float32(k) * jnp.float32(0.02)
        state, (start, width, *_) = mbs.laws.pulse_width(None, t, None, None, state, reading, gains)
        assert start == 20.0 and width == pytest.approx(0.02 * (k + 1), abs=1e-4)


def test_a_rise_longer_than_the_shortest_pulse_is_refused():
    with pytest.raises(mbs.ModelError, match="rise <= minimum"):
        cart(rise=0.01)
