"""Actuators with states: reaction wheels, control moment gyros, drives with a lag."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs

AXIS = np.array([2.0, -1.0, 2.0]) / 3
J, TORQUE = 0.05, 0.3
START = np.array([0.1, 0.0, 0.2, 0.9, 0.3, -0.1, 0.2]), np.array([0.3, -0.2, 0.4, 0.0, 0.1, 0.0])


def satellite(**elements):
    """A body with an offset centre of mass, in free flight."""
    mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    mech.add_body("bus", mass=20.0, com=(0.1, 0.05, -0.2), inertia=[[3.0, 0.1, 0.0], [0.1, 2.0, 0.2], [0.0, 0.2, 1.5]])
    mech.add_joint("flight", mbs.Free(), "world", "bus")
    for name, element in elements.items():
        mech.add_force(name, element)
    return mech


def with_a_body_as_wheel():
    """The same with the wheel as a body without mass on a joint: its inertia about the axis, and none across it."""
    mech = satellite()
    across = np.eye(3) - np.outer(AXIS, AXIS)
    thin = J * (np.outer(AXIS, AXIS) + 0.5 * across)  # a disc; what it adds across the axis is taken from the bus
    own = np.array([[3.0, 0.1, 0.0], [0.1, 2.0, 0.2], [0.0, 0.2, 1.5]]) - thin
    mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    mech.add_body("bus", mass=20.0, com=(0.1, 0.05, -0.2), inertia=own)
    mech.add_body("rotor", mass=1e-12, inertia=thin)
    mech.add_joint("flight", mbs.Free(), "world", "bus")
    mech.add_joint("wheel", mbs.Revolute(axis=AXIS), "bus", "rotor")
    return mech.build()


def test_a_wheel_is_a_body_on_a_joint():
    """The motion of the bus, the wheel's speed and the energy, with the wheel turning and driven with friction."""
    friction, speed = 0.01, 40.0
    wheel = mbs.ReactionWheel(
        "bus", axis=AXIS, inertia=J, torque=TORQUE, friction=friction, momentum=J * (speed + AXIS @ START[1][:3])
    )
    run = mbs.simulate(satellite(wheel=wheel).build(), *START, t_end=4.0, dt=0.01)
    other = with_a_body_as_wheel()

    def tau(model, t, q, v):
        return jnp.zeros(7).at[6].set(TORQUE - friction * v[6])

    want = mbs.simulate(other, np.append(START[0], 0.0), np.append(START[1], speed), t_end=4.0, dt=0.01, tau=tau)
    np.testing.assert_allclose(run.q, want.q[:, :7], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(run.v, want.v[:, :6], rtol=1e-7, atol=1e-8)
    turning = np.asarray(run.states["wheel.momentum"]) / J - run.v[:, :3] @ AXIS
    np.testing.assert_allclose(turning, want.v[:, 6], rtol=1e-8)
    assert np.abs(run.energy_error).max() < 1e-7
    angular, linear = run.momentum_error(satellite(wheel=wheel).build())
    assert np.abs(angular).max() < 1e-8 and np.abs(linear).max() < 1e-10


def test_the_limits_of_a_wheel():
    wheel = mbs.ReactionWheel("bus", axis=(0, 0, 1), inertia=J, torque=2.0, limit=0.5, speed_limit=20.0)
    rest = np.array([0, 0, 0, 1.0, 0, 0, 0]), np.zeros(6)
    run = mbs.simulate(satellite(wheel=wheel).build(), *rest, t_end=6.0, dt=0.01)
    early = np.asarray(run.states["wheel.momentum"])[:100]
    np.testing.assert_allclose(early, 0.5 * np.arange(100) * 0.01, rtol=1e-9, atol=1e-12)
    speed = run.states["wheel.momentum"] / J - run.v[:, 2]
    assert 19.9 < speed[-1] < 20.0 + 1e-9 and np.all(np.diff(speed) > -1e-9)


def test_a_gyro_conserves_momentum_and_takes_its_work():
    gyro = mbs.ControlMomentGyro(
        "bus", gimbal=(0, 0.6, 0.8), spin=(1, 0, 0), momentum=3.0, rate=0.7, rate_limit=0.5, angle=0.2
    )
    model = satellite(gyro=gyro).build()
    run = mbs.simulate(model, *START, t_end=5.0, dt=0.01)
    np.testing.assert_allclose(run.states["gyro.angle"], 0.2 + 0.5 * run.t, rtol=1e-12)
    angular, linear = run.momentum_error(model)
    assert np.abs(angular).max() < 1e-7 and np.abs(linear).max() < 1e-7
    assert np.abs(run.energy_error).max() < 1e-6
    assert np.abs(run.v[-1, :3] - START[1][:3]).max() > 0.5
    with pytest.raises(mbs.ModelError, match="spin must be perpendicular to gimbal"):
        satellite(gyro=mbs.ControlMomentGyro("bus", gimbal=(0, 0, 1), spin=(0, 0.6, 0.8)))


def slider(**given):
    mech = mbs.Mechanism("slider", gravity=(0.0, 0.0, 0.0))
    mech.add_body("mass", mass=2.0)
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "mass")
    mech.add_force("drive", mbs.Actuator("rail", **given))
    return mech.build()


