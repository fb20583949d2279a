"""Projection onto the constraints."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.simulate.projection import projected, violation


@pytest.mark.interpreted
def test_the_nearest_state_in_the_metric_of_the_masses():
    """Carts of 1 and 4 kg, held by a rope over a pulley: x_a + 2 x_b = 0.3 and its rate."""
    mech = mbs.Mechanism("carts", gravity=(0, 0, 0))
    for name, mass in (("a", 1.0), ("b", 4.0)):
        mech.add_body(name, mass, inertia=(1, 1, 1))
        mech.add_joint(name, mbs.Prismatic((1, 0, 0)), "world", name)
    mech.add_constraint("rope", mbs.Holonomic(lambda model, t, q, v: q[:1] + 2 * q[1:] - 0.3))
    tree = Tree(mech.build(), jnp.float64)
    q, v = [jnp.asarray(0.5), jnp.asarray(0.1)], [jnp.asarray(2.0), jnp.asarray(-0.2)]
    q_new, v_new, _ = projected(tree, q, v, 0.0, None)
    # M d = J' mu with J = (1, 2): d = mu (1, 1/2), J d = 2 mu
    np.testing.assert_allclose(tree.vector(q_new), [0.5 - 0.2, 0.1 - 0.1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(tree.vector(v_new), [2.0 - 0.8, -0.2 - 0.4], rtol=0, atol=1e-15)
    assert float(violation(tree, q, v, 0.0, None)) == pytest.approx(0.4)
    assert float(violation(tree, q_new, v_new, 0.0, None)) < 1e-15
