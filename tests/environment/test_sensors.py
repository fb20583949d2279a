"""Gyroscopes and accelerometers: their scales, biases and limits, and gravity that is not uniform."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs

MU, R = 3.986004418e14, 6.8e6


def keep(model, t, q, v, state, readings):
    return readings["imu"], ()


def readings(mech, q, v, **options):
    """Of the sensor "imu", at t = 0, 1, 2 s."""
    mech.add_controller("log", mbs.Controller(keep, 1.0, state=np.zeros(6), reads="imu"))
    run = mbs.simulate(mech.build(), q, v, t_end=3.0, dt=0.1, **options)
    assert int(run.status) == 0
    return np.asarray(run.states["log.state"])[[0, 10, 20]]


def planet(mech):
    mech.set_environment(planet=mbs.Planet(MU, 6378137.0, zonals=(1.08e-3,)))


def centre(mech):
    mech.add_force("centre", mbs.CentralGravity(MU))


@pytest.mark.parametrize("attract", [planet, centre])
def test_free_fall_is_not_felt(attract):
    mech = mbs.Mechanism("satellite")
    mech.add_point_mass("satellite", 100.0)
    attract(mech)
    mech.add_sensor("imu", mbs.Imu("satellite"))
    np.testing.assert_allclose(readings(mech, [R, 0.0, 1e6], [0.0, 7650.0, 0.0]), np.zeros((3, 6)), atol=1e-12)


def test_away_from_the_centre_of_mass_the_gradient_is_felt():
    """In a body that does not turn: the attraction of its centre of mass less that of the point."""
    mech = mbs.Mechanism("satellite")
    mech.add_body("satellite", 100.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("orbit", mbs.Free(), "world", "satellite")
    centre(mech)
    arm = np.array([2e4, -3e4, 1e4])
    mech.add_sensor("imu", mbs.Imu("satellite", point=arm))
    found = readings(mech, [R, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0] * 6)[0]
    pull = lambda x: -MU * x / np.linalg.norm(x) ** 3  # noqa: E731
    x = np.array([R, 0.0, 0.0])
    np.testing.assert_allclose(found, [0, 0, 0, *(pull(x) - pull(x + arm))], rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("attract", [planet, centre])
def test_on_a_stand_the_whole_weight_is_felt(attract):
    """The sensor shows the reaction of the slide, across which the block is attracted."""
    mech = mbs.Mechanism("stand")
    mech.add_body("block", 2.0, com=(0.0, 0.0, 0.0), inertia=(1.0, 1.0, 1.0))
    mech.add_joint("slide", mbs.Prismatic((0, 1, 0)), "world", "block", mbs.Pose((R, 0.0, 0.0)))
    attract(mech)
    mech.add_sensor("imu", mbs.Imu("block"))
    shown = readings(mech, [0.0], [0.0])[0]
    factor = 1 + 1.5 * 1.08e-3 * (6378137.0 / R) ** 2 if attract is planet else 1.0
    np.testing.assert_allclose(shown, [0, 0, 0, MU / R**2 * factor, 0, 0], rtol=1e-12, atol=1e-15)


def test_an_attraction_that_is_switched_off():
    mech = mbs.Mechanism("satellite")
    mech.add_point_mass("satellite", 100.0)
    centre(mech)
    mech.add_force("push", mbs.External(lambda model, t, q, v: jnp.array([300.0, 0.0, 0.0])))
    mech.add_sensor("imu", mbs.Imu("satellite"))
    mech.add_event("off", when=mbs.Time(1.5), then=mbs.Disable("centre"))
    found = readings(mech, [R, 0.0, 0.0], [0.0, 7650.0, 0.0])
    np.testing.assert_allclose(found[:, 3:], [[3.0, 0.0, 0.0]] * 3, atol=1e-12)


def turntable(gravity):
    """A gyroscope and an accelerometer 0.5 m beside the vertical axis of a table that turns."""
    mech = mbs.Mechanism("table", gravity=(0.0, 0.0, gravity))
    mech.add_body("table", 2.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("axis", mbs.Revolute((0, 0, 1)), "world", "table")
    imu = mbs.Imu(
        "table", point=(0.5, 0.0, 0.0), scale=(1.1, 0.9, 1.02), bias=(0.01, -0.02, 0.03),
        force_scale=(0.98, 1.05, 1.1), force_bias=(0.1, 0.2, -0.3),
    )  # fmt: skip
    mech.add_sensor("imu", imu)
    mech.add_controller("log", mbs.Controller(keep, 1.0, state=np.zeros(6), reads="imu"))
    return mech.build()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_scale_bias_and_limits(sign):
    """At 2 rad/s it feels -2 m/s2 along the arm, and 10 m/s2 against gravity: scaled first, then displaced, then limited."""
    model = turntable(-10.0 * sign)

    def shown(limit, force_limit):
        there = mbs.set(model, {"imu.limit": limit, "imu.force_limit": force_limit})
        return mbs.simulate(there, [0.3], [2.0 * sign], t_end=0.1, dt=0.1).states["log.state"][0]

    free = [0.01, -0.02, 2.04 * sign + 0.03, -1.96 + 0.1, 0.2, 11.0 * sign - 0.3]
    np.testing.assert_allclose(shown(1e9, 1e9), free, rtol=1e-13)
    np.testing.assert_allclose(shown(2.5, 12.0), free, rtol=1e-13)  # just wide enough
    limited = [0.01, -0.015, 0.015 * sign, -1.5, 0.2, 1.5 * sign]
    np.testing.assert_allclose(shown(0.015, 1.5), limited, rtol=1e-13)  # each channel by its own limit, on both sides
