"""Loops that end when no row needs another iteration, and tables, as machine code against `jax.vmap`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxmbs as mbs
from jaxmbs.batching.lookup import Table, lookup

X = jnp.asarray(np.random.default_rng(0).normal(size=13))
TABLE = Table(np.random.default_rng(1).normal(size=50))


@pytest.fixture(autouse=True)
def with_machine_code(monkeypatch):
    """Whatever the caller has chosen."""
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")


def wandering(x):
    def body(c):
        k, y, i = c
        return k + 1, jnp.where(y > 1, y / 2, 1.25 * y + lookup(TABLE, i)), (7 * i + 3) % 50

    start = jnp.int32(0), 3 * x, (10 * jnp.abs(x)).astype(jnp.int32)
    return lax.while_loop(lambda c: (c[0] < jnp.int32(40)) & (jnp.abs(c[1]) > 0.25), body, start)


def nested(x):
    def inner(c):
        y, n = lax.while_loop(lambda a: (a[0] > 1) & (a[1] < 30), lambda a: (a[0] * 0.5, a[1] + 1), (c[1], c[2]))
        return c[0] + 1, y + x * 4, n

    return lax.while_loop(lambda c: c[0] < 3 + jnp.sign(x), inner, (jnp.float32(0), 5 * x, jnp.int32(0)))


def not_once(x):
    return lax.while_loop(lambda c: c > 100, lambda c: c - 1, x)


@pytest.mark.parametrize("fn", [wandering, nested, not_once])
@pytest.mark.parametrize("rows", [13, 1])
def test_loops_as_by_vmap(fn, rows):
    got, want = mbs.jit(fn, in_axes=0)(X[:rows]), jax.jit(jax.vmap(fn))(X[:rows])
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        # without fused products, XLA and machine code may round differently
        np.testing.assert_allclose(x, y, rtol=1e-11)


@pytest.mark.cpu
def test_the_loop_is_machine_code():
    said = mbs.explain(mbs.jit(wandering, in_axes=0), X)
    assert said.programs[0].runs == "machine code" and not said.programs[0].reason


def test_a_row_does_not_depend_on_the_others():
    """Iterations that only other rows need leave it as it is."""
    together = mbs.jit(wandering, in_axes=0)(X)
    alone = [mbs.jit(wandering, in_axes=0)(X[k : k + 1]) for k in range(3)]
    for k, one in enumerate(alone):
        for x, y in zip(one, together, strict=True):
            np.testing.assert_allclose(x[0], y[k], rtol=1e-11)


def test_derivatives_forwards():
    def end(x):
        return wandering(x)[1]

    got, want = mbs.jit(jax.jacfwd(end), in_axes=0)(X), jax.vmap(jax.jacfwd(end))(X)
    np.testing.assert_allclose(got, want, rtol=1e-14)


def test_reverse_mode_around_a_loop_that_does_not_depend_on_the_variables():
    """Alone, outermost and within a program of JAX, where the row is one call of a kernel."""

    def fn(q):
        k = lax.while_loop(
            lambda c: c[0] * c[1] < 10, lambda c: (c[0] + 1, c[1]), (1.0, lax.stop_gradient(q**2 + 0.1))
        )[0]
        return k * q**2

    want = jax.vmap(jax.grad(fn))(X)
    np.testing.assert_allclose(mbs.jit(jax.grad(fn), in_axes=0)(X), want, rtol=1e-14)
    rows = jax.vmap(mbs.rows(fn))
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: jnp.sum(rows(x))))(X), want, rtol=1e-14)
    assert jax.jit(rows).lower(X).compile().as_text().count("custom-call(") == 1


def test_a_matrix_that_differs_between_the_iterations_of_a_loop_around_it():
    matrices = jnp.asarray(np.random.default_rng(2).normal(size=(3, 12, 12)) / 4)

    def fn(x):
        def turn(y, A):
            y, _ = lax.while_loop(lambda c: c[1] < 1 + x, lambda c: (A @ c[0], c[1] + 1), (y, 0.0))
            return y, y[0]

        return lax.scan(turn, x * jnp.arange(12.0), matrices)

    for got, want in zip(mbs.jit(fn, in_axes=0)(X), jax.vmap(fn)(X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def test_tables():
    index = jnp.array([-3, 0, 7, 49, 50, 1000], jnp.int32)
    want = TABLE.numbers[[0, 0, 7, 49, 49, 49]]
    np.testing.assert_array_equal(lookup(TABLE, index), want)
    np.testing.assert_array_equal(mbs.jit(lambda k: lookup(TABLE, k), in_axes=0)(index), want)
    rows = TABLE.numbers.reshape(10, 5)[[0, 0, 7, 9, 9, 9]]
    for k in (0, 3):
        np.testing.assert_array_equal(lookup(TABLE, index, 5, k), rows[:, k])
        np.testing.assert_array_equal(mbs.jit(lambda i, k=k: lookup(TABLE, i, 5, k), in_axes=0)(index), rows[:, k])
    with pytest.raises(ValueError, match="no column 5 of 5"):
        lookup(TABLE, index, 5, 5)
    assert Table([1.0, 2.0]) == Table([1.0, 2.0]) and Table([1.0]) != Table([2.0])
    assert Table(np.float32([1.0])) != Table(np.float64([1.0]))
    with pytest.raises(ValueError, match="one axis"):
        Table(np.zeros((2, 2)))
