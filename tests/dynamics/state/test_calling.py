"""What the public functions accept, what they refuse and how, and that they compile themselves."""

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.state import calling
from tests.cases import compilations, relative


@pytest.fixture(scope="module")
def arm():
    return mbs.library.double_pendulum().build()


REFUSED = {
    "q too short": (lambda m: mbs.forward_dynamics(m, np.ones(1), np.ones(2)), "q", "(1,)", "(2,)", "nq"),
    "v too long": (lambda m: mbs.bias_forces(m, np.ones(2), np.ones(3)), "v", "(3,)", "nv"),
    "tau of a wrong shape": (lambda m: mbs.forward_dynamics(m, np.ones(2), np.ones(2), np.ones(1)), "tau", "(1,)"),
    "a batch without vmap": (lambda m: mbs.mass_matrix(m, np.ones((5, 2))), "q", "(5, 2)", "vmap"),
    "a mechanism, not built": (lambda m: mbs.mass_matrix(mbs.library.arm7(), np.ones(7)), "Mechanism", "build"),
    "method": (lambda m: mbs.forward_dynamics(m, np.ones(2), np.ones(2), method="abba"), "'abba'", "'aba'"),
    "matrix method": (lambda m: mbs.mass_matrix(m, np.ones(2), method="aba"), "'aba'", "crba"),
    "body": (lambda m: mbs.jacobian(m, np.ones(2), "lowr"), "'lowr'", "'lower'"),
    "row of a simulation": (lambda m: mbs.simulate(m, np.ones(3), np.ones(2), 1.0), "q0", "(3,)"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_refused_with_a_reason(arm, fault):
    call, *words = REFUSED[fault]
    with pytest.raises(mbs.ModelError) as caught:
        call(arm)
    assert not [w for w in words if w not in str(caught.value)], caught.value


def test_lists_and_integers_are_numbers(arm):
    want = mbs.forward_dynamics(arm, np.array([1.0, 0.0]), np.array([0.0, 2.0]))
    assert relative(mbs.forward_dynamics(arm, np.array([1, 0]), np.array([0, 2])), want) < 1e-15
    assert relative(mbs.forward_dynamics(arm, [1, 0], [0, 2]), want) < 1e-15


def test_numpy_in_jax_out(arm):
    assert isinstance(mbs.mass_matrix(arm, np.ones(2)), jnp.ndarray)


def test_an_eager_call_compiles_once(arm):
    """Also with another model of the same structure, whose numbers are data, and with other types of numbers."""
    q, v = np.array([0.3, 0.4]), np.zeros(2)
    other = mbs.library.double_pendulum(mass_2=1.7, length_1=0.8).build()
    first = mbs.forward_dynamics(arm, q, v)
    found = []
    again = ((arm, q, v), (other, q, v), (other, jnp.asarray(q), 0 * v))
    assert compilations(lambda: found.extend(mbs.forward_dynamics(*x) for x in again)) == 0
    assert relative(found[0], first) == 0 and relative(found[1], found[2]) == 0 and relative(found[1], first) > 1e-3
    assert compilations(lambda: mbs.forward_dynamics(mbs.library.chain(2).build(), q, v)) > 0


def python_calls(call):
    """How many Python functions run in the call."""
    count = 0

    def seen(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def test_an_eager_call_does_little_before_the_compiled_program_runs():
    """The same for a large model, and for a second model of equal structure, whose structures are not compared anew."""
    first, second = (mbs.library.four_bar_windows(20).build() for _ in range(2))
    q = jnp.zeros(first.nq)
    for model in (first, second):
        mbs.momentum(model, q, q)
        assert python_calls(lambda model=model: mbs.momentum(model, q, q)) <= 12


def test_an_eager_call_converts_the_numbers_of_a_model_once(arm):
    first = calling.placed(arm)
    assert isinstance(first.numbers, jax.Array) and calling.placed(arm) is first
    other = mbs.set(arm, {"lower.mass": 1.1})
    with jax.enable_x64(False):
        rounded = mbs.mass_matrix(other, np.ones(2))
    assert rounded.dtype == jnp.float32
    now, want = (mbs.mass_matrix(model, np.ones(2)) for model in (other, mbs.set(arm, {"lower.mass": 1.1})))
    assert relative(now, want) == 0 and 0 < relative(rounded, want) < 1e-6
    with jax.set_mesh(jax.make_mesh((1,), ("x",))):
        of_mesh = mbs.library.double_pendulum().build()
        assert calling.placed(of_mesh) is None and relative(mbs.mass_matrix(of_mesh, np.ones(2)), 0) > 0


def test_an_eager_call_sees_other_numbers(arm):
    """Those of another model, and those that were written into an array, which the array of a built model refuses."""
    q = np.array([0.3, 0.4])
    heavy = mbs.set(arm, {"lower.mass": 3.0})
    assert relative(mbs.mass_matrix(heavy, q), mbs.mass_matrix(arm, q)) > 0.1
    for model in (arm, heavy):
        with pytest.raises(ValueError, match="read-only"):
            model.numbers[0] = 1.0
    own = replace(arm, numbers=arm.numbers.copy())
    assert relative(mbs.mass_matrix(own, q), mbs.mass_matrix(arm, q)) == 0
    own.numbers[:] = heavy.numbers
    assert relative(mbs.mass_matrix(own, q), mbs.mass_matrix(heavy, q)) == 0
    masses = jnp.array([1.0, 3.0])
    many, axes = mbs.vary(arm, {"lower.mass": masses})
    mapped = jax.vmap(mbs.mass_matrix, in_axes=(axes, None))(many, q)
    traced = jax.jit(lambda m: mbs.mass_matrix(mbs.set(arm, {"lower.mass": m}), q))(3.0)
    as_leaf = jax.jit(mbs.mass_matrix)(heavy, q)
    for found in (mapped[1], traced, as_leaf):
        assert relative(found, mbs.mass_matrix(heavy, q)) < 1e-14


def test_arguments_by_name(arm):
    q, v = np.array([0.3, 0.4]), np.array([1.0, 2.0])
    want = mbs.forward_dynamics(arm, q, v)
    assert relative(mbs.forward_dynamics(v=v, q=q, model=arm), want) == 0
    with pytest.raises(mbs.ModelError, match="first argument"):
        mbs.forward_dynamics(q=q, v=v)


def test_a_model_that_is_dropped_is_freed():
    q = np.array([0.3, 0.4])
    gc.collect()
    before = len(calling._placed)
    models = [mbs.set(mbs.library.double_pendulum().build(), {"lower.mass": m}) for m in (1.0, 2.0, 3.0)]
    for model in models:
        mbs.forward_dynamics(model, q, q)
        jax.vmap(lambda q, model=model: mbs.forward_dynamics(model, q, q))(q[None])
    alive = [weakref.ref(model) for model in models] + [weakref.ref(model.numbers) for model in models]
    assert len(calling._placed) == before + 3
    del models, model
    gc.collect()
    assert not any(x() is not None for x in alive) and len(calling._placed) == before


def test_eager_calls_of_several_threads():
    """Each thread has models of its own, of structures that are equal and were built at the same time."""

    def energy(mass):
        model = mbs.set(mbs.library.double_pendulum(length_1=0.7).build(), {"lower.mass": mass})
        return [float(mbs.energy(model, np.ones(2), np.zeros(2))[1]) for _ in range(20)]

    masses = [1.0, 2.0, 3.0, 4.0]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(energy, masses))
    assert found == [energy(mass) for mass in masses] and len({x for row in found for x in row}) == 4


def test_the_instances_used_last_are_kept(arm, monkeypatch):
    """A function that is called again is not traced again, however many others there are in between."""
    monkeypatch.setattr(calling, "MOST", 3)
    names = ("upper", "lower")
    rows = jnp.zeros((2, 2))

    def mapped(k):
        return jax.vmap(lambda q: mbs.jacobian(arm, q, names[k % 2], (0.0, 0.0, float(k))))(rows)

    mapped(0)
    for k in range(1, 6):
        mapped(k)
        assert compilations(lambda: mapped(0)) == 0, k
    assert compilations(lambda: mapped(1)) > 0


def test_arguments_are_left_alone(arm):
    q, v = np.array([0.3, 0.4]), np.array([1.0, 2.0])
    mbs.forward_dynamics(arm, q, v)
    assert q.tolist() == [0.3, 0.4] and v.tolist() == [1.0, 2.0]


def test_numbers_that_change_in_place_are_seen_in_a_batch(arm):
    """Instances are remembered by the numbers in them; an array of NumPy may have other ones the next time."""
    q, v = jnp.array([[0.3, 0.4], [1.0, -1.0]]), np.zeros(2)

    def mapped():
        return jax.vmap(lambda q: mbs.forward_dynamics(arm, q, v))(q)

    at_rest = mapped()
    v[0] = 3.0
    want = [mbs.forward_dynamics(arm, x, v) for x in q]
    assert relative(mapped(), jnp.stack(want)) < 1e-13 and relative(at_rest, mapped()) > 0.1
    # an instance of the first numbers, traced anew for another dtype, has them still
    again = jax.vmap(lambda q: mbs.forward_dynamics(arm, q, np.zeros(2)))(q.astype(jnp.float32))
    assert relative(again, at_rest) < 1e-5


@pytest.mark.cpu
def test_a_batch_in_any_program_of_jax_is_machine_code(arm, monkeypatch):
    """A derivative, a loop and a second batch around it: with the model a number of the program, and with it an argument."""
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")
    q = jnp.array([[0.3, 0.4], [1.0, -1.0]])

    def energy(model, q):
        moved = jax.vmap(lambda q: mbs.forward_dynamics(model, q, 0 * q))(q)
        return jax.lax.fori_loop(
            0, 2, lambda _, q: q + jax.vmap(lambda x: mbs.bias_forces(model, x, x))(q), moved
        ).sum()

    for program in (jax.jit(jax.grad(lambda q: energy(arm, q))).lower(q), jax.jit(jax.grad(energy, 1)).lower(arm, q)):
        assert "jaxmbs_" in program.compile().as_text()


@pytest.mark.parametrize(
    "element",
    [
        lambda: mbs.Contact("lower", (0, 0, -1), mbs.Plane(), stiffness=10.0, smoothing=0.0),
        lambda: mbs.Contact("lower", (0, 0, -1), mbs.Plane(), stiffness=10.0, friction=0.5, transition_velocity=0.0),
    ],
)
def test_numbers_that_would_divide_by_zero_are_refused(element):
    mech = mbs.library.double_pendulum()
    with pytest.raises(mbs.ModelError, match=r"more than zero|positive"):
        mech.add_force("contact", element())


def test_profile_of_another_length_is_refused():
    model = mbs.library.stage_separation().build()
    with pytest.raises(mbs.ModelError, match=r"residual\.values"):
        mbs.set(model, {"residual.values": (1.0, 0.0)})
