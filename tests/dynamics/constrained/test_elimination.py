"""Elimination of dependent velocities [K 6] against multipliers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.constrained import elimination
from tests.dynamics.constrained.test_nonholonomic import disc, skate, sleigh


def four_bar():
    model = mbs.library.four_bar().build()
    q, v, status, _ = mbs.assemble(model, jnp.array([1.0, -0.8, 1.6]), jnp.array([2.0, 0, 0]), fixed="crank_hinge")
    assert int(status) == mbs.Status.OK
    return model, q, v


def redundant():
    """Loops whose rows depend on one another by their numbers, not by their zeros."""
    return mbs.library.bricard().build(), jnp.zeros(5), jnp.zeros(5)


def rolling():
    q, v, _, _ = mbs.assemble(disc(), jnp.array([0, 0, 0.28, 0.98, 0.2, 0, 0.1]), jnp.array([0.1, 5.0, 1.0, 0, 0, 0]))
    return disc(), q, v


pytestmark = pytest.mark.filterwarnings("ignore::jaxmbs.ModelWarning")

CASES = {
    "skate": lambda: (skate(), jnp.array([0.1, 0.2, 0.7]), jnp.array([np.cos(0.7), np.sin(0.7), 2.0])),
    "sleigh": lambda: (sleigh(), jnp.array([0.1, 0.2, 1.5]), jnp.array([0.0, 0.0, 3.0])),
    "disc": rolling,
    "four-bar": four_bar,
    "Bricard": redundant,
}


@pytest.fixture(scope="module")
def closed_four_bar():
    return four_bar()


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]()


@pytest.mark.usually("four-bar", "skate", "sleigh")
def test_agrees_with_multipliers(case):
    model, q, v = case
    tau = jnp.cos(jnp.arange(model.nv))
    want = mbs.constrained_dynamics(model, q, v, tau)
    got = mbs.constrained_dynamics(model, q, v, tau, method="elimination")
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * max(1.0, float(np.abs(b).max(initial=0))))


def test_multipliers_act_on_nothing_idle():
    """Of rows of which one is the sum of the others: what acts on nothing is left out."""
    J = np.random.default_rng(0).normal(size=(3, 4))
    J[2] = J[0] + J[1]

    @jax.jit
    def found(J, multipliers):
        _, dependent, operations = elimination.eliminate(J, jnp.ones(4, bool), jnp.ones(4))
        return elimination._of_least_norm(multipliers, operations, dependent)

    given = np.array([0.3, -1.0, 2.0])
    got = found(J, given)
    np.testing.assert_allclose(J.T @ got, J.T @ given, rtol=0, atol=1e-14)
    np.testing.assert_allclose(got, J @ np.linalg.pinv(J) @ given, rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.usually("four-bar", "sleigh")
def test_single_precision(case):
    model, q, v = case
    want = mbs.constrained_dynamics(model, q, v)[0]
    got = mbs.constrained_dynamics(model, jnp.float32(q), jnp.float32(v), method="elimination")[0]
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-4 * max(1.0, float(np.abs(want).max())))


@pytest.mark.slow
@pytest.mark.interpreted
def test_the_choice_of_coordinates_never_goes_bad():
    """K's skate turns through every heading; x' or y' alone would be a bad choice at two of four quarters [K]."""
    model = skate()
    heading = jnp.linspace(0, 2 * np.pi, 33)  # exactly along x and y among them
    q = jnp.stack([0 * heading, 0 * heading, heading], 1)
    v = jnp.stack([jnp.cos(heading), jnp.sin(heading), 0 * heading + 2.0], 1)
    a = jax.vmap(lambda q, v: mbs.constrained_dynamics(model, q, v, method="elimination")[0])(q, v)
    want = jnp.stack([-2 * jnp.sin(heading), 2 * jnp.cos(heading), 0 * heading], 1)
    np.testing.assert_allclose(a, want, rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.usually("four-bar", "sleigh")
def test_derivatives_in_both_modes(case):
    model, q, v = case

    def f(v):
        return mbs.constrained_dynamics(model, q, v, method="elimination")[0]

    d, e = jnp.sin(1.0 + jnp.arange(model.nv)), 1e-6
    central = (f(v + e * d) - f(v - e * d)) / (2 * e)
    scale = max(1.0, float(np.abs(central).max()))
    slope, pull = jax.jvp(f, (v,), (d,))[1], jax.vjp(f, v)[1]
    np.testing.assert_allclose(slope, central, rtol=0, atol=1e-7 * scale)
    w = jnp.cos(jnp.arange(model.nv))
    np.testing.assert_allclose(pull(w)[0] @ d, w @ slope, rtol=0, atol=1e-10 * scale)


@pytest.mark.interpreted
def test_locked_coordinates_move_as_prescribed(closed_four_bar):
    model, q, v = closed_four_bar
    mode = model.mode(lock=["crank_hinge"])
    given = jnp.array([0.7, 0.0, 0.0])
    want = mbs.constrained_dynamics(model, q, v, mode=mode, prescribed=given)
    got = mbs.constrained_dynamics(model, q, v, mode=mode, prescribed=given, method="elimination")
    assert float(got[0][0]) == pytest.approx(0.7, abs=1e-13)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


def test_unknown_method_is_refused():
    with pytest.raises(mbs.ModelError, match="elimination"):
        mbs.constrained_dynamics(skate(), jnp.zeros(3), jnp.zeros(3), method="eliminaton")
