"""Arithmetic that folds structural numbers, and what the components make of it."""

import itertools
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbs.spatial import IDENTITY3, Matrix3, Symmetric3, Vector3, from_quaternion, kernel, quaternion_rate
from jaxmbs.spatial.known import known
from jaxmbs.spatial.scalar import add, arctan2, div, maximum, minimum, mul, safe_divide, safe_sqrt, sub
from tests.cases import relative

STRUCTURAL = (0, 1, -1, 0.0, 1.0, -1.0, 2.5)


def folding(sign):
    return lambda a, b: sign(known(a), known(b))


@pytest.mark.parametrize(
    ("folded", "plain"),
    [(folding(sign), sign) for sign in (operator.add, operator.sub, operator.mul, operator.truediv)]
    + [(maximum, max), (minimum, min)],
)
def test_folding_changes_no_value(folded, plain):
    for a, b in itertools.product((*STRUCTURAL, jnp.asarray(0.7)), repeat=2):
        if plain is not operator.truediv or b != 0:
            assert folded(a, b) == plain(a, b), (a, b)


@pytest.mark.parametrize(
    ("older", "sign", "result"), [(add, r"\+", 8.0), (sub, "-", 4.0), (mul, r"\*", 12.0), (div, "/", 3.0)]
)
def test_older_names_of_operators_warn_and_still_compute(older, sign, result):
    with pytest.warns(DeprecationWarning, match=rf"scalar\.{older.__name__} is deprecated; write a {sign} b"):
        assert older(6.0, 2.0) == result


def test_edges_have_finite_derivatives():
    """Zero, where the plain functions have none."""
    for edge in (safe_sqrt, lambda x: safe_divide(x, x), lambda x: safe_divide(2.0, x), lambda x: arctan2(x, x)):
        for derivative in (jax.grad, jax.jacfwd):
            assert edge(0.0) == derivative(edge)(0.0) == 0
    assert jax.grad(safe_sqrt)(4.0) == 0.25
    assert jax.grad(lambda x: safe_divide(3.0, x))(2.0) == -0.75


def test_only_the_identity_is_left_out_of_products():
    rng = np.random.default_rng(3)
    S = Symmetric3(*rng.normal(size=6).tolist())
    full = np.reshape(list(S.full()), (3, 3))
    for entries in (IDENTITY3, Matrix3(1, 0, 0.5, 0, 1, 0, 0, 0, 1), Matrix3(-1, 0, 0, 0, 1, 0, 0, 0, -1)):
        R = np.reshape(list(entries), (3, 3))
        assert relative(list(entries @ S), (R @ full).ravel()) < 1e-15
        assert relative(list(S.rotated(entries).full()), (R @ full @ R.T).ravel()) < 1e-15


def test_rate_of_a_quaternion_is_that_of_its_rotation():
    """dR/dt = R skew(omega), omega in body axes; the length stays."""
    q, omega = np.array([0.8, -0.4, 0.2, 0.6]), np.array([0.3, -1.1, 0.7])
    rate = np.asarray(quaternion_rate(q.tolist(), Vector3(*omega.tolist())))
    assert abs(q @ rate) < 1e-15
    R, dR = jax.jvp(lambda q: jnp.stack(list(from_quaternion(q))).reshape(3, 3), (q,), (rate,))
    assert relative(R.T @ dR, np.cross(np.eye(3), omega)) < 1e-14


def test_compiled_calls_tell_structural_numbers_apart():
    """Each pattern of 0, 1 and -1 is a program of its own; what is a number by structure comes out as one."""

    @kernel
    def f(x, y):
        return x * y + y, y * known(1)

    for y in (0, 1, -1, 0, 2.5, -1, jnp.asarray(0.0)):
        value, same = f(jnp.asarray(3.0), y)
        assert value == 4 * y and same == y
        assert isinstance(value, jax.Array) == (not (type(y) is int and y == 0))
