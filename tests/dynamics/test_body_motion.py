"""Velocities and accelerations of bodies, and rotations as users write them."""

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxmbs as mbs
from tests.mechanisms import build, random_mechanism, random_q


@pytest.mark.parametrize("seed", range(4))
def test_velocities_are_those_of_the_jacobians_and_accelerations_their_rates(seed):
    mechanism, rng = random_mechanism(seed, 5), np.random.default_rng(seed)
    model, q = build(mechanism), random_q(mechanism, rng)
    v, a = rng.normal(size=(2, model.nv))
    found = mbs.body_velocities(model, q, v)
    want = [mbs.jacobian(model, q, body) @ v for body in model.body_names]
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)

    def along(h):
        """Along a curve with this velocity and acceleration, to second order."""
        there = mbs.integrate(model, q, h * v + 0.5 * h * h * a)
        return np.asarray(mbs.body_velocities(model, there, v + h * a))

    h = 1e-4
    slope = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)
    got = mbs.body_accelerations(model, q, v, a)
    np.testing.assert_allclose(got, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


def test_a_prescribed_base_moves_its_bodies():
    """Its velocity and acceleration depend on time alone."""
    mech = mbs.Mechanism("base")
    mech.add_body("base", mass=1.0)
    mech.add_body("arm", mass=1.0, com=(0.0, 0.0, -1.0))
    mech.add_joint("path", mbs.Carried(velocity=(1.0, 0, 0), acceleration=(5.0, 0, 0), rate=2.0), "world", "base")
    mech.add_joint("hinge", mbs.Revolute(axis=(0, 1, 0)), "base", "arm")
    model = mech.build()
    v = mbs.body_velocities(model, [0.2], [0.0], t=0.4)
    a = mbs.body_accelerations(model, [0.2], [0.0], [0.0], t=0.4)
    np.testing.assert_allclose(v, [[0, 0, 2, 3, 0, 0]] * 2, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(a, [[0, 0, 0, 5, 0, 0]] * 2, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("axes", "scipy"), [("zyx", "ZYX"), ("xzx", "XZX"), ("y", "Y")])
def test_successive_rotations(axes, scipy):
    angles = [0.3, -1.1, 2.5][: len(axes)]
    x, y, z, w = Rotation.from_euler(scipy, angles if len(axes) > 1 else angles[0]).as_quat()
    found = np.asarray(mbs.rotation(axes, angles))
    np.testing.assert_allclose(found * np.sign(found[0] * w), [w, x, y, z], atol=1e-14)


def test_a_rotation_about_an_axis():
    axis = np.array([1.0, -2.0, 0.5])
    x, y, z, w = Rotation.from_rotvec(2.2 * axis / np.linalg.norm(axis)).as_quat()
    np.testing.assert_allclose(mbs.rotation(axis, 2.2), [w, x, y, z], atol=1e-14)
    slope = jax.jacfwd(lambda angle: mbs.rotation("z", angle))(0.0)
    np.testing.assert_allclose(slope, [0.0, 0.0, 0.0, 0.5], atol=1e-15)


@pytest.mark.parametrize(
    ("axes", "angles", "said"),
    [("zq", [0, 0], "letters of x, y and z"), ("zyx", [0.0], "takes 3 angles, not 1"), ((0, 0, 0), 1.0, "is zero"),
     ((1, 0), 1.0, r"direction \(3,\)")],
)  # fmt: skip
def test_what_is_no_rotation(axes, angles, said):
    with pytest.raises(mbs.ModelError, match=said):
        mbs.rotation(axes, angles)


@pytest.mark.parametrize("seed", range(3))
def test_velocities_from_those_of_bodies(seed):
    mechanism, rng = random_mechanism(seed, 5), np.random.default_rng(seed)
    model, q = build(mechanism), random_q(mechanism, rng)
    v = rng.normal(size=model.nv)
    twists = mbs.body_velocities(model, q, v)
    found = mbs.velocities(model, q, dict(zip(model.body_names, twists, strict=True)))
    np.testing.assert_allclose(found, v, rtol=1e-9, atol=1e-9)


def test_velocities_that_joints_do_not_allow_are_refused():
    model = mbs.library.double_pendulum().build()
    with pytest.raises(mbs.ModelError, match="joints do not allow the motion of lower; the nearest differs by 1"):
        mbs.velocities(model, [0.1, 0.2], {"lower": [0, 0, 0, 0, 1.0, 0]})
    with pytest.raises(mbs.ModelError, match="pass 6 numbers"):
        mbs.velocities(model, [0.1, 0.2], {"lower": [0, 0, 1.0]})
    with pytest.raises(mbs.ModelError, match="no body named 'lowr'"):
        mbs.velocities(model, [0.1, 0.2], {"lowr": [0, 0, 1.0]})
    found = jax.jit(lambda w: mbs.velocities(model, [0.1, 0.2], {"upper": [0, w, 0, 0, 0, 0]}))(0.5)
    np.testing.assert_allclose(found, [-0.5, 0.0], atol=1e-12)
