"""Kernels as machine code against jax.vmap: batches of every size, threads, special numbers, loops that stay inside."""

import collections
import concurrent.futures
import ctypes
import os
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import llvmlite.binding as llvm
import numpy as np
import pytest
from jax import lax

import jaxmbs as mbs
from jaxmbs.batching import batches, machine, mapped_program, over_rows, sealed
from jaxmbs.batching.machine import MACHINE, compiling, emitting, host
from jaxmbs.batching.machine.code import Code, Piece
from jaxmbs.batching.mapped_program import MappedProgram
from jaxmbs.batching.recorded import Step
from tests.cases import relative


@pytest.fixture(autouse=True)
def with_machine_code(monkeypatch):
    """Whatever the caller has chosen."""
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 1e-310, 1e300, 3e9, 1e22, np.pi])


def everything(x, n, b, s):
    """Of a row x (3,), a whole number, a truth value and a shared number."""
    total, path = lax.scan(lambda c, k: (c * 0.5 + jnp.sin(k * x), c[0]), x, jnp.arange(4.0, dtype=x.dtype))
    chosen = jnp.where(b, jnp.cos(x) * s, lax.atan2(x, s))
    whole = n // 3 + jnp.argmax(x) + lax.rem(n, 0 * n) + lax.div(n, 0 * n)
    return total, path[::-1], chosen, whole, x > s, b, jnp.exp(x) % 2, jnp.max(x), x.astype(jnp.int8), n + b


def batch(rows, dtype):
    rng = np.random.default_rng(5)
    x = np.where(rng.random((rows, 3)) < 0.3, rng.choice(SPECIAL, (rows, 3)), rng.normal(size=(rows, 3))).astype(dtype)
    n = rng.choice([np.iinfo(np.int32).min, -7, -1, 0, 8], rows).astype(np.int32)
    return x, n, rng.random(rows) < 0.5, np.asarray(0.7, dtype)


