"""A rod between two points, against a constraint function and a pendulum."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs


def chain(constrain):
    """Two bodies with offset points, one of them on a Free joint; `constrain` adds what connects them."""
    mech = mbs.Mechanism("pair")
    mech.add_body("arm", mass=2.0, com=(0.1, 0.0, -0.3), inertia=(0.2, 0.3, 0.1))
    mech.add_body("load", mass=1.0, com=(0.0, 0.05, 0.0), inertia=(0.02, 0.03, 0.04))
    mech.add_joint("shoulder", mbs.Universal(), "world", "arm")
    mech.add_joint("flight", mbs.Free(), "world", "load")
    constrain(mech)
    return mech.build()


A, B = (0.1, 0.2, -0.1), (0.0, 0.1, -0.8)


def distance(model, t, q, v):
    poses = mbs.body_poses(model, q)
    ends = [poses.position[k] + poses.rotation[k] @ jnp.array(x) for k, x in ((1, A), (0, B))]
    return jnp.linalg.norm(ends[0] - ends[1]) - 0.7


@pytest.fixture(scope="module")
def pair():
    rod = mbs.Rod("load", "arm", point_a=A, point_b=B, length=0.7)
    return (
        chain(lambda mech: mech.add_constraint("rod", rod)),
        chain(lambda mech: mech.add_constraint("rod", mbs.Holonomic(distance))),
    )


def test_it_is_the_constraint_of_its_distance(pair):
    """Accelerations, multipliers, Jacobian and residual, at random states; it need not hold there."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        q, v = rng.normal(size=pair[0].nq), rng.normal(size=pair[0].nv)
        q[5:] /= np.linalg.norm(q[5:])
        one, other = (mbs.constrained_dynamics(model, q, v) for model in pair)
        for x, y in zip(one, other, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


def test_a_motion(pair):
    model = pair[0]
    q0, *_ = mbs.assemble(model, np.array([0.3, 0.2, 0.0, 0.0, -1.5, 1.0, 0, 0, 0]))
    run = mbs.simulate(model, q0, np.zeros(8), t_end=1.0, dt=0.005)
    assert np.max(run.constraint_error) < 1e-12 and np.abs(run.energy_error).max() < 1e-6
    assert int(run.status) == 0


def test_the_force_in_a_pendulum():
    """Tension of a bob that swings: m (g cos x + l w²)."""
    mech = mbs.Mechanism("pendulum", gravity=(0.0, 0.0, -9.81))
    mech.add_body("bob", mass=2.0, inertia=(0.01, 0.01, 0.01))
    mech.add_joint("path", mbs.Free(), "world", "bob")
    mech.add_constraint("rod", mbs.Rod("bob", length=1.5))
    x, w = 0.4, 1.3
    q = [1.5 * np.sin(x), 0.0, -1.5 * np.cos(x), 1.0, 0, 0, 0]
    v = [0.0, 0, 0, 1.5 * w * np.cos(x), 0.0, 1.5 * w * np.sin(x)]
    _, multipliers, residual = mbs.constrained_dynamics(mech.build(), q, v)
    np.testing.assert_allclose(multipliers, [-2.0 * (9.81 * np.cos(x) + 1.5 * w * w)], rtol=1e-12)
    np.testing.assert_allclose(residual, [0.0], atol=1e-14)
