"""Joints in step: couplings against the same constraint written as a function, against one joint less, and in files."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative


def arms(constraint=None):
    mech = mbs.library.double_pendulum()
    if constraint is not None:
        mech.add_constraint("cable", constraint)
    return mech.build()


def test_a_coupling_is_its_function():
    own = arms(mbs.Coupling("shoulder", "elbow", ratio=-2.0, offset=0.3))
    by_hand = arms(mbs.Holonomic(lambda model, t, q, v: jnp.stack([q[1] + 2.0 * q[0] - 0.3])))
    q, v, tau = [0.4, -0.5], [0.7, -1.4], [0.2, -0.1]
    for a, b in zip(
        mbs.constrained_dynamics(own, q, v, tau), mbs.constrained_dynamics(by_hand, q, v, tau), strict=True
    ):
        assert relative(a, b) < 1e-12
    assert mbs.get(own, "cable.ratio") == -2.0


def test_a_gear_drives_the_inertia_that_it_carries():
    """Two wheels on parallel axles in step: one freedom with the inertia I_a + r² I_b."""
    mech = mbs.Mechanism("gear")
    for name, inertia in (("a", 0.4), ("b", 0.1)):
        mech.add_body(name, 1.0, inertia=(inertia, inertia, inertia))
        mech.add_joint(name, mbs.Revolute((0, 0, 1)), "world", name)
    mech.add_force("coil", mbs.TorsionSpring("b", stiffness=2.0))
    mech.add_constraint("gear", mbs.Coupling("a", "b", ratio=-3.0))
    run = mbs.simulate(mech.build(), [0.1, -0.3], [0.0, 0.0], 2.0, 0.01)
    w = np.sqrt(9 * 2.0 / (0.4 + 9 * 0.1))
    assert np.abs(run.q[:, 0] - 0.1 * np.cos(w * run.t)).max() < 1e-7
    assert np.abs(run.q[:, 1] + 3 * run.q[:, 0]).max() < 1e-14 and run.status == mbs.Status.OK
    assert np.abs(run.energy_error).max() < 1e-8


@pytest.mark.interpreted
def test_what_cannot_be_coupled():
    with pytest.raises(mbs.ModelError, match=r"constraint 'cable': joint_b: .*elbo"):
        arms(mbs.Coupling("shoulder", "elbo"))
    mech = mbs.Mechanism("m")
    for name in ("a", "b"):
        mech.add_body(name, 1.0, inertia=(1, 1, 1))
        mech.add_joint(name, mbs.Free(), "world", name)
    mech.add_constraint("cable", mbs.Coupling("a", "b"))
    with pytest.raises(mbs.ModelError, match="joint 'a' is Free; couple joints with one degree of freedom"):
        mech.build()
