"""What `mbs.explain` says, against what is compiled."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.batching import machine, mapped_program
from jaxmbs.batching.machine import compiling

X = np.random.default_rng(5).normal(size=(6, 3))
SHAPE = jax.ShapeDtypeStruct(X.shape, X.dtype)


@pytest.fixture(autouse=True)
def with_machine_code(monkeypatch):
    """Whatever the caller has chosen."""
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")


def small(x):
    return jnp.sin(x[0]) + x[1] / x[2]


def looped(x):
    """A loop in a loop, of which the outer one stacks a number."""

    def inner(c, _):
        return c * jnp.sqrt(c), None

    def outer(c, _):
        return jax.lax.scan(inner, c + x[1], None, 5)[0], c

    return jax.lax.scan(outer, x[0], None, 7)


def calls(fn, *args):
    """How many calls of machine code a compiled program contains."""
    return jax.jit(fn).lower(*args).compile().as_text().count('custom_call_target="jaxmbs')


def only(fn, *args, **options):
    [program] = mbs.explain(fn, *args, **options).programs
    return program


def test_a_row_program_and_its_numbers_without_compiling_it():
    before = dict(compiling.COUNT)
    found = mbs.explain(jax.vmap(mbs.rows(small)), SHAPE)
    assert before == compiling.COUNT
    wanted = mbs.RowProgram("small", 6, 1, "machine code", "", 1, 1, 1, (), 24, 8, 0)
    assert found.programs == (wanted,) and found.equations == 0
    assert (found.kept, found.kept_arguments) == (X.nbytes, X.nbytes)
    assert str(found) == (
        "small: machine code, 6 rows, called once\n"
        "    for each row: 1 arithmetic operation, 1 division or root, 1 transcendental function\n"
        "        24 bytes in, 8 out\n"
        "0 equations outside row programs\n"
        "reverse mode keeps 144 bytes, 24 for each of 6 rows; 144 of them are arguments"
    )
    assert calls(jax.vmap(mbs.rows(small)), X) == 1


def test_operations_in_loops_count_as_often_as_they_are_done():
    program = only(mbs.rows(looped), SHAPE.update(shape=(3,)))
    assert (program.rows, program.loops) == (1, (7, 5))
    assert (program.arithmetic, program.divisions, program.transcendental) == (7 * (1 + 5), 7 * 5, 0)
    assert (program.bytes_kept, program.bytes_out) == (7 * 8, 8 * 8)
    assert "loops of 7, 5 iterations; 24 bytes in, 64 out, 56 kept by loops" in repr(program)


def test_products_with_shared_matrices_and_exponentials():
    """Each number of a matrix is multiplied and added once."""
    program = only(jax.vmap(mbs.rows(lambda w, x: jnp.tanh(x @ w).sum()), (None, 0)), np.ones((3, 500)), SHAPE)
    assert (program.runs, program.reason, program.transcendental) == ("machine code", "", 500)
    assert program.arithmetic == 2 * 3 * 500 + 499


def prints(x):
    jax.debug.callback(lambda _: None, x)
    return 2 * x


def asks(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims")


def eigenvalues(x):
    return jnp.linalg.eigvalsh(jnp.outer(x, x))


def of_a_generator(x):
    return x + jax.random.normal(jax.random.key(0, impl="rbg"))


LEFT = {
    prints: r"calls Python while it runs \(debug_callback\)",
    asks: r"calls Python while it runs \(pure_callback\)",
    eigenvalues: "no scalar operations for eigh",
    jnp.sort: "no scalar operations for sort",
    of_a_generator: "depend.* on the batch as a whole",
}


@pytest.mark.parametrize("fn", LEFT)
def test_what_is_left_to_jax_and_why(fn):
    """There is no equation of it, and still it is known how often it is computed, and for how many rows."""
    fn, reason = mbs.rows(fn), LEFT[fn]
    found = mbs.explain(lambda x: jax.lax.scan(lambda c, _: (c, jax.vmap(fn)(c)), x, length=4)[1], SHAPE)
    [program] = found.programs
    assert (program.name, program.rows, program.calls, program.runs) == (fn.__name__, 6, 4, "jax.vmap")
    assert re.search(reason, program.reason) and f"because {program.reason}" in str(found)
    assert "left_to_jax" not in str(jax.make_jaxpr(jax.vmap(fn))(X))  # only while it is explained


@pytest.mark.parametrize("reason", ["more than 2", "JAXMBS_KERNELS is xla", "pip install", "backend is tpu"])
def test_why_there_is_no_machine_code(reason, monkeypatch):
    def tpu():
        return "tpu"

    if reason == "more than 2":
        monkeypatch.setattr(mapped_program, "MOST_OPERATIONS", 2)
    elif reason == "JAXMBS_KERNELS is xla":
        monkeypatch.setenv("JAXMBS_KERNELS", "xla")
    elif reason == "pip install":
        monkeypatch.delenv("JAXMBS_KERNELS")
        monkeypatch.setattr(machine, "lacking", lambda: "llvmlite is not installed: pip install llvmlite")
    else:
        monkeypatch.setattr(jax, "default_backend", tpu)
    program = only(jax.vmap(mbs.rows(small)), SHAPE)  # JAX knows no trace of it
    assert program.runs == "jax.vmap" and reason in program.reason


def huge(x):
    return jax.lax.scan(lambda c, _: (c * 0.5, jnp.outer(c, c)), x, None, 60_000)[1].sum(0)


def test_a_derived_program_that_is_not_one_call():
    """The function is a row program; what decides on the loop in it is its lowering."""
    found = only(jax.vmap(mbs.rows(huge)), SHAPE)
    assert found.runs == "machine code" and "60,000 iterations keeps 4,320,000 bytes" in found.reason
    assert "machine code in several calls" in repr(found)
    none = only(jax.vmap(mbs.rows(small)), SHAPE.update(shape=(0, 3)))
    assert (none.runs, none.reason) == ("jax.vmap", "there are no rows")


F = mbs.rows(small)
AROUND = {
    "scan": (lambda x: jax.lax.scan(lambda c, _: (c + jax.vmap(F)(c)[:, None], None), x, length=9)[0], 9),
    "scan of scan": (
        lambda x: jax.lax.scan(lambda c, _: (AROUND["scan"][0](c), None), x, length=3)[0], 27,
    ),
    "while": (
        lambda x: jax.lax.while_loop(lambda c: c[0, 0] < 9, lambda c: c + jax.vmap(F)(c)[:, None], x), None,
    ),
    "cond": (lambda x: jax.lax.cond(x[0, 0] > 0, jax.vmap(F), lambda x: x[:, 0], x), 1),
    "twice": (lambda x: jax.vmap(F)(x) + jax.jit(jax.vmap(F))(2 * x), 2),
    "checkpoint": (jax.checkpoint(jax.vmap(F)), 1),
}  # fmt: skip


@pytest.mark.parametrize("around", AROUND)
def test_how_often_a_program_is_called(around):
    fn, times = AROUND[around]
    found = mbs.explain(fn, X)
    assert [(p.name, p.rows, p.calls, p.runs) for p in found.programs] == [("small", 6, times, "machine code")]
    assert (found.kept is None) == (around == "while")
    if around == "while":
        assert "called in a while_loop" in str(found) and "no reverse mode: Reverse-mode" in str(found)


def test_rows_on_several_devices_count_together():
    mesh = jax.sharding.AbstractMesh((3,), ("r",), axis_types=(jax.sharding.AxisType.Auto,))
    fn = jax.shard_map(jax.vmap(F), mesh=mesh, in_specs=jax.P("r"), out_specs=jax.P("r"))
    found = mbs.explain(fn, SHAPE)
    assert [(p.rows, p.calls) for p in found.programs] == [(6, 1)] and "24 for each of 6 rows" in str(found)


def test_what_reverse_mode_keeps_is_what_jax_keeps():
    """A function of rows keeps its operands; any other what JAX keeps of it; a loop one of each for every iteration."""

    def kept(fn):
        leaves = jax.tree.leaves(jax.vjp(fn, jnp.asarray(X))[1])
        return sum({x.unsafe_buffer_pointer(): x.nbytes for x in leaves}.values())

    for left in (small, lambda x: jnp.exp(x[0]) * asks_not(x)):
        found = mbs.explain(jax.vmap(left), SHAPE)
        assert found.kept == kept(jax.vmap(left)) > 0 and not found.programs
    found = mbs.explain(AROUND["scan"][0], SHAPE)
    assert (found.kept, found.kept_arguments) == (9 * X.nbytes, 0) and kept(AROUND["scan"][0]) == found.kept
    for left in (eigenvalues, lambda x: jnp.sort(x) * x):  # left to JAX: marks are not kept
        found, without = (mbs.explain(jax.vmap(f), SHAPE) for f in (mbs.rows(left), left))
        assert found.programs and not without.programs
        assert found.kept == without.kept == kept(jax.vmap(left)) and found.kept_arguments == without.kept_arguments
    assert found.kept_arguments == X.nbytes
    assert mbs.explain(lambda n: n + 1, 3).irreversible == "no floating-point arguments and results"


def asks_not(x):
    return jnp.where(x[1] > 0, jnp.sin(x[2]), x[2])


def test_a_gradient_shows_the_checkpoints_of_its_loops():
    def last(x):
        return jax.lax.scan(lambda c, _: (jnp.sin(c) * x[1], None), x[0], None, 50)[0]

    fn = jax.grad(lambda x: jax.vmap(mbs.rows(last))(x).sum())
    program = only(fn, SHAPE)
    assert program.name == "last.cotangents" and program.runs == "machine code" and calls(fn, X) == 1
    assert program.loops == (50, 50) and program.bytes_kept >= 50 * 8 and program.bytes_in == 32
    both = only(lambda x: jax.jvp(jax.vmap(mbs.rows(last)), (x,), (x,)), SHAPE)
    assert (both.name, both.bytes_in, both.bytes_out) == ("last.values.tangents", 48, 16)
    assert only(lambda x: jax.jvp(jax.vmap(mbs.rows(last)), (x,), (x,))[1], SHAPE).bytes_out == 8


def test_functions_of_the_library():
    """They have their names, alone and within jit; a law of the user's that calls one is part of the motion."""
    model = mbs.library.double_pendulum().build()
    q, v = np.zeros((6, 2)), np.ones((6, 2))
    found = mbs.explain(jax.jit(jax.vmap(lambda q, v: mbs.forward_dynamics(model, q, v))), q, v)
    assert [(p.name, p.rows, p.runs, p.bytes_in) for p in found.programs] == [
        ("forward_dynamics", 6, "machine code", 32)
    ]
    assert only(mbs.forward_dynamics, model, q[0], v[0]).name == "forward_dynamics"

    def motion(scale):
        """Nothing that `simulate` receives is traced."""
        run = mbs.simulate(model, q[0], v[0], 0.04, 0.01, tau=lambda m, t, q, v: mbs.bias_forces(m, q, v))
        return scale * run.q[-1]

    program = only(motion, 1.0)
    # the largest number of steps of the program, which has the number of this run as an operand
    assert (program.name, program.runs, program.loops[0]) == ("simulate", "machine code", 9)


