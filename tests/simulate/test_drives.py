"""Drives with lags of second order, servos with play, gimballed motors, geared rotors: against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative

REST = np.array([0, 0, 0, 1.0, 0, 0, 0])


def slider(mass=2.0, gravity=0.0, **forces):
    mech = mbs.Mechanism("slider", gravity=(gravity, 0.0, 0.0))
    mech.add_body("mass", mass=mass)
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "mass")
    for name, force in forces.items():
        mech.add_force(name, force)
    return mech.build()


def step_response(t, w, z):
    """Of an oscillator with the frequency w and the damping ratio z < 1."""
    d = w * np.sqrt(1 - z * z)
    return 1 - np.exp(-z * w * t) * (np.cos(d * t) + z * w / d * np.sin(d * t))


def test_a_lag_of_second_order():
    drive = mbs.SecondOrderActuator("rail", frequency=20.0, damping_ratio=0.3, command=5.0, limit=3.0)
    run = mbs.simulate(slider(drive=drive), [0.0], [0.0], t_end=1.0, dt=0.002)
    np.testing.assert_allclose(run.states["drive.force"], 3 * step_response(run.t, 20.0, 0.3), atol=1e-6)
    assert np.abs(run.energy_error).max() < 1e-9


def test_the_rate_of_a_drive_is_limited():
    """The force rises at the limit from the time at which the oscillator would be as fast."""
    drive = mbs.SecondOrderActuator("rail", frequency=20.0, damping_ratio=0.7, command=3.0, rate_limit=10.0)
    run = mbs.simulate(slider(drive=drive), [0.0], [0.0], t_end=0.6, dt=0.002)
    force, t = np.asarray(run.states["drive.force"]), np.asarray(run.t)
    speed = np.diff(force) / np.diff(t)
    assert run.status == mbs.Status.OK and speed.max() <= 10.0 * (1 + 1e-9)
    assert np.sum(abs(speed - 10.0) < 0.01) > 80 and abs(force[-1] - 3.0) < 0.05 and force.max() < 3.06


def test_a_servo_moves_a_heavy_joint_as_its_shaft():
    """Without play, the joint is tied to the shaft; both limits of the command, and that of the speed."""
    servo = mbs.Servo("rail", frequency=20.0, damping_ratio=0.4, command=0.5, highest=0.3, stiffness=1e5, damping=900.0)
    model = slider(servo=servo)
    run = mbs.simulate(model, [0.0], [0.0], t_end=1.0, dt=0.0005)
    shaft = np.asarray(run.states["servo.position"])
    np.testing.assert_allclose(shaft, 0.3 * step_response(run.t, 20.0, 0.4), atol=1e-6)
    np.testing.assert_allclose(run.q[:, 0], shaft, atol=3e-3)
    assert np.abs(run.energy_error).max() < 1e-5
    slow = mbs.simulate(mbs.set(model, {"servo.rate_limit": 0.5}), [0.0], [0.0], t_end=0.4, dt=0.002)
    speed = np.diff(np.asarray(slow.states["servo.position"])) / 0.002
    assert speed.max() <= 0.5 * (1 + 1e-9) and np.sum(speed > 0.5 * (1 - 1e-3)) > 100

    def end(stiffness):
        own = mbs.set(model, {"servo.stiffness": stiffness})
        return mbs.simulate(own, [0.0], [0.0], t_end=0.1, dt=0.01).q[-1, 0]

    slope = (end(1e4 + 1.0) - end(1e4 - 1.0)) / 2
    np.testing.assert_allclose(jax.jacfwd(end)(1e4), slope, rtol=1e-6)
    np.testing.assert_allclose(jax.jacrev(end)(1e4), slope, rtol=1e-6)


def test_play_of_a_servo():
    """Without damping the load bounces between the sides of the play and keeps its energy; with a load it rests on one."""
    servo = mbs.Servo("rail", stiffness=1e4, play=0.02)
    model = slider(servo=servo)
    run = mbs.simulate(model, [0.0], [0.5], t_end=1.0, dt=1e-3)
    w = np.sqrt(1e4 / 2.0)
    period = 2 * (0.02 / 0.5 + np.pi / w)  # free travel both ways, and half an oscillation on either side
    x = np.interp(np.arange(0.0, 1.0, 0.01) % period, run.t, run.q[:, 0])
    assert run.status == mbs.Status.OK and np.abs(run.energy_error).max() < 1e-6
    np.testing.assert_allclose(np.interp(np.arange(0.0, 1.0, 0.01), run.t, run.q[:, 0]), x, atol=2e-4)
    most = 0.01 + 0.5 / w
    assert abs(run.q[:, 0].max() - most) < 1e-4 and abs(run.q[:, 0].min() + most) < 1e-4
    damped = slider(gravity=-10.0, servo=mbs.Servo("rail", stiffness=1e4, play=0.02, damping=50.0))
    run = mbs.simulate(damped, [0.0], [0.0], t_end=3.0, dt=2e-3, save_every=None)
    assert run.status == mbs.Status.OK and abs(run.q[-1, 0] + 0.01 + 20.0 / 1e4) < 1e-7


def stage(motor):
    mech = mbs.Mechanism("stage", gravity=(0.0, 0.0, 0.0))
    mech.add_body("stage", mass=1000.0, com=(0.0, 0.1, 0.5), inertia=(2000.0, 2100.0, 200.0))
    mech.add_joint("flight", mbs.Free(), "world", "stage")
    mech.add_force("engine", motor)
    return mech.build()


def test_a_gimbal_turns_the_thrust():
    """The angles follow their commands exponentially; held angles are a motor in the turned direction."""
    given = {"point": (0, 0, -2), "thrust": 1e4, "propellant": 100.0, "propellant_com": (0, 0, 1.0)}
    angles = {"command_1": 0.1, "command_2": -0.2, "angle_1": 0.1, "angle_2": -0.2}
    engine = mbs.Gimbal("stage", **given, **angles, axis_1=(0, 1, 0), axis_2=(1, 0, 0))
    tilted = np.array([0.0, np.sin(0.2), np.cos(0.2)])  # -0.2 rad about x
    direction = [np.sin(0.1) * tilted[2], tilted[1], np.cos(0.1) * tilted[2]]  # then 0.1 rad about y
    v0 = np.array([0.1, 0.2, -0.3, 1.0, 0.0, 2.0])
    q0 = np.array([0, 0, 0, 0.9, 0.3, -0.1, 0.2])
    motor = mbs.Motor("stage", **given, axis=direction)
    found, want = (mbs.forward_dynamics(stage(m), q0, v0) for m in (engine, motor))
    assert relative(found, want) < 1e-13


def test_the_angles_of_a_gimbal_follow_their_commands():
    """As fast as the limit of the rate until the lag is slower."""
    given = {"thrust": 1e4, "propellant": 100.0, "axis": (1, 0, 0), "axis_1": (0, 0, 1)}
    engine = mbs.Gimbal("mass", **given, command_1=0.3, lag=0.05, angle_limit=0.2, rate_limit=1.0)
    run = mbs.simulate(slider(mass=100.0, engine=engine), [0.0], [0.0], t_end=0.5, dt=0.01)
    t, until = np.asarray(run.t), (0.2 - 0.05) / 1.0
    want = np.where(t < until, t, 0.2 - 0.05 * np.exp(-(t - until) / 0.05))
    np.testing.assert_allclose(run.states["engine.angle_1"], want, atol=1e-5)
    np.testing.assert_allclose(run.states["engine.angle_2"], 0.0, atol=1e-15)


def arm(free=False, **rotor):
    mech = mbs.Mechanism("arm", gravity=(0.0, 0.0, -9.81))
    mech.add_body("base", mass=5.0, com=(0.1, 0, 0), inertia=(0.3, 0.4, 0.5))
    mech.add_body("link", mass=2.0, com=(0, 0, -0.4), inertia=(0.1, 0.12, 0.02))
    mech.add_joint("base", mbs.Free() if free else mbs.Revolute(axis=(0, 0, 1)), "world", "base")
    mech.add_joint("hinge", mbs.Revolute(axis=(0, 1, 0)), "base", "link", armature=rotor.pop("armature", 0.0))
    if rotor:
        mech.add_force("motor", mbs.Rotor("base", joint="hinge", **rotor))
    return mech.build()


@pytest.mark.parametrize("axis", [(0, 1, 0), (0.6, 0.0, 0.8)])
def test_a_geared_rotor(axis):
    """Kinetic energy I/2 (axis . w + ratio rate)² instead of I/2 (axis . w)², from which the equations follow."""
    inertia, ratio = 2e-3, 30.0
    model, bare = arm(axis=axis, inertia=inertia, ratio=ratio), arm()
    q, v = np.array([0.3, 0.7]), np.array([1.5, -2.0])

    def mass(q):
        """About the body's own z axis alone does the base turn."""
        g = jnp.array([axis[2], ratio])
        turns = jnp.array([axis[2], 0.0])
        return mbs.mass_matrix(bare, q) + inertia * (jnp.outer(g, g) - jnp.outer(turns, turns))

    # the added part is constant here, so that it adds no velocity terms
    want = np.linalg.solve(mass(q), -mbs.bias_forces(bare, q, v))
    whole = np.append(q, ratio * q[1]), np.append(v, ratio * v[1])
    a = mbs.constrained_dynamics(model, *whole)[0]
    assert relative(a[:2], want) < 1e-11 and abs(a[2] - ratio * a[1]) < 1e-9
    if axis[2] == 0:  # across the axis about which the base turns, there is nothing but the armature
        other = mbs.forward_dynamics(arm(armature=inertia * ratio**2), q, v)
        assert relative(a[:2], other) < 1e-11


