"""Loops whose number of iterations is an operand, as machine code, against the same loops of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxmbs as mbs
from jaxmbs.batching.counted import counted_scan
from jaxmbs.batching.machine import compiling
from jaxmbs.batching.recorded import Step
from jaxmbs.batching.recording import record
from jaxmbs.batching.scalars import Source

X = jnp.asarray(np.random.default_rng(0).normal(size=(13, 2)))
EACH = jnp.array([4, 4, 3, 1, 0], jnp.int32)


@pytest.fixture(autouse=True)
def with_machine_code(monkeypatch):
    """Whatever the caller has chosen."""
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")


def loop(x, n):
    def body(c, k):
        c = jnp.sin(c) + k
        return c, 2 * c

    return counted_scan(body, x, jnp.arange(10.0) * x[0], 10, n)


def nested(x, n, each=EACH):
    def outer(c, m):
        return counted_scan(lambda c, k: (jnp.cos(c) * k, None), c, jnp.arange(4.0), 4, m)[0], c

    return counted_scan(outer, x, each, 5, n)


def close(found, expected):
    for x, y in zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_as_many_iterations_as_are_asked_for():
    for n in (0, 1, 7, 10, 12, -3):
        x, ys = X[0], []
        for k in range(min(n, 10)):
            x = np.sin(x) + k * X[0, 0]
            ys.append(2 * x)
        zeros = [np.zeros(2)] * (10 - len(ys))
        for f in (loop, mbs.rows(loop), jax.jit(loop)):
            close(f(X[0], n), (x, np.array(ys + zeros)))


@pytest.mark.parametrize("fn", [loop, nested])
def test_another_number_needs_no_other_kernel(fn):
    for f, x, axes in ((mbs.rows(fn), X[0], None), (jax.vmap(mbs.rows(fn), (0, None)), X, (0, None))):
        plain = fn if axes is None else jax.vmap(fn, axes)
        close(f(x, 4), plain(x, 4))
        made = dict(compiling.COUNT)
        close(f(x, 3), plain(x, 3))
        assert made == compiling.COUNT


@pytest.mark.parametrize("kernels", ["machine", "xla"])
@pytest.mark.parametrize("fn", [loop, nested])
def test_derivatives_and_numbers_of_each_row(fn, kernels, monkeypatch):
    monkeypatch.setenv("JAXMBS_KERNELS", kernels)

    def number(f):
        return lambda x: sum((k + 1.0) * y.sum() for k, y in enumerate(f(x, 3)))

    close(jax.grad(number(mbs.rows(fn)))(X[0]), jax.grad(number(fn))(X[0]))
    close(jax.vmap(jax.grad(number(mbs.rows(fn))))(X), jax.vmap(jax.grad(number(fn)))(X))
    close(jax.jacfwd(lambda x: mbs.rows(fn)(x, 3))(X[0]), jax.jacfwd(lambda x: fn(x, 3))(X[0]))
    close(mbs.jit(fn, in_axes=(0, None))(X, 3), jax.vmap(fn, (0, None))(X, 3))
    each = jnp.arange(13) % 6
    close(mbs.jit(fn, in_axes=0)(X, each), jax.vmap(fn)(X, each))
    close(jax.vmap(mbs.rows(fn))(X, each), jax.vmap(fn)(X, each))


@pytest.mark.parametrize("count", [0, 3, 7])
def test_iterations_with_a_factorisation_between_kernels(count):
    def fn(x, n):
        def turn(y, k):
            y = jnp.linalg.solve(jnp.eye(4) + 0.1 * jnp.outer(y, y), y + k)
            return y, y[:2]

        return counted_scan(turn, x, jnp.arange(7.0), 7, n)

    x, n = jnp.asarray(np.random.default_rng(4).normal(size=(5, 4))), jnp.int32(count)
    close(mbs.jit(fn, in_axes=(0, None))(x, n), jax.vmap(fn, (0, None))(x, n))


def test_what_is_the_same_in_all_iterations_and_rows_comes_before_the_loop():
    """The transpose of a matrix that is too large to be taken apart."""
    A = jnp.asarray(np.random.default_rng(5).normal(size=(40, 40)) / 10)

    def fn(x):
        return lax.scan(lambda y, _: (jnp.tanh(A.T @ y), y[0]), x, None, 3)

    x = jnp.asarray(np.random.default_rng(6).normal(size=(5, 40)))
    found = record(
        jax.make_jaxpr(fn)(x[0]), [Source((40,), x.dtype, True)], lambda eqn: eqn.primitive.name != "transpose"
    )
    assert [item.name for item in found.items if isinstance(item, Step)] == ["transpose", "scan"]
    close(mbs.jit(fn, in_axes=0)(x), jax.vmap(fn)(x))
