"""Programs of scalars (jaxmbs.batching) against jax.vmap, for every kind of equation that can occur in one."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxmbs as mbs
from jaxmbs.batching import batches, ordering, over_rows
from jaxmbs.batching.machine import MACHINE
from jaxmbs.batching.mapped_program import MappedProgram
from jaxmbs.batching.ordering import by_parts, by_results, chunks
from jaxmbs.batching.recording import record
from jaxmbs.batching.scalars import Operation, Source
from tests.cases import relative

ROWS = 37
MATRIX = np.random.default_rng(7).normal(size=(3, 3))


@pytest.fixture(autouse=True)
def rng():
    """The same numbers for every test, in whichever order they run."""
    return np.random.default_rng(8)


def inputs():
    rng = np.random.default_rng(9)
    return rng.normal(size=(ROWS, 3)), rng.uniform(0.2, 0.9, size=(ROWS, 3))


def same(fn, *args, in_axes=0, tolerance=1e-13):
    """Machine code, also around what `rows` leaves to JAX, and `rows` against jax.vmap."""
    want = jax.jit(jax.vmap(fn, in_axes=in_axes))(*args)
    for kernels in (MACHINE, None):
        got = jax.jit(over_rows(fn, in_axes, kernels))(*args)
        assert jax.tree.structure(got) == jax.tree.structure(want)
        for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            assert x.shape == y.shape and x.dtype == y.dtype
            if x.dtype == bool or np.issubdtype(x.dtype, np.integer):
                assert np.array_equal(x, y)
            else:
                assert x.size == 0 or relative(x, y) <= tolerance


@jax.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))

ON_NUMBERS = {
    "arithmetic": lambda x, y: x * y - x / y + (-y) ** 3 + jnp.abs(x),
    "functions of one number": lambda x, y: [f(y) for f in (jnp.exp, jnp.log, jnp.sqrt, jnp.tanh, jnp.arccos, jnp.arctan)],
    "trigonometry": lambda x, y: jnp.sin(x) * jnp.cos(3 * y) + jnp.tan(y) + jnp.arctan2(x, y) + jnp.sinh(x),
    "comparison and choice": lambda x, y: jnp.where(x > y, x, jnp.maximum(-y, jnp.minimum(x, 0.1))),
    "truth values": lambda x, y: (x > 0) & ~(y < 0.5) | (jnp.sign(x) == 1.0),
    "whole numbers": lambda x, y: (jnp.floor(10 * x).astype(int) % 3, jnp.round(y * 4).astype(jnp.int32)),
    "another precision": lambda x, y: x.astype(jnp.float32) * jnp.float32(2.0) + y.astype(jnp.float32),
    "constants": lambda x, y: jnp.asarray(MATRIX)[0, 1] * x + jnp.pi + jnp.asarray(MATRIX) @ y,
    "only constants": lambda x, y: jnp.asarray(MATRIX) @ MATRIX,
    "nothing changed": lambda x, y: (x, y[0]),
    "an empty array": lambda x, y: (x[:0], (x[:0] > 0).astype(jnp.int32), jnp.sum(x[:0]) + y, jnp.linalg.norm(x[:0])),
    "constants without a value": lambda x, y: (jnp.isposinf(x / jnp.array(0.0)), jnp.array(-1.0) / jnp.array(0.0) < x),
    "random numbers": lambda x, y: x + jax.random.normal(jax.random.fold_in(jax.random.key(3), 1), (3,)),
    "a rule of its own": lambda x, y: (jax.nn.softplus(x), jax.checkpoint(lambda z: jnp.sin(z) * y)(x), doubled(x)),
}  # fmt: skip

ON_ARRAYS = {
    "parts": lambda x, y: (x[1], x[::-1], x[1:], jnp.split(y, [1]), x[jnp.array([2, 0])]),
    "put together": lambda x, y: jnp.stack([x, y], axis=1).T.reshape(3, 2) + jnp.concatenate([x, y]).reshape(3, 2),
    "spread": lambda x, y: x[:, None] * y[None, :] + jnp.broadcast_to(x, (3, 3)) + jnp.zeros((3, 3)),
    "filled up": lambda x, y: jnp.pad(x, (1, 2), constant_values=5.0) + jnp.pad(y, (2, 1)),
    "changed in place": lambda x, y: x.at[1].set(y[0]).at[jnp.array([0, 2])].add(y[:2]),
    "a place that depends on the row": lambda x, y: x[(x[0] > 0).astype(int)],
    "products": lambda x, y: (jnp.outer(x, y) @ MATRIX @ x, jnp.einsum("i,ij,j->", x, jnp.outer(y, x), y), x @ y),
    "sums": lambda x, y: (jnp.sum(x), jnp.prod(y), jnp.max(x), jnp.min(y), jnp.all(x > -9), jnp.any(y > 0.8), jnp.cumsum(x)),
    "sorted": lambda x, y: (jnp.sort(x), jnp.argmax(x)),
    "factorized": lambda x, y: jnp.linalg.solve(jnp.outer(x, x) + jnp.eye(3), y),
    "a large array": lambda x, y: jnp.sum(jnp.outer(jnp.repeat(x, 20), jnp.repeat(y, 20)), axis=1),
}  # fmt: skip


def carried(x, y):
    def turn(c, k):
        a, (b, n) = c
        return (a * 0.9 + b, (b + jnp.sin(k) * y, n + 1)), a[0] * k

    return lax.scan(turn, (x, (y, 0)), jnp.arange(5.0))


def along_rows(x, y):
    """Loop over a row's own data, backwards, with results of every turn."""
    return lax.scan(lambda c, z: (c * z + x[0], jnp.stack([c, z])), 1.0, x * y, reverse=True)


