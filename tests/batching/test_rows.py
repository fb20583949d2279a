"""`mbs.rows` under the transformations of JAX, each against the same function without it."""

import subprocess
import sys

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.batching import mapped_program
from jaxmbs.batching.row_programs import stored
from jaxmbs.batching.row_programs.instance import inside
from jaxmbs.batching.row_programs.lowering import obstacle

from . import compositions, fuzz


@pytest.fixture(autouse=True)
def with_machine_code(monkeypatch):
    """Whatever the caller has chosen."""
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")


RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(5, 3)), RNG.normal(size=2)  # rows, and what they share
SEVERAL = RNG.normal(size=(4, 5, 3))


def plain(x, w):
    """A loop, integers, a boolean, a result that does not depend on w[1]."""

    def body(c, k):
        return jnp.sin(c * w[0]) + x * k, c.sum()

    c, sums = jax.lax.scan(body, x, jnp.arange(3.0))
    return {"c": c * w[1], "n": jnp.int32(3) + (x[0] > 0), "s": sums.sum()}


def over(f):
    return jax.vmap(f, (0, None))


def loss(f):
    return lambda x, w: jnp.mean(over(f)(x, w)["c"] ** 2) + jnp.mean(over(f)(x, w)["s"])


def stepped(f):
    """A loop of JAX around the rows."""
    return lambda x, w: jax.lax.scan(lambda c, _: (c + 0.1 * over(f)(c, w)["c"], c.sum()), x, length=4)


def of_tangents(f):
    return lambda x, w: jax.linearize(lambda x: over(f)(x, w)["c"], x)[1]


def remade(f, fn):
    """fn as f is: a function of `rows`, or as it stands."""
    return mbs.rows(fn) if f is not plain else fn


def final(f, policy=None):
    """Two steps that are computed again in reverse mode."""

    def twice(x, w):
        return over(f)(jnp.sin(over(f)(x, w)["c"]), w)["c"]

    return lambda x, w: jax.checkpoint(twice, policy=policy)(x, w).sum()


