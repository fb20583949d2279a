"""The bias by origin: centrifugal, Coriolis, gyroscopic, gravity, elements, rheonomic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative
from tests.dynamics.formulations.helpers import EXACT, free_and_rotational, quick, small_arm

pytestmark = pytest.mark.interpreted


def christoffel(model, q):
    """Gamma (nv, nv, nv) of coordinates whose rates are v: c_i = sum Gamma_ijk v_j v_k."""
    dA = jax.jacfwd(lambda q: mbs.mass_matrix(model, q))(q)
    return 0.5 * (dA + jnp.swapaxes(dA, 1, 2) - jnp.transpose(dA, (2, 0, 1)))


def test_against_christoffel_symbols():
    """Squares of one rate, products of two, and the part without power: c - A' v/2."""
    model = small_arm()
    q, v = np.random.default_rng(0).normal(size=(2, model.nv))

    def both(q, v):
        dA = jax.jvp(lambda q: mbs.mass_matrix(model, q), (q,), (v,))[1]
        return mbs.textbook.bias_split(model, q, v), christoffel(model, q), dA, mbs.bias_forces(model, q, v)

    found, gamma, dA, bias = quick(both)(q, v)
    centrifugal = np.einsum("ijj,j->i", gamma, v**2)
    whole = np.einsum("ijk,j,k->i", gamma, v, v)
    assert relative(found.centrifugal, centrifugal) < EXACT
    assert relative(found.coriolis, whole - centrifugal) < EXACT
    assert relative(found.gyroscopic, whole - dA @ v / 2) < EXACT
    assert abs(found.gyroscopic @ v) < 1e-12
    assert np.abs(found.rheonomic).max() == 0
    parts = found.centrifugal + found.coriolis + found.gravity + found.elements
    assert relative(parts, bias) < EXACT


@pytest.mark.slow
def test_with_quaternions():
    c = free_and_rotational()
    q, v, *_ = next(c.rows())
    found, bias = quick(lambda q, v: (mbs.textbook.bias_split(c.model, q, v), mbs.bias_forces(c.model, q, v)))(q, v)
    assert relative(found.centrifugal + found.coriolis + found.gravity, bias) < EXACT
    assert abs(found.gyroscopic @ v) < 1e-11
    rest = mbs.textbook.bias_split(c.model, q, 0 * v)
    assert all(np.abs(x).max() == 0 for x in (rest.centrifugal, rest.coriolis, rest.gyroscopic))


def test_a_body_spinning_in_a_frame():
    """A disc that spins about x on a frame that turns about z: its gyroscopic moments J w W in closed form."""
    mech = mbs.Mechanism("gyroscope")
    mech.add_body("frame", 1.0, inertia=(0.2, 0.3, 0.4))
    mech.add_body("fork", 1.0, inertia=(0.2, 0.3, 0.4))
    mech.add_body("disc", 1.0, inertia=(0.5, 0.3, 0.3))
    mech.add_joint("turn", mbs.Revolute((0, 0, 1)), "world", "frame")
    mech.add_joint("tilt", mbs.Revolute((0, 1, 0)), "frame", "fork")
    mech.add_joint("spin", mbs.Revolute((1, 0, 0)), "fork", "disc")
    found = mbs.textbook.bias_split(mech.build(), jnp.zeros(3), jnp.array([2.0, 0.0, 30.0]))
    assert relative(found.coriolis, [0, 0.5 * 30 * 2, 0]) < EXACT  # W x J w about y
    assert relative(found.gyroscopic, found.coriolis) < EXACT and np.abs(found.centrifugal).max() < 1e-12


@pytest.mark.slow
def test_rheonomic_part():
    """A turntable of given motion carries a hinged rod: its own spin adds terms of first and no degree in v."""

    def turned(angle):
        c, s, o = jnp.cos(angle), jnp.sin(angle), jnp.zeros_like(angle)
        return jnp.stack([jnp.stack([c, -s, o]), jnp.stack([s, c, o]), jnp.stack([o, o, o + 1])])

    def table(spin):
        mech = mbs.Mechanism("turntable", gravity=(0, 0, -9.81))
        mech.add_body("table", 2.0, (0.1, 0, 0), (0.1, 0.1, 0.2))
        mech.add_body("rod", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.02))
        joint = mbs.General(lambda q, t: jnp.zeros(3), lambda q, t: turned(q[0] + spin * t**2), 1)
        mech.add_joint("spin", joint, "world", "table")
        mech.add_joint("hinge", mbs.Revolute((0.6, 0.8, 0)), "table", "rod", mbs.Pose((0.4, 0, 0)))
        mech.add_force("friction", mbs.Damper("hinge", 0.3))
        return mech.build()

    model, still, t = table(1.5), table(0.0), 0.4
    q, v = jnp.array([0.3, 0.9]), jnp.array([0.7, -1.2])
    turned_q = q.at[0].add(1.5 * t**2)  # where the turntable is

    def both(q, v):
        found = mbs.textbook.bias_split(model, q, v, t=t), mbs.textbook.bias_split(still, turned_q, v)
        return found, mbs.bias_forces(model, q, v, t=t)

    (found, at_rest), bias = quick(both)(q, v)
    parts = found.centrifugal + found.coriolis + found.rheonomic + found.gravity + found.elements
    assert relative(parts, bias) < EXACT and np.abs(found.rheonomic).max() > 0.01
    for name in ("centrifugal", "coriolis", "gyroscopic"):
        assert relative(getattr(found, name), getattr(at_rest, name)) < EXACT
