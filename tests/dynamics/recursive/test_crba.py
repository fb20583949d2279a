"""Mass matrix: composite rigid bodies."""

import jax
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import DOZEN, case, relative


@pytest.mark.parametrize(("seed", "n"), DOZEN)
@pytest.mark.usually("10[0-6]*", "109*")
def test_compiled_against_pinocchio_and_mujoco(seed, n):
    c = case(seed, n)
    A = np.asarray(jax.jit(jax.vmap(mbs.mass_matrix, in_axes=(None, 0)))(c.model, c.q))
    assert relative(A, A.swapaxes(1, 2)) < 1e-14
    assert relative(A, [c.pinocchio.mass_matrix(q) for q in c.q]) < 1e-10
    assert relative(A, [c.mujoco.mass_matrix(q) for q in c.q]) < 1e-10


@pytest.mark.parametrize(("seed", "n"), DOZEN[:6:2])
@pytest.mark.usually("100-1", "102-2")
def test_columns_are_responses_to_unit_accelerations(seed, n):
    """A e_i = inverse_dynamics(e_i) - inverse_dynamics(0), at rest and moving alike."""
    c = case(seed, n)
    q, v = c.q[0], c.v[0]
    f = jax.vmap(lambda a: mbs.inverse_dynamics(c.model, q, v, a))
    columns = f(np.eye(c.model.nv)) - mbs.bias_forces(c.model, q, v)[None]
    assert relative(columns, mbs.mass_matrix(c.model, q)) < 1e-11


def test_unknown_method_is_named():
    c = case(*DOZEN[0])
    with pytest.raises(ValueError, match=r"crbaa.*crba"):
        mbs.mass_matrix(c.model, c.q[0], method="crbaa")
