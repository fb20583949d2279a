"""Rows of cut joints are left out because zeros of the numbers make them depend on others: only while they are zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs

Y = mbs.Revolute((0, 1, 0))
NAMES = "j1.parent_pose.rotation", "j3.parent_pose.rotation"


def tilt(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def chain(angle=0.0, links=5, end=(2.0, 0.0, 0.0)):
    """Links in a plane between two points; of five, the second and the fourth joint may be tilted."""
    mech = mbs.Mechanism("chain", gravity=(0, 0, -9.81))
    for k in range(links):
        mech.add_body(f"b{k}", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        pose = mbs.Pose((1.0 if k else 0.0, 0, 0), tilt(angle if k in (1, 3) else 0.0))
        mech.add_joint(f"j{k}", Y, f"b{k - 1}" if k else "world", f"b{k}", parent_pose=pose)
    ends = {"pose_a": mbs.Pose((1, 0, 0)), "pose_b": mbs.Pose(end)}
    mech.close_loop("pin", mbs.Spherical(), f"b{links - 1}", "world", **ends)
    return mech.build()


def test_tilted_hinges_in_a_plane_loop_count_however_they_are_given():
    flat, tilted, turned = chain(), chain(np.radians(2.0)), tilt(np.radians(2.0))
    assert flat.structure.loops[0].kept == (0, 2) and tilted.structure.loops[0].kept == (0, 1, 2)
    q, v, status, _ = mbs.assemble(tilted, [-0.9, 0.7, 1.0, 1.0, 0.4])
    assert status == mbs.Status.OK

    def accelerations(model):
        return mbs.constrained_dynamics(model, q, v)[0]

    want = accelerations(tilted)
    assert np.abs(want - accelerations(flat)).max() > 1
    given = mbs.set(flat, dict.fromkeys(NAMES, turned))
    traced = jax.jit(lambda R: accelerations(mbs.set(flat, dict.fromkeys(NAMES, R))))(turned)
    batch, axes = mbs.vary(flat, dict.fromkeys(NAMES, jnp.stack([jnp.eye(3), jnp.asarray(turned)])))
    varied = jax.vmap(accelerations, in_axes=(axes,))(batch)[1]
    inside = jax.jit(lambda R: jax.vmap(accelerations, in_axes=(axes,))(mbs.vary(flat, dict.fromkeys(NAMES, R))[0]))
    for got in (accelerations(given), traced, varied, inside(jnp.stack([jnp.eye(3), turned]))[1]):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-10)


def test_numbers_within_the_plane_leave_the_rows_as_they_are():
    flat = chain()
    longer = {"j1.parent_pose.position": np.array([[1.0, 0, 0], [1.1, 0, 0]])}
    for model in (mbs.vary(flat, longer)[0], mbs.set(flat, {"j1.parent_pose.position": (1.1, 0, 0)})):
        assert model.structure == flat.structure
    jax.eval_shape(lambda com: mbs.set(flat, {"b1.com": com}).structure == flat.structure or pytest.fail(), jnp.ones(3))
    off = {"j1.parent_pose.position": np.array([[1.0, 0, 0], [1.0, 0.1, 0]])}
    assert mbs.vary(flat, off)[0].structure.loops[0].kept == (0, 2)  # the residual of the row that is left out tells


@pytest.mark.parametrize("given", ["built", "set"])
def test_a_pin_beside_its_place_is_said_to_be_open(given):
    if given == "built":
        with pytest.warns(mbs.ModelWarning, match="'pin' cannot close: a gap of 0.1 m or rad remains"):
            model = chain(links=3, end=(1.5, 0.1, 0.0))
    else:
        model = mbs.set(chain(links=3, end=(1.5, 0.0, 0.0)), {"pin.pose_b.position": (1.5, 0.1, 0.0)})
    q, v, status, _ = mbs.assemble(model, [-0.9, 0.7, 1.0])
    assert status == mbs.Status.UNREACHABLE
    run = mbs.simulate(model, q, v, 0.01, 1e-3, save_every=None)
    assert run.status == mbs.Status.INCONSISTENT and "pin" in run.message(model)


def test_a_joint_that_moves_by_itself_may_leave_the_plane_later():
    """Links on a stage that turns about their line: at t = 0 alone they move in one plane."""
    mech = mbs.Mechanism("turning")
    mech.add_body("a", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
    mech.add_joint("ja", Y, "world", "a")
    mech.add_body("stage", 1.0, (0, 0, 0), (1.0, 1.0, 1.0))
    mech.add_joint("turn", mbs.Carried(axis=(1, 0, 0), rate=0.5), "a", "stage", mbs.Pose((1, 0, 0)))
    for k in range(2):
        mech.add_body(f"b{k}", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
        mech.add_joint(f"j{k}", Y, f"b{k - 1}" if k else "stage", f"b{k}", mbs.Pose((float(k), 0, 0)))
    mech.close_loop("pin", mbs.Spherical(), "b1", "world", mbs.Pose((1, 0, 0)), mbs.Pose((2.0, 0, 0.5)))
    assert mech.build().structure.loops[0].kept == (0, 1, 2)
