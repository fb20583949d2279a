"""Elastic chains and grids against the continua that they stand for, with the order in which they approach them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq

import jaxmbs as mbs


def orders(errors):
    """Between numbers of elements that double."""
    errors = np.abs(errors)
    return np.log2(errors[:-1] / errors[1:])


def beam_at_rest(n, **more):
    """Mass and stiffness of the straight beam, and the moments that hold it there."""
    model = mbs.library.beam(n, length=2.0, mass=3.0, stiffness=40.0, **more).build()
    q, v = np.zeros(n), np.zeros(n)
    springs = np.array([mbs.get(model, f"spring_{i}.stiffness") for i in range(1, n + 1)])
    return model, np.asarray(mbs.mass_matrix(model, q)), np.diag(springs), np.asarray(mbs.bias_forces(model, q, v))


def test_cantilever_frequencies_and_deflection():
    """The first three bending frequencies of Euler and Bernoulli, and the tip under its own (small) weight."""
    roots = [brentq(lambda x: np.cos(x) * np.cosh(x) + 1, a, b) for a, b in ((1, 3), (4, 6), (7, 9))]
    exact = np.array(roots) ** 2 * np.sqrt(40.0 / (3.0 * 2.0**3))
    found, tips = [], []
    for n in (4, 8):
        model, M, K, moments = beam_at_rest(n, gravity=(0, 0, -1e-3))
        found.append(np.sqrt(eigh(K, M, eigvals_only=True)[:3]))
        angles = -np.linalg.solve(K, moments)
        arms = 2.0 - (np.arange(n) + 0.5) * 2.0 / n
        tips.append(arms @ angles)
        hinges = [mbs.get(model, f"hinge_{i}.parent_pose.position")[0] for i in range(1, n + 1)]
        np.testing.assert_allclose(np.cumsum(hinges), 2.0 - arms, rtol=1e-14)
    errors = np.array(found) / exact - 1
    assert np.all(np.abs(errors[-1]) < [1e-2, 2e-2, 6e-2]), errors
    assert np.all(np.abs(orders(errors) - 2) < 0.35), orders(errors)
    deflection = 3.0 * 1e-3 * 2.0**3 / (8 * 40.0)
    assert np.all(np.abs(orders(np.array(tips) / deflection - 1) - 2) < 0.1)
    stiffness = jax.jacfwd(lambda q: mbs.bias_forces(model, q, jnp.zeros(8)))(jnp.zeros(8))
    assert np.allclose(stiffness, K, atol=2e-2), "the springs are the stiffness; gravity adds little"


@pytest.mark.slow
def test_hanging_cable_against_the_catenary():
    """Pulled aside at its loose end, the links stand as statics says; nodes approach the catenary, order two."""
    length, mass, across, g = 3.0, 2.0, 9.0, 9.81
    per_length = mass * g / length
    a = across / per_length
    exact = np.array([a * np.arcsinh(length / a), a * np.cosh(np.arcsinh(length / a)) - a])  # from its lowest point
    errors = []
    for n in (4, 8):
        model = mbs.library.cable(n, length, mass).build()
        weight = mass * g / n
        # below the k-th hinge hang n - k links: the pull there, of half the own link more at its middle
        slopes = np.array([np.arctan2(across, weight * (n - k - 0.5)) for k in range(n)])
        angles = -np.diff(slopes, prepend=0.0)
        q = np.zeros(2 * n)
        q[::2] = angles
        needed = mbs.bias_forces(model, q, np.zeros(2 * n))
        J = mbs.jacobian(model, q, f"link_{n}", point=(0, 0, -length / n))
        assert np.abs(needed - J[3:].T @ np.array([across, 0, 0])).max() < 1e-12
        tip = np.array([np.sin(slopes).sum(), np.cos(slopes).sum()]) * length / n
        assert np.allclose(
            mbs.body_poses(model, q).position[-1][::2], [1, -1] * (tip - tip_of(slopes[-1]) * length / n)
        )
        errors.append(tip - exact)
    assert np.all(np.abs(orders(np.array(errors)) - 2) < 0.2), orders(np.array(errors))
    with pytest.raises(mbs.ModelError, match="1 or more"):
        mbs.library.cable(0)


def tip_of(slope):
    return np.array([np.sin(slope), np.cos(slope)])


@pytest.mark.slow
def test_a_cable_between_two_points_hangs_in_a_loop():
    model = mbs.library.cable(4, length=2.0, span=1.2).build()
    _, _, status, residual = mbs.assemble(model, np.array([-0.9, 0, 0.4, 0, 0.9, 0, 0.4, 0]))
    assert status == 0 and np.abs(residual).max() < 1e-12


def stiffness_of(model):
    zero = jnp.zeros(model.nv)
    return jax.jit(jax.jacfwd(lambda x: mbs.bias_forces(model, mbs.integrate(model, model.neutral(), x), zero)))(zero)


@pytest.mark.slow
def test_plate_against_kirchhoff():
    """The first frequency of a simply supported plate."""
    a, b, mass, D = 1.5, 1.0, 4.0, 30.0
    exact = np.pi**2 * (1 / a**2 + 1 / b**2) * np.sqrt(D * a * b / mass)
    errors = []
    for n in (2, 4):
        model = mbs.library.plate(n, n, a, b, mass, D).build()
        K, M = stiffness_of(model), mbs.mass_matrix(model, model.neutral())
        bending = np.isin(np.arange(model.nv) % 6, [0, 1, 5])  # rotations, and along z
        K, M = (np.asarray(x)[np.ix_(bending, bending)] for x in (K, M))
        errors.append(np.sqrt(eigh(K, M, eigvals_only=True)[0]) / exact - 1)
    assert abs(errors[1]) < 0.05 and orders(np.array(errors)) == pytest.approx(2, abs=0.4), errors