def nested(x, y):
    def outer(c, _):
        return lax.fori_loop(0, 3, lambda i, d: d + jnp.cos(d) * i + y, c), c.sum()

    return lax.scan(outer, x, None, length=4)


def solved(x, y):
    return lax.fori_loop(0, 3, lambda _, c: jnp.linalg.solve(jnp.outer(c, c) + jnp.eye(3), y), x)


LOOPS = {
    "scan": carried,
    "scan of a row's data": along_rows,
    "loops in loops": nested,
    "no turn": lambda x, y: lax.scan(lambda c, _: (c + 1, c), x, None, length=0),
    "as long as it takes": lambda x, y: lax.while_loop(lambda c: c.sum() < 5.0, lambda c: c + y, x),
    "one branch": lambda x, y: lax.cond(x[0] > 0, lambda: x * 2, lambda: y),
    "a solution in a loop": solved,
    "a large state": lambda x, y: lax.scan(lambda c, _: (c * 0.5 + y[0], None), jnp.zeros(2000) + x[0], None, 2)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", [*ON_NUMBERS, *ON_ARRAYS, *LOOPS])
def test_equals_vmap(name):
    same({**ON_NUMBERS, **ON_ARRAYS, **LOOPS}[name], *inputs())


def made(fn, n):
    """(operations of fn of n numbers, which of them are results)."""
    recorded = record(jax.make_jaxpr(fn)(*[jnp.ones(())] * n), [Source((), np.dtype(float), True) for _ in range(n)])
    return [o for o in recorded.items if isinstance(o, Operation)], {x.item() for x in recorded.outputs}


def test_the_same_is_done_once_and_signs_cost_nothing():
    def names(fn):
        return [o.primitive.name for o in made(fn, 2)[0]]

    assert names(lambda x, y: jnp.sin(x * y) + jnp.sin(y * x)) == ["mul", "sin", "add"]
    assert names(lambda x, y: (-x) * (-y) - jnp.sin(x * y)) == ["neg", "neg", "mul", "sin", "sub"]
    assert [n for n in names(lambda x, y: x + (-y) - (-x)) if n != "neg"] == ["sub", "add"]
    assert names(lambda x, y: x * jnp.float64(-0.0) * y + y / jnp.float64(0.0)) == ["div", "mul", "mul", "add", "add"]


def test_results_that_share_little_are_done_one_after_another():
    """Columns of a Jacobian: in the order of the results few numbers wait, and every operand comes before its use."""

    def fn(x, y):
        shared = jnp.sin(x) * y
        rows = [shared * k for k in range(2, 8)]
        for _ in range(5):
            rows = [jnp.cos(r) + r * y for r in rows]
        return rows

    operations, wanted = made(fn, 2)
    ordered = by_results(operations, wanted)
    assert sorted(map(id, ordered)) == sorted(map(id, operations))
    place = {o: k for k, o in enumerate(ordered)}
    assert all(place[x] < place[o] for o in ordered for x in o.operands if isinstance(x, Operation))

    def traffic(order):
        return sum(len(c.reads) + len(c.results) for c in chunks(order, wanted, 130, 1000))

    assert 1.5 * traffic(ordered) < traffic(operations)


def test_limbs_are_done_one_after_another():
    """Recorded are all bodies outwards and then all inwards; limb after limb fewer numbers wait."""
    limbs = range(6)

    @jax.jit
    def outwards(x, k):
        return [jnp.sin(x * (k + j)) for j in range(2, 12)]

    @jax.jit
    def inwards(found):
        return functools.reduce(jnp.multiply, found)

    def fn(x, y):
        bodies = [outwards(x + k * y, k) for k in limbs]
        return functools.reduce(jnp.add, [inwards(bodies[k]) for k in reversed(limbs)])

    operations, wanted = made(fn, 2)
    ordered = by_parts(operations, wanted)
    assert sorted(map(id, ordered)) == sorted(map(id, operations))
    place = {o: k for k, o in enumerate(ordered)}
    assert all(place[x] < place[o] for o in ordered for x in o.operands if isinstance(x, Operation))

    def traffic(order):
        return sum(len(c.reads) + len(c.results) for c in chunks(order, wanted, 300, 1000))

    assert 3 * traffic(ordered) < traffic(operations)


def test_kernels_end_where_few_numbers_wait():
    """Of all ways to cut 24 operations into kernels of at most 10, none reads and writes less."""

    def fn(x, y):
        for _ in range(3):
            fan = [x * k + y for k in (2.0, 3.0, 5.0)]
            x = fan[0] * fan[1] + fan[2] / 7.0
        return x

    operations, wanted = made(fn, 2)
    n = len(operations)

    def traffic(first, end):
        inside = set(operations[first:end])
        reads = {x for o in inside for x in o.operands if not isinstance(x, np.generic)} - inside
        later = {x for o in operations[end:] for x in o.operands} | wanted
        return len(reads) + len(inside & later) + ordering._OF_A_KERNEL

    fewest = [0.0]
    for end in range(1, n + 1):
        fewest.append(min(fewest[first] + traffic(first, end) for first in range(max(end - 10, 0), end)))
    found = chunks(operations, wanted, 10, 1000)
    assert [o for c in found for o in c.operations] == operations
    assert all(len(c.operations) <= 10 for c in found)
    for k, chunk in enumerate(found):
        later = {x for c in found[k + 1 :] for o in c.operations for x in o.operands} | wanted
        assert set(chunk.results) == later & set(chunk.operations)
    edges = np.cumsum([0, *(len(c.operations) for c in found)])
    assert sum(traffic(*pair) for pair in itertools.pairwise(edges)) == fewest[n]
    narrow = chunks(operations, wanted, 1000, 3)
    assert max(max(len(c.reads), len(c.results)) for c in narrow) <= 3


@pytest.mark.parametrize("shared", [False, True])
def test_products_with_large_shared_matrices_are_left_whole(shared, rng):
    """A feedback by a network, say: written out, its weights would be hundreds of shared numbers."""
    W, K = rng.normal(size=(3, 50)), rng.normal(size=(50, 3))

    def fn(x, W, K):
        return jnp.tanh(x @ W) @ K

    x, _ = inputs()
    same(fn, x, W, K, in_axes=(0, None, None)) if shared else same(lambda x: fn(x, W, K), x)
    example, mapped = ([x, W, K], [True, False, False]) if shared else ([x], [True])
    program = MappedProgram(fn if shared else lambda x: fn(x, W, K), example, mapped).program
    assert len([item for item in program.items if isinstance(item, Operation)]) == 50
    sparse = np.eye(50)[:3]
    assert MappedProgram(lambda x: x @ sparse, [x], [True]).program.fused


def test_single_numbers_as_arrays_without_axes():
    def fn(x):
        pieces = lax.rev(x, ()), lax.slice(x, (), ()), lax.dynamic_slice(x, (), ()), lax.pad(x, 0.0, ())
        return [jnp.sin(y) for y in (*pieces, lax.dynamic_update_slice(x, 2 * x, ()), jnp.flip(x))]

    same(fn, inputs()[0][:, 0])


def test_axes_as_in_vmap():
    def fn(d, z):
        return {"s": d["a"] @ d["b"], "c": jnp.cos(d["b"]) * z, "b": d["b"]}

    x, y = inputs()
    same(fn, {"a": x, "b": y[0]}, 2.0, in_axes=({"a": 0, "b": None}, None))
    same(fn, {"a": x.T, "b": y}, np.ones(ROWS), in_axes=({"a": 1, "b": 0}, 0))


def test_shared_numbers_in_loops_and_under_an_outer_trace():
    x, y = inputs()

    @jax.jit
    def outer(s):
        return over_rows(lambda a, b: lax.scan(lambda c, z: (c * s + z * b, None), a, y[0])[0])(x, y)

    want = jax.vmap(lambda a, b: lax.scan(lambda c, z: (c * 0.3 + z * b, None), a, y[0])[0])(x, y)
    assert relative(outer(0.3), want) < 1e-14


@pytest.mark.slow
def test_derivatives_are_taken_before():
    """Gradients, tangents and Jacobians inside a row become operations like all others."""
    x, y = inputs()

    def f(x, y):
        return jnp.sum(jnp.sin(x) @ jnp.asarray(MATRIX) * y**2)

    same(jax.grad(f, argnums=(0, 1)), x, y)
    same(jax.hessian(f), x, y)
    same(lambda x, y: jax.jvp(lambda x, y: carried(x, y)[0][0], (x, y), (y, x)), x, y)
    same(jax.grad(lambda x, y: jnp.sum(carried(x, y)[0][0])), x, y)


@functools.cache
def arm():
    return mbs.library.arm7().build()


ARM = {
    "forward dynamics": lambda q, v: mbs.forward_dynamics(arm(), q, v),
    "inverse dynamics": lambda q, v: mbs.inverse_dynamics(arm(), q, v, q),
    "mass matrix": lambda q, v: mbs.mass_matrix(arm(), q),
    "energy": lambda q, v: mbs.energy(arm(), q, v),
    "poses": lambda q, v: mbs.body_poses(arm(), q),
}


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("name", ARM)
@pytest.mark.usually("*float64*", "forward dynamics-*")
def test_dynamics_equal_vmap(name, dtype, tolerance, rng):
    q, v = rng.normal(size=(2, ROWS, 7)).astype(dtype)
    same(ARM[name], q, v, tolerance=tolerance)


@pytest.mark.parametrize("size", [1, 5, 41])
def test_parts_of_a_batch(size, monkeypatch, rng):
    monkeypatch.setattr(batches, "PART_ROWS", 16)
    x, y = rng.normal(size=(2, size, 3))
    for name in ("arithmetic", "factorized", "a solution in a loop"):
        fn = {**ON_NUMBERS, **ON_ARRAYS, **LOOPS}[name]
        want, got = jax.vmap(fn)(x, y), mbs.jit(fn, in_axes=0)(x, y)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            assert a.shape == b.shape and relative(a, b) < 1e-13


@pytest.mark.parametrize("where", ["once", "in a loop"])
def test_angles_of_any_size(where, monkeypatch):
    """Rows with a large angle are done by the C library, and the others keep their bits."""
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")
    x = np.linspace(0.0, 7.0, 1500)

    def fn(x):
        if where == "in a loop":
            return lax.scan(lambda a, _: (3 * a, jnp.cos(a)), x, None, 2)
        return jnp.sin(x) * jnp.cos(2 * x) + jnp.where(x > 3, jnp.cos(x), 0)

    run = mbs.jit(fn, in_axes=0)
    before, rows = run(x), [3, 700, 701]
    x[rows] = 1e14, -1e22, 1e300
    for a, b, c in zip(*map(jax.tree.leaves, (run(x), jax.vmap(fn)(x), before)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)
        assert np.array_equal(np.delete(a, rows, 0), np.delete(c, rows, 0))


def test_products_with_known_zeros_are_not_numbers_where_the_other_factor_is_none():
    x = np.array([[1.0, 0.0, -1.0], [1.0, 2.0, 3.0]])

    def fn(x):
        return jnp.eye(3) @ jnp.log(x), jnp.zeros(3) * x, 1 / (jnp.zeros(3) * -x)

    results = over_rows(fn)(x)
    for got, want in zip(results, jax.vmap(fn)(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    assert np.all(np.isnan(results[0][0]))


def test_signs_move_without_changing_numbers():
    same(lambda x, y: [(-x) / y, x / (-y), (-x) * y - x * (-y), (x - y) + 3 * (y - x), -(x - y)], *inputs())


def test_zero_times_no_number_is_none():
    x = np.array([-1.0, 0.0, 2.0])
    got = jax.jit(over_rows(lambda x: [0.0 * jnp.log(x), 0.0 * jnp.log(x) + x], 0, MACHINE))(x)
    assert np.array_equal(np.isnan(got), [[True, True, False]] * 2)
