"""Reaction wheels with static and dynamic imbalance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative

STATIC, DYNAMIC, SPEED = 1e-3, 2e-4, 30.0
AXIS = np.array([0.6, 0.0, 0.8])


def satellite(joint, **wheel):
    mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    mech.add_body("bus", mass=100.0, inertia=(10.0, 12.0, 5.0), com=(0.1, 0.0, 0.2))
    mech.add_joint("flight", joint, "world", "bus")
    wheel = {"inertia": 0.01, "point": (0.3, 0.2, 0.1), "axis": AXIS} | wheel
    mech.add_force("wheel", mbs.ReactionWheel("bus", **wheel))
    return mech.build()


def test_the_force_and_the_moment_of_a_steady_wheel():
    """On a body that is held: static_imbalance w² outwards through the wheel's centre, dynamic_imbalance w² across."""
    model = satellite(mbs.Fixed(), static_imbalance=STATIC, dynamic_imbalance=DYNAMIC)
    found = []
    for angle in (0.0, 0.7, 2.0):
        (moment, force), _ = (x.reshape(2, 3) for x in mbs.joint_reactions(model, np.array([angle]), np.array([SPEED])))
        about_centre = moment - np.cross((0.3, 0.2, 0.1), force)
        assert np.linalg.norm(force) == pytest.approx(STATIC * SPEED**2, rel=1e-12) and abs(force @ AXIS) < 1e-12
        assert np.linalg.norm(about_centre) == pytest.approx(DYNAMIC * SPEED**2, rel=1e-12)
        assert abs(about_centre @ AXIS) < 1e-12
        found.append(force / np.linalg.norm(force))
    assert found[0] @ found[1] == pytest.approx(np.cos(0.7)) and found[0] @ found[2] == pytest.approx(np.cos(2.0))


def test_the_bearing_carries_the_mass_of_the_wheel():
    for mass in (1.0, 3.0):
        mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, -10.0))
        mech.add_body("bus", mass=100.0, inertia=(10.0, 12.0, 5.0))
        mech.add_joint("stand", mbs.Fixed(), "world", "bus")
        mech.add_force("wheel", mbs.ReactionWheel("bus", mass=mass, static_imbalance=STATIC))
        stand, bearing = mbs.joint_reactions(mech.build(), np.zeros(1), np.zeros(1))
        assert stand[5] == pytest.approx(1000.0) and bearing[5] == pytest.approx(10.0 * mass)


def test_momentum_and_energy_of_a_free_satellite():
    model = satellite(mbs.Free(), static_imbalance=STATIC, dynamic_imbalance=DYNAMIC, torque=0.05)
    q0 = np.array([0, 0, 0, 1.0, 0, 0, 0, 0])
    v0 = np.array([0.1, -0.2, 0.05, 0.01, 0.02, 0.03, SPEED])
    run = mbs.simulate(model, q0, v0, t_end=2.0, dt=2e-3, save_every=100)
    before, after = (np.concatenate(mbs.momentum(model, run.q[k], run.v[k])) for k in (0, -1))
    assert relative(after, before) < 1e-9 and np.abs(run.energy_error).max() < 1e-9
    assert run.v[-1, -1] > SPEED + 5  # the motor does turn it


def test_without_imbalance_it_is_the_balanced_wheel():
    def motion(model, q0, v0):
        return mbs.simulate(model, q0, v0, t_end=1.0, dt=5e-3, save_every=None)

    law = {"torque": 0.5, "friction": 1e-3, "limit": 0.2, "speed_limit": 34.0}
    rates = np.array([0.1, -0.2, 0.05, 0.0, 0.0, 0.0])
    pose = np.array([0, 0, 0, 1.0, 0, 0, 0])
    turning = satellite(mbs.Free(), static_imbalance=STATIC, **law)
    turning = mbs.set(turning, {"wheel.static_imbalance": 0.0})
    one = motion(turning, np.append(pose, 0.0), np.append(rates, SPEED))
    momentum = 0.01 * (SPEED + AXIS @ rates[:3])
    two = motion(satellite(mbs.Free(), momentum=momentum, **law), pose, rates)
    assert relative(one.v[-1, :6], two.v[-1]) < 1e-9 and relative(one.q[-1, :7], two.q[-1]) < 1e-9
    speed = two.states["wheel.momentum"][-1] / 0.01 - AXIS @ two.v[-1, :3]
    assert float(one.v[-1, 6]) == pytest.approx(float(speed), rel=1e-9)


def test_derivatives_by_the_imbalance_at_rest_and_at_zero():
    model = satellite(mbs.Free(), static_imbalance=STATIC, dynamic_imbalance=DYNAMIC)
    q = jnp.array([0, 0, 0, 1.0, 0, 0, 0, 0.3])

    def shaken(imbalance, v):
        new = mbs.set(model, {"wheel.static_imbalance": imbalance[0], "wheel.dynamic_imbalance": imbalance[1]})
        return mbs.forward_dynamics(new, q, v)

    for v in (jnp.zeros(7), jnp.zeros(7).at[6].set(SPEED)):
        for at in (jnp.zeros(2), jnp.array([STATIC, DYNAMIC])):
            forward, reverse = jax.jacfwd(shaken)(at, v), jax.jacrev(shaken)(at, v)
            assert relative(forward, reverse) < 1e-11
            if at.any():  # no imbalance is negative
                h = 1e-6 * jnp.eye(2)
                differences = jnp.stack([(shaken(at + e, v) - shaken(at - e, v)) / 2e-6 for e in h], axis=1)
                assert relative(forward, differences) < 1e-7


