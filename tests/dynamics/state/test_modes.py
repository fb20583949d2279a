"""Locks, switches, prescribed motion, time and dtype in every signature."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from tests.cases import case, relative

pytestmark = pytest.mark.interpreted

KINDS = ("Revolute", "Spherical", "Cylindrical", "Planar", "Prismatic")


def machine():
    """A tree of four bodies with several freedoms per joint."""
    return case(31, 4, kinds=KINDS, massless=0.0, free_base=True)


def locked_solution(c, q, v, tau, lock, prescribed):
    """Accelerations with some prescribed, by solving the other rows of A a + bias = tau."""
    A, bias = c.pinocchio.mass_matrix(q), c.pinocchio.bias_forces(q, v)
    a = np.where(lock, prescribed, 0.0)
    free = ~lock
    a[free] = np.linalg.solve(A[np.ix_(free, free)], (tau - bias - A @ a)[free])
    return a


@pytest.mark.parametrize("method", ["aba", "crba"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_locks_hold_or_follow_what_is_prescribed(count, method):
    c = machine()
    names = c.model.joint_names[:: 4 // count]
    mode = c.model.mode(lock=names)
    lock = np.asarray(mode.lock)
    assert lock.sum() == sum(j.nv for j in c.mechanism.joints if j.name in names)
    q, v, given, tau = next(c.rows())

    def f(prescribed):
        return mbs.forward_dynamics(c.model, q, v, tau, mode=mode, prescribed=prescribed, method=method)

    assert relative(f(None), locked_solution(c, q, v, tau, lock, 0 * given)) < 1e-10
    assert relative(f(given), locked_solution(c, q, v, tau, lock, given)) < 1e-10
    assert relative(f(given)[lock], given[lock]) < 1e-14


@pytest.mark.slow
def test_single_degrees_of_freedom_can_be_locked():
    """A mask per degree of freedom: one of a joint's several."""
    c = machine()
    q, v, given, tau = next(c.rows())
    for i in range(0, c.model.nv, 3):
        lock = np.arange(c.model.nv) == i
        mode = replace(c.model.mode(), lock=jnp.asarray(lock))
        a = mbs.forward_dynamics(c.model, q, v, tau, mode=mode, prescribed=given)
        assert relative(a, locked_solution(c, q, v, tau, lock, given)) < 1e-10


@pytest.mark.slow
def test_instances_of_one_batch_have_their_own_modes():
    c = machine()
    locks = np.eye(c.model.nv, dtype=bool)[:4]

    def f(q, v, tau, lock):
        return mbs.forward_dynamics(c.model, q, v, tau, mode=replace(c.model.mode(), lock=lock))

    a = jax.jit(jax.vmap(f))(c.q, c.v, c.tau, jnp.asarray(locks))
    for row, lock, (q, v, _, tau) in zip(a, locks, c.rows(), strict=True):
        assert relative(row, locked_solution(c, q, v, tau, lock, 0 * v)) < 1e-10


def test_reactions_of_a_locked_joint_include_what_the_lock_carries():
    """A pendulum held level by its lock: the joint's moment carries the weight."""
    mech = mbs.Mechanism("held", gravity=(0, 0, -10.0))
    mech.add_body("bob", 2.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "world", "bob")
    model = mech.build()
    q = v = np.zeros(1)
    free = mbs.joint_reactions(model, q, v)
    held = mbs.joint_reactions(model, q, v, mode=model.mode(lock=["hinge"]))
    assert relative(held[0], [0, -10.0, 0, 0, 0, 20.0]) < 1e-14
    assert abs(free[0, 1]) < 1e-14


def wheel():
    mech = mbs.Mechanism("wheel")
    mech.add_body("wheel", 1.0, inertia=(1, 1, 1))
    mech.add_joint("axle", mbs.Revolute((0, 0, 1)), "world", "wheel")
    mech.add_force("first", mbs.TorsionSpring("axle", stiffness=3.0))
    mech.add_force("second", mbs.TorsionSpring("axle", stiffness=5.0))
    return mech.build()


def test_elements_on_one_body_add():
    springs = {f"s{k}": mbs.LinearSpring("b", "world", (0, k, 0), (2, 0, 1), stiffness=3.0 + k) for k in range(3)}

    def bias(*names):
        mech = mbs.Mechanism("ball", gravity=(0, 0, 0))
        mech.add_body("b", 1.0, inertia=(1, 1, 1))
        mech.add_joint("free", mbs.Free(), "world", "b")
        for name in names:
            mech.add_force(name, springs[name])
        return np.asarray(scalar.bias_forces(mech.build(), [0.3, 0.1, 0.2, 0.5, 0.5, -0.5, 0.5], [0.0] * 6))

    assert relative(bias(*springs), sum(bias(name) for name in springs)) < 1e-14


