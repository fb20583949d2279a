"""Products with matrices that all rows share, and exponentials, in machine code, against XLA and extended precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.batching.machine import MACHINE, lacking
from jaxmbs.batching.mapped_program import MappedProgram

pytestmark = pytest.mark.skipif(bool(lacking()), reason="machine code cannot be generated here")
RNG = np.random.default_rng(0)
WEIGHTS = tuple(jnp.asarray(RNG.normal(size=s) / 8) for s in ((6, 61), (40, 61), (40, 6)))


def policy(x, weights):
    """A network of layers of 61 and 40: neither is a multiple of what is summed at once."""
    first, second, last = weights
    return jnp.tanh(second @ jnp.tanh(x @ first)) @ last


def steered(x, weights):
    """A loop with the network, whose results differ from step to step."""
    return jax.lax.scan(lambda x, _: (x + 0.1 * policy(x, weights), x.sum()), x, length=20)


def sloped(x, weights):
    return jax.grad(lambda x: (policy(x, weights) ** 2).sum())(x)


def returned(x, weights):
    """A product is a result itself, and another is what a loop runs over."""
    y = x @ weights[0]
    return y, jax.lax.scan(lambda s, t: (0.5 * s + t, s), x[0], weights[1] @ y)


def turning(x, weights):
    """The matrix differs between iterations, also in a loop inside; it is no product with one matrix in memory."""
    every = jnp.stack([weights[0], 2 * weights[0]])

    def inner(x, w):
        return jax.lax.scan(lambda x, _: (jnp.sin(x + (x @ w)[:6]), None), x, length=2)[0], None

    return jax.lax.scan(inner, x, every)[0]


def transposed(x, weights):
    """The matrix is transposed and a row of it is read in every iteration of two loops: once for all is enough."""

    def step(x, _):
        return jnp.sin(weights[0] @ (x @ weights[0]) + weights[0].T[5]), None

    return jax.lax.scan(lambda x, _: (jax.lax.scan(step, x, length=2)[0], None), x, length=3)[0]


def within(x, weights):
    """A loop within a loop."""
    return jax.lax.scan(lambda x, _: (steered(x, weights)[0], None), x, length=3)[0]


@pytest.mark.parametrize("rows", [1, 3, 8, 300])
@pytest.mark.parametrize("fn", [policy, steered, sloped, returned, turning, transposed, within])
def test_products_are_those_of_xla(fn, rows, monkeypatch):
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")
    for dtype, least in ((jnp.float64, 1e-13), (jnp.float32, 1e-4)):
        x = jnp.asarray(RNG.normal(size=(rows, 6)), dtype)
        weights = jax.tree.map(lambda w, dtype=dtype: w.astype(dtype), WEIGHTS)
        found, wanted = mbs.jit(fn, in_axes=(0, None))(x, weights), jax.vmap(fn, (0, None))(x, weights)
        baked = mbs.jit(lambda x, fn=fn, weights=weights: fn(x, weights), in_axes=0)(x)
        for a, b, c in zip(*map(jax.tree.leaves, (found, wanted, baked)), strict=True):
            assert a.dtype == b.dtype == dtype
            np.testing.assert_allclose(a, b, rtol=least, atol=least)
            np.testing.assert_allclose(c, b, rtol=least, atol=least)


@pytest.mark.parametrize("fn", [policy, steered, sloped, returned, transposed, within])
def test_a_network_in_a_loop_is_one_call(fn):
    flat = [np.zeros((9, 6)), *WEIGHTS]
    program = MappedProgram(lambda x, *w: fn(x, w), flat, [True, False, False, False], MACHINE)
    assert not program.excluded(MACHINE) and not program.excluded(MACHINE, 1)


def test_what_is_not_finite_reaches_the_results():
    x = jnp.asarray(RNG.normal(size=(9, 6))).at[2, 3].set(jnp.nan)
    found = mbs.jit(policy, in_axes=(0, None))(x, WEIGHTS)
    assert np.isnan(found[2]).all() and np.isfinite(np.delete(found, 2, 0)).all()
    found = mbs.jit(lambda x, w: x @ w[0], in_axes=(0, None))(x, (WEIGHTS[0].at[0, 5].set(jnp.inf),))
    assert not np.isfinite(found[:, 5]).any()


FUNCTIONS = {
    "exp": (jnp.exp, np.exp),
    "expm1": (jnp.expm1, np.expm1),
    "tanh": (jnp.tanh, np.tanh),
    "logistic": (jax.nn.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
}


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="there is no extended precision here")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_exponentials_to_three_units_in_the_last_place(name, dtype):
    function, wanted = FUNCTIONS[name]
    most = 709.7 if dtype is np.float64 else 88.7
    x = np.concatenate([RNG.normal(size=2000) * s for s in (1e-8, 1e-3, 0.1, 1, 10)] + [np.linspace(-most, most, 5000)])
    x = x[np.abs(x) <= most].astype(dtype)
    found, exact = mbs.jit(lambda x: function(x) * 1, in_axes=0)(x), wanted(x.astype(np.longdouble))
    normal = np.abs(exact) > np.finfo(dtype).tiny
    error = np.abs(np.asarray(found, np.longdouble) - exact) / np.spacing(np.abs(exact.astype(dtype)))
    assert error[normal].max() < 3
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1000, -1000, 20, -20], dtype)
    found, wanted = mbs.jit(lambda x: function(x) * 1, in_axes=0)(ends), np.asarray(jax.vmap(function)(ends))
    np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
