"""The number of steps is an input of the program of an eager run: another one compiles nothing and changes no bit."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.simulate import rows
from jaxmbs.simulate.grid import Grid, room

MODULE = importlib.import_module("jaxmbs.simulate.simulate")
Q, V = [0.5, 0.1], [0.0, 0.3]
MANY = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)))
DRIVE = jnp.asarray(0.3)


@pytest.fixture(scope="module")
def model():
    return mbs.library.double_pendulum().build()


@pytest.fixture
def traced(monkeypatch):
    """How often the program of a run is traced."""
    found = []
    of = MODULE.tree_of, MODULE.Tree

    def counted(make):
        return lambda *x: (found.append(x), make(*x))[1]

    monkeypatch.setattr(MODULE, "tree_of", counted(of[0]))
    monkeypatch.setattr(MODULE, "Tree", counted(of[1]))
    return found


def leaves(run):
    return [np.asarray(x) for x in jax.tree_util.tree_leaves(run)]


def fixed(call):
    """The result of a call whose program has one number of steps, as in reverse mode."""
    before = MODULE.may_count
    try:
        MODULE.may_count = lambda *_: False
        return call()
    finally:
        MODULE.may_count = before


def same(call):
    for x, y in zip(leaves(call()), leaves(fixed(call)), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_rooms_are_few_and_not_much_larger_than_needed():
    sizes = {room(n) for n in range(1, 5000)}
    assert len(sizes) == 16 and all(n % 2 for n in sizes)
    assert all(n <= room(n) < 2 * n for n in range(9, 1026)) and all(
        n <= room(n) <= 1.25 * n + 2 for n in range(1026, 9999)
    )


def test_a_grid_with_room_has_the_same_steps():
    for save_every, points in ((1, False), (3, False), (20, False), (1, True)):
        grid = Grid.through([0.0, 0.1, 0.25, 2.0], 0.1)[0] if points else Grid.of(0.3, 2.25, 0.1)
        every = min(save_every, grid.steps)
        larger, each = grid.roomy(every)
        assert larger.steps > grid.steps and larger.number == grid.number == grid.steps
        *times, active = grid.table(every, np.float64)
        *more, counts = larger.table(each, np.float64)
        assert counts.sum() == grid.steps and counts[counts > 0].tolist() == active.sum(1).tolist()
        for x, y in zip(times, more, strict=True):
            np.testing.assert_array_equal(x, y[: x.shape[0], : x.shape[1]])
        for i in range(grid.steps):
            assert grid.cell(np.int32(i), np.float64) == larger.cell(np.int32(i), np.float64)


@pytest.mark.cpu
@pytest.mark.parametrize("save_every", [1, None, 7])
def test_a_run_of_another_length_is_not_traced_again(model, traced, save_every):
    def run(t_end):
        return mbs.simulate(model, Q, V, t_end, 0.01, t0=0.02, save_every=save_every)

    first = run(1.62)
    assert len(traced) == 1
    for t_end in (1.5, 1.4451, 1.7):
        shorter = run(t_end)
        assert shorter.t[-1] == t_end and len(traced) == 1
        if save_every == 1:
            np.testing.assert_array_equal(first.q[:140], shorter.q[:140])
    run(6.0)
    assert len(traced) == 2
    for t_end in (1.5, 1.4451):
        jax.vmap(lambda q, t_end=t_end: mbs.simulate(model, q, V, t_end, 0.01, save_every=save_every).q)(MANY)
        assert len(traced) == 3


@pytest.mark.cpu
def test_the_room_for_all_instances_has_a_limit(model, traced, monkeypatch):
    """Above it, the number of steps is part of the program, whose results have as many rows as are asked for."""
    several, shapes, of = MANY[:3], [], MODULE._simulate

    def seen(*args, **how):
        out = of(*args, **how)
        shapes.extend(x.shape for x in jax.tree_util.tree_leaves((out.t, out.q)))
        return out

    lengths = iter(range(20, 33))

    def runs(f, q):
        """How often a program is traced for two lengths, and whether all rows of it were asked for."""
        traced.clear()
        shapes.clear()
        steps = next(lengths), next(lengths)
        assert [f(q, 0.01 * n).shape[-2] for n in steps] == [n + 1 for n in steps]
        return len(traced), shapes[:2] == [(steps[0] + 1,), (steps[0] + 1, 2)]

    def one(q, t_end):
        return mbs.simulate(model, q, V, t_end, 0.01).q

    batch = jax.vmap(one, (0, None))
    numbers = 34 * (2 + 2 + 4)  # there is room for 33 steps
    monkeypatch.setattr(MODULE, "_simulate", seen)
    monkeypatch.setattr(rows, "ROOM", 3 * numbers + 3 * 33)
    assert runs(batch, several) == runs(one, MANY[0]) == (1, False)
    assert runs(batch, MANY[:4]) == runs(jax.vmap(batch, (0, None)), MANY[:4, None]) == (2, True)
    assert not runs(jax.vmap(batch, (0, None)), several[None])[1]
    monkeypatch.setattr(rows, "ROOM", numbers + 3 * 33 - 1)
    assert runs(one, MANY[0]) == (2, True)


@pytest.mark.cpu
def test_nothing_is_compiled_for_a_run_of_another_length(model):
    made = []

    def listen(event, _, **__):
        made.append(event)

    mbs.simulate(model, Q, V, 1.7, 0.01)
    mbs.simulate(model, Q, V, times=np.linspace(0.0, 1.7, 18), dt=0.01)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        mbs.simulate(model, Q, V, 1.45, 0.01)
        mbs.simulate(model, Q, V, times=np.linspace(0.0, 1.5, 14), dt=0.01)
        assert not [x for x in made if "compile" in x or "trace" in x]
        mbs.simulate(model, Q, V, 31.0, 0.01)  # in a bucket that no other test needs
        assert [x for x in made if "compile" in x]
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.parametrize(("t_end", "save_every"), [(0.02, 1), (0.3, 1), (0.305, None), (0.305, 7)])
def test_results_are_those_of_a_program_for_one_number_of_steps(model, t_end, save_every):
    def run(q, v):
        return mbs.simulate(model, q, v, t_end, 0.01, save_every=save_every)

    same(lambda: run(Q, V))
    same(lambda: run(np.float32(Q), np.float32(V)))
    same(lambda: jax.vmap(run)(MANY, MANY))
    same(lambda: jax.jvp(lambda q: run(q, jnp.asarray(V)).q, (MANY[0],), (MANY[1],)))


def test_batches_of_models_and_forward_mode(model):
    masses = jnp.linspace(0.5, 2.0, 5)

    def run(mass, q):
        return mbs.simulate(mbs.set(model, {"lower.mass": mass}), q, jnp.zeros(2), 0.25, 0.01)

    same(lambda: jax.vmap(run)(masses, MANY))
    same(lambda: jax.jacfwd(lambda q: run(1.5, q).q[-1])(MANY[0]))
    same(lambda: jax.vmap(jax.jacfwd(lambda m, q: run(m, q).q[-1]))(masses, MANY))


def test_a_tau_and_a_fold_and_given_times(model):
    same(
        lambda: mbs.simulate(
            model,
            Q,
            V,
            0.3,
            0.01,
            lambda model, t, q, v: -0.1 * v * t,
            fold=(0.0, lambda c, model, t, q, v: c + q[0] * t),
        )
    )
    for dt in (0.01, 1.0):
        same(lambda dt=dt: mbs.simulate(model, Q, V, times=[0.1, 0.13, 0.35, 0.36], dt=dt))


@pytest.mark.cpu
@pytest.mark.usually("latch-1", "adaptive-None", "crank-7")
@pytest.mark.parametrize("save_every", [1, None, 7])
@pytest.mark.parametrize("kind", ["latch", "adaptive", "crank"])
def test_runs_with_events_tolerances_and_constraints(traced, kind, save_every):
    """Those of XLA, whose rounding may differ from one program to another."""
    mech = mbs.library.double_pendulum()
    mech.add_event("latch", when=mbs.Time(0.1), then=mbs.Lock("elbow"))
    model = {"latch": mech, "adaptive": mbs.library.double_pendulum(), "crank": mbs.library.crank_slider()}[
        kind
    ].build()
    q, v = mbs.assemble(model, [0.5, -0.7, 0.0], fixed="bearing")[:2] if kind == "crank" else (Q, V)
    how = {"method": "dopri5", "tolerance": 1e-8} if kind == "adaptive" else {}

    def run(t_end):
        return mbs.simulate(model, q, v, t_end, 0.01, save_every=save_every, **how)

    longer, shorter = run(0.23), run(0.195)
    assert len(traced) == 1
    for found, t_end in ((longer, 0.23), (shorter, 0.195)):
        for x, y in zip(leaves(found), leaves(fixed(lambda t_end=t_end: run(t_end))), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def test_the_largest_number_of_trial_steps_counts_not_the_room_for_them(model):
    def run(most, t_end):
        return mbs.simulate(model, Q, V, t_end, 0.1, method="dopri5", tolerance=1e-10, max_steps=most, save_every=None)

    needed = sum(int(x) for x in run(400, 1.5).steps)
    assert run(needed, 1.5).status == mbs.Status.OK
    assert run(needed - 1, 1.5).status == mbs.Status.UNFINISHED


def test_reverse_mode_after_an_eager_call(model):
    def end(q, k):
        run = mbs.simulate(model, q, jnp.asarray(V), 0.25, 0.01, lambda model, t, q, v: -k * v)
        return (run.q[-1] ** 2).sum() + run.energy_error[-1]

    end(MANY[0], DRIVE)
    for of in (0, 1):
        exact = fixed(lambda of=of: jax.grad(end, of)(MANY[0], DRIVE))
        np.testing.assert_array_equal(jax.grad(end, of)(MANY[0], DRIVE), exact)
        np.testing.assert_allclose(exact, jax.jacfwd(end, of)(MANY[0], DRIVE), rtol=1e-9)
    # a batch within reverse mode: what is differentiated is seen only by the drive
    mean = jax.grad(lambda k: jax.vmap(lambda q: end(q, k))(MANY).mean())
    np.testing.assert_allclose(mean(DRIVE), fixed(lambda: mean(DRIVE)), rtol=1e-9)
    np.testing.assert_allclose(mean(DRIVE), jax.jit(mean)(DRIVE), rtol=1e-9)


def test_within_programs_of_jax(model):
    def run(q):
        return mbs.simulate(model, q, jnp.asarray(V), 0.25, 0.01).q

    for transformed in (jax.jit, lambda f: mbs.jit(f, in_axes=0)):
        q = MANY[0] if transformed is jax.jit else MANY
        same(lambda transformed=transformed, q=q: transformed(run)(q))
    np.testing.assert_array_equal(jax.jit(lambda: run(jnp.asarray(Q)))(), run(jnp.asarray(Q)))