@pytest.mark.parametrize(("off", "stiffness"), [([], 8), (["first"], 5), (["second"], 3), (["first", "second"], 0)])
def test_force_elements_switch_off(off, stiffness):
    model = wheel()
    mode = model.mode(off=off)
    q, v = np.array([0.5]), np.zeros(1)
    assert relative(mbs.forward_dynamics(model, q, v, mode=mode), [-0.5 * stiffness]) < 1e-15
    assert relative(mbs.bias_forces(model, q, v, mode=mode), [0.5 * stiffness]) < 1e-15
    assert relative(mbs.inverse_dynamics(model, q, v, v, mode=mode), [0.5 * stiffness]) < 1e-15
    assert relative(mbs.energy(model, q, v, mode=mode)[1], 0.125 * stiffness) < 1e-15


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lock": ["axel"]}, ["'axel'", "'axle'"]),
        ({"off": ["frist"]}, ["'frist'", "'first'"]),
    ],
)
def test_unknown_names_in_a_mode(arguments, words):
    with pytest.raises(mbs.ModelError) as caught:
        wheel().mode(**arguments)
    assert all(w in str(caught.value) for w in words)


FUNCTIONS = {
    "body_poses": lambda m, q, v, t, mode: mbs.body_poses(m, q, t=t, mode=mode),
    "jacobian": lambda m, q, v, t, mode: mbs.jacobian(m, q, "b0", t=t, mode=mode),
    "inverse_dynamics": lambda m, q, v, t, mode: mbs.inverse_dynamics(m, q, v, v, t=t, mode=mode),
    "mass_matrix": lambda m, q, v, t, mode: mbs.mass_matrix(m, q, t=t, mode=mode),
    "bias_forces": lambda m, q, v, t, mode: mbs.bias_forces(m, q, v, t=t, mode=mode),
    "forward_dynamics": lambda m, q, v, t, mode: mbs.forward_dynamics(m, q, v, v, t=t, mode=mode),
    "energy": lambda m, q, v, t, mode: mbs.energy(m, q, v, t=t, mode=mode),
    "momentum": lambda m, q, v, t, mode: mbs.momentum(m, q, v, t=t, mode=mode),
    "joint_reactions": lambda m, q, v, t, mode: mbs.joint_reactions(m, q, v, v, t=t, mode=mode),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_takes_time_and_mode_and_keeps_the_dtype(name):
    """Results have the dtype of the state; the model's numbers are cast to it."""
    c = case(41, 2, kinds=("Revolute", "Helical"), free_base=False, massless=0.0)
    exact = FUNCTIONS[name](c.model, c.q[0], c.v[0], 0.5, c.model.mode())
    q, v = c.q[0].astype(np.float32), c.v[0].astype(np.float32)
    for t in (0.5, np.float64(0.5)):
        single = FUNCTIONS[name](c.model, q, v, t, c.model.mode())
        for x, y in zip(jax.tree.leaves(single), jax.tree.leaves(exact), strict=True):
            assert (x.dtype, y.dtype) == (jnp.float32, jnp.float64)
            assert relative(x, y) < 1e-4


@pytest.mark.slow
def test_simulation_keeps_the_dtype():
    model = wheel()
    q = np.array([0.5], np.float32)
    solution = mbs.simulate(model, q, 0 * q, t_end=0.1, dt=0.01)
    assert (solution.t.dtype, solution.q.dtype, solution.v.dtype) == (jnp.float32,) * 3


@pytest.mark.slow
def test_simulation_holds_its_locks():
    c = machine()
    names = c.model.joint_names[1::3]
    mode = c.model.mode(lock=names)
    v = np.where(mode.lock, 0.0, c.v[0])
    solution = mbs.simulate(c.model, c.q[0], v, t_end=0.01, dt=5e-3, mode=mode)
    assert np.array_equal(np.asarray(solution.v[:, np.asarray(mode.lock)]), np.zeros((3, int(mode.lock.sum()))))
    for name in names:
        assert np.array_equal(solution.q[0, c.model.q_slice(name)], solution.q[-1, c.model.q_slice(name)])
    assert np.abs(solution.energy_error).max() < 1e-6 * abs(np.sum(mbs.energy(c.model, c.q[0], v)))
