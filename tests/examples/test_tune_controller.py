"""Gains found by gradient through a sampled loop."""

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

PATH = Path(__file__).parents[2] / "examples" / "tune_controller.py"


@pytest.mark.slow
def test_the_gradient_improves_the_gains():
    spec = importlib.util.spec_from_file_location("tune_controller", PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    model, gains = example.satellite(), jnp.log(jnp.array([4.0, 5.0]))
    slope, step = jax.grad(lambda g: example.cost(model, g))(gains), 1e-5
    for k, e in enumerate(jnp.eye(2)):
        ends = [example.cost(model, gains + sign * step * e) for sign in (1, -1)]
        assert abs((ends[0] - ends[1]) / (2 * step) / slope[k] - 1) < 1e-7
    _, costs = example.tuned(satellites=8, steps=30)
    assert costs[-1] < 0.8 * costs[0]
