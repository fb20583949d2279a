"""Energy and momentum of the whole mechanism."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import aba, energies
from jaxmbs.dynamics.recursive.scalar import ScalarMode
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from tests.cases import FEW, case, relative
from tests.mechanisms import build, random_mechanism, random_q, rates
from tests.model.test_forces import ELEMENTS, TURN, at, pair

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


def balance(model, q, v, t=0.0, tau=None, mode=None, h=1e-4):
    """(rate of the energy along the motion by differences, power that it receives), on Python floats."""
    tree = Tree(model)
    state = State(tree, q, v, t, mode)
    a = aba.forward_dynamics(state, tau)
    rates = tree.flat([m.rates for m in state.motions])

    def energy(x):
        moved = [[y + x * dy for y, dy in zip(*both, strict=True)] for both in ((q, rates), (v, a))]
        there = State(tree, *moved, t + x, mode)
        return energies.kinetic(there) + energies.potential(there)

    rate = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
    return rate, energies.power(state, tau, a)


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_store_or_bring_what_they_do(name):
    """Rate of the potential and power account for the whole action of every element, switched on and off."""
    model = pair(element=ELEMENTS[name])
    for on, extra in ((True, 0.0), (True, 3.0), (False, 0.0)):
        q = np.concatenate([at((0.1, 0.2, 0.3), TURN), at((0.8 + extra, -0.1, 0.4), (0.6, 0.0, 0.8, 0.0))]).tolist()
        mode = None if on else ScalarMode([False] * 12, [False], [])
        rate, power = balance(model, q, np.linspace(-0.5, 0.7, 12).tolist(), 0.1, mode=mode)
        assert rate == pytest.approx(power, rel=1e-9, abs=1e-9)
        assert on or abs(power) < 1e-15


def test_power_with_locks_and_switches():
    """tau and the elements that are on, each counted once; a locked joint rests and does no work."""
    mech = mbs.library.chain(3)
    mech.add_force("on", mbs.TorsionSpring("hinge_2", stiffness=3.0, damping=0.4, rest_angle=0.2))
    mech.add_force("off", mbs.Damper("hinge_1", damping=5.0))
    model = mech.build()
    q, v, tau = [0.4, -0.7, 0.9], [0.5, 1.1, -0.8], [2.0, -1.0, 0.5]
    for lock, switch in itertools.product(([False] * 3, [False, True, False]), ([True, True], [True, False])):
        still = [0.0 if locked else rate for locked, rate in zip(lock, v, strict=True)]
        rate, power = balance(model, q, still, tau=tau, mode=ScalarMode(lock, switch, []))
        assert rate == pytest.approx(power, rel=1e-8)
    rate, power = balance(model, q, v, tau=tau)
    assert rate == pytest.approx(power, rel=1e-8)
    lost = 0.4 * 1.1**2 + 5.0 * 0.5**2
    assert power == pytest.approx(np.dot(tau, v) - lost)


def test_sums_over_runs_of_links():
    """A long mechanism is a loop over like links, and its sums are those of the links one by one."""
    model = mbs.library.chain(7).build()
    q, v = (jnp.asarray(x) for x in np.random.default_rng(4).normal(size=(2, 7)))
    rolled, plain = (State(Tree(model, jnp.float64, unrolled), q, v) for unrolled in (5, 100))
    assert rolled.tree.rolled and not plain.tree.rolled
    for f in (energies.kinetic, energies.potential, lambda s: [x for part in energies.momentum(s) for x in part]):
        assert relative(f(rolled), f(plain)) < 1e-12
