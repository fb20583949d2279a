"""Jacobians of points on bodies."""

import jax
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import FEW, case, relative


@pytest.mark.parametrize(("seed", "n"), FEW)
def test_against_pinocchio(seed, n):
    c = case(seed, n)
    point = (0.3, -0.2, 0.1)
    f = jax.jit(jax.vmap(lambda q: [mbs.jacobian(c.model, q, b, point=point) for b in c.model.body_names]))
    for body, J in zip(c.model.body_names, f(c.q), strict=True):
        assert relative(J, [c.pinocchio.jacobian(q, body, point) for q in c.q]) < 1e-11


def test_default_point_is_the_origin_of_the_body():
    c = case(*FEW[0])
    body = c.model.body_names[-1]
    zero = mbs.jacobian(c.model, c.q[0], body, point=(0, 0, 0))
    assert relative(mbs.jacobian(c.model, c.q[0], body), zero) < 1e-15


def test_unknown_body_gets_near_matches():
    c = case(*FEW[0])
    with pytest.raises(mbs.ModelError, match=r"'b00'.*'b0'"):
        mbs.jacobian(c.model, c.q[0], "b00")


def test_world_has_no_velocity():
    c = case(*FEW[0])
    assert np.array_equal(mbs.jacobian(c.model, c.q[0], "world"), np.zeros((6, c.model.nv)))
