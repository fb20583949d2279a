"""Arrays that loops have stacked stay whole in machine code: as much code for few rows as for many."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxmbs as mbs
from jaxmbs.batching.counted import counted_scan
from jaxmbs.batching.machine import MACHINE, lacking
from jaxmbs.batching.mapped_program import MappedProgram
from jaxmbs.batching.recorded import Step
from jaxmbs.batching.scalars import Operation

pytestmark = pytest.mark.skipif(bool(lacking()), reason="machine code cannot be generated here")
X = np.random.default_rng(0).normal(size=(19, 3))


def stacked(x, n):
    return lax.scan(lambda c, k: (jnp.sin(c) + k * x[0], (jnp.cos(c), c[0] * k)), x, jnp.arange(float(n)))


def with_the_first(x, n):
    """As `simulate` returns its rows: the first is joined, and a number is subtracted from all."""
    end, (ys, zs) = stacked(x, n)
    return jnp.concatenate([x[None], ys]), jnp.concatenate([jnp.zeros(1), zs - end[1]]), ys, end


def parts(x, n):
    _, (ys, zs) = stacked(x, n)
    both = jnp.concatenate([ys[1:], 2.0 * ys[: n // 2], x[None]])
    return both, ys[:, 1:], ys[:, 1], both[3], zs.reshape(1, n), zs[::2], both[::-1]


def rowwise(x, n):
    _, (ys, zs) = stacked(x, n)
    wide = jnp.concatenate([ys, zs[:, None]], axis=1)
    kept = jnp.where(zs[:, None] > 0, ys, x), jnp.linalg.norm(ys, axis=1), jnp.clip(wide, -0.5, x[1] ** 2)
    reduced = wide.max(axis=1), wide.sum(), wide.min(axis=0), (ys > 0.9).any(), zs.prod()
    return *kept, *reduced, (zs * jnp.arange(float(n))).astype(jnp.float32), zs > 0


def twice_and_again(x, n):
    """A joined array is a result twice, is read by a loop, and is part of another joined array."""
    _, (ys, zs) = stacked(x, n)
    joined = jnp.concatenate([x[None], ys, x[None]])
    final, backwards = lax.scan(lambda c, y: (c + y * y, c), x, joined, reverse=True)
    return joined, jnp.concatenate([joined, backwards, joined]).reshape(-1), final, joined, zs + joined[1:-1, 0]


def counted(x, n):
    """What iterations that are not made stack are zeros, also as a part of a larger array."""
    body = lambda c, k: (jnp.sin(c) + k, c)  # noqa: E731
    _, ys = counted_scan(body, x, jnp.arange(float(n)), n, jnp.int32(n - 5))
    return jnp.concatenate([x[None], ys]), 1.0 + ys


def through_a_step(x, n):
    """Whole arrays before and after something that only XLA computes."""
    _, (ys, _) = stacked(x, n)
    rows = jnp.concatenate([x[None], 2.0 * ys])
    return rows, 3.0 * jnp.sort(rows, axis=0)[1:] + rows[1:]


FUNCTIONS = [with_the_first, parts, rowwise, twice_and_again, counted, through_a_step]


@pytest.mark.parametrize("n", [6, 67, 600])
@pytest.mark.parametrize("fn", FUNCTIONS)
def test_results_are_those_of_vmap(fn, n):
    for x in (X, X[:1], X[:8]):
        got = jax.jit(jax.vmap(mbs.rows(lambda x: fn(x, n))))(x)
        for found, expected in zip(jax.tree.leaves(got), jax.tree.leaves(jax.vmap(lambda x: fn(x, n))(x)), strict=True):
            assert found.shape == expected.shape and found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6 if found.dtype == np.float32 else 1e-12, atol=1e-12)


@pytest.mark.parametrize("fn", [with_the_first, rowwise])
def test_derivatives(fn):
    def number(f):
        return lambda x: sum((k + 1.0) * y.astype(float).sum() for k, y in enumerate(f(x)))

    one = lambda x: fn(x, 90)  # noqa: E731
    expected = jax.vmap(jax.grad(number(one)))(X)
    np.testing.assert_allclose(jax.vmap(jax.grad(number(mbs.rows(one))))(X), expected, rtol=1e-12, atol=1e-12)


def length(fn, x):
    """(number of items of the recorded program, those in loops included; whether it is one call)."""
    made = MappedProgram(fn, [x], [True], MACHINE)

    def items(program):
        for item in program.items:
            yield item
            if isinstance(item, Step) and item.loop:
                yield from items(item.loop.program)

    found = list(items(made.program))
    assert all(isinstance(x, (Operation, Step)) for x in found)
    return len(found), not made.excluded(MACHINE)


@pytest.mark.parametrize("fn", [with_the_first, rowwise, counted])
def test_as_much_code_for_many_rows_as_for_few(fn):
    found = [length(lambda x, n=n: fn(x, n), X) for n in (66, 1000, 2000)]
    assert all(one_call for _, one_call in found)
    few, *more = (items for items, _ in found)
    assert few < 100 and max(more) <= few + 3  # long constants are operations of their own, done once for all rows


def test_a_motion_is_one_call_with_as_much_code_for_any_number_of_rows():
    model = mbs.library.double_pendulum().build()

    def motion(every):
        return lambda q: mbs.simulate(model, q, [0.0, 1.0], 1.0, 0.001, save_every=every)

    found = [length(motion(every), X[:, :2]) for every in (10, 5, 2)]
    last = length(motion(None), X[:, :2])
    assert found[0][1] and found[0] == found[1] == found[2] and found[0][0] <= last[0] + 20, (found, last)
