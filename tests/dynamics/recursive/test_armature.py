"""Armature: a number on the diagonal of the mass matrix, in every formulation that serves it (MuJoCo's: tests/io)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.model.refusals import refuse_armature


def arm(armature, n=3):
    mech = mbs.Mechanism("arm", gravity=(0, 1.0, -9.81))
    for k in range(n):
        mech.add_body(f"b{k}", 1.0 + 0.1 * k, (0.1, 0, -0.3), (0.1, 0.12, 0.05))
        axis, parent = ((0, 1, 0), (0.6, 0, 0.8))[k % 2], f"b{k - 1}" if k else "world"
        pose = mbs.Pose((0, 0, -0.5 if k else 0))
        mech.add_joint(f"j{k}", mbs.Revolute(axis), parent, f"b{k}", pose, armature=armature[k % len(armature)])
    return mech.build()


def test_it_stands_on_the_diagonal_and_nowhere_else():
    q, v, a = [0.3, -0.5, 0.7], [0.4, 1.0, -0.6], [1.0, -2.0, 0.5]
    with_it, without = arm((0.2, 0.0, 0.5)), arm((0.0,))
    A, B = (np.array(scalar.mass_matrix(m, q), float) for m in (with_it, without))
    np.testing.assert_allclose(A - B, np.diag([0.2, 0.0, 0.5]), atol=1e-15)
    assert scalar.bias_forces(with_it, q, v) == scalar.bias_forces(without, q, v)
    tau = scalar.inverse_dynamics(with_it, q, v, a)
    np.testing.assert_allclose(tau, A @ a + scalar.bias_forces(without, q, v), rtol=1e-13)
    np.testing.assert_allclose(scalar.forward_dynamics(with_it, q, v, tau), a, rtol=1e-12)
    (T, _), (T0, _) = (scalar.energy(m, q, v) for m in (with_it, without))
    assert pytest.approx(0.5 * (0.2 * 0.16 + 0.5 * 0.36)) == T - T0


def test_locked_joints_do_not_feel_it():
    q, v, tau = [0.3, -0.5, 0.7], [0.4, 0.0, -0.6], [1.0, -2.0, 0.5]
    locks = [False, True, False]
    found = [scalar.forward_dynamics(arm((0.2, x, 0.5)), q, v, tau, lock=locks) for x in (0.0, 0.9)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-13)


@pytest.mark.slow
def test_formulations_agree_and_derivatives_hold():
    """Of bodies alone, with the rotors beside them; and the derivative by the armature itself in both modes."""
    model, q, v, tau = arm((0.2, 0.0, 0.5)), np.array([0.3, -0.5, 0.7]), np.array([0.4, 1.0, -0.6]), np.ones(3)

    @jax.jit
    def all_of(x):
        def solved(x):
            return mbs.forward_dynamics(mbs.set(model, {"j0.armature": x}), q, v, tau)

        matrices = [mbs.mass_matrix(model, q, method=m) for m in ("crba", "configuration", "jacobian")]
        others = [mbs.forward_dynamics(model, q, v, tau, method=m) for m in ("aba", "crba")]
        return matrices, others, solved(x), jax.jacfwd(solved)(x), jax.jacrev(solved)(x)

    (A, *matrices), others, a, forward, backward = all_of(0.2)
    for B in matrices:
        np.testing.assert_allclose(B, A, atol=1e-13)
    for b in others:
        np.testing.assert_allclose(b, a, rtol=1e-11)
    h = 1e-6
    np.testing.assert_allclose(forward, (all_of(0.2 + h)[2] - all_of(0.2 - h)[2]) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(backward, forward, rtol=1e-10)


def test_long_chains_have_it_too():
    model = arm((0.1, 0.3), n=44)
    q, v, tau = (np.random.default_rng(k).normal(size=44) for k in range(3))
    A, a = jax.jit(lambda q: (mbs.mass_matrix(model, q), mbs.forward_dynamics(model, q, v, tau)))(q)
    want = np.array(scalar.mass_matrix(model, q.tolist()), float)
    np.testing.assert_allclose(A, want, atol=1e-10 * np.abs(want).max())
    bias = np.array(scalar.bias_forces(model, q.tolist(), v.tolist()), float)
    np.testing.assert_allclose(want @ a + bias, tau, atol=1e-9 * np.abs(bias).max())


def test_what_knows_bodies_only_refuses():
    model, q = arm((0.2,)), jnp.zeros(3)
    for call, said in (
        (lambda: mbs.mass_matrix(model, q, method="telegin"), "has armature"),
        (lambda: mbs.absolute.accelerations(model, q, q), "absolute coordinates: joint 'j0' has armature"),
        (lambda: mbs.textbook.bond_graph(model, q, q), "bond_graph: joint 'j0' has armature"),
        (lambda: mbs.library.double_pendulum().add_joint("x", mbs.Revolute(), "world", "y", releasable=True, armature=1.0),
         "a releasable joint cannot have armature"),
    ):  # fmt: skip
        with pytest.raises(mbs.ModelError, match=said):
            call()


def test_armature_that_came_later_is_seen():
    batch, _ = mbs.vary(arm((0.0,)), {"j1.armature": np.array([0.0, 0.2])})
    for model in (batch, mbs.set(arm((0.0,)), {"j1.armature": 0.2})):
        with pytest.raises(mbs.ModelError, match=r"there: joint 'j1' has armature.*remedy"):
            refuse_armature(model, "there", "remedy")
    refuse_armature(arm((0.0,)), "there", "remedy")


def test_a_rotor_alone_can_move():
    """A massless body whose joint has armature."""
    mech = mbs.Mechanism("wheel")
    mech.add_body("wheel")
    mech.add_joint("axle", mbs.Revolute(), "world", "wheel", armature=0.5)
    assert scalar.forward_dynamics(mech.build(), [0.0], [0.0], [2.0]) == [4.0]
