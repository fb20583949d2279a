"""Bodies with many modes of which one node carries mass: their modes are eliminated from the node."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.flexible.parts import lumped, state

MODES = 9


def relative(a, b):
    return np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(np.asarray(b)).max()


def arm(modes=MODES, order=2, light=0.0, straight=False):
    """A flexible body on a joint, with a rigid body on one node; the other node carries nothing, or a light body."""
    part, *_ = lumped(4, nodes=7, modes=modes)
    if straight:  # modes that move the node along one axis only and do not turn it
        part = dataclasses.replace(
            part, displacements=part.displacements * [[1], [0], [0]], rotations=0 * part.rotations
        )
    mech = mbs.Mechanism("arm with many modes", gravity=(0.3, -0.2, -9.81))
    mech.add_flexible_body("arm", part, damping=0.02, order=order)
    pose = mbs.Pose((0.1, -0.2, 0.3), (0.9, 0.1, -0.2, 0.3))
    mech.add_joint("root", mbs.Universal(), "world", "arm", mbs.Pose((0, 0, 1.0)), pose)
    mech.add_body("load", 0.7, (0.1, 0.2, -0.1), (0.02, 0.03, 0.04))
    mech.add_joint("wrist", mbs.Spherical(), "arm_hand", "load", pose, mbs.Pose((0.05, 0, 0)))
    mech.add_force("pull", mbs.Thruster("arm_elbow", direction=(0.6, 0.0, 0.8), thrust=3.0))
    if light:
        mech.add_body("light", light, (0.0, 0.1, 0.0), (light, light, light))
        mech.add_joint("mount", mbs.Fixed(), "arm_elbow", "light")
    return mech


@pytest.mark.parametrize("straight", [False, True])
def test_equals_the_mass_matrix(straight):
    model = arm(straight=straight).build()
    q, v, tau = state(model, 2)
    A, bias = np.asarray(mbs.mass_matrix(model, q)), np.asarray(mbs.bias_forces(model, q, v))
    lock = np.arange(model.nv) % 3 == 0
    a = mbs.forward_dynamics(model, q, v, tau)
    assert relative(A @ a + bias, tau) < 1e-11
    mode = dataclasses.replace(model.mode(), lock=jnp.asarray(lock))
    wanted = np.linspace(-1, 1, model.nv)
    held = mbs.forward_dynamics(model, q, v, tau, mode=mode, prescribed=wanted)
    exact, rest = np.where(lock, wanted, 0.0), ~lock
    exact[rest] = np.linalg.solve(A[np.ix_(rest, rest)], (tau - bias - A @ exact)[rest])
    assert relative(held, exact) < 1e-10


@pytest.mark.parametrize("mass", [1e-9, 1e9])
def test_extreme_loads(mass):
    model = arm().build()
    q, v, tau = state(model, 5)
    model = mbs.set(model, {"load.mass": 0.7 * mass, "load.inertia": np.array([0.02, 0.03, 0.04]) * mass})
    a = mbs.forward_dynamics(model, q, v, tau)
    residual = mbs.inverse_dynamics(model, q, v, a) - tau
    scale = np.abs(np.asarray(mbs.mass_matrix(model, q))) @ np.abs(np.asarray(a)) + np.abs(tau)
    assert np.abs(residual / scale).max() < 1e-12


def test_a_light_second_load_changes_little():
    """Two loaded nodes are eliminated in another way."""
    q, v, tau = state(arm().build(), 3)
    a, b = (mbs.forward_dynamics(arm(light=x).build(), q, v, tau) for x in (0.0, 1e-9))
    assert 0 < relative(b, a) < 1e-7


def test_armature_adds_to_the_mass_of_the_modes():
    model = mbs.set(arm().build(), {"arm.armature": 0.3})
    q, v, tau = state(model, 6)
    a = mbs.forward_dynamics(model, q, v, tau)
    assert relative(mbs.inverse_dynamics(model, q, v, a), tau) < 1e-10


@pytest.mark.slow
def test_derivatives_with_respect_to_shapes_and_loads():
    model = arm().build()
    q, v, tau = (jnp.asarray(x) for x in state(model, 7))
    names = ("arm_hand.displacement", "arm_hand.rotation", "arm.coupling", "load.mass")
    numbers = {n: jnp.asarray(mbs.get(model, n)) for n in names}
    weights = jnp.linspace(0.5, 1.5, model.nv)

    def value(numbers, q):
        return weights @ mbs.forward_dynamics(mbs.set(model, numbers), q, v, tau)

    rng = np.random.default_rng(1)
    along = (
        {n: jnp.asarray(rng.normal(size=np.shape(x))) for n, x in numbers.items()},
        jnp.asarray(rng.normal(size=model.nq)),
    )
    forward = jax.jit(lambda: jax.jvp(value, (numbers, q), along)[1])()
    g = jax.jit(jax.grad(value, argnums=(0, 1)))(numbers, q)
    backward = sum(jnp.vdot(a, b) for a, b in zip(*map(jax.tree_util.tree_leaves, (g, along)), strict=True))
    step = 1e-5

    def moved(s):
        return value(jax.tree_util.tree_map(lambda x, d: x + s * d, numbers, along[0]), jnp.asarray(q) + s * along[1])

    difference = (moved(step) - moved(-step)) / (2 * step)
    assert float(backward) == pytest.approx(float(forward), rel=1e-10)
    assert float(forward) == pytest.approx(float(difference), rel=1e-6)


def test_float32_with_shapes_of_each_row():
    """The directions in which a node gives way are then found from rounded numbers."""
    model = arm().build()
    q, v, tau = state(model, 8)
    shapes = {n: np.asarray(mbs.get(model, f"arm_hand.{n}")) for n in ("displacement", "rotation")}
    flat = {
        "displacement": shapes["displacement"].reshape(-1, 3) * [1, 1, 0],
        "rotation": shapes["rotation"].reshape(-1, 3) * [0, 0, 1],
    }
    numbers = {f"arm_hand.{n}": x.reshape(-1) for n, x in flat.items()}

    @jax.jit
    def run(numbers, q, v, tau):
        return mbs.forward_dynamics(mbs.set(model, numbers), q, v, tau)

    exact = run(numbers, q, v, tau)
    single = jax.tree_util.tree_map(lambda x: jnp.asarray(x, jnp.float32), (numbers, q, v, tau))
    assert relative(run(*single), exact) < 1e-4