HOW = {
    "one, eager": (lambda f: f, X[0], W),
    "vmap, eager": (over, X, W),
    "vmap": (lambda f: jax.jit(over(f)), X, W),
    "vmap of vmap": (lambda f: jax.jit(jax.vmap(over(f), (0, None))), SEVERAL, W),
    "vmap of vmap with other shared operands": (lambda f: jax.jit(jax.vmap(over(f), (None, 0))), X, SEVERAL[:, 0, :2]),
    "other axes": (lambda f: jax.vmap(lambda x, w: f(x, w)["c"], (1, None), 1), X.T, W),
    "gradient": (lambda f: jax.jit(jax.grad(loss(f), (0, 1))), X, W),
    "gradient, eager": (lambda f: jax.value_and_grad(loss(f), (0, 1)), X, W),
    "gradients of rows": (lambda f: jax.vmap(jax.grad(lambda x, w: f(x, w)["s"], (0, 1)), (0, None)), X, W),
    "jvp": (lambda f: lambda x, w: jax.jvp(lambda x: over(f)(x, w), (x,), (x,))[0]["c"], X, W),
    "jacfwd": (lambda f: jax.jacfwd(lambda x, w: over(f)(x, w)["c"], (0, 1)), X, W),
    "jacrev": (lambda f: jax.jacrev(lambda x, w: over(f)(x, w)["c"], (0, 1)), X, W),
    "hessian": (lambda f: jax.jit(jax.hessian(loss(f), (0, 1))), X, W),
    "linearize, then vmap": (lambda f: lambda x, w: jax.vmap(of_tangents(f)(x, w))(SEVERAL), X, W),
    "scan": (lambda f: jax.jit(stepped(f)), X, W),
    "gradient of a scan": (lambda f: jax.jit(jax.grad(lambda x, w: stepped(f)(x, w)[0].sum(), (0, 1))), X, W),
    "checkpoint": (lambda f: jax.jit(jax.grad(final(f), (0, 1))), X, W),
    "cond": (lambda f: jax.jit(lambda x, w: jax.lax.cond(w[0] > 0, lambda: over(f)(x, w)["c"], lambda: x)), X, W),
    "only a tangent is used": (
        lambda f: jax.jit(lambda x, w: jax.jvp(lambda x: over(f)(x, w), (x,), (x,))[1]["s"]), X, W,
    ),
    "within another": (
        lambda f: jax.jit(jax.vmap(remade(f, lambda x, w: over(f)(x, w)["c"].sum()), (0, None))), SEVERAL, W,
    ),
    "around a tracer": (
        lambda f: jax.jit(jax.grad(lambda x, w: jax.vmap(remade(f, lambda y: plain(y, w)["c"]))(x).sum(), (0, 1))), X, W,
    ),
    "no rows": (over, X[:0], W),
}  # fmt: skip
MORE = {
    "one gradient": (lambda f: jax.grad(lambda x, w: f(x, w)["c"].sum(), (0, 1)), X[0], W),
    "only what is shared is mapped": (lambda f: jax.vmap(f, (None, 0)), X[0], SEVERAL[:, 0, :2]),
    "gradient of a gradient": (lambda f: jax.grad(lambda x, w: (jax.grad(loss(f))(x, w) ** 2).sum()), X, W),
    "jvp of a gradient": (lambda f: lambda x, w: jax.jvp(jax.grad(loss(f)), (x, w), (x, w)), X, W),
    "linearize": (lambda f: lambda x, w: of_tangents(f)(x, w)(x), X, W),
    "linearize within another": (
        lambda f: lambda x, w: jax.vmap(remade(f, of_tangents(f)(x, w)))(SEVERAL), X, W,
    ),
    "vmap of a scan": (lambda f: jax.jit(jax.vmap(stepped(f), (0, None))), SEVERAL, W),
    "jvp of a scan": (lambda f: lambda x, w: jax.jvp(lambda x: stepped(f)(x, w)[0], (x,), (x,)), X, W),
    "while": (
        lambda f: jax.jit(lambda x, w: jax.lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, over(f)(s[1], w)["c"]), (0, x))), X, W,
    ),
    "gradient of a cond": (
        lambda f: jax.grad(lambda x, w: jax.lax.cond(w[0] > -9, lambda: over(f)(x, w)["c"], lambda: x).sum(), (0, 1)), X, W,
    ),
    "vmap of a cond": (
        lambda f: over(lambda x, w: jax.lax.cond(x[0] > 0, lambda: f(x, w)["c"], lambda: x)), X, W,
    ),
    "checkpoint, all saved": (lambda f: jax.grad(final(f, jax.checkpoint_policies.everything_saveable)), X, W),
    "checkpoint in a scan": (
        lambda f: jax.grad(lambda x, w: jax.lax.scan(
            jax.checkpoint(lambda c, _: (over(f)(c, w)["c"], None)), x, length=3)[0].sum(), (0, 1)), X, W,
    ),
    "linear transpose": (
        lambda f: lambda x, w: jax.linear_transpose(jax.vmap(remade(f, lambda y: 3 * y[::-1])), x)(x), X, W,
    ),
    "linear transpose of a tangent": (
        lambda f: lambda x, w: jax.linear_transpose(
            lambda t: jax.jvp(lambda x: over(f)(x, w)["s"], (x,), (t,))[1], x)(x[:, 0]), X, W,
    ),
    "donated": (lambda f: jax.jit(lambda x, w: over(f)(x, w)["c"], donate_argnums=0), X, W),
    "shapes alone": (lambda f: lambda x, w: jax.eval_shape(over(f), x, w)["c"].shape, X, W),
    "custom derivative inside": (
        lambda f: jax.grad(lambda x, w: jax.vmap(remade(f, lambda y: mine(y).sum()))(x).sum()), X, W,
    ),
    "custom derivative around": (lambda f: jax.grad(lambda x, w: around(f)(x, w).sum()), X, W),
    "keywords": (lambda f: lambda x, w: f(w=w, x=x), X[0], W),
}  # fmt: skip


@jax.custom_jvp
def mine(x):
    return jnp.sin(x)


mine.defjvp(lambda x, t: (mine(*x), 2 * t[0]))


def around(f):
    """A derivative of the user's own, of something that is computed by rows."""

    @jax.custom_vjp
    def g(x, w):
        return over(f)(x, w)["c"]

    g.defvjp(lambda x, w: (g(x, w), (x, w)), lambda kept, ct: (ct * over(f)(*kept)["c"], None))
    return g


@pytest.mark.parametrize("how", [*HOW, *(pytest.param(k, marks=pytest.mark.slow) for k in MORE)])
def test_transformations_give_what_they_give_without_it(how):
    transform, *args = {**HOW, **MORE}[how]
    found, wanted = transform(mbs.rows(plain))(*args), transform(plain)(*args)
    assert jax.tree_util.tree_structure(found) == jax.tree_util.tree_structure(wanted)
    for a, b in zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(wanted), strict=True):
        assert np.shape(a) == np.shape(b) and jnp.result_type(a) == jnp.result_type(b)
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


REVERSE = ["gradient", "vmap of vmap", "checkpoint", "hessian"]
STORED = [*REVERSE, *(pytest.param(k, marks=pytest.mark.slow) for k in [*HOW, *MORE] if k not in REVERSE)]


