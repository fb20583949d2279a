"""Closed loops of random mechanisms against Pinocchio's constrained dynamics."""

import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jaxmbs as mbs
from tests.mechanisms import build, random_mechanism, random_q
from tests.mechanisms import joint as joint_of
from tests.mirrors import Pinocchio

KINDS = ("Revolute", "Universal", "Spherical", "Prismatic")
CLOSED = {
    "Spherical": (mbs.Spherical(), pin.ContactType.CONTACT_3D),
    "Fixed": (mbs.Fixed(), pin.ContactType.CONTACT_6D),
}


def quaternion(R):
    q = pin.Quaternion(np.asarray(R)).normalized()
    return np.array([q.w, q.x, q.y, q.z])


def in_both(seed, kind):
    """(model, q, v, tau) and Pinocchio's accelerations there."""
    joint, contact = CLOSED[kind]
    description = random_mechanism(seed, 6, kinds=KINDS, massless=0.0, free_base=False, aligned=0.5)
    description = description.ordered(build(description).joint_names)
    mirror, rng = Pinocchio(description), np.random.default_rng(seed)
    q = random_q(description, rng)
    # the ends of two branches, connected where they are
    a, b = description.joints[-1].child, description.joints[-2].child
    poses = mirror.body_poses(q)
    (x_a, R_a), (x_b, R_b) = poses[a], poses[b]
    at = np.array([0.2, -0.1, 0.3])
    pose_a = mbs.Pose(tuple(at))
    pose_b = mbs.Pose(tuple(R_b.T @ (x_a + R_a @ at - x_b)), tuple(quaternion(R_b.T @ R_a)))

    mech = mbs.Mechanism(f"loop {seed}", gravity=tuple(description.gravity))

    for body in description.bodies:
        mech.add_body(body.name, body.mass, body.com, body.inertia)
    for j in description.joints:
        ends = [mbs.Pose(p.position, p.quaternion) for p in (j.parent_pose, j.child_pose)]
        mech.add_joint(j.name, joint_of(j), j.parent, j.child, *ends)
    mech.close_loop("cut", joint, a, b, pose_a, pose_b)
    model = mech.build()
    J, _ = mbs.constraint_jacobian(model, q)
    v = rng.normal(size=model.nv)
    v = v - np.linalg.pinv(J) @ (J @ v)
    tau = rng.normal(size=model.nv)

    placed = [
        mirror.placement[body] * pin.SE3(np.asarray(pin.Quaternion(*pose.rotation).matrix()), np.array(pose.position))
        for body, pose in ((a, pose_a), (b, pose_b))
    ]
    frame = pin.ReferenceFrame.LOCAL
    closed = pin.StdVec_RigidConstraintModel()
    closed.append(
        pin.RigidConstraintModel(
            contact, mirror.model, mirror.joint_of[a], placed[0], mirror.joint_of[b], placed[1], frame
        )
    )
    datas = pin.StdVec_RigidConstraintData()
    datas.extend(c.createData() for c in closed)
    pin.initConstraintDynamics(mirror.model, mirror.data, closed, datas)
    settings = pin.ProximalSettings(1e-14, 1e-13, 50)
    arguments = (mirror._q(q), mirror._v(v), mirror._v(tau))
    want = pin.constraintDynamics(mirror.model, mirror.data, *arguments, closed, datas, settings)
    return (model, q, v, tau), mirror._back(np.asarray(want))


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("seed", "kind"), [(3, "Spherical"), (8, "Fixed"), pytest.param(11, "Spherical", marks=pytest.mark.slow)]
)
@pytest.mark.usually("3-*")
def test_accelerations(seed, kind):
    (model, q, v, tau), want = in_both(seed, kind)
    for method in ("multipliers", "elimination"):
        got, _, residual = mbs.constrained_dynamics(model, q, v, tau, method=method)
        assert np.abs(residual).max() < 1e-12
        assert np.abs(got - want).max() < 1e-8 * max(1.0, np.abs(want).max())
    assert np.abs(mbs.forward_dynamics(model, jnp.asarray(q), v, tau) - want).max() < 1e-8 * max(
        1.0, np.abs(want).max()
    )
