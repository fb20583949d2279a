"""Constraints written as functions: what is no constraint of the kind is refused with its name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs


def sled(constraint):
    mech = mbs.Mechanism("sled")
    mech.add_body("sled", mass=2.0, inertia=(0.1, 0.1, 0.15))
    mech.add_joint("ice", mbs.Planar(), "world", "sled")
    mech.add_constraint("rule", constraint)
    return mech.build()


REFUSED = {
    "velocities in a holonomic one": (mbs.Holonomic(lambda m, t, q, v: q[0] - 0.1 * v[1]), "depends on the velocities"),
    "a squared speed": (mbs.Nonholonomic(lambda m, t, q, v: v[0] ** 2 + v[1] ** 2 - 1), "not affine"),
    "a norm": (mbs.Nonholonomic(lambda m, t, q, v: jnp.linalg.norm(v) - 1), "not affine"),
    "a product of two speeds": (mbs.Nonholonomic(lambda m, t, q, v: jnp.stack([v[0], v[0] * v[1]])), "not affine"),
    "a matrix": (mbs.Nonholonomic(lambda m, t, q, v: v[:, None] * v[None, :]), "(rows,)"),
    "nothing": (mbs.Holonomic(lambda m, t, q, v: None), "None"),
}


@pytest.mark.interpreted
@pytest.mark.parametrize("fault", REFUSED)
def test_another_kind_of_function_is_refused_with_its_name(fault):
    constraint, words = REFUSED[fault]
    model = sled(constraint)
    for call in (mbs.constrained_dynamics, mbs.impact, jax.jit(mbs.constraint_jacobian)):
        with pytest.raises(mbs.ModelError) as caught:
            call(model, np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.7]))
        assert not [w for w in ("'rule'", words) if w not in str(caught.value)], caught.value


@pytest.mark.interpreted
@pytest.mark.parametrize("constraint", [
    mbs.Nonholonomic(lambda m, t, q, v: (v[0] + v[1]) ** 2 - (v[0] - v[1]) ** 2 - 4 * v[0] * v[1] + v[1]),
    mbs.Nonholonomic(lambda m, t, q, v: jnp.linalg.norm(q) * v[1] * jnp.cos(t) - mbs.get(m, "sled.mass") * t),
    mbs.Nonholonomic(lambda m, t, q, v: (mbs.jacobian(m, q, "sled") @ v)[4]),
    mbs.Holonomic(lambda m, t, q, v: q[1] - 0.2 + 0 * v.shape[0]),
])  # fmt: skip
def test_what_is_affine_by_its_values_is_accepted(constraint):
    model, q, v = sled(constraint), np.array([0.0, 0.2, 0.0]), np.array([0.5, 0.0, 0.7])
    a = mbs.constrained_dynamics(model, q, v)[0]
    assert np.isfinite(a).all() and np.isfinite(jax.jacfwd(lambda v: mbs.constrained_dynamics(model, q, v)[0])(v)).all()


def test_another_order_of_arguments_is_refused_where_the_constraint_is_made():
    for kind in (mbs.Holonomic, mbs.Nonholonomic):
        with pytest.raises(mbs.ModelError, match=rf"{kind.__name__}: fn.*order"):
            kind(lambda model, q, v, t: q)
        with pytest.raises(mbs.ModelError, match=rf"{kind.__name__}.*function"):
            kind(3.0)


@pytest.mark.parametrize("square", [0, 1])
def test_what_is_traced_outside_does_not_matter(square):
    """Inside jit, where numbers of the model, the state and the gain are not known."""

    def moved(gain, q, v):
        def rule(m, t, q, v):
            return (v[0] + v[1]) ** 2 - (v[0] - v[1]) ** 2 - 4 * v[0] * v[1] + gain * v[1] + square * gain * v[1] ** 2

        return mbs.constrained_dynamics(sled(mbs.Nonholonomic(rule)), q, v)[0]

    q, v = jnp.array([0.0, 0.2, 0.0]), jnp.array([0.5, 0.0, 0.7])
    if square:
        with pytest.raises(mbs.ModelError, match=r"'rule'.*not affine"):
            jax.jit(moved)(2.0, q, v)
    else:
        np.testing.assert_allclose(jax.jit(jax.vmap(moved, (None, 0, 0)))(2.0, q[None], v[None])[0, 1], 0, atol=1e-14)
