"""Exported functions: shared libraries called from Python and from C, C source, programs of JAX, kernels as PTX."""

import ctypes
import json
import shutil
import subprocess
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.batching.mapped_program import chosen_target
from tests.cases import relative

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(chosen_target("cpu")[0] is None, reason="kernels are machine code here"),
]
B = 13


def pendulum():
    model = mbs.library.double_pendulum().build()
    rng = np.random.default_rng(0)
    return model, rng.normal(size=(B, 2)), rng.normal(size=(B, 2))


def called(library, name, rows, given, results):
    """The results of a function of a shared library."""
    out = [np.full((rows, *x.shape[1:]), 7, x.dtype) for x in results]
    arrays = [np.ascontiguousarray(x[:rows]) for x in given]
    getattr(ctypes.CDLL(str(library)), name)(
        ctypes.c_int64(rows), *(x.ctypes.data_as(ctypes.c_void_p) for x in (*arrays, *out))
    )
    return out


def latching():
    """A door that a spring closes against a latch."""
    mech = mbs.Mechanism("door")
    mech.add_body("door", 3.0, (0.5, 0, 0), (0.1, 0.3, 0.3))
    mech.add_joint("hinge", mbs.Revolute((0, 0, 1)), "world", "door")
    mech.add_force("spring", mbs.JointSpring("hinge", stiffness=5.0, damping=0.1, rest_coordinate=1.0))
    mech.add_event("latch", mbs.JointReaches("hinge", 0.8), mbs.Lock("hinge"))
    return mech.build()


def dynamics(model):
    def accelerations(q, v):
        return {
            "a": mbs.forward_dynamics(model, q, v),
            "q": q,
            "energy": mbs.energy(model, q, v)[0],
            "one": jnp.ones(2),
        }

    return accelerations


def motion(model):
    def ends(q, v):
        run = mbs.simulate(model, q, v, 0.4, dt=0.02, save_every=None)
        return run.q, run.status, run.events.time

    return ends


def gradient(model):
    def slope(q, v):
        return jax.grad(lambda v: mbs.simulate(model, q, v, 0.1, dt=0.02).q[-1].sum())(v)

    return slope


@needs_compiler
@pytest.mark.parametrize("fn", [dynamics, motion, gradient])
def test_a_shared_library_has_the_bits_of_machine_code(tmp_path, fn):
    model, q, v = pendulum()
    if fn is motion:
        model, q, v = latching(), q[:, :1], 3 * v[:, :1]
    run = fn(model)
    files = mbs.export(run, (q[0], v[0]), tmp_path / "program.so", kind="shared")
    assert [x.name for x in files] == ["program.so", "program.h"]
    wanted = jax.tree_util.tree_leaves(mbs.jit(run, in_axes=0)(q, v))
    for rows in (B, 1, 0):
        found = called(tmp_path / "program.so", "program", rows, (q, v), wanted)
        for x, y in zip(found, wanted, strict=True):
            assert np.array_equal(x, np.asarray(y)[:rows], equal_nan=True)


