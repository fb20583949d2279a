"""Long mechanisms run as loops over links; they must equal the same links unrolled in plain floats."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics import scalar
from jaxmbs.dynamics.tree import Tree


def long_tree() -> mbs.Model:
    """A trunk of 24 revolutes, two branches (spherical run, prismatic run), elements inside the runs, odd ends."""
    mech = mbs.Mechanism("long", gravity=(0.3, 0.1, -9.81))

    def add(name, joint, parent, **pose):
        k = len(name) + int(name[1:])
        mech.add_body(name, mass=1.0, com=(0.01 * k, 0.0, 0.1), inertia=(0.02 + 0.0004 * k, 0.02, 0.015))
        placed = mbs.Pose((0.02 * (k % 3), 0.0, 0.2), **pose)
        mech.add_joint(f"j{name}", joint, parent, name, placed, mbs.Pose((0.01, 0.0, 0.0)))

    for i in range(24):
        add(f"t{i}", mbs.Revolute(axis=(0, 1, 0) if i % 2 else (0, 0, 1)), f"t{i - 1}" if i else "world")
    for i in range(12):
        add(f"s{i}", mbs.Spherical(), f"s{i - 1}" if i else "t23", rotation=(1.0, 0.1 * i, 0.0, 0.2))
    for i in range(10):
        add(f"p{i}", mbs.Prismatic(axis=(0.6, 0.0, 0.8)), f"p{i - 1}" if i else "t23")
    add("u0", mbs.Universal(), "t10")
    mech.add_force("line", mbs.LinearSpring("t5", "s3", stiffness=30.0, rest_length=0.3, damping=0.5))
    mech.add_force("coil", mbs.TorsionSpring("jt7", stiffness=2.0, damping=0.1, rest_angle=0.2))
    mech.add_force("oil", mbs.Damper("js4", damping=0.3))
    return mech.build()


@pytest.fixture(scope="module")
def state():
    model = long_tree()
    assert sum(b.rolled for b in Tree(model, jnp.float64).blocks) == 4  # the trunk is cut where u0 hangs on it
    q = model.random(jax.random.key(3))
    v, a = (0.3 * jax.random.normal(jax.random.key(k), (model.nv,)) for k in (4, 5))
    return model, q, v, a


def close(got, want, tol=1e-10):
    got, want = np.asarray(got), np.asarray(want)
    assert np.abs(got - want).max() <= tol * np.abs(want).max()


def test_inverse_dynamics(state):
    model, q, v, a = state
    close(mbs.inverse_dynamics(model, q, v, a), scalar.inverse_dynamics(model, q.tolist(), v.tolist(), a.tolist()))


def test_forward_dynamics_inverts_it(state):
    model, q, v, a = state
    close(mbs.forward_dynamics(model, q, v, mbs.inverse_dynamics(model, q, v, a)), a, 1e-8)


def test_mass_matrix(state):
    model, q, _, _ = state
    close(mbs.mass_matrix(model, q), scalar.mass_matrix(model, q.tolist()))


def test_energy_and_momentum(state):
    model, q, v, _ = state
    close(mbs.energy(model, q, v), scalar.energy(model, q.tolist(), v.tolist()))
    close(mbs.momentum(model, q, v), scalar.momentum(model, q.tolist(), v.tolist()))


def test_locks(state):
    model, q, v, _ = state
    mode = model.mode(lock=["jt3", "js5", "jp0"], off=["line"])
    prescribed = jnp.where(mode.lock, 0.7, 0.0)
    by_aba = mbs.forward_dynamics(model, q, v, mode=mode, prescribed=prescribed)
    by_matrix = mbs.forward_dynamics(model, q, v, mode=mode, prescribed=prescribed, method="crba")
    close(by_aba, by_matrix, 1e-8)
    close(by_aba[mode.lock], 0.7 * jnp.ones(5), 1e-12)


def test_derivatives_in_both_modes_under_vmap(state):
    model, q, v, a = state

    def f(q, v):
        return mbs.inverse_dynamics(model, q, v, a).sum()

    qs, vs = jnp.stack([q, q + 0.05, q + 0.1]), jnp.stack([v, 0 * v, -v])
    dq, dv = 0.1 * jnp.cos(jnp.arange(model.nq)), 0.1 * jnp.sin(jnp.arange(model.nv))
    forward = jax.jit(jax.vmap(lambda q, v: jax.jvp(f, (q, v), (dq, dv))[1]))(qs, vs)
    reverse = jax.jit(jax.vmap(jax.grad(f, argnums=(0, 1))))(qs, vs)
    close(reverse[0] @ dq + reverse[1] @ dv, forward, 1e-10)
    e = 1e-6
    values = jax.jit(jax.vmap(lambda q, v, s: f(q + s * dq, v + s * dv), in_axes=(0, 0, None)))
    close(forward, (values(qs, vs, e) - values(qs, vs, -e)) / (2 * e), 1e-6)


def test_simulation_keeps_energy(state):
    model, q, v, _ = state
    solution = mbs.simulate(model, q, v, 0.01, 1e-3, save_every=None)
    assert abs(float(solution.energy_error[-1])) < 1e-6 * float(mbs.energy(model, q, v)[0])
