"""A joint that closes a loop must do what the same joint does in a tree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.model.joints.joints import VariableScrew

pytestmark = pytest.mark.interpreted

POSE_A = mbs.Pose((0.1, 0.2, 0.3), (1.0, 0.3, 0.2, 0.1))
POSE_B = mbs.Pose((0.3, 0.2, 0.3), (1.0, -0.3, 0.2, 0.1))
JOINTS = {
    "Fixed": mbs.Fixed(),
    "Revolute": mbs.Revolute(axis=(0, 0.6, 0.8)),
    "Prismatic": mbs.Prismatic(axis=(1, 0, 0)),
    "Helical": mbs.Helical(axis=(0, 0, 1), pitch=0.3),
    "Cylindrical": mbs.Cylindrical(axis=(0.6, 0, -0.8)),
    "Universal": mbs.Universal(axis_1=(1, 0, 0), axis_2=(0, 0.6, 0.8)),
    "Spherical": mbs.Spherical(),
    "Planar": mbs.Planar(),
    "VariableScrew": VariableScrew(axis=(0, 0.6, 0.8), pitch=0.3, growth=0.2),
}


def two_bodies(joint) -> mbs.Mechanism:
    """Bodies a, free, and b, hung on a by the joint, or free as well if there is none."""
    mech = mbs.Mechanism("pair", gravity=(0.0, 1.0, -9.81))
    mech.add_body("a", mass=1.0, com=(0.1, 0.0, 0.0), inertia=(0.5, 0.6, 0.7))
    mech.add_body("b", mass=2.0, com=(0.0, 0.2, 0.1), inertia=(1.0, 1.2, 0.9))
    mech.add_joint("free_a", mbs.Free(), "world", "a")
    if joint is None:
        mech.add_joint("free_b", mbs.Free(), "world", "b")
    else:
        mech.add_joint("joint", joint, "a", "b", POSE_A, POSE_B)
    return mech


def quaternion(R):
    """Of a rotation matrix, by the largest of its four candidates."""
    K = np.array([
        [R[0, 0] + R[1, 1] + R[2, 2], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
        [R[2, 1] - R[1, 2], R[0, 0] - R[1, 1] - R[2, 2], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
        [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], R[1, 1] - R[0, 0] - R[2, 2], R[1, 2] + R[2, 1]],
        [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], R[2, 2] - R[0, 0] - R[1, 1]],
    ])  # fmt: skip
    return np.linalg.eigh(K)[1][:, -1]


@pytest.fixture(scope="module", params=JOINTS)
def pair(request):
    """(tree, loop, the same state in both)."""
    joint = JOINTS[request.param]
    tree = two_bodies(joint).build()
    cut = two_bodies(None)
    cut.close_loop("cut", joint, "a", "b", POSE_A, POSE_B)
    loop = cut.build()
    q = tree.random(jax.random.key(1))
    if request.param == "Helical":
        q = q.at[7].set(0.3)  # the residual knows the angle up to full turns of the screw
    v = jax.random.normal(jax.random.key(2), (tree.nv,))
    poses, J = mbs.body_poses(tree, q), mbs.jacobian(tree, q, "b")
    R = np.asarray(poses.rotation[1])
    twist = np.asarray(J @ v)
    q_loop = jnp.concatenate([q[:7], poses.position[1], quaternion(R)])
    v_loop = jnp.concatenate([v[:6], R.T @ twist[:3], R.T @ twist[3:]])
    return tree, loop, (q, v), (q_loop, v_loop)


@pytest.mark.usually("Spherical", "Universal", "VariableScrew")
def test_the_state_of_the_tree_satisfies_the_rows(pair):
    _, loop, _, (q, v) = pair
    _, _, residual = mbs.constrained_dynamics(loop, q, v)
    J, _ = mbs.constraint_jacobian(loop, q, v)
    assert np.abs(residual).max() < 1e-14
    assert np.abs(J @ v).max() < 1e-13


@pytest.mark.usually("Revolute", "Fixed", "Spherical", "Planar", "Universal")
def test_accelerations_equal_those_of_the_tree(pair):
    tree, loop, (q, v), (q_loop, v_loop) = pair
    want = mbs.forward_dynamics(tree, q, v)[:6]
    got, multipliers, _ = mbs.constrained_dynamics(loop, q_loop, v_loop)
    np.testing.assert_allclose(got[:6], want, rtol=0, atol=1e-11 * np.abs(want).max())
    A, bias = mbs.mass_matrix(loop, q_loop), mbs.bias_forces(loop, q_loop, v_loop)
    J, drift = mbs.constraint_jacobian(loop, q_loop, v_loop)
    assert np.abs(A @ got + bias - J.T @ multipliers).max() < 1e-11
    assert np.abs(J @ got + drift).max() < 1e-11


@pytest.mark.slow
@pytest.mark.usually("Universal", "Planar", "Fixed")
def test_reactions_equal_those_of_the_tree(pair):
    """The wrench of the cut joint is that of the tree joint; the free joints transmit nothing."""
    tree, loop, (q, v), (q_loop, v_loop) = pair
    want = np.asarray(mbs.joint_reactions(tree, q, v))[1]
    free_a, free_b, cut = np.asarray(mbs.joint_reactions(loop, q_loop, v_loop))
    np.testing.assert_allclose(cut, want, rtol=0, atol=1e-11 * max(1.0, np.abs(want).max()))
    np.testing.assert_allclose([free_a, free_b], np.zeros((2, 6)), rtol=0, atol=1e-11)


@pytest.mark.usually("Prismatic", "Universal", "Helical")
def test_drift_is_the_rate_of_the_jacobian(pair):
    _, loop, _, (q, v) = pair

    e = 1e-5
    ahead, behind = flow(loop, q, v, e), flow(loop, q, v, -e)
    rate = (mbs.constraint_jacobian(loop, ahead, v)[0] - mbs.constraint_jacobian(loop, behind, v)[0]) / (2 * e)
    np.testing.assert_allclose(mbs.constraint_jacobian(loop, q, v)[1], rate @ v, rtol=0, atol=1e-7)


@pytest.mark.usually("Cylindrical", "Spherical", "VariableScrew")
def test_jacobian_is_the_derivative_of_the_residual(pair):
    _, loop, _, (q, v) = pair
    J, _ = mbs.constraint_jacobian(loop, q, v)
    e, along = 1e-6, jnp.sin(1.0 + jnp.arange(loop.nv))
    change = [mbs.constrained_dynamics(loop, flow(loop, q, along, s), v)[2] for s in (e, -e)]
    np.testing.assert_allclose(J @ along, (change[0] - change[1]) / (2 * e), rtol=0, atol=1e-8)


def flow(model, q, v, s):
    """q after moving with constant v (in the joints' own coordinates) for s seconds, to second order."""
    middle = q + 0.5 * s * _rates(model, q, v)
    return q + s * _rates(model, middle, v)


def _rates(model, q, v):
    out = []
    for k in (0, 7):
        w, linear, body = v[k // 7 * 6 : k // 7 * 6 + 3], v[k // 7 * 6 + 3 : k // 7 * 6 + 6], k // 7
        R = mbs.body_poses(model, q).rotation[body]
        a, b = q[k + 3], q[k + 4 : k + 7]
        out += [R @ linear, -0.5 * jnp.dot(b, w)[None], 0.5 * (a * w + jnp.cross(b, w))]
    return jnp.concatenate(out)
