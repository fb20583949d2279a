"""Eigenvalues: their derivatives, chains against their continuum, a mode as a motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import jn_zeros

import jaxmbs as mbs
from jaxmbs.stability.eigensolver import eigen


def test_derivatives_of_eigenvalues_and_vectors():
    """Of a random matrix, both modes and second order, against central differences; one repeated pair spoils no other."""
    A = jax.random.normal(jax.random.key(0), (4, 4))
    D = jax.random.normal(jax.random.key(1), (4, 4))

    def sizes(x):
        values, right, left = eigen(A + x * D)
        return jnp.concatenate(
            [values.real, values.imag, jnp.abs(right).ravel(), right.real.ravel(), left.imag.ravel()]
        )

    e = 1e-5
    weights = jnp.cos(jnp.arange(56.0))

    def slope(x):
        return jax.grad(lambda x: weights @ sizes(x))(x)

    run = jax.jit(lambda x: (sizes(x), slope(x), jax.jvp(sizes, (x,), (1.0,))[1], jax.jvp(slope, (x,), (1.0,))[1]))
    below, (_, backward, forward, second), above = run(-e), run(0.0), run(e)
    np.testing.assert_allclose(forward, (above[0] - below[0]) / (2 * e), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(backward, weights @ forward, rtol=1e-10)
    np.testing.assert_allclose(second, (above[1] - below[1]) / (2 * e), rtol=1e-5, atol=1e-5)
    defective = jnp.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
    alone = jax.jacfwd(lambda x: eigen(defective + x * jnp.eye(3))[0].real)(0.0)
    np.testing.assert_allclose(alone[2], 1.0, rtol=1e-12)


def hung(n):
    """Frequencies [rad/s] of a chain of n rods, one metre long."""
    model = mbs.library.chain(n, 1 / n, 1 / n, 0.0, axes=((0, 1, 0),)).build()
    return 2 * np.pi * np.asarray(mbs.modes(model, jnp.zeros(n)).frequency[::2])


@pytest.mark.slow
def test_a_hanging_chain_has_the_frequencies_of_bessel():
    """w = j_0k / 2 sqrt(g / L) in the limit, with errors that fall with the square of a rod."""
    want = jn_zeros(0, 3) / 2 * np.sqrt(9.81)
    coarse, fine = (np.abs(hung(n)[:3] / want - 1) for n in (6, 12))
    assert fine.max() < 0.03 and (coarse / fine > 3).all()


@pytest.mark.slow
def test_shapes_and_frequencies_of_a_batch_with_their_derivatives():
    """Heavier lower masses in one program; against central differences."""
    model = mbs.library.double_pendulum().build()

    def found(mass):
        modes = mbs.modes(mbs.set(model, {"lower.mass": mass}), jnp.zeros(2))
        elbow = jnp.abs(modes.shapes["elbow"][:, 0])
        return jnp.concatenate([modes.frequency, elbow, modes.energy["lower"]])

    masses, e = jnp.array([0.5, 1.0, 2.0]), 1e-5
    run = mbs.jit(found, in_axes=0)
    values, above, below = run(masses), run(masses + e), run(masses - e)
    forward, backward = (jax.jit(jax.vmap(mode(found)))(masses) for mode in (jax.jacfwd, jax.jacrev))
    np.testing.assert_allclose(forward, (above - below) / (2 * e), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(backward, forward, rtol=0, atol=1e-10)
    # both lengths and masses equal: w² = (2 -+ sqrt 2) g
    np.testing.assert_allclose(
        (2 * np.pi * values[1, :4:2]) ** 2, 9.81 * np.array([2 - 2**0.5, 2 + 2**0.5]), rtol=1e-12
    )


def test_a_mode_as_a_motion_is_one(tmp_path):
    """Small enough, what `simulate` finds from the same start."""
    model = mbs.library.double_pendulum().build()
    modes = mbs.modes(model, [0.0, 0.0])
    motion = modes.motion(model, jnp.zeros(2), 0, 1e-4, rows=21)
    assert motion.conditioning.shape == motion.t.shape
    run = mbs.simulate(
        model, motion.q[0], motion.v[0], t_end=float(motion.t[-1]), dt=float(motion.t[1]) / 10, save_every=10
    )
    np.testing.assert_allclose(run.q, motion.q, rtol=0, atol=1e-9)
    assert mbs.animate(model, motion, tmp_path / "mode.html").stat().st_size > 10_000
    with pytest.raises(mbs.ModelError, match="pass one of 0 to 3"):
        modes.motion(model, jnp.zeros(2), 4)
