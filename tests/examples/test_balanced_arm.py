"""The arm balanced by gradient meets the conditions of [T 5], which nobody typed in."""

import importlib.util
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs

PATH = Path(__file__).parents[2] / "examples" / "balanced_arm.py"


@pytest.mark.slow
def test_static_moments_vanish():
    spec = importlib.util.spec_from_file_location("balanced_arm", PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    model = mbs.library.three_link_arm(gravity=(0.0, 0.0, 0.0)).build()
    centers, history = example.balanced(model, jnp.array([[0.18, 0.06], [0.25, 0.0]]))
    assert history[0] > 1e-3 and history[-1] < 1e-18
    assert np.allclose(centers[1], 0.0, atol=1e-8)
    assert np.allclose(4.0 * centers[0] + 2.5 * np.array([0.4, 0.1]), 0.0, atol=1e-8)