@pytest.mark.parametrize("how", STORED)
def test_transformations_with_loops_that_are_stored(how, monkeypatch):
    """The loop is not computed twice, as in long motions."""
    monkeypatch.setattr(stored, "FEWEST", 2)
    test_transformations_give_what_they_give_without_it(how)


def test_what_is_stored_for_reverse_mode(monkeypatch):
    """The states before each step and the accelerations of its stages, of as many rows as there is room for; only results
    that have cotangents count."""
    model = mbs.library.double_pendulum().build()

    def loss(v):
        found = jax.vmap(lambda v: mbs.simulate(model, [0.5, 1.0], v, 0.3, 0.003, save_every=None))(v)
        return (found.q[:, -1] ** 2).sum()

    def moved(rows, room):
        monkeypatch.setattr(stored, "ROOM", room)
        fresh = mbs.explain(jax.grad(loss), jnp.ones((rows, 2)))
        return [p.bytes_out for p in fresh.programs if "cotangents" not in p.name]

    most = 100 * (4 + 4 * 2 + 1) * 8 + 2 * 2 * 8  # with the times of the steps
    assert 100 * (4 + 4 * 2) * 8 < moved(5, stored.ROOM)[0] <= most
    assert moved(6, 6 * most - 1000) == [2 * 2 * 8]


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("seed", [6, *(pytest.param(k, marks=pytest.mark.slow) for k in range(60) if k != 6)])
def test_random_compositions_of_transformations(seed):
    """One alone, or those between two: python -m tests.batching.compositions FROM TO."""
    assert not compositions.failures(seed)


@jax.custom_jvp
def straight_through(x):
    """Rounds x; its derivative is that of x, but its rule rounds without calling the function itself."""
    return jnp.round(x)


straight_through.defjvp(lambda x, t: (jnp.round(x[0]), 2 * t[0]))


@pytest.mark.parametrize("rule", [straight_through, fuzz.reverse_rule])
@pytest.mark.parametrize("second", [jax.jacfwd, jax.jacrev])
def test_second_derivatives_of_a_function_with_its_own_rule(second, rule):
    """The rules are not the derivatives, so that it shows where a rule is differentiated and where it is applied."""

    def fn(x):
        return rule(x) * jnp.sin(x)

    def both(f):
        """The value and its derivative, in one function to be differentiated again."""
        return jax.value_and_grad(lambda x: (f(x) ** 2).sum())

    found, wanted = second(both(mbs.rows(fn)))(X[0]), second(both(fn))(X[0])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11), found, wanted)


def test_a_batch_is_one_call_of_machine_code():
    """Also in a loop of JAX, and forwards and back together; what is not differentiated is not computed again."""
    f = mbs.rows(plain)

    def calls(fn):
        return jax.jit(fn).lower(X, W).compile().as_text().count('custom_call_target="jaxmbs')

    assert calls(over(f)) == 1 and calls(lambda x, w: stepped(f)(x, w)[0]) == 1
    assert calls(jax.grad(lambda x, w: over(f)(x, w)["s"].sum())) == 1
    assert calls(jax.grad(lambda x, w: (over(f)(x, w)["s"] ** 2).sum())) == 2
    assert calls(lambda x, w: jax.vmap(over(f), (0, None))(x[None], w)) == 1


@pytest.mark.parametrize("how", [lambda f: mbs.jit(f, in_axes=(0, None)), lambda f: jax.jit(over(mbs.rows(f)))])
def test_a_program_is_recorded_once(how, monkeypatch):
    made = []

    def counted(*args):
        made.append(args)
        return record(*args)

    record = mapped_program.record
    monkeypatch.setattr(mapped_program, "record", counted)
    how(lambda x, w: plain(x, w)["c"])(X, W)
    assert len(made) == 1


def test_what_cannot_be_machine_code_is_left_to_jax():
    seen = []

    def prints(x):
        jax.debug.callback(lambda y: seen.append(float(y)), x)
        return 2 * x

    found = jax.vmap(mbs.rows(prints))(jnp.arange(3.0))
    jax.effects_barrier()
    assert found.tolist() == [0.0, 2.0, 4.0] and sorted(seen) == [0.0, 1.0, 2.0]
    solve = jnp.linalg.eigh
    a = jnp.asarray(SEVERAL[:, :3, :3] + SEVERAL[:, :3, :3].swapaxes(1, 2))
    np.testing.assert_array_equal(jax.vmap(mbs.rows(lambda x: solve(x)[0]))(a), jax.vmap(lambda x: solve(x)[0])(a))
    assert "eigh" in obstacle(jax.make_jaxpr(solve)(a[0]))
    assert obstacle(jax.make_jaxpr(lambda x: ())(1.0)) == "it returns nothing"


