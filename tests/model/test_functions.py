"""Functions of users: the order of their arguments, the shape of their results, and who is told what."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.model.functions import check_arguments

pytestmark = pytest.mark.interpreted


def with_force(fn, body=None):
    mech = mbs.library.double_pendulum()
    mech.add_force("hand", mbs.External(fn, body=body))
    return mech.build()


REFUSED = {
    "the order of old": (lambda model, q, v, t: q, "fn(model, t, q, v)", "order"),
    "time last, other names": (lambda m, x, y, t: x, "fn(model, t, q, v)"),
    "too few arguments": (lambda q, v: q, "fn(model, t, q, v)", "many"),
    "too many arguments": (lambda model, t, q, v, gain: q, "gain"),
    "no function": (np.ones(2), "pass a function"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_another_order_is_refused_where_the_element_is_made(fault):
    fn, *words = REFUSED[fault]
    with pytest.raises(mbs.ModelError) as caught:
        mbs.External(fn)
    assert not [w for w in ("External", *words) if w not in str(caught.value)], caught.value


@pytest.mark.parametrize("fn", [
    lambda model, t, q, v: q, lambda m, time, x, xdot: x, lambda *args: args[2],
    functools.partial(lambda k, m, t, q, v: q, 2.0),
    lambda model, t, q, v, gain=2.0: gain * q,
])  # fmt: skip
def test_other_names_are_free(fn):
    check_arguments(fn, "fn")


RESULTS = {
    "too long": (lambda model, t, q, v: jnp.ones(3), None, "(3,)", "(2,)"),
    "a column": (lambda model, t, q, v: q[:, None], None, "(2, 1)", "(2,)"),
    "a number": (lambda model, t, q, v: 1.0, None, "()", "(2,)"),
    "no wrench": (lambda model, t, q, v: jnp.ones(3), "lower", "(3,)", "(6,)"),
    "nothing": (lambda model, t, q, v: None, None, "None", "(2,)"),
    "complex": (lambda model, t, q, v: q + 1j, None, "complex", "real"),
    "words": (lambda model, t, q, v: "left", None, "'left'", "(2,)"),
}


@pytest.mark.parametrize("fault", RESULTS)
def test_a_result_that_does_not_fit_names_the_element(fault):
    fn, body, *words = RESULTS[fault]
    model, q = with_force(fn, body), np.ones(2)
    for call in (mbs.bias_forces, mbs.textbook.bond_graph):
        with pytest.raises(mbs.ModelError) as caught:
            call(model, q, q)
        assert not [w for w in ("'hand'", *words) if w not in str(caught.value)], caught.value


def test_surfaces_are_checked_as_the_function_is():
    def fn(model, t, q, v, beyond):
        return jnp.where(beyond[0], 1.0, -1.0) * v

    for surfaces, said in (
        ((lambda q: q,), r"surfaces\[0\].*fn\(model, t, q, v\)"),
        (lambda model, t, q, v: q[0], "a list of functions"),
        ((), "beyond"),  # asked for without surfaces
    ):
        with pytest.raises(mbs.ModelError, match=said):
            mbs.External(fn, surfaces=surfaces)
    with pytest.raises(mbs.ModelError, match="change their order"):
        mbs.External(lambda model, beyond, t, q, v: v, surfaces=(lambda model, t, q, v: q[0],))
    mech = mbs.library.double_pendulum()
    mech.add_force("hand", mbs.External(fn, surfaces=[lambda model, t, q, v: q]))
    with pytest.raises(mbs.ModelError, match=r"'hand': surfaces\[0\] returned an array \(2,\)"):
        mbs.bias_forces(mech.build(), np.ones(2), np.ones(2))
    mech = mbs.library.double_pendulum(gravity=(0, 0, 0))
    mech.add_force("hand", mbs.External(fn, surfaces=[lambda model, t, q, v: q[0]]))
    for q, sign in ((0.1, -1.0), (-0.1, 1.0)):  # outside a run the functions say on which side they are
        at, v = np.array([q, 0.0]), np.array([1e-9, 2e-9])
        np.testing.assert_allclose(mbs.bias_forces(mech.build(), at, v), sign * v, rtol=1e-6)
        np.testing.assert_allclose(scalar.bias_forces(mech.build(), at, v), sign * v, rtol=1e-6)


def test_results_are_cast_to_the_dtype_of_the_state():
    model = with_force(lambda model, t, q, v: np.array([1, 2], np.int32))
    q = jnp.ones(2, jnp.float32)
    assert mbs.bias_forces(model, q, q).dtype == jnp.float32
    seen = []
    model = with_force(lambda model, t, q, v: seen.append((t.dtype, t.shape, q.dtype, v.dtype)) or v)
    mbs.bias_forces(model, q, q, t=0.5)
    assert seen == [(jnp.float32, (), jnp.float32, jnp.float32)]