def test_a_free_body_with_a_rotor_keeps_its_momentum():
    model = arm(free=True, axis=(0.6, 0.0, 0.8), inertia=2e-3, ratio=30.0)
    model = mbs.set(model, {"gravity": (0.0, 0.0, 0.0)})
    q0, v0 = np.append(REST, [0.3, 9.0]), np.append([0.2, -0.1, 0.4, 0, 0, 0], [1.0, 30.0])
    run = mbs.simulate(model, q0, v0, t_end=1.0, dt=2e-3, save_every=None)
    before, after = (np.concatenate(mbs.momentum(model, run.q[k], run.v[k])) for k in (0, -1))
    assert run.status == mbs.Status.OK and relative(after, before) < 1e-8 and abs(run.energy_error[-1]) < 1e-8
    assert np.abs(run.v[-1, :3] - v0[:3]).max() > 0.05


def test_a_rotor_needs_its_joint():
    with pytest.raises(mbs.ModelError, match="give the joint with which the rotor turns"):
        mech = mbs.library.double_pendulum()
        mech.add_force("motor", mbs.Rotor("upper"))


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"axis_1": (0, 1, 0)}, "axis_1 and axis_2 are parallel"),
        ({"axis_1": (0, 0, 1)}, "axis_1 or axis_2 is along `axis`"),
        ({"axis_2": (0, 0, -1)}, "axis_1 or axis_2 is along `axis`"),
    ],
)
def test_axes_of_a_gimbal_that_do_not_turn_the_thrust_are_refused(axes, said):
    with pytest.raises(mbs.ModelError, match=f"force 'engine': {said}"):
        stage(mbs.Gimbal("stage", thrust=1.0, propellant=1.0, **axes))
