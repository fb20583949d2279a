"""mbs.jit: plain, and told that the rows of a batch are independent."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.batching import batches
from tests.cases import relative


def energy_and_poses(model, q, v):
    return {"energy": mbs.energy(model, q, v), "tip": mbs.body_poses(model, q).position[-1]}


def same(got, want, tolerance=1e-13):
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype and relative(x, y) <= tolerance


def test_plain_jit_is_jax_jit():
    @mbs.jit
    def fn(x, *, scale):
        return {"y": jnp.sin(x) * scale, "n": jnp.arange(3)}

    x = np.linspace(0, 1, 5)
    same(fn(x, scale=2.0), {"y": jnp.sin(x) * 2.0, "n": jnp.arange(3)})


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 5, 1024, 1030])
def test_rows_equal_vmap_for_any_batch_size(size):
    """Sizes below, at and above one block, with a model whose numbers vary."""
    model = mbs.library.double_pendulum().build()
    rng = np.random.default_rng(size)
    q, v = rng.normal(size=(2, size, 2))
    batched, in_axes = mbs.vary(model, {"lower.mass": rng.uniform(1, 2, size)})
    axes = (in_axes, 0, 0)
    want = jax.jit(jax.vmap(energy_and_poses, in_axes=axes))(batched, q, v)
    same(mbs.jit(energy_and_poses, in_axes=axes)(batched, q, v), want)


@pytest.mark.slow
def test_rows_along_any_axis_and_inside_another_jit():
    model = mbs.library.double_pendulum().build()
    q = np.random.default_rng(0).normal(size=(2, 7))

    def fn(q, v):
        return mbs.forward_dynamics(model, q, v)

    want = jax.vmap(fn, in_axes=(1, None))(q, np.ones(2))
    rows = mbs.jit(fn, in_axes=(1, None))
    same(rows(q, np.ones(2)), want)
    same(jax.jit(lambda q: rows(q, jnp.ones(2)))(q), want)
    gradient = jax.grad(lambda q: jnp.sum(rows(q, jnp.ones(2)) ** 2))(q)
    assert gradient.shape == q.shape and np.all(np.isfinite(gradient))


def test_derivatives_and_batches_pass_through_what_a_function_closes_over():
    x = np.linspace(0.0, 1.0, 3000).reshape(1500, 2)

    def total(s):
        return jnp.sum(mbs.jit(lambda x: jnp.sin(s * x) * x[0], in_axes=0)(x))

    want = np.sum(np.cos(1.3 * x) * x * x[:, :1])
    assert relative(jax.grad(total)(1.3), want) < 1e-12
    assert relative(jax.jvp(total, (1.3,), (1.0,))[1], want) < 1e-12
    assert relative(jax.jit(jax.grad(total))(1.3), want) < 1e-12
    s = jnp.array([1.3, 0.2])
    assert relative(jax.vmap(total)(s), [total(k) for k in s]) < 1e-12


def test_batches_that_cannot_be():
    rows = mbs.jit(lambda x, y: x + y, in_axes=0)
    with pytest.raises(mbs.ModelError, match=r"\[2, 3\]"):
        rows(np.ones(2), np.ones(3))
    with pytest.raises(mbs.ModelError, match="batch axis"):
        mbs.jit(lambda x: x, in_axes=(None,))(np.ones(2))
    assert rows(np.ones(0), np.ones(0)).shape == (0,)


SCRIPT = """
import jaxmbs as mbs, os, sys
sys.path.insert(0, "tests")
n = mbs.use_all_cores()
import jax, numpy as np
assert jax.device_count("cpu") == n == len(os.sched_getaffinity(0)), (jax.devices(), n)
model = mbs.library.double_pendulum().build()
q = np.random.default_rng(0).normal(size=(33, 2)).astype(np.float32)
fn = lambda q: mbs.mass_matrix(model, q)
found = mbs.jit(fn, in_axes=0)(q)
np.testing.assert_allclose(found, jax.vmap(fn)(q), rtol=1e-5)
assert len(found.sharding.device_set) == 1  # machine code uses all cores by itself
values = mbs.jit(lambda q: jax.numpy.linalg.eigvalsh(fn(q)), in_axes=0)
np.testing.assert_allclose(values(q), np.linalg.eigvalsh(found), rtol=1e-4)
text = jax.jit(values.whole).lower(q).compile().as_text()
assert f"num_partitions={n}" in text or n == 1
assert mbs.use_all_cores() == n
"""


@pytest.mark.slow
def test_all_cores_give_the_same_results():
    subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT], check=True)


def test_use_all_cores_after_the_first_use_says_so(monkeypatch):
    """JAX refuses the change then; with as many devices as cores there is nothing to refuse."""
    jnp.zeros(1)
    monkeypatch.setattr(batches, "_cores", lambda: jax.device_count("cpu") + 1)
    with pytest.raises(mbs.ModelError, match="right after the imports"):
        mbs.use_all_cores()
    monkeypatch.setattr(batches, "_cores", lambda: jax.device_count("cpu"))
    assert mbs.use_all_cores() == jax.device_count("cpu")


def test_interpreted_calls_leave_compiled_ones_alone():
    """Under disable_jit more numbers fold; what is compiled for another model afterwards must not notice."""
    for joint in (mbs.Helical((0, 0.6, 0.8), 0.1), mbs.Cylindrical((0, 0.6, 0.8))):
        mech = mbs.Mechanism("turntable", gravity=(0.5, -1.0, -9.0))
        mech.add_body("table", 1.5, (0.1, 0, 0), (0.1, 0.1, 0.1))
        mech.add_body("load", 1.0, (0.1, 0.2, 0.3), (0.1, 0.1, 0.1))
        mech.add_joint("pivot", mbs.Revolute((0, 0, 1)), "world", "table")
        mech.add_joint("tested", joint, "table", "load")
        model = mech.build()
        q, v = jnp.full(model.nq, 0.3), jnp.full(model.nv, -0.2)
        compiled = mbs.bias_forces(model, q, v)
        with jax.disable_jit():
            np.testing.assert_allclose(mbs.bias_forces(model, q, v), compiled, rtol=1e-12)
