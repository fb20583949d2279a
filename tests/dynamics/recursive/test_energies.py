"""Energy and momentum of the whole mechanism."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import FEW, case, relative
from tests.mechanisms import build, random_mechanism, random_q, rates

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize(("seed", "n"), FEW)
def test_against_pinocchio(seed, n):
    c = case(seed, n)
    f = jax.jit(jax.vmap(lambda q, v: (mbs.energy(c.model, q, v), mbs.momentum(c.model, q, v))))
    (kinetic, potential), (angular, linear) = f(c.q, c.v)
    for i, (q, v, _, _) in enumerate(c.rows()):
        assert relative((kinetic[i], potential[i]), c.pinocchio.energy(q, v)) < 1e-11
        want = c.pinocchio.momentum(q, v)
        assert relative(angular[i], want[0]) < 1e-11
        assert relative(linear[i], want[1]) < 1e-11


def test_kinetic_energy_is_the_quadratic_form_of_the_mass_matrix():
    c = case(*FEW[1])
    q, v = c.q[0], c.v[0]
    assert relative(mbs.energy(c.model, q, v)[0], v @ np.asarray(mbs.mass_matrix(c.model, q)) @ v / 2) < 1e-12


def test_momentum_changes_by_the_weight_alone():
    """A free mechanism with inner motion: d/dt linear = M g, d/dt angular about the centre of mass = 0."""
    mechanism = random_mechanism(7, 5, kinds=("Revolute", "Universal", "Prismatic"), free_base=True)
    root = next(j.child for j in mechanism.joints if j.kind == "Free")
    tree = tuple(replace(j, parent=root) if j.parent == "world" and j.kind != "Free" else j for j in mechanism.joints)
    mechanism = replace(mechanism, joints=tree)
    model = build(mechanism)
    mechanism = mechanism.ordered(model.joint_names)
    rng = np.random.default_rng(5)
    q, v = random_q(mechanism, rng), rng.normal(size=model.nv)
    a = np.asarray(mbs.forward_dynamics(model, q, v))
    h, dq = 1e-4, rates(mechanism, q, v)
    steps = h * np.array([-2, -1, 1, 2])[:, None]
    f = jax.vmap(lambda q, v: jnp.concatenate(mbs.momentum(model, q, v)))
    derivative = np.array([1, -8, 8, -1]) / (12 * h) @ np.asarray(f(q + steps * dq, v + steps * a))
    weight = sum(b.mass for b in mechanism.bodies) * mechanism.gravity
    assert relative(derivative[:3], np.zeros(3)) < 1e-7
    assert relative(derivative[3:], weight) < 1e-8
