"""Trees of public robots, with other numbers: forward dynamics is laid out in loops for each of them."""

import jax
import numpy as np
import pytest

import jaxmbs as mbs
from tests.io.robots import of_shape, shapes


@pytest.mark.slow
@pytest.mark.parametrize("name", shapes())
@pytest.mark.usually("centauro", "pr2")
def test_forward_dynamics_is_laid_out(name):
    """Traced, not compiled: what fails for a shape fails here."""
    model = of_shape(shapes()[name])
    a = jax.eval_shape(lambda q, v: mbs.forward_dynamics(model, q, v), np.zeros(model.nq), np.zeros(model.nv))
    assert a.shape == (model.nv,)
