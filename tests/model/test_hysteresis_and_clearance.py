"""Springs with hysteresis and hinges with clearance, against closed forms and conservation laws."""

import jax
import numpy as np

import jaxmbs as mbs


def test_the_loop_of_a_hysteretic_spring():
    """z is tanh of the extension over the yield length, falls linearly after the reversal, and builds up again."""
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", mass=2.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    at = ((0, 0, 0), (0, 0, 0), (1, 0, 0))
    yields = 0.02
    spring = mbs.HystereticSpring("world", "cart", *at, stiffness=200.0, friction=3.0, yield_length=yields)
    mech.add_force("stack", spring)
    model = mech.build()
    run = mbs.simulate(model, [0.0], [1.0], t_end=0.5, dt=1e-3)
    assert run.status == mbs.Status.OK and np.abs(run.energy_error).max() < 1e-7
    s, z = np.asarray(run.q[:, 0]), np.asarray(run.states["stack.z"])
    turn = int(np.argmax(s))
    most = float(s[turn])
    np.testing.assert_allclose(z[: turn - 1], np.tanh(s[: turn - 1] / yields), atol=1e-7)
    back = slice(turn + 1, turn + int(np.argmin(s[turn:])))  # until it turns again
    whole = np.tanh(most / yields)
    zero = most - yields * whole  # where z is zero again
    want = np.where(s[back] > zero, whole - (most - s[back]) / yields, -np.tanh((zero - s[back]) / yields))
    np.testing.assert_allclose(z[back], want, atol=2e-4)  # the top lies between two rows

    def end(friction):
        own = mbs.set(model, {"stack.friction": friction})
        return mbs.simulate(own, [0.0], [1.0], t_end=0.3, dt=0.01).q[-1, 0]

    slope = (end(3.0 + 1e-5) - end(3.0 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.jacfwd(end)(3.0), slope, rtol=1e-6)


def hinged(**pin):
    """Two free bodies that a pin with clearance along a skew axis holds together."""
    mech = mbs.Mechanism("pair", gravity=(0.0, 0.0, 0.0))
    mech.add_body("door", mass=2.0, com=(0.0, 0.2, 0.1), inertia=(0.1, 0.15, 0.08))
    mech.add_body("frame", mass=3.0, inertia=(0.4, 0.3, 0.2))
    mech.add_joint("frame", mbs.Free(), "world", "frame")
    mech.add_joint("door", mbs.Free(), "world", "door")
    at = {"point_a": (0.1, 0.0, 0.0), "point_b": (0.1, 0.0, 0.0), "axis": np.array([0.6, 0.0, 0.8])}
    mech.add_force("pin", mbs.ClearanceHinge("frame", "door", **at, **pin))
    return mech.build()


def test_a_pin_with_clearance():
    """Free until it touches; then momentum is kept, and the energy too without damping; damping takes energy away."""
    q0 = np.array([0, 0, 0, 1.0, 0, 0, 0] * 2)
    v0 = np.array([0.3, -0.2, 0.5, 0.0, 0.1, 0.0, -0.4, 0.6, 0.2, 0.0, -0.1, 0.05])
    losses = []
    for damping in (0.0, 20.0):
        model = hinged(clearance=0.01, stiffness=2e3, damping=damping)
        run = mbs.simulate(model, q0, v0, t_end=0.4, dt=2e-3)
        assert run.status == mbs.Status.OK and np.abs(run.energy_error).max() < 1e-6
        angular, linear = run.momentum_error(model)
        assert np.abs(angular).max() < 1e-8 and np.abs(linear).max() < 1e-8
        energy = [mbs.energy(model, run.q[k], run.v[k]) for k in (0, -1)]
        losses.append(float(sum(energy[0]) - sum(energy[1])))
        poses = jax.vmap(lambda q, model=model: mbs.body_poses(model, q))(run.q)
        apart = np.einsum("tij,j->ti", poses["frame"].rotation, [0.1, 0, 0]) + poses["frame"].position
        apart -= np.einsum("tij,j->ti", poses["door"].rotation, [0.1, 0, 0]) + poses["door"].position
        axis = np.einsum("tij,j->ti", poses["frame"].rotation, [0.6, 0, 0.8])
        across = np.linalg.norm(apart - axis * np.sum(apart * axis, axis=1)[:, None], axis=1)
        assert 0.01 < across.max() < 0.06 and across[0] == 0
    assert abs(losses[0]) < 1e-6 and losses[1] > 1e-3
