"""Poses of the bodies."""

import jax
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import DOZEN, case, relative


@pytest.mark.parametrize(("seed", "n"), DOZEN)
@pytest.mark.usually("10[0-6]*", "109*")
def test_compiled_against_pinocchio_and_mujoco(seed, n):
    c = case(seed, n)
    poses = jax.jit(jax.vmap(mbs.body_poses, in_axes=(None, 0)))(c.model, c.q)
    assert poses.position.shape == (4, n, 3) and poses.rotation.shape == (4, n, 3, 3)
    for oracle in (c.pinocchio, c.mujoco):
        for i, q in enumerate(c.q):
            want = oracle.body_poses(q)
            assert relative(poses.position[i], [want[b][0] for b in c.model.body_names]) < 1e-12
            assert relative(poses.rotation[i], [want[b][1] for b in c.model.body_names]) < 1e-12


def test_quaternions_need_not_be_normalised():
    mech = mbs.Mechanism("body")
    mech.add_body("b", mass=1.0, inertia=(1, 2, 3))
    mech.add_joint("free", mbs.Free(), "world", "b")
    model = mech.build()
    q = np.array([0.1, 0.2, 0.3, 0.5, -0.5, 0.5, 0.5])
    long = q * np.array([1, 1, 1, 3, 3, 3, 3])
    assert relative(mbs.body_poses(model, long).rotation, mbs.body_poses(model, q).rotation) < 1e-14
    v, tau = np.arange(6.0), np.ones(6)
    assert relative(mbs.forward_dynamics(model, long, v, tau), mbs.forward_dynamics(model, q, v, tau)) < 1e-13


def test_pose_maps_child_to_parent():
    """x_parent = rotation @ x_child + position, for both poses of a joint."""
    quarter = (np.sqrt(0.5), 0, 0, np.sqrt(0.5))  # about z: x goes to y
    mech = mbs.Mechanism("body")
    mech.add_body("b", mass=1.0)
    mech.add_joint("j", mbs.Fixed(), "world", "b", mbs.Pose((1, 2, 3), quarter), mbs.Pose((0.5, 0, 0)))
    pose = mbs.body_poses(mech.build(), np.zeros(0))
    assert relative(pose.rotation[0], [[0, -1, 0], [1, 0, 0], [0, 0, 1]]) < 1e-15
    assert relative(pose.position[0], [1, 1.5, 3]) < 1e-15
