"""Kernels for a GPU, run on the CPU instruction by instruction, against machine code and `jax.vmap`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxmbs as mbs
from jaxmbs.batching import over_rows
from jaxmbs.batching.lookup import Table, lookup
from jaxmbs.batching.machine import MACHINE, host
from tests.batching import fuzz, test_skipping
from tests.batching.gpu.emulated import EMULATED
from tests.cases import relative

pytestmark = pytest.mark.cpu
ARM = mbs.library.arm7().build()
WEIGHTS = tuple(np.random.default_rng(1).normal(size=s) for s in ((7, 33), (33, 7)))


def flexible_arm():
    """A beam of five modes on a hinge, with a body on a hinge at its tip."""
    mech = mbs.Mechanism("flexible arm", gravity=(0.0, 0.0, -9.81))
    mech.add_flexible_body("beam", mbs.Part.beam(1.0, 0.5, (3.0, 5.0), 1.0, modes=5, elements=6))
    mech.add_joint("root", mbs.Revolute((0, 1, 0)), "world", "beam")
    mech.add_body("load", 0.3, (0.1, 0.0, 0.05), (0.01, 0.02, 0.02))
    mech.add_joint("wrist", mbs.Revolute((0, 0, 1)), "beam_tip", "load")
    return mech.build()


FLEXIBLE = flexible_arm()


def forward(q, v, tau):
    return mbs.forward_dynamics(ARM, q, v, tau)


def motion(q, v, tau):
    def step(state, _):
        q, v = state
        a = forward(q, v, tau)
        return (q + 0.01 * v, v + 0.01 * a), (q, jnp.sum(v))

    return lax.scan(step, (q, v), None, 9)


def repeated(q, v, tau):
    """Loops of different lengths, one within another, and numbers of tables at indices of the row."""
    table = Table(np.arange(20.0).astype(q.dtype) ** 2)

    def inner(c):
        return lax.while_loop(lambda a: (a > 1) & (a < 1e3), lambda a: a * 0.5 + lookup(table, c[0]) * 1e-3, c[1] * 3)

    first = jnp.int32(0), jnp.abs(q[0])
    return lax.while_loop(lambda c: c[0] < 3 + (jnp.abs(v[0]) * 3).astype(int), lambda c: (c[0] + 1, inner(c)), first)


def network(q, v, tau):
    first, second = (w.astype(q.dtype) for w in WEIGHTS)
    return lax.fori_loop(0, 3, lambda k, x: jnp.tanh(x @ first) @ second * k, q)


FUNCTIONS = {
    "forward dynamics": forward,
    "inverse dynamics": lambda q, v, tau: mbs.inverse_dynamics(ARM, q, v, tau),
    "mass matrix": lambda q, v, tau: mbs.mass_matrix(ARM, q),
    "vector-Jacobian product": lambda q, v, tau: jax.vjp(forward, q, v, tau)[1](tau),
    "Jacobian": jax.jacfwd(forward),
    "flexible body": lambda q, v, tau: mbs.forward_dynamics(FLEXIBLE, q, v, tau),
    "motion": motion,
    "gradient of a motion": jax.grad(lambda *x: sum(jnp.sum(y) for y in jax.tree.leaves(motion(*x)))),
    "network": network,
    "repeated": repeated,
    "truth values": lambda q, v, tau: (q > v, jnp.where((q > v) & (tau < 0), q, -v), jnp.int32(3) * (q > 0)),
    "exponentials": lambda q, v, tau: (jnp.exp(q), jnp.expm1(v), jax.nn.sigmoid(tau), jnp.tanh(q * 5)),
    "library": lambda q, v, tau: (jnp.arctan2(q, v), jnp.log(jnp.abs(tau)), jnp.arcsin(jnp.sin(q)), jnp.abs(q) ** v),
    "few and none": lambda q, v, tau: (q[0], jnp.ones(3), jnp.sum(v)),
}  # fmt: skip


def arrays(rows, dtype, size=7):
    rng = np.random.default_rng(3)
    return [jnp.asarray(rng.normal(size=(rows, size)) * 3, dtype) for _ in range(3)]


@pytest.mark.usually(
    "mass matrix-float64",
    "flexible body-float64",
    "motion-float32",
    "network-*",
    "repeated-*",
    "truth values-*",
    "exponentials-*",
    "library-*",
    "few*",
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_bits_are_those_of_machine_code(name, dtype):
    """Rows that are no whole number of blocks, and more than the blocks compute in one turn."""
    args = arrays(333, dtype)
    got, want = (jax.jit(over_rows(FUNCTIONS[name], on=on))(*args) for on in (EMULATED, MACHINE))
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype
        if host.processor().fuses:
            np.testing.assert_array_equal(x, y)
        else:
            assert relative(x, y) < (1e-12 if dtype is np.float64 else 1e-4)


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
def test_wide_rows_go_through_shared_memory(rows):
    """Tiles that are not full, columns that nobody needs, a part of a joined array, and rows of one and two numbers."""

    def fn(x, y, z, b):
        return x[3:40] * 2 + z, jnp.concatenate([x[:21], y]), y, jnp.flip(b), x[0] > z

    rng = np.random.default_rng(rows)
    args = [jnp.asarray(rng.normal(size=(rows, *s))) for s in ((50,), (2,), ())] + [
        jnp.asarray(rng.random((rows, 5)) > 0.5)
    ]
    got, want = jax.jit(over_rows(fn, on=EMULATED))(*args), jax.vmap(fn)(*args)
    for x, y in zip(got, want, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_equal_vmap(seed, monkeypatch):
    """Bits of the operations that are exact, and rounding of the others."""
    fn, args, in_axes, names = fuzz.program(seed, 12)
    rows = 90
    args = ([x[:rows] for x in args[0]], *args[1:])
    got, want = jax.jit(over_rows(fn, in_axes, EMULATED))(*args), jax.jit(jax.vmap(fn, in_axes))(*args)
    for name, x, y in zip(names, map(jax.tree.leaves, got), map(jax.tree.leaves, want), strict=False):
        for a, b in zip(x, y, strict=True):
            assert not fuzz.differs(a, b), (name, fuzz.differs(a, b))


@pytest.mark.parametrize("fn", test_skipping.FUNCTIONS)
def test_branches_that_no_row_needs(fn):
    """Each thread leaves the loop that a costly branch of a cond has become by itself."""
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(150, 4)))
    got, want = jax.jit(over_rows(fn, on=EMULATED))(rows), jax.jit(jax.vmap(fn))(rows)
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert np.isfinite(y).all() and relative(x, y) < 1e-12
