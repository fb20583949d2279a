"""Springs and dampers on the coordinates of cut joints [Y 3.199], and General joints as cut joints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.dynamics.constrained.test_cut_joints import JOINTS, POSE_A, POSE_B, quaternion, two_bodies

SPRING = dict(stiffness=30.0, damping=2.0, rest_angle=0.4)
ELEMENTS = {
    "Revolute": mbs.TorsionSpring("joint", **SPRING),
    "Prismatic": mbs.TorsionSpring("joint", **SPRING),
    "Helical": mbs.TorsionSpring("joint", **SPRING),
    "Cylindrical": mbs.Damper("joint", damping=3.0),
    "Spherical": mbs.Damper("joint", damping=3.0),
    "Universal": mbs.Damper("joint", damping=3.0),
    "Planar": mbs.Damper("joint", damping=3.0),
    "VariableScrew": mbs.TorsionSpring("joint", **SPRING),
}


def same_state(tree, q, v):
    """Coordinates of two free bodies that stand and move as those of the tree."""
    poses, J = mbs.body_poses(tree, q), mbs.jacobian(tree, q, "b")
    R = np.asarray(poses.rotation[1])
    twist = np.asarray(J @ v)
    return (
        jnp.concatenate([q[:7], poses.position[1], quaternion(R)]),
        jnp.concatenate([v[:6], R.T @ twist[:3], R.T @ twist[3:]]),
    )


@pytest.mark.parametrize("kind", ELEMENTS)
@pytest.mark.interpreted
@pytest.mark.usually("Revolute", "VariableScrew")
def test_elements_act_as_in_a_tree(kind):
    mech, cut = two_bodies(JOINTS[kind]), two_bodies(None)
    cut.close_loop("joint", JOINTS[kind], "a", "b", POSE_A, POSE_B)
    for m in (mech, cut):
        m.add_force("element", ELEMENTS[kind])
    tree, loop = mech.build(), cut.build()
    q, v = tree.random(jax.random.key(1)), jax.random.normal(jax.random.key(2), (tree.nv,))
    if kind == "Helical":
        q = q.at[7].set(0.3)
    on_loop = same_state(tree, q, v)
    want = mbs.forward_dynamics(tree, q, v)[:6]
    np.testing.assert_allclose(mbs.forward_dynamics(loop, *on_loop)[:6], want, rtol=0, atol=1e-10)
    np.testing.assert_allclose(mbs.energy(loop, *on_loop), mbs.energy(tree, q, v), rtol=1e-12)
    np.testing.assert_allclose(
        mbs.joint_reactions(loop, *on_loop)[-1], mbs.joint_reactions(tree, q, v)[-1], rtol=0, atol=1e-10
    )


@pytest.mark.interpreted
def test_two_elements_in_one_cut_joint_add():
    mech, cut = two_bodies(JOINTS["Revolute"]), two_bodies(None)
    cut.close_loop("joint", JOINTS["Revolute"], "a", "b", POSE_A, POSE_B)
    for m in (mech, cut):
        m.add_force("spring", ELEMENTS["Revolute"])
        m.add_force("damper", mbs.Damper("joint", damping=3.0))
    tree, loop = mech.build(), cut.build()
    q, v = tree.random(jax.random.key(1)), jax.random.normal(jax.random.key(2), (tree.nv,))
    on_loop = same_state(tree, q, v)
    np.testing.assert_allclose(
        mbs.joint_reactions(loop, *on_loop)[-1], mbs.joint_reactions(tree, q, v)[-1], rtol=0, atol=1e-10
    )


@pytest.mark.slow
def test_energy_of_a_sprung_and_damped_cut_joint():
    mech = mbs.library.four_bar()
    mech.add_force("spring", mbs.TorsionSpring("pin", stiffness=20.0, damping=0.5, rest_angle=1.0))
    model = mech.build()
    q, v, _, _ = mbs.assemble(model, jnp.array([1.0, -0.8, 1.6]), fixed="crank_hinge")
    run = mbs.simulate(model, q, v, 1.0, 1e-3, save_every=None)
    kinetic, potential = mbs.energy(model, run.q[-1], run.v[-1])
    assert float(sum(mbs.energy(model, q, v)) - kinetic - potential) > 0.1  # the damper took some
    assert abs(float(run.energy_error[-1])) < 1e-8


def hooke(z, G, t):
    """Universal joint about x of a and y of b, carried along z by time."""
    return jnp.concatenate([z - jnp.stack([0 * t, 0 * t, 0.1 * jnp.sin(3 * t)]), G[0, 1][None]])


@pytest.mark.slow
def test_general_closure_equals_the_joint_it_spells_out():
    """A moving universal joint as a closure, against a massless carriage that is driven up and down."""
    general = mbs.General(lambda q, t: jnp.zeros(3), lambda q, t: jnp.eye(3), 2, closure=hooke)
    models = []
    for joint in (mbs.Universal((1, 0, 0), (0, 1, 0)), general):
        mech = two_bodies(None)
        mech.close_loop("cut", joint, "a", "b", POSE_A, POSE_B)
        models.append(mech.build())
    plain, moving = models
    q, v, status, _ = mbs.assemble(
        plain, jnp.array([0, 0, 0, 1.0, 0, 0, 0, 0, 0.3, 0.1, 0.9, 0.1, 0.2, 0.1]), jnp.ones(12)
    )
    assert int(status) == mbs.Status.OK
    J, _ = mbs.constraint_jacobian(plain, q, v)
    own_J, _ = mbs.constraint_jacobian(moving, q, v)
    span = np.linalg.matrix_rank(np.concatenate([J, own_J]), tol=1e-9)
    assert span == 4  # the same wrenches
    v = v - jnp.linalg.pinv(own_J) @ (own_J @ v + jnp.array([0, 0, -0.3, 0]))
    run = mbs.simulate(moving, q, v, 0.5, 1e-3, save_every=None)
    assert int(run.status) == mbs.Status.OK
    assert run.constraint_error.max() < 1e-12
    poses = mbs.body_poses(moving, run.q[-1])
    end_a = poses.position[0] + poses.rotation[0] @ np.asarray(POSE_A.position)
    end_b = poses.position[1] + poses.rotation[1] @ np.asarray(POSE_B.position)
    assert abs(float(jnp.linalg.norm(end_b - end_a)) - 0.1 * abs(np.sin(1.5))) < 1e-10


def test_elements_on_cut_joints_without_coordinates_are_refused():
    mech = two_bodies(None)
    mech.close_loop("cut", mbs.General(lambda q, t: jnp.zeros(3), lambda q, t: jnp.eye(3), 2, closure=hooke), "a", "b")
    mech.add_force("damper", mbs.Damper("cut", damping=1.0))
    with pytest.raises(mbs.ModelError, match=r"damper.*cut.*General.*Bushing"):
        mech.build()


def test_general_without_closure_is_refused():
    mech = two_bodies(None)
    with pytest.raises(mbs.ModelError, match="closure"):
        mech.close_loop("cut", mbs.General(lambda q, t: jnp.zeros(3), lambda q, t: jnp.eye(3), 2), "a", "b")