def test_a_lag_of_first_order():
    """Force and motion of an exponential: f = F (1 - e^(-t/T)), v = F/m (t - T (1 - e^(-t/T)))."""
    run = mbs.simulate(slider(lag=0.2, command=3.0), [0.0], [0.0], t_end=1.0, dt=0.005)
    e = 1 - np.exp(-run.t / 0.2)
    np.testing.assert_allclose(run.states["drive.force"], 3 * e, rtol=1e-8)
    np.testing.assert_allclose(run.v[:, 0], 1.5 * (run.t - 0.2 * e), rtol=1e-7, atol=1e-10)
    assert np.abs(run.energy_error).max() < 1e-9


def test_limits_of_a_drive():
    """The rate until the lag is slower than it, the force in the end; derivatives through both."""
    model = slider(lag=0.1, command=-5.0, limit=2.0, rate_limit=4.0)
    run = mbs.simulate(model, [0.0], [0.0], t_end=2.0, dt=0.01)
    force, t = np.asarray(run.states["drive.force"]), np.asarray(run.t)
    until = (2.0 - 0.4) / 4.0
    np.testing.assert_allclose(force[t < until], -4 * t[t < until], rtol=1e-12, atol=1e-14)
    late = -2 + 0.4 * np.exp(-(t - until) / 0.1)
    np.testing.assert_allclose(force[t > until + 0.01], late[t > until + 0.01], rtol=1e-4)

    def end(lag):
        return mbs.simulate(mbs.set(model, {"drive.lag": lag}), [0.0], [0.0], t_end=1.0, dt=0.01).q[-1, 0]

    slope = (end(0.1 + 1e-6) - end(0.1 - 1e-6)) / 2e-6
    np.testing.assert_allclose(jax.grad(end)(0.1), slope, rtol=1e-6)


def test_a_command_that_is_sampled_moves_the_drive_onto_its_limit():
    """A command that alternates: the rate is at its limit for a while after every sample, and the energy is exact."""

    def alternates(model, t, q, v, state, readings):
        return -state, state[0]

    mech = mbs.Mechanism("slider", gravity=(0.0, 0.0, 0.0))
    mech.add_body("mass", mass=2.0)
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "mass")
    mech.add_force("drive", mbs.Actuator("rail", lag=0.05, rate_limit=10.0))
    mech.add_controller("law", mbs.Controller(alternates, 0.25, state=[1.0], writes="drive.command"))
    run = mbs.simulate(mech.build(), [0.0], [0.0], t_end=1.0, dt=0.01)
    want, found = 0.0, [0.0]
    for k in range(100):
        wanted = (-1.0) ** (k // 25)
        left = 0.01
        if abs(wanted - want) > 0.5:  # at its limit until it is within lag * rate_limit
            step = min(left, (abs(wanted - want) - 0.5) / 10.0)
            want, left = want + np.sign(wanted - want) * 10.0 * step, left - step
        want = wanted + (want - wanted) * np.exp(-left / 0.05)
        found.append(want)
    np.testing.assert_allclose(run.states["drive.force"], found, rtol=1e-5, atol=1e-5)  # of the method
    assert np.abs(run.energy_error).max() < 1e-7


def test_three_wheels_turn_a_satellite_as_in_basilisk():
    """The attitude (MRP) after a second that Basilisk's test of its balanced reaction wheels expects: torques for half of
    it, then none [Basilisk, test_reactionWheelStateEffector_integrated]. Gravity acts on the centre of mass there."""
    rpm = 2 * np.pi / 60
    mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    mech.add_body("bus", mass=750.0, com=(-0.0002, 0.0001, 0.1), inertia=(900.0, 800.0, 600.0))
    mech.add_joint("flight", mbs.Free(), "world", "bus")
    w = np.array([0.08, 0.01, 0.0])
    for k, (speed, torque) in enumerate(((500.0, 0.2), (200.0, 0.1), (-150.0, -0.5))):
        inertia = 100.0 / (6000.0 * rpm)
        wheel = mbs.ReactionWheel("bus", axis=np.eye(3)[k], inertia=inertia, torque=torque, limit=0.2,
                                  momentum=inertia * (speed * rpm + w[k]))  # fmt: skip
        mech.add_force(f"wheel_{k}", wheel)
    model, q, v = mech.build(), np.array([0, 0, 0, 1.0, 0, 0, 0]), np.array([*w, 0, 0, 0])
    for _ in range(2):
        run = mbs.simulate(model, q, v, t_end=0.5, dt=0.01)
        q, v, last = run.q[-1], run.v[-1], {name: x[-1] for name, x in run.states.items()}
        model = mbs.set(model, {**last, **{f"wheel_{k}.torque": 0.0 for k in range(3)}})
    sigma = q[4:7] / (1 + q[3])
    np.testing.assert_allclose(sigma, [1.99853994e-02, 2.45647716e-03, 8.45356279e-06], rtol=1e-8, atol=2e-12)
