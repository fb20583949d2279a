"""Inverse dynamics and bias forces: recursive Newton-Euler."""

import jax
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import DOZEN, case, relative


@pytest.mark.parametrize(("seed", "n"), DOZEN)
@pytest.mark.usually("10[0-6]*", "109*")
def test_compiled_against_pinocchio_and_mujoco(seed, n):
    c = case(seed, n)
    f = jax.jit(jax.vmap(lambda q, v, a: (mbs.inverse_dynamics(c.model, q, v, a), mbs.bias_forces(c.model, q, v))))
    tau, bias = f(c.q, c.v, c.a)
    assert relative(tau, c.tau) < 1e-10
    assert relative(bias, [c.pinocchio.bias_forces(*row[:2]) for row in c.rows()]) < 1e-10
    assert relative(tau, [c.mujoco.inverse_dynamics(*row[:3]) for row in c.rows()]) < 1e-10


def test_pendulum_in_closed_form():
    """m l^2 a + m g l sin q = tau."""
    mech = mbs.Mechanism("pendulum", gravity=(0, 0, -9.81))
    mech.add_body("bob", mass=2.0, com=(0, 0, -0.7))
    mech.add_joint("hinge", mbs.Revolute((0, -1, 0)), "world", "bob")
    tau = mbs.inverse_dynamics(mech.build(), np.array([0.4]), np.array([3.0]), np.array([1.5]))
    assert relative(tau, [2.0 * 0.49 * 1.5 + 2.0 * 9.81 * 0.7 * np.sin(0.4)]) < 1e-14


def test_bias_is_inverse_dynamics_without_acceleration():
    c = case(*DOZEN[3])
    q, v = c.q[0], c.v[0]
    assert relative(mbs.bias_forces(c.model, q, v), mbs.inverse_dynamics(c.model, q, v, 0 * v)) < 1e-13
