"""Derivatives of solutions of linear systems of which parts are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.linear import linear_solution
from jaxmbs.spatial.scalar import is_number


def quotients(factors, right):
    return tuple(b / a for a, b in zip(factors, right, strict=True))


def products(matrix, x):
    return tuple(a * b for a, b in zip(matrix, x, strict=True))


def of_diagonal(a, b):
    """x = b / a, component by component."""
    return linear_solution(quotients, products, a, a, b)


def test_known_numbers_of_the_solution_remain_known():
    x = of_diagonal((jnp.asarray(2.0), jnp.asarray(3.0)), (jnp.asarray(1.0), ZERO))
    assert is_number(x[1]) and x[1] == 0
    assert float(x[0]) == pytest.approx(0.5)


@pytest.mark.parametrize("of", [jax.jacfwd, jax.jacrev])
def test_derivatives_where_part_of_the_solution_does_not_vary(of):
    """The derivative of the second number vanishes: reverse mode through a checkpoint within a loop must not count it."""

    def end(b):
        def change(x, _):
            a = (jnp.asarray(2.0), jnp.asarray(3.0))
            moved = jax.checkpoint(lambda x: of_diagonal(a, (x[0] * x[1], jnp.asarray(1.5))))(x)
            return x + 0.1 * jnp.stack(moved), None

        return jax.lax.scan(change, b, None, length=3)[0]

    b, d, e = jnp.array([0.7, -0.4]), jnp.array([0.3, 0.5]), 1e-6
    central = (end(b + e * d) - end(b - e * d)) / (2 * e)
    np.testing.assert_allclose(of(end)(b) @ d, central, rtol=0, atol=1e-9)