def test_types_of_python_numbers_and_interpreted_runs():
    assert mbs.rows(lambda x: 2 * x)(3.0).weak_type
    with jax.disable_jit():
        assert float(mbs.rows(lambda x: 2 * x)(3.0)) == 6.0
    assert not inside.value


def test_an_error_of_the_function_leaves_nothing_behind():
    def wrong(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        jax.vmap(mbs.rows(wrong))(X)
    assert not inside.value


def test_programs_for_export_are_those_of_xla():
    """No call of what is in the memory of this process."""
    exported = jax.export.export(jax.jit(over(mbs.rows(plain))))(X, W)
    assert "custom_call" not in exported.mlir_module()
    found = exported.call(X, W)
    np.testing.assert_allclose(found["c"], over(plain)(X, W)["c"], rtol=1e-13)


def test_a_function_within_another_dissolves_into_it():
    """There is one equation, and it holds what both compute."""
    outer = mbs.rows(lambda x, w: mbs.rows(plain)(x, w)["s"] + mbs.rows(lambda x: x.sum())(x))
    text = str(jax.make_jaxpr(over(outer))(X, W))
    assert text.count(" rows[") == 1


def spectrum(x, w):
    """Left to JAX: eigenvalues, in a loop and mixed with what all devices share."""

    def turn(c, _):
        return jnp.sin(c) + jnp.linalg.eigvalsh(jnp.outer(c, c) + jnp.diag(w)), c.sum()

    return jax.lax.scan(turn, x, length=2)[0] * w + jnp.sort(x)


def shared_out(f, x, w, devices):
    """(results, their derivatives) of rows that a `shard_map` divides among devices, w being the same for all."""
    mesh = jax.make_mesh((devices,), ("r",), axis_types=(jax.sharding.AxisType.Auto,))

    def local(x, w):
        each = jax.vmap(f, (0, None))
        return each(x, w), jax.grad(lambda x: (each(x, w) ** 2).sum())(x), jax.vmap(lambda x: f(x, x[::-1]))(x)

    over = jax.shard_map(local, mesh=mesh, in_specs=(jax.P("r"), jax.P()), out_specs=jax.P("r"))
    number = jax.grad(lambda x, w: sum((y**2).sum() for y in over(x, w)), (0, 1))
    return over(x, w), jax.jit(number)(x, w), jax.jvp(over, (x, w), (x, w))


def assert_shared_out(devices):
    x, w = jnp.asarray(SEVERAL[:, 0]), jnp.asarray([1.0, 2.0, 3.0])
    assert "eigh" in obstacle(jax.make_jaxpr(spectrum)(x[0], w))
    found, wanted = (shared_out(f, x, w, devices) for f in (mbs.rows(spectrum), spectrum))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * float(jnp.abs(b).max()))


def test_what_is_left_to_jax_varies_along_the_axes_of_a_shard_map():
    """JAX keeps account of these as types; reverse mode sums what devices share over them."""
    assert_shared_out(1)


@pytest.mark.slow
def test_rows_on_several_devices_stay_where_they_are():
    """Sharded inputs of jit and shard_map, forwards and back, in a process with two devices: no row travels."""
    code = """
import itertools, jax, jax.numpy as jnp, numpy as np
from jaxmbs.batching import mapped_program
from jaxmbs.batching.row_programs import stored
jax.config.update("jax_num_cpu_devices", 2); jax.config.update("jax_enable_x64", True)
from tests.batching.test_rows import W, X, assert_shared_out, loss, over, plain, stepped
import jaxmbs as mbs
assert_shared_out(2)
mesh = jax.make_mesh((2,), ("r",), axis_types=(jax.sharding.AxisType.{kind},))
x = np.concatenate([X, X[:1]])
def mapped(f):
    return jax.shard_map(lambda x, w: over(f)(x, w)["c"], mesh=mesh, in_specs=(jax.P("r"), jax.P()), out_specs=jax.P("r"))
with jax.set_mesh(mesh):
    sharded = jax.device_put(x, jax.NamedSharding(mesh, jax.P("r")))
    hows = [over, lambda f: jax.grad(loss(f), (0, 1)), mapped]
    hows += [lambda f: jax.grad(lambda x, w: mapped(f)(x, w).sum(), (0, 1))] + [stepped] * ("{kind}" == "Auto")
    for how, fewest in itertools.product(hows, (2, 64)):
        stored.FEWEST = fewest
        found, wanted = jax.jit(how(mbs.rows(plain)))(sharded, W), jax.jit(how(plain))(sharded, W)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13), found, wanted)
    text = jax.jit(over(mbs.rows(plain))).lower(sharded, W).compile().as_text()
    assert "all-gather" not in text and "jaxmbs" in text
"""
    for kind in ("Auto", "Explicit"):
        done = subprocess.run(
            [sys.executable, "-c", code.replace("{kind}", kind)], capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