def test_what_cannot_be():
    with pytest.raises(mbs.ModelError, match='turns on the joint "wheel_spin"; leave momentum out'):
        satellite(mbs.Free(), static_imbalance=1e-3, momentum=1.0)
    balanced = satellite(mbs.Free())
    assert balanced.joint_names == ("flight",)
    with pytest.raises(mbs.ModelError, match="an imbalance cannot be set on a wheel that was built balanced"):
        mbs.set(balanced, {"wheel.static_imbalance": 1e-3})


@pytest.mark.parametrize(
    ("wheel", "said"),
    [
        ({"inertia": 6.0, "axis": (0, 0, 1)}, "body 'bus' has less inertia than 'wheel', .*: -1 kg m2"),
        ({"inertia": 6.0, "axis": (0, 0, 1), "static_imbalance": STATIC}, "body 'bus' has less inertia than 'wheel'"),
        ({"mass": 101.0, "static_imbalance": STATIC}, "has a mass of 100 kg, but 'wheel', which belongs to it, 101 kg"),
        ({"mass": 50.0, "point": (2.0, 0, 0), "static_imbalance": STATIC}, "body 'bus' has less inertia than 'wheel'"),
        ({"mass": 1.0, "static_imbalance": 0.2}, "'wheel': static_imbalance: the centre of mass is farther"),
        ({"axis": 1.0, "static_imbalance": STATIC}, "force 'wheel': axis: 1.0 .*; pass 3 numbers"),
        ({"axis": (0, 0, 0), "static_imbalance": STATIC}, r"force 'wheel': axis: .* has no direction"),
        ({"point": 1.0, "static_imbalance": STATIC}, "force 'wheel': point: 1.0 .*; pass 3 numbers"),
        ({"static_imbalance": "1e-3"}, "force 'wheel': static_imbalance: '1e-3' is not a number"),
    ],
)
def test_a_wheel_is_a_part_of_its_body(wheel, said):
    """Without the wheel something must be left of the body: a plain difference of its inertias."""
    with pytest.raises(mbs.ModelError, match=said):
        satellite(mbs.Free(), **wheel)


def test_bodies_and_wheels_that_are_set():
    model = satellite(mbs.Free(), axis=(0, 0, 1))
    assert mbs.get(mbs.set(model, {"wheel.inertia": 4.9}), "wheel.inertia") == 4.9
    for values in ({"wheel.inertia": 5.1}, {"bus.inertia": (0.1, 0.1, 0.009)}):
        with pytest.raises(mbs.ModelError, match="set: body 'bus' has less inertia than 'wheel'"):
            mbs.set(model, values)
    both = mbs.set(model, {"wheel.inertia": 5.1, "bus.inertia": (10.0, 12.0, 6.0)})
    assert mbs.get(both, "wheel.inertia") == 5.1


def test_a_wheel_on_a_point_mass():
    """It has no inertia of its own from which something could be taken, and moves along with its arm."""
    mech = mbs.library.double_pendulum()
    still = mbs.mass_matrix(mech.build(), [0.1, 0.2])
    mech.add_force("wheel", mbs.ReactionWheel("upper", axis=(0, 1, 0), inertia=0.3))
    np.testing.assert_allclose(mbs.mass_matrix(mech.build(), [0.1, 0.2]), still - np.diag([0.3, 0.0]), rtol=1e-14)


def test_two_wheels_and_a_rotor_share_what_the_body_has():
    mech = mbs.library.double_pendulum()
    mech.add_body("disc", mass=1.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("pin", mbs.Revolute((0, 1, 0)), "lower", "disc")
    for name in ("one", "two"):
        mech.add_force(name, mbs.ReactionWheel("disc", inertia=0.06))
    with pytest.raises(mbs.ModelError, match="body 'disc' has less inertia than 'one' and 'two'"):
        mech.build()
    mech = mbs.library.double_pendulum()
    mech.add_body("disc", mass=1.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("pin", mbs.Revolute((0, 1, 0)), "lower", "disc")
    mech.add_force("motor", mbs.Rotor("disc", axis=(0, 1, 0), inertia=0.2, joint="pin"))
    with pytest.raises(mbs.ModelError, match="body 'disc' has less inertia than 'motor'"):
        mech.build()


def test_a_file(tmp_path):
    model = satellite(mbs.Free(), static_imbalance=STATIC, dynamic_imbalance=DYNAMIC)
    mbs.save(model, tmp_path / "satellite.toml")
    again, q = mbs.load(tmp_path / "satellite.toml"), np.array([0, 0, 0, 1.0, 0, 0, 0, 0.3])
    assert again.joint_names == model.joint_names
    np.testing.assert_allclose(mbs.mass_matrix(again, q), mbs.mass_matrix(model, q), rtol=1e-13, atol=1e-16)
