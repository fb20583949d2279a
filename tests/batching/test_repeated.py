"""Nested batches of which one axis maps only some operands: machine code finds the rows, none is repeated in memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.batching.machine import lacking

pytestmark = pytest.mark.skipif(bool(lacking()), reason="machine code cannot be generated here")
RNG = np.random.default_rng(0)
OUTER, INNER = 3, 32
X, Y, Z = (jnp.asarray(RNG.normal(size=s)) for s in ((OUTER, 4), (INNER, 5), (OUTER, INNER, 2)))
AXES = [((0, None, 0), (None, 0, 0)), ((0, None, None), (None, 0, None)), ((None, 0, 0), (0, None, 1))]


def plain(x, y, z):
    """Loops run over operands, and one operand is a result."""
    end, kept = jax.lax.scan(lambda c, k: (jnp.sin(c) + k * z, c * x[0]), z, y)
    return {"sum": end * x.sum(), "kept": kept, "same": x, "of y": y[1:] * y[0], "reversed": x[::-1] - y[1]}


def stepped(x, y, z):
    """With a part on whole arrays."""
    return jnp.sort(x * y[0]) + plain(x, jnp.cumsum(y), z)["sum"].sum()


def given(outer, inner):
    """Operands for in_axes of two nested `jax.vmap`; the third has two or both axes."""
    z = {(0, 0): Z, (None, None): Z[0, 0], (0, 1): jnp.moveaxis(Z, 0, 1)}[outer[2], inner[2]]
    return (X, Y, z) if outer[0] == 0 else (Y[:, :4], jnp.pad(X, ((0, 0), (0, 1))), z.swapaxes(0, 1))


def close(found, expected, digits=1e-12):
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=digits, atol=digits)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fn", [plain, stepped])
def test_nested_batches(fn, dtype):
    for outer, inner in AXES[:2]:
        args = [jnp.asarray(x, dtype) for x in given(outer, inner)]
        for few in (False, True):  # a number of rows that is no multiple of those computed at once
            args[1] = args[1][:21] if few else args[1]
            args[2] = args[2][:, :21] if few and args[2].ndim == 3 else args[2]
            over = lambda f: jax.vmap(jax.vmap(f, inner), outer)  # noqa: E731, B023
            close(jax.jit(over(mbs.rows(fn)))(*args), over(fn)(*args), 1e-12 if dtype is np.float64 else 1e-4)


@pytest.mark.parametrize(("outer", "inner"), AXES[:2])
def test_derivatives_and_a_third_axis(outer, inner):
    args = given(outer, inner)

    def number(f):
        return lambda *xs: sum((y**2).sum() for y in jax.tree.leaves(jax.vmap(jax.vmap(f, inner), outer)(*xs)))

    close(jax.grad(number(mbs.rows(plain)), (0, 1, 2))(*args), jax.grad(number(plain), (0, 1, 2))(*args), 1e-11)
    tangents = tuple(jnp.cos(x) for x in args)
    close(jax.jvp(number(mbs.rows(plain)), args, tangents), jax.jvp(number(plain), args, tangents), 1e-11)
    slopes = [jax.jacfwd(lambda x, f=f: jax.vmap(jax.vmap(f, inner), outer)(x, *args[1:])["sum"])(args[0])
              for f in (mbs.rows(plain), plain)]  # fmt: skip
    close(*slopes, 1e-11)
    third = [jax.vmap(jax.vmap(jax.vmap(f, inner), outer), (0, None, None))(jnp.stack([args[0], 2 * args[0]]), *args[1:])
             for f in (mbs.rows(plain), plain)]  # fmt: skip
    close(*third)


def test_nothing_is_repeated_in_memory(monkeypatch):
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")
    outer, inner = AXES[0]
    over = jax.vmap(jax.vmap(mbs.rows(lambda *xs: plain(*xs)["sum"]), inner), outer)
    assert "Repeat(each=32, times=1)" in (text := str(jax.make_jaxpr(over)(X, Y, Z).jaxpr.eqns))
    assert "Repeat(each=1, times=3)" in text
    lowered = jax.jit(over).lower(X, Y, Z).as_text()
    assert f"tensor<{OUTER * INNER}x2xf64>" in lowered and lowered.count("custom_call @jaxmbs_") == 1
    assert not any(f"tensor<{OUTER * INNER}x{n}xf64>" in lowered for n in (4, 5))
