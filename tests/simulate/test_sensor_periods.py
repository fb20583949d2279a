"""Sensors that measure with a period of their own, and hold what they measured."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.elements import Sensor, element
from tests.cases import relative


def law(model, t, q, v, state, readings):
    place, rate = readings["encoder"]
    return state, -3 * place - 2.5 * rate


def cart(period, every=0.1, fn=law, mass=2.0, **encoder):
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", mass, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    mech.add_force("push", mbs.Thruster("cart", direction=(1, 0, 0)))
    mech.add_sensor("encoder", mbs.Encoder("rail", period=period, **encoder))
    mech.add_controller("law", mbs.Controller(fn, every, reads="encoder", writes="push.thrust"))
    return mech.build()


def by_hand(period, every, offset, x, v, g=0.01):
    """The cart under a force that is held, after a second: exact from instant to instant, which are multiples of g."""
    force, read = 0.0, (0.0, 0.0)
    for k in range(round(1 / g)):
        t = k * g
        if t >= offset - 1e-9 and abs((t - offset) / period - round((t - offset) / period)) < 1e-9:
            read = x, v
        if abs(t / every - round(t / every)) < 1e-9:
            force = -3 * read[0] - 2.5 * read[1]
        a = force / 2
        x, v = x + v * g + a * g * g / 2, v + a * g
    return x, v


CASES = [(0.25, 0.1, 0.0), (0.03, 0.1, 0.0), (0.07, 0.05, 0.02), (0.1, 0.1, 0.0)]


@pytest.mark.parametrize(("period", "every", "offset"), CASES)
def test_a_controller_reads_the_last_measurement(period, every, offset):
    model = cart(period, every, offset=offset)
    run = mbs.simulate(model, [1.0], [0.5], t_end=1.0, dt=0.01)
    want = by_hand(period, every, offset, 1.0, 0.5)
    assert run.status == mbs.Status.OK and relative(np.append(run.q[-1], run.v[-1]), want) < 1e-12
    read = run.states["encoder.reading"][:-1, 0]
    last = np.floor((run.t[:-1] - offset) / period + 1e-9) * period + offset
    rows = np.round(last / 0.01).astype(int)
    np.testing.assert_allclose(read, np.where(rows >= 0, np.asarray(run.q)[rows, 0], 0.0), rtol=1e-12)


def test_longer_steps_end_at_measurements():
    run = mbs.simulate(cart(0.013, 0.5, offset=0.002), [1.0], [0.5], t_end=1.0, dt=0.5)
    assert run.status == mbs.Status.OK
    assert relative(np.append(run.q[-1], run.v[-1]), by_hand(0.013, 0.5, 0.002, 1.0, 0.5, g=0.001)) < 1e-12


def test_derivatives_and_batches():
    model = cart(0.03)

    def end(start):
        run = mbs.simulate(model, start[:1], start[1:], t_end=1.0, dt=0.02, save_every=None)
        return jnp.append(run.q[-1], run.v[-1])

    start = jnp.array([1.0, 0.5])
    # the motion is linear in its start
    want = np.stack([by_hand(0.03, 0.1, 0.0, 1.0, 0.0), by_hand(0.03, 0.1, 0.0, 0.0, 1.0)], axis=1)
    for of in (jax.jacfwd, jax.jacrev):
        assert relative(of(end)(start), want) < 1e-11
    many = jnp.array([[1.0, 0.5], [0.0, 0.0], [-2.0, 1.0]])
    assert relative(jax.vmap(end)(many), many @ want.T) < 1e-11


def test_offsets_in_a_batch():
    model = cart(0.1, 0.05)

    def end(offset):
        run = mbs.simulate(
            mbs.set(model, {"encoder.offset": offset}), [1.0], [0.5], t_end=1.0, dt=0.01, save_every=None
        )
        return jnp.append(run.q[-1], run.v[-1])

    offsets = jnp.array([0.0, 0.02, 0.07])
    assert relative(jax.vmap(end)(offsets), [by_hand(0.1, 0.05, float(x), 1.0, 0.5) for x in offsets]) < 1e-12


def test_a_run_that_goes_on_is_the_whole_run():
    model = cart(0.07, 0.05)
    whole = mbs.simulate(model, [1.0], [0.0], t_end=1.0, dt=0.01)
    first = mbs.simulate(model, [1.0], [0.0], t_end=0.33, dt=0.01)
    there = mbs.set(model, {name: x[-1] for name, x in first.states.items()})
    rest = mbs.simulate(there, first.q[-1], first.v[-1], t0=0.33, t_end=1.0, dt=0.01)
    np.testing.assert_allclose(rest.q[-1], whole.q[-1], rtol=1e-12)


def test_a_sensor_that_no_controller_reads_measures_too():
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", 2.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    mech.add_sensor("encoder", mbs.Encoder("rail", period=0.25))
    model = mech.build()
    run = mbs.simulate(model, [0.0], [1.0], t_end=1.0, dt=0.05)
    want = np.floor(run.t[:-1] / 0.25 + 1e-9) * 0.25
    np.testing.assert_allclose(run.states["encoder.reading"][:-1, 0], want, atol=1e-12)
    with pytest.raises(mbs.ModelError, match="the samples of controllers and sensors between rows are not kept"):
        run.at(model, 0.3)


def test_a_sensor_of_a_hinge_that_may_let_go():
    mech = mbs.Mechanism("door", gravity=(0.0, 0.0, 0.0))
    mech.add_body("door", 2.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("hinge", mbs.Revolute(axis=(0, 0, 1)), "world", "door", releasable=True)
    mech.add_sensor("encoder", mbs.Encoder("hinge", period=0.25))
    run = mbs.simulate(mech.build(), [0, 0, 0, 1.0, 0, 0, 0], [0, 0, 1.0, 0, 0, 0], t_end=1.0, dt=0.05)
    np.testing.assert_allclose(run.states["encoder.reading"][-1], [0.75, 1.0], rtol=1e-6)


def test_noise_is_that_of_a_measurement():
    def damps(model, t, q, v, state, readings):
        return state, -readings["imu"][3]

    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", 2.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    mech.add_force("push", mbs.Thruster("cart", direction=(1, 0, 0)))
    mech.add_sensor("imu", mbs.Imu("cart", period=0.1, force_noise=(1.0, 1.0, 1.0)))
    mech.add_controller("law", mbs.Controller(damps, 0.02, reads="imu", writes="push.thrust"))
    run = mbs.simulate(mech.build(), [0.0], [0.0], t_end=1.0, dt=0.02, key=jax.random.key(1))
    read = run.states["imu.reading"]
    assert read.shape == (51, 6)
    assert len(np.unique(np.asarray(read[:-1, 4]))) == 10 and (np.diff(read[:-1, 4])[0:4] == 0).all()


def test_what_cannot_be():
    with pytest.raises(mbs.ModelError, match=r"Encoder: period is 0\.0; pass a positive number"):
        mbs.Encoder("rail", period=0.0)
    with pytest.raises(mbs.ModelError, match="an offset needs a period, which the sensor lacks"):
        cart(None, offset=0.02)

    @element
    class Own(Sensor):
        def reading(self, p, now):
            return jnp.zeros(1)

    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", 2.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    mech.add_sensor("own", Own(period=0.1))
    with pytest.raises(mbs.ModelError, match=r"Own: a sensor with a period needs a method width"):
        mech.build()


def test_a_file(tmp_path):
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", 2.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    mech.add_sensor("encoder", mbs.Encoder("rail", period=0.1, offset=0.02))
    model = mech.build()
    mbs.save(model, tmp_path / "cart.toml")
    assert mbs.load(tmp_path / "cart.toml") == model
    with pytest.raises(mbs.ModelError, match=r"no key in a file: 'encoder\.reading'"):
        mbs.save(mbs.set(model, {"encoder.reading": [1.0, 0.0]}), tmp_path / "late.toml")
