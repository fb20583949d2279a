"""Smooth tables of coefficients: SciPy's spline of the same slopes, polynomials that they reproduce, continuous slopes."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

import jaxmbs as mbs
from jaxmbs.model.forces.aerodynamics import _interpolated, _smooth_shares
from jaxmbs.spatial.known import known

POINTS = np.array([-0.3, 0.0, 0.2, 0.7, 0.8, 1.5])
OTHER = np.array([0.0, 1.0, 1.5, 2.5, 2.75])


def scalars(x):
    return [known(float(y)) for y in x]


@jax.jit
def one(x, values):
    return _interpolated(list(values), [_smooth_shares(x, scalars(POINTS))])


@jax.jit
def two(x, y, values):
    shares = [_smooth_shares(x, scalars(POINTS)), _smooth_shares(y, scalars(OTHER))]
    return _interpolated(list(values), shares)


def parabolic(x, y):
    """The slopes of parabolas through three points, zero at the ends."""
    found = np.zeros_like(y)
    for k in range(1, len(x) - 1):
        a = np.polyfit(x[k - 1 : k + 2] - x[k], y[k - 1 : k + 2], 2)
        found[k] = a[1]
    return found


def test_it_is_the_spline_of_the_same_slopes():
    values = np.random.default_rng(3).normal(size=len(POINTS))
    spline = CubicHermiteSpline(POINTS, values, parabolic(POINTS, values))
    for x in np.linspace(-0.3, 1.5, 41):
        assert one(x, values) == pytest.approx(spline(x), abs=1e-12)
        assert jax.grad(one)(x, values) == pytest.approx(spline(x, 1), abs=1e-11)
    for x, value in ((-1.0, values[0]), (9.0, values[-1])):
        assert one(x, values) == pytest.approx(value, abs=1e-14) and jax.grad(one)(x, values) == 0


def test_products_of_parabolas_are_reproduced_between_inner_breakpoints():
    def f(x, y):
        return (1 + x - 2 * x**2) * (3 - y + 0.5 * y**2)

    values = np.array([f(x, y) for x, y in itertools.product(POINTS, OTHER)])
    for x, y in itertools.product(np.linspace(0.0, 0.8, 7), np.linspace(1.0, 2.5, 7)):
        assert two(x, y, values) == pytest.approx(f(x, y), abs=1e-12)


def test_derivatives_are_continuous_over_the_breakpoints():
    values = np.random.default_rng(4).normal(size=len(POINTS) * len(OTHER))
    slope = jax.jit(jax.grad(two, (0, 1)))
    for x, y in itertools.product(POINTS, OTHER):
        sides = [slope(x + dx, y + dy, values) for dx, dy in ((0, 0), (1e-9, 1e-9), (-1e-9, -1e-9), (1e-9, -1e-9))]
        for side in sides[1:]:
            np.testing.assert_allclose(side, sides[0], rtol=0, atol=1e-6)


def test_a_body_in_air_with_smooth_tables(tmp_path):
    """Derivatives in both modes against differences; and the flag is kept in a file."""
    mech = mbs.Mechanism("body", gravity=(0.0, 0.0, -9.81))
    mech.add_body("body", 2.0, inertia=(0.1, 0.2, 0.3))
    mech.add_joint("flight", mbs.Free(), "world", "body")
    mech.set_environment(atmosphere=mbs.ExponentialAtmosphere())
    tables = mbs.Coefficients(
        mach=(0.0, 0.4, 0.8, 1.4), alpha=(-0.4, 0.0, 0.5), axial=tuple(0.2 + 0.05 * k for k in range(12)), smooth=True
    )
    mech.add_force("air", mbs.Aerodynamics("body", area=0.1, coefficients=tables))
    model = mech.build()
    q = model.neutral()
    v = jnp.array([0.1, 0.2, -0.1, 190.0, 3.0, 20.0])

    def acceleration(v):
        return mbs.forward_dynamics(model, q, v)

    d, e = np.array([0.1, -0.3, 0.2, 5.0, 1.0, -2.0]), 1e-5
    central = (acceleration(v + e * d) - acceleration(v - e * d)) / (2 * e)
    np.testing.assert_allclose(jax.jvp(acceleration, (v,), (d,))[1], central, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(jax.jacrev(acceleration)(v) @ d, central, rtol=1e-6, atol=1e-6)
    mbs.save(model, tmp_path / "body.toml")
    assert mbs.load(tmp_path / "body.toml") == model
