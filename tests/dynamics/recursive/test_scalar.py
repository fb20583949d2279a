"""Thousands of mechanisms on the Python-float path against Pinocchio, and the identities that hold for each of them.

Half of them have ordinary mass ratios (to 10): 1e-10 relative. The others reach 1e6, where two correct programs may
differ in the accelerations: there the equation of motion must be satisfied instead, A a + bias = tau.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from tests.cases import case, relative
from tests.mechanisms import KINDS, build, mechanisms, random_mechanism, random_q, rates

PLAIN = tuple(k for k in KINDS if k != "General")  # General differentiates with JAX: 100 times slower on Python floats
BLOCK = 50


def size(seed):
    """Number of bodies: 1 to 9, the cheapest in which all that a recursion does occurs; every tenth as drawn, up to 40."""
    return seed % 10 or None


def check(c):
    for q, v, a, tau in c.rows():
        q, v, a, tau = q.tolist(), v.tolist(), a.tolist(), tau.tolist()
        A = np.reshape(scalar.mass_matrix(c.model, q), (c.model.nv, c.model.nv)).astype(float)
        bias = np.asarray(scalar.bias_forces(c.model, q, v), float)
        solved = np.asarray(scalar.forward_dynamics(c.model, q, v, tau), float)
        assert relative(A, c.pinocchio.mass_matrix(q)) < 1e-10
        assert relative(bias, c.pinocchio.bias_forces(q, v)) < 1e-10
        assert relative(scalar.inverse_dynamics(c.model, q, v, a), tau) < 1e-10
        assert relative(scalar.energy(c.model, q, v), c.pinocchio.energy(q, v)) < 1e-10
        yield A, bias, solved, a, tau


@pytest.mark.parametrize("first", range(0, 1000, BLOCK))
@pytest.mark.usually("0", "400")
def test_ordinary_mass_ratios(first):
    for seed in range(first, first + BLOCK):
        for *_, solved, a, _ in check(case(seed, size(seed), states=1, kinds=PLAIN)):
            assert relative(solved, a) < 1e-10, f"seed {seed}"
    case.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100_000, 101_000, BLOCK))
@pytest.mark.usually("100400")
def test_extreme_mass_ratios(first):
    for seed in range(first, first + BLOCK):
        for A, bias, solved, _, tau in check(case(seed, size(seed), states=1, kinds=PLAIN, mass_ratio=1e6)):
            terms = np.abs(A) @ np.abs(solved) + np.abs(bias) + np.abs(tau)
            residual = np.abs(A @ solved + bias - tau)
            assert np.max(residual, initial=0) <= 1e-10 * np.max(terms, initial=1), f"seed {seed}"
    case.cache_clear()


@pytest.mark.parametrize("seed", range(200_000, 200_010))
def test_with_general_joints(seed):
    n = 1 + seed % 5
    for *_, solved, a, _ in check(case(seed, n, states=1, kinds=("General", "Revolute", "Free", "Prismatic"))):
        assert relative(solved, a) < 1e-10


def test_every_function_of_floats_is_that_of_arrays():
    """At a time, too: a turntable carries an arm that spins as given."""

    def spun(q, t):
        c, s, o = jnp.cos(q[0] + t * t), jnp.sin(q[0] + t * t), jnp.zeros_like(t)
        return jnp.stack([jnp.stack([c, -s, o]), jnp.stack([s, c, o]), jnp.stack([o, o, o + 1])])

    mech = mbs.Mechanism("turntable", gravity=(0, 1.0, -9.81))
    for name, parent, joint in (
        ("table", "world", mbs.Revolute((0, 0.6, 0.8))),
        ("arm", "table", mbs.General(lambda q, t: jnp.zeros(3), spun, 1)),
    ):
        mech.add_body(name, 1.0, (0.1, 0.2, 0.3), (0.2, 0.3, 0.25))
        mech.add_joint(name, joint, parent, name, mbs.Pose((0.3, 0, 0)), mbs.Pose((0.1, 0.2, 0.4)))
    model = mech.build()
    vectors = {"q": [0.4, -0.7], "v": [0.5, 1.1], "a": [0.3, -0.2], "tau": [2.0, -1.0]}
    for name, letters in {"forward_dynamics": "q v tau", "inverse_dynamics": "q v a", "bias_forces": "q v",
                          "mass_matrix": "q", "energy": "q v", "momentum": "q v", "body_poses": "q"}.items():  # fmt: skip
        x = [vectors[letter] for letter in letters.split()]
        got = getattr(scalar, name)(model, *x, t=0.7)
        with jax.disable_jit():
            want = getattr(mbs, name)(model, *map(np.array, x), t=0.7)
        if name == "body_poses":
            (got, turned), want = zip(*got, strict=True), want.position
            assert (
                relative(np.reshape(turned, (2, 3, 3)), mbs.body_poses(model, np.array(x[0]), t=0.7).rotation) < 1e-12
            )
        assert relative(got, want) < 1e-12, name


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(mechanisms(max_bodies=12, kinds=PLAIN))
def test_identities(mechanism):
    """ABA(RNEA(a)) = a, A symmetric and positive definite, dE/dt = tau . v."""
    model = build(mechanism)
    mechanism = mechanism.ordered(model.joint_names)
    rng = np.random.default_rng(mechanism.nv)
    q, v, a = random_q(mechanism, rng), rng.normal(size=mechanism.nv), rng.normal(size=mechanism.nv)
    tau = scalar.inverse_dynamics(model, q.tolist(), v.tolist(), a.tolist())
    assert relative(scalar.forward_dynamics(model, q.tolist(), v.tolist(), tau), a) < 1e-10
    A = np.reshape(scalar.mass_matrix(model, q.tolist()), (model.nv, model.nv)).astype(float)
    assert relative(A, A.T) < 1e-14
    if model.nv:
        scale = np.sqrt(np.diag(A))
        assert np.linalg.eigvalsh(A / np.outer(scale, scale)).min() > 1e-10
    assert power_of_energy(model, mechanism, q, v, a) == pytest.approx(np.dot(tau, v), rel=1e-6, abs=1e-6)


def power_of_energy(model, mechanism, q, v, a, h=1e-4):
    """dE/dt along the motion with acceleration a, by central differences of fourth order."""

    def energy(x):
        return sum(scalar.energy(model, (q + x * rates(mechanism, q, v)).tolist(), (v + x * a).tolist()))

    return (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)


def test_generator_covers_what_it_promises():
    drawn = [random_mechanism(seed) for seed in range(300)]
    assert {j.kind for m in drawn for j in m.joints} == set(KINDS)
    assert min(len(m.bodies) for m in drawn) == 1 and max(len(m.bodies) for m in drawn) == 40
    assert any(b.mass == 0 for m in drawn for b in m.bodies)
    assert any(sum(j.parent == "world" for j in m.joints) > 1 for m in drawn)
    assert any([b.name for b in m.bodies] != sorted(b.name for b in m.bodies) for m in drawn)
    heavy = [b.mass for b in random_mechanism(3, 40, mass_ratio=1e6).bodies if b.mass]
    assert max(heavy) / min(heavy) > 1e5
