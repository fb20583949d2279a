"""What force elements do to bodies and joints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative


def mechanism():
    mech = mbs.library.double_pendulum()
    mech.add_force(
        "strut", mbs.LinearSpring("upper", "lower", (0.1, 0, -0.2), (0, 0.3, -0.5), stiffness=70.0, damping=2.0)
    )
    mech.add_force("coil", mbs.JointSpring("elbow", stiffness=5.0, damping=0.3))
    mech.add_force("drag", mbs.External(lambda model, t, q, v: -0.1 * v))
    mech.add_force("jet", mbs.Thruster("lower", (0.1, 0, 0), (1, 0, 0), thrust=4.0))
    return mech.build()


def test_their_virtual_power_is_what_they_do_to_the_equations():
    """Sum of wrench . twist + generalized . v along every velocity = bias forces without less those with the elements."""
    model, q, v = mechanism(), jnp.array([0.4, -0.7]), jnp.array([0.5, 1.2])
    found = mbs.element_forces(model, q, v)
    assert set(found) == {"strut", "coil", "drag", "jet"}
    bare = mbs.library.double_pendulum().build()
    total = mbs.bias_forces(bare, q, v) - mbs.bias_forces(model, q, v)
    twists = jax.jacfwd(lambda v: mbs.body_velocities(model, q, v))(v)  # (n, 6, nv)
    power = sum(jnp.einsum("bi,bik->k", f.wrenches, twists) + f.generalized for f in found.values())
    assert relative(power, total) < 1e-12
    np.testing.assert_allclose(found["strut"].wrenches[:, 3:].sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(found["drag"].generalized, -0.1 * v, rtol=1e-12)
    R = mbs.body_poses(model, q)["lower"].rotation
    np.testing.assert_allclose(found["jet"].wrenches[1, 3:], 4 * R[:, 0], rtol=1e-12, atol=1e-12)


def test_what_is_off_does_nothing():
    mech = mbs.library.double_pendulum()
    mech.add_force("coil", mbs.JointSpring("elbow", stiffness=5.0))
    mech.add_event("off", mbs.Time(1.0), mbs.Disable("coil"))
    model = mech.build()
    run = mbs.simulate(model, [0.0, 0.3], [0.0, 0.0], t_end=1.2, dt=0.01)
    found = mbs.element_forces(model, run.q[-1], run.v[-1], mode=run.mode)
    assert np.all(found["coil"].generalized == 0)


def test_poses_by_name():
    model = mbs.library.double_pendulum().build()
    q = jnp.array([[0.5, 0.3], [0.1, -0.2]])
    poses = jax.vmap(lambda q: mbs.body_poses(model, q))(q)
    assert poses["lower"].position.shape == (2, 3) and poses["lower"].rotation.shape == (2, 3, 3)
    np.testing.assert_array_equal(poses["lower"].position, poses.position[:, 1])
    with pytest.raises(mbs.ModelError, match=r"did you mean .lower."):
        poses["lowr"]
