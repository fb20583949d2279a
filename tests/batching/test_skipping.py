"""A costly branch as a loop with one iteration or none: the results of `jax.vmap`, and no work for rows without it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxmbs as mbs
from jaxmbs.batching.recorded import Step
from jaxmbs.batching.recording import record
from jaxmbs.batching.scalars import Source
from jaxmbs.batching.skipping import skipping, work

X = jnp.asarray(np.random.default_rng(0).normal(size=(13, 4)))


@pytest.fixture(autouse=True)
def with_machine_code(monkeypatch):
    """Whatever the caller has chosen."""
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")


def costly(x):
    root = jnp.sqrt(x[0])  # not a number in the rows that do not take it
    x = lax.scan(lambda c, _: (0.5 * jnp.sin(c) + 0.1 * c[::-1] + root, None), x, length=20)[0]
    return x, jnp.sum(x)


def cheap(x):
    return -x, x[0]


def if_positive(x):
    return lax.cond(x[0] > 0, costly, cheap, x)


def unless_negative(x):
    return lax.cond(x[0] <= 0, cheap, costly, x)


def in_a_scan(x):
    def body(c, k):
        return lax.cond((c[0] > 0) & (k % 3 == 0), lambda: costly(c)[0], lambda: 1.1 * c), c[1]

    return lax.scan(body, x, jnp.arange(7))


FUNCTIONS = [if_positive, unless_negative, in_a_scan]


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_values_and_derivatives_as_by_vmap(fn):
    def whole(x):
        return sum(jnp.sum(y) for y in jax.tree.leaves(fn(x)))

    for each in (fn, jax.grad(whole), jax.jacfwd(whole)):
        got, want = mbs.jit(each, in_axes=0)(X), jax.jit(jax.vmap(each))(X)
        for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            assert np.isfinite(y).all()
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


def test_a_row_does_not_depend_on_whether_others_take_the_branch():
    together = mbs.jit(if_positive, in_axes=0)(X)
    for k in (0, 1, 2):
        alone = mbs.jit(if_positive, in_axes=0)(jnp.repeat(X[k : k + 1], 2, 0))
        assert all(np.array_equal(x[k], y[0]) for x, y in zip(together, alone, strict=True))


def cond_of(fn):
    closed = jax.make_jaxpr(fn)(X[0])
    return next(eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "cond")


@pytest.mark.parametrize("fn", [if_positive, unless_negative])
def test_only_the_costly_branch_is_in_the_loop(fn):
    closed = skipping(cond_of(fn))
    (loop,) = (eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "while")
    inside = work(loop.params["body_jaxpr"].jaxpr)
    assert 20 * 4 * 3 < inside < 20 * 4 * 8 and work(closed.jaxpr) - inside < 10
    for x, needed in ((X[0].at[0].set(0.5), 0.5), (X[0].at[0].set(-0.5), -0.5)):
        index = jnp.int32((needed > 0) if fn is if_positive else (needed <= 0))
        got = jax.jit(jax.extend.core.jaxpr_as_fun(closed))(index, x)
        assert all(map(np.array_equal, got, jax.jit(fn)(x)))


def test_branches_that_cost_alike_or_little_are_a_selection():
    assert skipping(cond_of(lambda x: lax.cond(x[0] > 0, costly, costly, x))) is None
    assert skipping(cond_of(lambda x: lax.cond(x[0] > 0, jnp.sin, cheap_one, x))) is None
    assert skipping(cond_of(lambda x: lax.switch(jnp.int32(x[0]), [costly, cheap, cheap], x))) is None


def cheap_one(x):
    return x


def test_work_counts_the_iterations_of_loops():
    def turns(x):
        return lax.scan(lambda c, _: (c * 2.0, None), x, length=10)[0]

    assert work(jax.make_jaxpr(turns)(X[0]).jaxpr) == 40


def test_machine_code_has_the_loop_within_another():
    """Elsewhere there is none, so that a function without loops can be written as C source."""
    closed = jax.make_jaxpr(if_positive)(X[0])
    for inside, loops in ((True, 1), (False, 0)):
        program = record(closed, [Source((4,), X.dtype, True)], lambda eqn: True, inside)
        found = [x for x in program.items if isinstance(x, Step) and x.loop is not None and x.loop.going is not None]
        assert len(found) == loops
