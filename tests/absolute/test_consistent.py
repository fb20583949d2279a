"""Consistent initial values [Y 2.36]."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.absolute.consistent import _rotation
from tests.absolute.helpers import case, motion, quick, solved
from tests.cases import relative


def disturbed(name, size):
    """Poses and velocities near consistent ones, and these."""
    rng = np.random.default_rng(11)
    model, q, v, _ = case(name)
    poses, X = quick(lambda q, v: mbs.absolute.coordinates(model, q, v))(q, v)
    position = poses.position + size * rng.normal(size=poses.position.shape)
    turn = np.linalg.qr(np.eye(3) + size * rng.normal(size=(len(position), 3, 3)))[0]
    turn = turn * np.sign(np.einsum("ixx->ix", turn))[:, None, :]
    return mbs.Pose(position, poses.rotation @ turn), X + size * rng.normal(size=X.shape), poses, X


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spatial loop", "free tree", "point masses"])
@pytest.mark.usually("spatial loop", "point masses")
def test_projection(name):
    """Residuals and Q X' vanish, consistent values stay, and a change of velocity is M^-1 Q' mu."""
    model, q, v, _ = case(name)
    near, V, poses, X = disturbed(name, 0.05)
    project = quick(lambda poses, V: mbs.absolute.consistent(model, poses, V, solver="ldl"))
    found, velocity, residual = project(near, V)
    assert np.abs(residual).max() < 1e-12
    assert relative(found.rotation @ np.swapaxes(found.rotation, 1, 2), [np.eye(3)] * len(X)) < 1e-13
    assert np.abs(found.position - poses.position).max() < 0.5
    again = project(found, velocity)
    assert relative(again[0].position, found.position) < 1e-11 and relative(again[1], velocity) < 1e-11
    same = project(poses, X)
    assert relative(same[0].rotation, poses.rotation) < 1e-11 and relative(same[1], X) < 1e-11
    # orthogonal, in the metric of M, to all that the joints allow
    s, _ = solved(name)
    _, P = motion(model, q, v, np.zeros(model.nv))
    allowed = P @ np.linalg.svd(np.asarray(s.Q) @ P)[2][np.linalg.matrix_rank(s.Q @ P, tol=1e-9) :].T
    change = np.asarray(project(poses, V)[1] - V).reshape(-1)
    assert np.abs(allowed.T @ s.M @ change).max() < 1e-11


def test_small_rotations_are_orthogonal_and_right_to_second_order():
    d = jnp.asarray(np.random.default_rng(1).normal(size=(3, 3)))
    R = np.asarray(_rotation(d))
    assert np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)).max() < 1e-15
    K = np.cross(np.eye(3), np.asarray(d)[:, None])
    small = np.asarray(_rotation(1e-3 * d))
    assert np.abs(small - (np.eye(3) + 1e-3 * K + 5e-7 * K @ K)).max() < 1e-8


@pytest.mark.slow
def test_derivatives_and_solvers():
    model, *_ = case("double pendulum")
    near, V, *_ = disturbed("double pendulum", 0.01)
    d = jnp.asarray(np.random.default_rng(2).normal(size=near.position.shape))

    def f(position, solver="dense"):
        found, velocity, _ = mbs.absolute.consistent(model, mbs.Pose(position, near.rotation), V, solver=solver)
        return jnp.stack([found.position.sum(), (velocity**2).sum()])

    def all_of(x):
        value, forward = jax.jvp(f, (x,), (d,))
        return value, forward, jnp.einsum("aij,ij->a", jax.jacrev(f)(x), d)

    e = 1e-5
    steps = jnp.asarray([0.0, -1.0, 1.0])
    value, forward, backward = quick(jax.vmap(all_of))(near.position[None] + e * steps[:, None, None] * d[None])
    assert relative(forward[0], (value[2] - value[1]) / (2 * e)) < 1e-6
    assert relative(backward, forward) < 1e-11


def test_a_slide_keeps_its_attitude():
    """Newton converges from a large tilt: residuals are small rotations in their true size."""
    mech = mbs.Mechanism("slide")
    mech.add_body("b", 1.0, inertia=(1, 2, 2.5))
    mech.add_joint("rail", mbs.Prismatic((1, 0, 0)), "world", "b")
    turn = np.array([[0.98, 0.1, -0.15, 0.1]])
    found, _, residual = quick(lambda q: mbs.absolute.consistent(mech.build(), mbs.Pose(jnp.ones((1, 3)), q)))(turn)
    assert np.abs(residual).max() < 1e-12 and np.abs(found.rotation[0] - np.eye(3)).max() < 1e-12
    assert np.abs(found.position[0, 1:]).max() < 1e-12  # back on the rail


def test_quaternions():
    model, *_ = case("double pendulum")
    turn = np.array([[0.9, 0.1, 0.4, 0.0], [0.9, 0.0, -0.3, 0.1]])
    found, velocity, residual = mbs.absolute.consistent(model, mbs.Pose(np.zeros((2, 3)), turn))
    assert np.abs(residual).max() < 1e-12 and np.abs(np.asarray(velocity)).max() < 1e-14
    assert found.rotation.shape == (2, 3, 3)
    assert np.abs(np.asarray(found.rotation)[:, 1] - np.array([0, 1, 0])).max() < 1e-12  # both turn about y only


def test_errors():
    model, *_ = case("double pendulum")
    poses, X = mbs.Pose(np.zeros((2, 3)), np.zeros((2, 4))), np.zeros((2, 6))
    with pytest.raises(mbs.ModelError, match=r"positions have shape \(1, 3\)"):
        mbs.absolute.consistent(model, mbs.Pose(poses.position[:1], poses.rotation))
    with pytest.raises(mbs.ModelError, match="no solver named"):
        mbs.absolute.consistent(model, poses, X, solver="gauss")