def test_without_a_row_program():
    found = mbs.explain(lambda x: jnp.sin(x) + 1, 2.0)
    assert found.programs == () and found.equations == 2
    assert str(found).startswith("2 equations, no row program\nreverse mode keeps 8 bytes")


def sorted_sum(x):
    return jnp.sort(x)[0] + x.sum()


@pytest.mark.parametrize(
    ("kernels", "fn", "runs", "reason"),
    [
        ("machine", small, "machine code", ""),
        ("machine", sorted_sum, "machine code", "sort acts on whole arrays"),
        ("machine", prints, "jax.vmap", "it calls Python while it runs (debug_callback)"),
        ("xla", small, "jax.vmap", "JAXMBS_KERNELS is xla"),
        ("xla", looped, "jax.vmap", "JAXMBS_KERNELS is xla"),
    ],
)  # fmt: skip
def test_an_outermost_call_of_mbs_jit(kernels, fn, runs, reason, monkeypatch):
    """It says what is in the program that such a call compiles."""
    monkeypatch.setenv("JAXMBS_KERNELS", kernels)
    x = np.abs(X)
    found = mbs.explain(fn, x, in_axes=0)
    [program] = found.programs
    assert (program.name, program.rows, program.runs, program.reason) == (fn.__name__, 6, runs, reason)
    assert found.equations == 0 and found.kept is not None
    assert mbs.explain(mbs.jit(fn, in_axes=0), x) == found
    text = jax.jit(mbs.jit(fn, in_axes=0).whole).lower(x).as_text()
    assert ("@jaxmbs_" in text) == (runs == "machine code")


