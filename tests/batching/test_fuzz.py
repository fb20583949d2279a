"""mbs.jit against jax.vmap on random programs (see `fuzz`), and on what a function does beside returning numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.batching.scalars import ELEMENTWISE

from . import fuzz

BATCH = np.linspace(0.1, 1.0, 1500).astype(np.float32)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("seed", [2, 3, *(pytest.param(k, marks=pytest.mark.slow) for k in range(4, 250))])
def test_random_programs_equal_vmap(seed, monkeypatch):
    """Together the seeds 3 to 6, by machine code, take every operation; one alone: python -m tests.batching.fuzz SEED."""
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")
    try:
        found = fuzz.failures(seed)
    except jax.errors.JaxRuntimeError:
        if fuzz.halves():
            raise
        pytest.skip("XLA compiles no half precision for processors without F16C, those of before 2012")
    assert not found


@pytest.mark.slow
def test_every_elementwise_operation_occurs():
    names = set()
    for seed in (3, 4, 5, 6):
        fn, args, _, _ = fuzz.program(seed, 60)
        row = jax.tree.map(lambda x: x[0], args[0])
        names |= {eqn.primitive.name for eqn in fuzz.equations(jax.make_jaxpr(fn)(row, *args[1:]).jaxpr)}
    assert not ELEMENTWISE - names - {"add_any", "copy", "stop_gradient"}


def both(fn, *args, in_axes=0):
    return mbs.jit(fn, in_axes=in_axes)(*args), jax.jit(jax.vmap(fn, in_axes))(*args)


def test_weak_types_stay_weak():
    got, want = both(lambda x, s: (x * s, s + 1, x), BATCH, 2.0, in_axes=(0, None))
    for x, y in zip(got, want, strict=True):
        assert (x.dtype, x.weak_type) == (y.dtype, y.weak_type)
    assert got[0].dtype == np.float32


def test_callbacks_are_called_once_for_every_row():
    calls = []

    def fn(x):
        jax.debug.callback(lambda y: calls.append(float(y)), x)
        return 2 * x

    mbs.jit(fn, in_axes=0)(BATCH[:20])
    jax.effects_barrier()
    assert sorted(calls) == sorted(map(float, BATCH[:20]))


def test_a_write_that_vmap_refuses_is_refused():
    ref = jax.new_ref(jnp.zeros(()))

    def fn(x):
        ref[...] = ref[...] + 1
        return x

    for compiled in (mbs.jit(fn, in_axes=0), jax.jit(jax.vmap(fn))):
        with pytest.raises(Exception, match="unbatched array reference"):
            compiled(BATCH)


@pytest.mark.slow
@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg", "threefry2x32"])
def test_random_numbers_of_a_batch(impl):
    keys = jax.random.split(jax.random.key(0, impl=impl), 1500)
    got, want = both(lambda k: jax.random.normal(k, (2,)), keys)
    np.testing.assert_allclose(got, want, rtol=1e-13)
    got, want = both(lambda k: jax.random.fold_in(k, 3), keys)
    assert np.array_equal(jax.random.key_data(got), jax.random.key_data(want))


def test_a_rule_for_whole_batches_gets_the_whole_batch():
    @jax.custom_batching.custom_vmap
    def centred(x):
        return x

    centred.def_vmap(lambda n, batched, x: (x - jnp.mean(x), True))
    got, want = both(lambda x: 2 * centred(x), BATCH)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("in_axes", [(0, 0), 3, {"x": 0}])
def test_axes_that_vmap_refuses_are_refused_in_its_words(in_axes):
    with pytest.raises((ValueError, TypeError), match="vmap"):
        mbs.jit(lambda x: x, in_axes=in_axes)(BATCH)


def test_arguments_by_name():
    got, want = mbs.jit(lambda x, y: x - y, in_axes=0)(BATCH, y=2 * BATCH), -BATCH
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_derivatives_around_it():
    def total(mapped):
        return lambda s: jnp.sum(mapped(lambda x: jnp.sin(s * x))(BATCH.astype(np.float64)))

    ours, theirs = total(lambda f: mbs.jit(f, in_axes=0)), total(jax.vmap)
    for derivative in (jax.grad, jax.jacfwd, jax.hessian):
        np.testing.assert_allclose(derivative(ours)(1.3), derivative(theirs)(1.3), rtol=1e-12)