@pytest.mark.filterwarnings("ignore:.*encountered in cast")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_batches_of_every_size(dtype):
    """A row has the same bits alone, at any place of a batch, and whoever computes it; and those of jax.vmap to rounding."""
    in_axes = (0, 0, 0, None)
    args = batch(50, dtype)
    run = mbs.jit(everything, in_axes=in_axes)
    whole = run(*args)
    for got, want in zip(whole, jax.jit(jax.vmap(everything, in_axes))(*args), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        if got.dtype.kind == "f":
            tolerance = 40 * np.finfo(dtype).eps
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        else:
            assert np.array_equal(got, want)
    for size in range(1, 18):
        first = 50 - 2 * size
        part = [x[first : first + size] if np.ndim(x) else x for x in args]
        for got, want in zip(run(*part), whole, strict=True):
            assert np.asarray(got).tobytes() == np.asarray(want)[first : first + size].tobytes()


def gradient_of_a_loop(x, y):
    def loss(x):
        def turn(c, k):
            return (c[0] + 0.1 * c[1], c[1] - 0.1 * jnp.sin(c[0]) * k), c[0] * y

        (a, _), path = lax.scan(turn, (x, x), jnp.arange(1.0, 9.0))
        return jnp.sum(a) + jnp.sum(path[3])

    return jax.value_and_grad(loss)(x)


def step_between(x, y):
    """An operation on whole arrays between two kernels, which need numbers of one another."""
    a, b = jnp.sin(x) * y, x + y
    solved = jnp.linalg.solve(jnp.outer(a, a) + 4 * jnp.eye(3), b)
    (c, _), path = lax.scan(lambda c, k: ((c[0] + k * solved, c[1] + 1), c[0]), (a, 0), jnp.arange(3.0))
    return c * b, jnp.linalg.solve(jnp.outer(c, c) + 4 * jnp.eye(3), path[-1]) + a, path


def nested(x, y):
    def outer(c, z):
        d, inner = lax.scan(lambda d, k: (d * 0.9 + k * y, d[:2]), c, jnp.stack([z, c[0]]))
        return d[::-1], inner * z

    return lax.scan(outer, x, y, reverse=True)


@pytest.mark.parametrize("fn", [gradient_of_a_loop, step_between, nested])
def test_loops_and_steps(fn):
    x, y = np.random.default_rng(1).normal(size=(2, 21, 3))
    results = jax.jit(over_rows(fn, on=MACHINE))(x, y)
    for got, want in zip(jax.tree.leaves(results), jax.tree.leaves(jax.vmap(fn)(x, y)), strict=True):
        assert got.shape == want.shape and relative(got, want) < 1e-13


def test_loops_stay_inside_kernels():
    """A rollout, its gradient and its table are one call; a loop that keeps too much is not."""
    for fn in (gradient_of_a_loop, nested):
        x = np.ones((4, 3))
        text = jax.jit(over_rows(fn, on=MACHINE)).lower(x, x).as_text()
        assert text.count("stablehlo.custom_call @jaxmbs_") == 1 and "while" not in text

    run = mbs.jit(lambda x, s: jnp.cos(x) * jnp.roll(s * s, 1)[:3], in_axes=(0, None))  # s, which rows share, is first
    args = np.ones((5000, 3)), np.arange(4.0)
    text = jax.jit(run.whole).lower(*args).as_text()
    assert text.count("stablehlo.custom_call @jaxmbs_") == 1 and "while" not in text
    assert relative(run(*args), jnp.cos(args[0]) * np.array([[9.0, 0.0, 1.0]])) < 1e-15

    def long(x):
        return lax.scan(lambda c, _: (c * 0.5, jnp.outer(c, c)), x, None, 100_000)[1]

    program = MappedProgram(long, [np.ones((4, 3))], [True], MACHINE).program
    assert all(MACHINE.excludes(item, 2) for item in program.items if isinstance(item, Step))


def test_what_a_loop_leaves_twice_is_kept_once():
    def twice(x):
        return lax.scan(lambda c, _: (0.5 * c, (s := jnp.sin(c), s)), x, None, 50)[1]

    program = MappedProgram(twice, [np.ones(4)], [True], MACHINE).program
    assert [len(item.loop.ys) for item in program.items if isinstance(item, Step) and item.loop] == [1]
    first, second = mbs.jit(twice, in_axes=0)(np.ones(4))
    assert np.array_equal(first, second) and relative(first[0], np.sin(0.5 ** np.arange(50))) < 1e-15


def test_the_gradient_of_a_motion_is_one_call(monkeypatch):
    """It keeps the state and the accelerations of a step; a row alone, one number in a register, has the bits of any.

    Numbers that move between two pieces move together: a call for each would take a fifth of the time.
    """
    texts, made = [], emitting.kernel
    monkeypatch.setattr(emitting, "kernel", lambda *args: texts.append(made(*args)) or texts[-1])
    model, steps = mbs.library.double_pendulum().build(), 300

    def end(v):
        return mbs.simulate(model, [0.5, 1.0], v, 0.3, 0.3 / steps, checkpoint=True, save_every=None).q[-1].sum()

    v = np.random.default_rng(3).normal(size=(9, 2))
    program = MappedProgram(jax.grad(end), [v], [True], MACHINE)
    assert not program.excluded(MACHINE)
    kept = [y for item in program.program.items if isinstance(item, Step) and item.loop for y in item.loop.ys]
    assert sum(np.prod(y.shape) for y in kept) <= steps * (4 + 4 * 2 + 3) + 8  # and times
    run = mbs.jit(jax.grad(end), in_axes=0)
    assert np.asarray(run(v[4:5])).tobytes() == np.asarray(run(v))[4:5].tobytes()
    assert relative(run(v), jax.vmap(jax.grad(end))(v)) < 1e-12
    for text in texts:
        calls = [line.split("(")[0] for line in text.splitlines() if "call void @part" in line]
        assert len(calls) <= 40, len(calls)


def test_a_gradient_that_keeps_every_stage_of_steps_of_its_own_is_one_call():
    """`jax.checkpoint` rounds what it keeps by name, to the precision it has; whether a row has ended is a kept number."""
    mech = mbs.library.double_pendulum()
    joint = mech.build().joint_names[0]
    mech.add_event("latch", when=mbs.JointReaches(joint, 0.4), then=mbs.Lock(joint))
    model = mech.build()

    def end(v):
        run = mbs.simulate(
            model, [0.5, 1.0], v, 0.3, 0.02, method="dopri5", tolerance=1e-6, max_steps=40, save_every=None
        )
        return run.q[-1].sum() + run.events.time[0]

    v = np.random.default_rng(3).normal(size=(3, 2))
    assert not MappedProgram(jax.grad(end), [v], [True], MACHINE).excluded(MACHINE)
    assert relative(mbs.jit(jax.grad(end), in_axes=0)(v), jax.jit(jax.vmap(jax.grad(end)))(v)) < 1e-10


def test_a_gradient_that_keeps_which_branch_was_taken_is_one_call():
    def end(x):
        return lax.scan(lambda c, _: (lax.cond(c > 0.3, jnp.sin, lambda c: c * c, c), None), x, None, 7)[0]

    x = np.linspace(-2.0, 2.0, 9)
    assert not MappedProgram(jax.grad(end), [x], [True], MACHINE).excluded(MACHINE)
    np.testing.assert_allclose(mbs.jit(jax.grad(end), in_axes=0)(x), jax.vmap(jax.grad(end))(x), rtol=1e-13)


@pytest.mark.parametrize("bits", [(11, 52), (8, 23)], ids=["its own", "less"])
def test_numbers_rounded_to_a_precision(bits):
    def fn(x):
        return 3.0 * lax.reduce_precision(jnp.sin(x), *bits)

    x = np.random.default_rng(4).normal(size=9)
    assert MappedProgram(fn, [x], [True], MACHINE).program.fused == (bits == (11, 52))
    assert relative(mbs.jit(fn, in_axes=0)(x), jax.vmap(fn)(x)) < 1e-15


def test_threads_and_blocks_change_no_bit(monkeypatch):
    """Blocks of one group of rows, on all threads, from several threads at once; and each group by itself."""
    x = [jnp.asarray(y) for y in np.random.default_rng(2).normal(size=(8, 64, 3))]
    run = mbs.jit(lambda x: lax.fori_loop(0, 30_000, lambda i, c: jnp.sin(c) * x + c[::-1], x), in_axes=0)

    def at_once(y):
        """The result, which stays in memory in case a thread still writes to it, and what it holds at first."""
        found = run(y)
        return found, np.asarray(found).tobytes()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        results = list(pool.map(at_once, x))
    together = [found for _, found in results]
    assert together == [b"".join(np.asarray(run(y[i : i + 8])).tobytes() for i in range(0, 64, 8)) for y in x]
    monkeypatch.setattr(emitting, "WORK", 1 << 40)
    whole = mbs.jit(run.fn, in_axes=0)
    assert np.asarray(whole(x[0])).tobytes() == together[0]


FORKED = """
import faulthandler, os
import jax, jax.numpy as jnp, numpy as np
import jaxmbs as mbs

run = mbs.jit(lambda x: jnp.sin(x) + x[::-1], in_axes=0)
x = jax.block_until_ready(jnp.asarray(np.random.default_rng(0).normal(size=(100_000, 3))))
want = np.asarray(run(x))
child = os.fork()
if not child:
    faulthandler.dump_traceback_later(20, exit=True)
    os._exit(0 if np.array_equal(run(x), want) else 2)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked on this system")
def test_after_fork():
    """The threads of XLA's pool are not there: who calls works alone, and does not wait for them."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True, timeout=60)


@pytest.mark.parametrize(("processor", "has", "register"), [("haswell", "avx2", 32), ("x86-64", "sse2", 16)])
def test_older_processors(processor, has, register, monkeypatch):
    """Their kernels run here too, with shorter registers."""
    if not host.features().get(has):
        pytest.skip(f"this processor has no {has}")
    monkeypatch.setattr(compiling, "_processor", lambda: (processor, ""))
    monkeypatch.setattr(host, "register_bytes", lambda: register)
    x = batch(21, np.float64)[0]
    monkeypatch.setattr(emitting, "WORK", 1)  # a thread for each group of rows

    def fn(x):
        return jnp.sin(x) / x[::-1], jnp.sqrt(x) > 0.5, lax.scan(lambda c, k: (c * k + x, c[0]), x, jnp.arange(3.0))

    for got, want in zip(jax.tree.leaves(over_rows(fn, on=MACHINE)(x)), jax.tree.leaves(jax.vmap(fn)(x)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-14)


@pytest.mark.slow
def test_a_processor_of_another_kind(monkeypatch):
    """An arm's forward dynamics for ARM, which is written here and runs there: two rows to a register, no call per row."""
    monkeypatch.setattr(host, "register_bytes", lambda: 16)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    model = mbs.library.arm7().build()
    rows = [np.ones((5, model.nq)), np.ones((5, model.nv))]
    program = MappedProgram(lambda q, v: mbs.forward_dynamics(model, q, v), rows, [True] * 2, MACHINE).program
    text = emitting.kernel(Code(program.items, program.outputs))
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    machine = target.create_target_machine(opt=2, jit=True)
    made = machine.emit_assembly(llvm.parse_assembly(text))
    assert "handler:" in made and "ret" in made.split()
    used = collections.Counter(line.split()[0] for line in made.splitlines() if re.search(r"\bv\d+\.2d\b", line))
    assert used["fmla"] + used["fmls"] > 300 and used["fmul"] > 200 and used["fdiv"] >= 6
    singly = re.findall(r"^\s+(?:fmadd|fmsub|fmul|fadd|fdiv)\s+d\d", made, re.M)
    assert len(singly) < 0.02 * sum(used.values()), "numbers are computed one by one"
    assert machine.emit_object(llvm.parse_assembly(text))[:20].endswith(b"\xb7\x00"), "an object file for AArch64"


def test_long_programs_are_cut():
    """Pieces of bounded length, so that LLVM's time is linear in the length of the program."""

    def fn(x):
        for k in range(1500):
            x = x * x[::-1] + (1.0 + k)
        return x

    program = MappedProgram(fn, [np.ones((2, 2))], [True], MACHINE).program
    pieces = [node for node in Code(program.items, program.outputs).body if isinstance(node, Piece)]
    assert sum(len(p.chunk.operations) for p in pieces) == 3000
    assert max(len(p.chunk.operations) for p in pieces) <= 700


def test_sines_have_no_limit():
    x = np.concatenate([np.linspace(-30, 30, 999), [1e8, -2e8, 1e22, 1e300, -0.0, 1e-300, np.inf, np.nan]])
    s, c = over_rows(lambda x: (jnp.sin(x), jnp.cos(x)), on=MACHINE)(x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(s, np.sin(x), rtol=4e-16, atol=2e-16)
        np.testing.assert_allclose(c, np.cos(x), rtol=4e-16, atol=2e-16)
    assert np.signbit(s[-4])


def test_the_smallest_numbers_are_zeros():
    """As the processor takes them in XLA's threads."""
    x = np.array([1e-310, -1e-310, 0.0, -0.0, np.inf, -np.inf, 2.0])
    for fn in (jnp.sqrt, jnp.log, lambda x: lax.pow(x, 0.5), lambda x: 1 / x):
        np.testing.assert_allclose(over_rows(fn, on=MACHINE)(x), jax.jit(jax.vmap(fn))(x), rtol=4e-16)


def test_powers_that_are_products_or_roots():
    x = np.array([-2.5, 3.0, 1e-310, -1e-310, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e200])

    def fn(x):
        return [lax.pow(x, y) for y in (-1.0, 0.5, 1.0, 2.0, 3.0)]

    got, want = over_rows(fn, on=MACHINE)(x), jax.jit(jax.vmap(fn))(x)
    np.testing.assert_allclose(got, want, rtol=1e-15)
    assert np.array_equal(np.signbit(got)[:, :8], np.signbit(want)[:, :8])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_powers_of_the_smallest_numbers(dtype):
    """Zero would be another base, and another exponent of a negative number: -2^0 = 1, but -2^1e-310 is no number."""
    small = np.finfo(dtype).tiny / 100
    x, y = np.array([[small, -0.25], [small, 0.5], [-small, 3], [-2, small], [0, small], [np.inf, small]], dtype).T
    got = over_rows(lax.pow, on=MACHINE)(x, y)
    np.testing.assert_allclose(got, jax.jit(jax.vmap(lax.pow))(x, y), rtol=4 * np.finfo(dtype).eps)
    assert np.array_equal(got[3:], [np.nan, 0, np.inf], equal_nan=True)


def test_instructions_for_whole_numbers():
    """A division by zero would end the process: guarded where it is made, also where a compiler could prove nothing."""
    program = MappedProgram(lax.div, [np.ones(3, int), np.ones(3, int)], [True] * 2, MACHINE).program
    text = emitting.kernel(Code(program.items, program.outputs))
    [divided] = [line for line in text.splitlines() if " = sdiv <" in line]
    divisor = divided.rsplit(", ", 1)[1]
    assert any(line.lstrip().startswith(f"{divisor} = select") for line in text.splitlines())
    a, b = np.array([7, -7, np.iinfo(int).min, 5]), np.array([0, 2, -1, -3])
    for fn in (lax.div, lax.rem):
        assert np.array_equal(over_rows(fn, on=MACHINE)(a, b), jax.vmap(fn)(a, b))


def test_the_choice_of_kernels(monkeypatch):
    for name, chosen in (("", (MACHINE, "")), ("machine", (MACHINE, "")), ("xla", (None, "JAXMBS_KERNELS is xla"))):
        monkeypatch.setenv("JAXMBS_KERNELS", name)
        assert mapped_program.chosen_target() == chosen and mapped_program.kernels().startswith(
            "machine code" if chosen[0] else "XLA"
        )
    for name in ("vectors", "loops"):
        monkeypatch.setenv("JAXMBS_KERNELS", name)
        with pytest.raises(mbs.ModelError, match=rf'"{name}".*"machine" or "xla"'):
            mapped_program.chosen_target()
    monkeypatch.setattr(machine, "lacking", lambda: "llvmlite is not installed")
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")
    with pytest.raises(mbs.ModelError, match="llvmlite is not installed"):
        mapped_program.chosen_target()
    monkeypatch.delenv("JAXMBS_KERNELS")
    assert mapped_program.chosen_target() == (None, "llvmlite is not installed")


def test_without_llvmlite(monkeypatch):
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None)
    assert "pip install llvmlite" in machine.lacking.__wrapped__()
    monkeypatch.setattr(machine.sys, "platform", "win32")
    assert "win32" in machine.lacking.__wrapped__()


def test_code_of_another_processor_is_another_file(monkeypatch):
    names = {compiling._file("text"), compiling._file("another")}
    monkeypatch.setattr(compiling, "_LEVEL", 1)
    names.add(compiling._file("text"))
    monkeypatch.setattr(compiling, "_processor", lambda: ("znver4", "+avx2"))
    names.add(compiling._file("text"))
    assert len(names) == 4 and compiling._file("text") in names


def test_code_is_kept_on_disk(tmp_path):
    """It is read where it is whole, and made anew where it is not; the same function always has the same text."""
    compiling._prepared()
    path = tmp_path / "made" / "code.o"
    x = np.linspace(0, 1, 15).reshape(5, 3)

    def text():
        program = MappedProgram(lambda x: jnp.sin(x) * x[0] + jnp.exp(x), [x], [True], MACHINE).program
        return emitting.kernel(Code(program.items, program.outputs))

    assert text() == text()
    results, engines = [], []
    for k in range(3):
        before = dict(compiling.COUNT)
        engines.append(compiling._engine(text(), path, sealed.read(path)))
        address = ctypes.c_void_p(engines[-1].get_function_address("handler"))
        jax.ffi.register_ffi_target(f"kept_{k}", jax.ffi.pycapsule(address), platform="cpu")
        results.append(np.asarray(jax.ffi.ffi_call(f"kept_{k}", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)).tobytes())
        assert compiling.COUNT["read"] - before["read"] == (k == 1)
        if k == 1:
            path.write_bytes(b"damaged")
    assert results[0] == results[1] == results[2]
    KEPT.extend(engines)


KEPT: list = []  # XLA may call them as long as the process lives


def test_a_loop_that_keeps_too_much_is_done_in_parts(monkeypatch):
    """Its turns are XLA's, each a kernel; the memory for a batch is that of a part."""

    def fn(x):
        return lax.scan(lambda c, _: (c * 0.5 + x, jnp.outer(c, c)), x, None, 40_000)[1][::20_000]

    x = np.random.default_rng(4).normal(size=(3, 2))
    program = MappedProgram(fn, [x], [True], MACHINE)
    assert program.excluded(MACHINE)
    assert relative(mbs.jit(fn, in_axes=0)(x), jax.vmap(fn)(x)) < 1e-13
    used = []
    for most in (2, 6):
        monkeypatch.setattr(batches, "PART_ROWS", most)
        run = jax.jit(mbs.jit(fn, in_axes=0).whole).lower(np.resize(x, (6, 2))).compile()
        used.append(run.memory_analysis().temp_size_in_bytes)
    assert 2 * used[0] < used[1]
