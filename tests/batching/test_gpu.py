"""Kernels for a GPU, interpreted on a CPU and lowered for CUDA: they need no GPU to be tested."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxmbs as mbs
from jaxmbs.batching import gpu, over_rows
from jaxmbs.batching.mapped_program import MappedProgram
from jaxmbs.batching.scalars import ELEMENTWISE
from tests.cases import relative

ARM = mbs.library.arm7().build()


def forward(q, v, tau):
    return mbs.forward_dynamics(ARM, q, v, tau)


FUNCTIONS = {
    "forward dynamics": forward,
    "inverse dynamics": lambda q, v, tau: mbs.inverse_dynamics(ARM, q, v, tau),
    "mass matrix": lambda q, v, tau: mbs.mass_matrix(ARM, q),
    "vector-Jacobian product": lambda q, v, tau: jax.vjp(forward, q, v, tau)[1](tau),
    "truth values and a loop": lambda q, v, tau: (q > v, jax.lax.fori_loop(0, 3, lambda i, x: x + jnp.sin(x) * tau, q)),
}


def arrays(rows, dtype):
    rng = np.random.default_rng(3)
    return [jnp.asarray(rng.normal(size=(rows, 7)), dtype) for _ in range(3)]


def lowered(run, *args):
    """The program for an H100, which need not be there."""
    device = jax.sharding.AbstractDevice("NVIDIA H100 80GB HBM3", num_cores=132, platform="gpu")
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=device)
    with jax.sharding.use_abstract_mesh(mesh):
        return run.trace(*args).lower(lowering_platforms=("cuda",)).as_text()


SHORT = "truth values and a loop"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [
        ("forward dynamics", np.float64, 1e-12), (SHORT, np.float64, 1e-12), (SHORT, np.float32, 2e-5),
        pytest.param("forward dynamics", np.float32, 2e-5, marks=pytest.mark.slow),  # the short one has the same types
    ],
)  # fmt: skip
def test_interpreted_kernels_equal_vmap(name, dtype, tolerance):
    """150 rows: more than a block, and no whole number of them."""
    args = arrays(150, dtype)
    got = jax.jit(over_rows(FUNCTIONS[name], on=gpu.INTERPRETED))(*args)
    want = jax.jit(jax.vmap(FUNCTIONS[name]))(*args)
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        assert np.array_equal(x, y) if x.dtype == bool else relative(x, y) <= tolerance


def nested(x):
    def outer(c, _):
        return jax.lax.fori_loop(0, 3, lambda i, d: d + jnp.cos(d) * i + x, c), c.sum()

    return jax.lax.scan(outer, x, None, length=4)


@pytest.mark.parametrize("fn", [lambda x: x * x[::-1] - x / x[0] + jnp.abs(x) ** 3, nested])
def test_many_small_kernels_equal_one(fn):
    """Cutting a program into kernels of a few operations and columns changes nothing."""
    x = arrays(37, np.float64)[0][:, :3]
    want = jax.tree.leaves(jax.vmap(fn)(x))
    for operations, columns in ((7, 110), (300, 2)):
        on = replace(gpu.INTERPRETED, most_operations=operations, most_columns=columns)
        for got, y in zip(jax.tree.leaves(jax.jit(over_rows(fn, on=on))(x)), want, strict=True):
            assert got.shape == y.shape and relative(got, y) < 1e-13


@pytest.mark.slow
def test_a_batch_that_would_not_fit_is_done_in_blocks():
    args = arrays(300, np.float64)
    program = MappedProgram(FUNCTIONS["inverse dynamics"], args, [True] * 3)
    got = gpu.in_blocks(program, args, 300, 130, gpu.INTERPRETED)
    assert relative(got, jax.vmap(FUNCTIONS["inverse dynamics"])(*args)) < 1e-12


@pytest.mark.slow
def test_numbers_that_all_rows_share():
    model, axes = mbs.vary(ARM, {"link_3.mass": jnp.linspace(1.0, 2.0, 9)})
    q = arrays(9, np.float64)[0]
    fn, in_axes = (lambda m, q, g: mbs.forward_dynamics(m, q, g * q, None)), (axes, 0, None)
    got = jax.jit(over_rows(fn, in_axes, gpu.INTERPRETED))(model, q, jnp.float64(0.5))
    assert relative(got, jax.jit(jax.vmap(fn, in_axes))(model, q, jnp.float64(0.5))) < 1e-12


@pytest.mark.usually("forward dynamics-*", "inverse dynamics-*", "truth values*")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_lowered_for_cuda(name, dtype):
    """Every chunk becomes one Triton kernel, and nothing calls a library."""
    args = arrays(256, dtype)
    run = jax.jit(over_rows(FUNCTIONS[name], on=gpu.GPU))
    text = lowered(run, *args)
    assert "triton" in text
    assert "cublas" not in text and "cusolver" not in text


def test_an_outermost_call_makes_kernels(monkeypatch):
    def backend():
        return "gpu"

    monkeypatch.setattr(jax, "default_backend", backend)
    x = arrays(256, np.float64)[0]
    run = mbs.jit(lambda x: jnp.sin(x) * x[0], in_axes=0)
    assert "triton" in lowered(jax.jit(run.whole), x)
    program = mbs.explain(run, x).programs[0]
    assert (program.runs, program.reason) == ("GPU kernels", "the default backend is a GPU")


def test_operations_that_triton_lacks_are_left_to_the_compiler():
    x = jnp.linspace(0.1, 0.9, 256)
    for primitive, fn in {"erf": jax.lax.erf, "round": jax.lax.round}.items():
        assert primitive in ELEMENTWISE & gpu.LACKING
        run = jax.jit(over_rows(fn, on=gpu.GPU))
        assert "triton" not in lowered(run, x)
    program = MappedProgram(lambda x: jax.lax.erf(x) + 1, [x], [True])
    assert relative(program([x], 256, gpu.INTERPRETED), jax.lax.erf(x) + 1) < 1e-15


def applied(name, x):
    """A primitive of that name to x, as a number."""
    if name in ("add", "sub", "mul", "div", "max", "min", "pow", "rem", "atan2"):
        return getattr(lax, name)(x, x)
    if name in ("eq", "ne", "lt", "le", "gt", "ge"):
        return lax.select(getattr(lax, name)(x, x), x, -x)
    return lax.integer_pow(x, 3) if name == "integer_pow" else getattr(lax, name)(x)


APART = {"add_any", "and", "or", "xor", "not", "clamp", "copy", "convert_element_type", "select_n", "stop_gradient"}


@pytest.mark.parametrize("name", sorted(ELEMENTWISE - gpu.LACKING - APART))
def test_triton_has_the_operation(name):
    run = jax.jit(over_rows(lambda x: applied(name, x), on=gpu.GPU))
    assert "triton" in lowered(run, jnp.full(128, 0.5))
