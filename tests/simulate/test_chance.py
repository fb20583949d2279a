"""Random numbers by counting: the bits of `jax.random`, in machine code too, and their distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import stats

import jaxmbs as mbs
from jaxmbs.simulate.chance import Chance, threefry


def test_words_are_those_of_jax():
    rng = np.random.default_rng(0)
    for _ in range(20):
        key, count = rng.integers(0, 2**32, (2, 2), np.uint32)
        found = threefry([jnp.uint32(x) for x in key], [jnp.uint32(x) for x in count])
        np.testing.assert_array_equal(found, threefry_2x32(jnp.asarray(key), jnp.asarray(count)))


def draws(instant, dtype=np.float64, size=3, sensor=2):
    chance = Chance((jnp.uint32(7), jnp.uint32(11)), {})
    return jnp.stack(chance.normal(sensor, instant, size, dtype))


@pytest.mark.cpu
def test_numbers_in_machine_code():
    """The words to the bit, and the numbers to rounding; all of them in one program of rows."""
    instants = jnp.arange(4096, dtype=jnp.int32)

    def words(i):
        return threefry((jnp.uint32(7), jnp.uint32(11)), (i.astype(jnp.uint32), i.astype(jnp.uint32) << 3))

    inside = mbs.rows(words)
    assert str(mbs.explain(jax.vmap(inside), instants)).startswith("words: machine code, 4,096 rows")
    for a, b in zip(jax.jit(jax.vmap(inside))(instants), jax.vmap(words)(instants), strict=True):
        np.testing.assert_array_equal(a, b)
    found = mbs.jit(draws, in_axes=0)(instants)
    np.testing.assert_allclose(found, jax.vmap(draws)(instants), rtol=1e-13, atol=1e-13)


def test_shifts_by_all_bits_and_more():
    distances = jnp.asarray([0, 1, 31, 32, 33, 200], jnp.uint32)

    def shifted(n):
        return jnp.uint32(0xDEADBEEF) >> n, jnp.uint32(0xDEADBEEF) << n

    for a, b in zip(mbs.jit(shifted, in_axes=0)(distances), jax.vmap(shifted)(distances), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_are_normal_and_independent(dtype):
    x = np.asarray(jax.jit(jax.vmap(lambda i: draws(i, dtype, 4)))(jnp.arange(20_000, dtype=jnp.int32)))
    assert x.dtype == dtype and np.isfinite(x).all()
    for k in range(4):
        assert stats.kstest(x[:, k], "norm").pvalue > 1e-3
    between = np.corrcoef(np.concatenate([x, np.roll(x, 1, axis=0)], axis=1).T) - np.eye(8)
    assert np.abs(between).max() < 4 / 20_000**0.5
