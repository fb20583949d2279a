"""Rates and moves on the configuration manifold."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jaxmbs as mbs
from tests.cases import DOZEN, case, relative
from tests.mechanisms import rates

ALL_KINDS = case(77, 6, kinds=("Spherical", "Planar", "Helical", "Universal", "Cylindrical"), free_base=True)


@pytest.mark.interpreted
@pytest.mark.parametrize("c", [case(*DOZEN[5]), ALL_KINDS])
def test_rates_and_moves_of_random_mechanisms_equal_those_of_pinocchio(c):
    for q, v, a, _ in c.rows():
        assert relative(mbs.rates(c.model, q, v), rates(c.mechanism, q, v)) < 1e-14
        for change in (v, 0.1 * a, 1e-9 * v):  # up to half turns, where Pinocchio changes the sign of quaternions
            moved = c.pinocchio._q(mbs.integrate(c.model, q, change))
            assert relative(moved, pin.integrate(c.pinocchio.model, c.pinocchio._q(q), c.pinocchio._v(change))) < 1e-13


@pytest.mark.interpreted
def test_no_change_changes_no_bit_and_lengths_of_quaternions_stay():
    c = ALL_KINDS
    for q, v, *_ in c.rows():
        long = 1.7 * q
        for x in (q, long, q.astype(np.float32)):
            assert np.array_equal(mbs.integrate(c.model, x, np.zeros(c.model.nv, x.dtype)), x)
        at = c.model.q_slice(c.model.joint_names[0])  # Free
        assert np.linalg.norm(mbs.integrate(c.model, long, v)[at][3:]) == pytest.approx(np.linalg.norm(long[at][3:]))


@pytest.mark.slow
@pytest.mark.parametrize("derivative", [jax.jacfwd, jax.jacrev])
def test_the_derivative_at_no_change_is_that_of_the_rates(derivative):
    c = ALL_KINDS
    q, v = jnp.asarray(c.q), jnp.asarray(c.v)
    slope = jax.jit(jax.vmap(derivative(lambda dv, q: mbs.integrate(c.model, q, dv)), in_axes=(None, 0)))
    want = jax.vmap(lambda q, v: mbs.rates(c.model, q, v))(q, v)
    assert relative(jnp.einsum("bqv,bv->bq", slope(jnp.zeros(c.model.nv), q), v), want) < 1e-14


def test_series_and_closed_forms_meet():
    """The move by 2x is twice the move by x, on both sides of the angle where the formulas change."""
    mech = mbs.Mechanism("ball")
    mech.add_body("b", 1.0, inertia=(1, 1, 1))
    mech.add_joint("free", mbs.Free(), "world", "b")
    model = mech.build()
    move = jax.jit(jax.vmap(lambda q, dv: mbs.integrate(model, q, dv), in_axes=(None, 0)))
    for q in (model.neutral(), jnp.array([1.0, 2.0, 3.0, 0.5, -0.5, 0.5, 0.5])):
        dv = np.linspace(0, 0.6, 30)[:, None] * np.array([0.6, 0.0, 0.8, 1.0, -2.0, 0.5])
        halves = jax.vmap(lambda q, dv: mbs.integrate(model, q, dv))(move(q, dv), dv)
        assert relative(halves, move(q, 2 * dv)) < 2e-15


def test_long_chains_move_too():
    """Rolled blocks."""
    model = mbs.library.chain(45).build()
    x = np.linspace(-1, 1, 45)
    assert relative(mbs.integrate(model, x, 2 * x), 3 * x) < 1e-15 and relative(mbs.rates(model, x, 2 * x), 2 * x) == 0