def test_parts_of_what_is_left_to_jax_are_machine_code():
    """A function of the library and one of the user's; the latter is within a third and within `jit`."""
    model = mbs.library.double_pendulum().build()
    inner = jax.jit(lambda x: mbs.rows(small)(x) * x)

    def ordered(x):
        return jnp.sort(mbs.bias_forces(model, x[:2], x[1:]))[0] + mbs.rows(lambda x: jnp.sort(inner(x)))(x)

    want = jax.vmap(lambda x: jnp.sort(mbs.bias_forces(model, x[:2], x[1:]))[0] + jnp.sort(small(x) * x))(X)
    fn = jax.vmap(mbs.rows(ordered))
    found = {p.name: p.runs for p in mbs.explain(fn, X).programs}
    assert found == {
        "ordered": "jax.vmap", "<lambda>": "jax.vmap", "bias_forces": "machine code", "small": "machine code",
    }  # fmt: skip
    np.testing.assert_allclose(fn(X), want, rtol=1e-12)
    assert calls(fn, X) == 2
    gradient = jax.grad(lambda x: jax.vmap(mbs.rows(ordered))(x).sum())(X)
    np.testing.assert_allclose(gradient, jax.grad(lambda x: jax.vmap(ordered)(x).sum())(X), rtol=1e-10, atol=1e-12)
