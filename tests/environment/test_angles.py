"""Angles as arithmetic, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbs.model.forces.angles import angle


def test_angles_are_exact_to_rounding():
    rng = np.random.default_rng(0)
    y, x = rng.normal(size=(2, 20_000)) * 10.0 ** rng.uniform(-8, 8, size=(2, 20_000))
    assert np.allclose(jax.jit(angle)(y, x), np.arctan2(y, x), rtol=5e-16, atol=0)
    single = jax.jit(angle)(y.astype(np.float32), x.astype(np.float32))
    assert np.allclose(single, np.arctan2(y, x), rtol=5e-7, atol=0)


@pytest.mark.parametrize("y", [0.0, 1.0, -1.0, np.nan])
@pytest.mark.parametrize("x", [0.0, 1.0, -1.0])
def test_angles_on_the_axes_and_diagonals(y, x):
    found = float(angle(jnp.asarray(y), jnp.asarray(x)))
    assert found == pytest.approx(float(np.arctan2(y, x)), rel=1e-15, nan_ok=True)


def test_derivatives_and_the_origin():
    slopes = jax.grad(angle, (0, 1))
    wanted = jax.grad(jnp.arctan2, (0, 1))
    for at in ((0.3, -0.5), (-2.0, 0.1), (1e-9, 1.0)):
        assert np.allclose(slopes(*map(jnp.asarray, at)), wanted(*map(jnp.asarray, at)), rtol=1e-14)
    assert not np.any(slopes(jnp.zeros(()), jnp.zeros(())))
    assert np.allclose(jax.jvp(angle, (jnp.asarray(0.2), jnp.asarray(0.7)), (1.0, 2.0))[1], (0.7 - 0.4) / 0.53)