MAIN = """
#include <stdio.h>
#include <pthread.h>
#include "arm.h"

static double q[4][3], v[4][3], a[4][3];

static void *one(void *k) { int64_t i = (int64_t)k; arm(1, q[i], v[i], a[i]); return 0; }

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) { q[i][k] = 0.1 * (i + k); v[i][k] = 1.0 - 0.25 * k * i; }
    for (int64_t i = 0; i < 4; i++) pthread_create(&threads[i], 0, one, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 4; i++) printf("%a %a %a\\n", a[i][0], a[i][1], a[i][2]);
    return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("kind", ["shared", "c"])
def test_a_program_in_c_with_threads(tmp_path, kind):
    model = mbs.library.chain(3).build()
    mbs.export(lambda q, v: mbs.forward_dynamics(model, q, v), (np.zeros(3), np.zeros(3)),
               tmp_path / ("arm.so" if kind == "shared" else "arm.c"), kind=kind)  # fmt: skip
    (tmp_path / "main.c").write_text(MAIN, encoding="utf-8")
    with_it = ["./arm.so"] if kind == "shared" else ["arm.c"]
    warned = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *warned, "-o", "main", "main.c", *with_it, "-lm", "-lpthread"], cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, encoding="utf-8")
    found = np.array([[float.fromhex(x) for x in row.split()] for row in done.stdout.splitlines()])
    i, k = np.arange(4)[:, None], np.arange(3)
    wanted = mbs.jit(lambda q, v: mbs.forward_dynamics(model, q, v), in_axes=0)(0.1 * (i + k), 1.0 - 0.25 * k * i)
    if kind == "shared":
        assert np.array_equal(found, wanted)
    assert relative(found, wanted) < 1e-12


@needs_compiler
def test_choices_and_powers_in_c(tmp_path):
    """Operations of every kind, at values where their signs and branches differ."""

    def fn(x):
        y = jnp.where(x > 0.5, jnp.minimum(x, 0.7), jnp.maximum(x, -0.3)) + jnp.sign(x) * jnp.clip(x, -0.2, 0.2)
        whole = jnp.floor(3 * x).astype(jnp.int32)
        odd = (whole & 1) == 1
        return y + x**3 - 1 / (2 + x) ** 2 + jax.nn.sigmoid(x), jnp.where(odd, whole, -whole), ~odd, jnp.isfinite(1 / x)

    x = np.linspace(-1, 1, 41)
    mbs.export(fn, (x[0],), tmp_path / "it.c", kind="c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "it.so", "it.c", "-lm"], cwd=tmp_path, check=True)
    wanted = [np.asarray(y) for y in jax.vmap(fn)(x)]
    for found, y in zip(called(tmp_path / "it.so", "it", 41, (x,), wanted), wanted, strict=True):
        assert relative(found, y) < 1e-14


@needs_compiler
@pytest.mark.parametrize("kind", ["shared", "c"])
def test_names_that_programs_have_already(tmp_path, kind):
    """Of functions of C, of words of C++, of macros, and of what the library writes itself."""

    def fn(v0, row, log, arrays, new, linux, _0):
        return jnp.log(v0) + row * log + jnp.tan(arrays), new - linux + _0, jnp.ones(2)

    args = np.array([[1.5, 2, 3, 0.4, 5, 6, 7]])
    suffix = "so" if kind == "shared" else "c"
    mbs.export(fn, tuple(args[0]), tmp_path / f"tan.{suffix}", kind=kind)
    if kind == "c":
        flags = ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", "tan.so"]
        subprocess.run(["cc", *flags, "tan.c", "-lm"], cwd=tmp_path, check=True)
    wanted = [np.asarray(y)[None] for y in fn(*args[0])]
    for found, y in zip(
        called(tmp_path / "tan.so", "tan_", 1, args.T[:, :, None][:, :, 0], wanted), wanted, strict=True
    ):
        assert relative(found, y) < 1e-13


@needs_compiler
def test_numbers_at_their_limits_in_c(tmp_path):
    """NaN, infinities, zeros with signs, numbers that no integer holds, integers that wrap around."""

    def fn(x, k):
        big = x * np.float32(1e10)
        return (
            jnp.sign(x), jnp.maximum(x, 0), jnp.minimum(x, -0.0), jax.lax.clamp(np.float32(2), x, np.float32(1)), big,
            big.astype(jnp.int32), jnp.abs(big).astype(jnp.uint8), k * 1103515245 + 12345, -k * k, x - np.float32(-0.3),
            jax.lax.integer_pow(x, 0), jnp.where(jnp.isfinite(x), np.float32(np.inf), x),
        )  # fmt: skip

    x = np.array([-np.inf, -3, -0.0, 0.0, 0.5, 7, np.inf, np.nan], np.float32)
    k = np.array([0, 1, -1, 2**31 - 1, -(2**31), 46341, 99999, 3], np.int32)
    mbs.export(fn, (x[0], k[0]), tmp_path / "it.c", kind="c")
    mbs.export(fn, (x[0], k[0]), tmp_path / "own.so", kind="shared")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", "it.so", "it.c", "-lm"], cwd=tmp_path, check=True)
    like = [np.asarray(y) for y in jax.vmap(fn)(x, k)]
    found, wanted = (called(tmp_path / f"{a}.so", a, 8, (x, k), like) for a in ("it", "own"))
    for y, own in zip(found, wanted, strict=True):
        assert y.dtype == own.dtype and np.array_equal(y, own, equal_nan=True)
        if y.dtype.kind == "f":
            assert np.array_equal(np.signbit(y[~np.isnan(y)]), np.signbit(own[~np.isnan(own)]))


LACKING = """
#include <stdlib.h>
static int lacks;
static void *given(size_t size) { return lacks ? NULL : malloc(size); }
#define malloc given
__attribute__((visibility("default"))) void lack(int on) { lacks = on; }
"""  # in the place of the system's memory, of which nothing may be left


@needs_compiler
def test_without_memory_it_computes_nothing_and_says_so(tmp_path, monkeypatch):
    model, q, v = pendulum()
    (tmp_path / "lacking.h").write_text(LACKING, encoding="utf-8")
    monkeypatch.setenv("CC", f"cc -include {tmp_path / 'lacking.h'}")
    mbs.export(gradient(model), (q[0], v[0]), tmp_path / "slope.so", kind="shared")
    library, out = ctypes.CDLL(str(tmp_path / "slope.so")), np.full((B, 2), 7.0)
    arrays = [x.ctypes.data_as(ctypes.c_void_p) for x in (q, v, out)]
    library.lack(1)
    assert library.slope(ctypes.c_int64(B), *arrays) == 1 and (out == 7).all()
    library.lack(0)
    assert library.slope(ctypes.c_int64(B), *arrays) == 0 and not (out == 7).any()


@needs_compiler
def test_threads_may_call_it_at_once(tmp_path):
    model, q, v = pendulum()
    run = gradient(model)
    mbs.export(run, (q[0], v[0]), tmp_path / "slope.so", kind="shared")
    wanted = np.asarray(mbs.jit(run, in_axes=0)(q, v))
    found = {}

    def work(k):
        found[k] = called(tmp_path / "slope.so", "slope", B, (q, v), [wanted])[0]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    assert all(np.array_equal(found[k], wanted) for k in range(8))


def test_pytrees_and_dtypes_get_names(tmp_path):
    def fn(state, on, count, *, scale=2.0):
        return {"x y": jnp.where(on, state["q"] * scale, 0.0), "long": (count + 1, ~on)}

    mbs.export(fn, ({"q": np.zeros((2, 3), np.float32)}, np.array(True), np.int32(1)), tmp_path / "it.c", kind="c")
    text = (tmp_path / "it.h").read_text(encoding="utf-8")
    assert "const float *state_q, const uint8_t *on, const int32_t *count" in text
    assert "int32_t *long_0, uint8_t *long_1, float *x_y" in text
    assert "state_q: float [rows] [2] [3]" in text


def test_a_program_of_jax(tmp_path):
    model, q, v = pendulum()
    pytest.importorskip("flatbuffers", reason="needs pip install 'jaxmbs[export]'")
    (file,) = mbs.export(motion(model), (q[0], v[0]), tmp_path / "motion.jax", kind="jax")
    found = jax.export.deserialize(bytearray(file.read_bytes())).call(q[0], v[0])
    assert relative(found[0], motion(model)(q[0], v[0])[0]) < 1e-12


def test_a_kernel_and_how_it_is_launched(tmp_path):
    model, q, v = pendulum()
    mbs.export(lambda q, v: mbs.forward_dynamics(model, q, v), (q[0], v[0]), tmp_path / "pendulum.ptx", kind="ptx")
    text = (tmp_path / "pendulum.ptx").read_text(encoding="ascii")
    assert ".target sm_80" in text and ".entry kernel" in text
    said = json.loads((tmp_path / "pendulum.json").read_text(encoding="utf-8"))
    assert [next(iter(x)) for x in said["parameters"]] == ["argument", "argument", "rows", "result"]
    assert said["parameters"][0] == {"argument": "q", "dtype": "float64", "shape": ["rows", 2]}
    assert text.count(".param .u64 .ptr") + text.count(".param .u64") >= 4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "exe"}, "kind is 'exe'; choose from shared, c, fmu, jax, ptx"),
        ({"fn": 3}, "3 is not a function"),
        ({"args": np.zeros(2)}, "pass a tuple with an example of every argument"),
        ({"path": "none/x.so"}, "there is no folder 'none'"),
        ({"path": "x.h"}, "a file 'x.h' is written beside it"),
        ({"dt": 0.1}, "dt and parameters are for FMUs"),
        ({"args": (object(),)}, "args must be arrays"),
        ({"fn": lambda a, b: a}, "args do not fit the function"),
        ({"fn": lambda a: a * 1j}, "there are numbers of the kind complex"),
        ({"path": "x"}, "the file needs a suffix, such as .so"),
        ({"fn": lambda q: jnp.linalg.svd(jnp.outer(q, q))[1]}, "is not one program of rows: .* takes more functions"),
        ({"fn": lambda q: jax.lax.fori_loop(0, q[0].astype(int), lambda k, x: x + k, 0), "kind": "c"}, "has loops"),
        ({"fn": lambda q: jax.lax.scan(lambda c, x: (c + x, c), 0.0, q[0] * jnp.arange(90.0))[1], "kind": "c"}, "has loops"),
    ],
)  # fmt: skip
def test_what_cannot_be_exported_is_refused_with_the_reason(tmp_path, monkeypatch, change, says):
    monkeypatch.chdir(tmp_path)
    given = {"fn": jnp.sin, "args": (np.zeros(2),), "path": "x.so", "kind": "shared", **change}
    with pytest.raises(mbs.ModelError, match=says):
        mbs.export(**given)


def test_without_a_compiler_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(mbs.ModelError, match="the C compiler 'no-such-compiler' was not found"):
        mbs.export(jnp.sin, (np.zeros(2),), tmp_path / "x.so", kind="shared")
