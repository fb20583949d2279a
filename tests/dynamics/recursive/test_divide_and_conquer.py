"""Forward dynamics in logarithmic depth against the articulated bodies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import aba, divide_and_conquer
from jaxmbs.dynamics.state.state import Inertial, Struck
from jaxmbs.dynamics.state.tree import Tree
from tests.cases import relative


def chain(n, kinds=("Revolute", "Prismatic", "Helical")):
    """Links with any placement, joint and inertia, a torsion spring in one joint and a strut to the world."""
    rng, mech = np.random.default_rng(11), mbs.Mechanism("chain", gravity=(1.0, -2.0, -9.0))
    parent = "world"
    for k in range(n):
        kind = kinds[k % len(kinds)] if k < 40 else kinds[0]
        axis = rng.normal(size=3)
        joint = {
            "Revolute": lambda a: mbs.Revolute(axis=a),
            "Prismatic": lambda a: mbs.Prismatic(axis=a),
            "Helical": lambda a: mbs.Helical(axis=a, pitch=0.1),
        }[kind](axis / np.linalg.norm(axis))
        inertia = rng.uniform(0.5, 1.0, size=3)
        mech.add_body(f"b{k}", mass=10 ** rng.uniform(-1, 1), com=rng.normal(size=3), inertia=inertia)
        rotation = rng.normal(size=4)
        pose = mbs.Pose(position=rng.normal(size=3), rotation=rotation / np.linalg.norm(rotation))
        mech.add_joint(f"j{k}", joint, parent, f"b{k}", parent_pose=pose, child_pose=mbs.Pose(position=(0.1, 0.2, 0)))
        parent = f"b{k}"
    mech.add_force("coil", mbs.TorsionSpring("j0", stiffness=5.0, damping=0.1, rest_angle=1.0))
    end = mbs.LinearSpring(
        parent, "world", point_a=(0, 0, 1), point_b=(1, 0, 0), stiffness=3.0, rest_length=0.5, damping=0.2
    )
    mech.add_force("strut", end)
    return mech.build()


def states(model, *batch, scale=0.3):
    """q, v, tau."""
    return scale * np.random.default_rng(model.nv).normal(size=(3, *batch, model.nv))


@pytest.mark.parametrize("n", [1, 4, pytest.param(45, marks=pytest.mark.slow)])
def test_equals_articulated_bodies(n):
    model = chain(n)
    q, v, tau = states(model)
    for mode in (None, model.mode(lock=[f"j{n // 2}"])):
        prescribed = None if mode is None else np.ones(model.nv)
        options = {"mode": mode, "prescribed": prescribed}
        want, got = jax.jit(
            lambda *x, options=options: [
                mbs.forward_dynamics(model, *x, method=method, **options) for method in ("aba", "divide_and_conquer")
            ]
        )(q, v, tau)
        assert relative(got, want) < 1e-10


@pytest.mark.slow
def test_an_impulse_equals_that_of_articulated_bodies():
    """Without gravity and springs, and with the rates at zero, by either recursion."""
    model = chain(4)
    q, v, jumps = states(model)
    mode = model.mode(lock=["j2"])

    @jax.jit
    def both(now):
        tree = Tree(model, jnp.float64)
        state = lambda: Struck(tree, list(q), list(v), 0.0, mode, now, list(v))  # noqa: E731
        return [r.forward_dynamics(state(), None, jnp.asarray(jumps)) for r in (aba, divide_and_conquer)]

    for now in (True, False):
        want, got = (jnp.stack(x) for x in both(now))
        assert relative(got, want) < 1e-10
    still = jax.jit(
        lambda: aba.forward_dynamics(Inertial(Tree(model, jnp.float64), list(q), [0] * 4, 0.0, mode), None, jumps)
    )
    assert relative(jnp.stack(both(True)[1]), jnp.stack(still())) < 1e-10


@pytest.mark.interpreted
@pytest.mark.slow
def test_derivatives_in_both_modes():
    model = chain(2)
    q, v, tau = states(model)
    direction = jnp.cos(jnp.arange(model.nv))

    def both(method):
        def f(q):
            return mbs.forward_dynamics(model, q, v, tau, method=method)

        return jax.jvp(f, (q,), (direction,))[1], jax.vjp(f, q)[1](direction)[0]

    want, got = (both(method) for method in ("aba", "divide_and_conquer"))
    for x, y in zip(got, want, strict=True):
        assert relative(x, y) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_long_chains(n):
    """Against the articulated bodies, and put back into the inverse dynamics."""
    model = mbs.library.chain(n).build()
    q, v, tau = states(model, scale=0.1)

    @jax.jit  # with the model closed over its numbers are literals, which compiles faster
    def evaluate(q, v, tau):
        a = mbs.forward_dynamics(model, q, v, tau, method="divide_and_conquer")
        forces = [mbs.inverse_dynamics(model, q, v, x) for x in (a, 0 * a)]
        return a, mbs.forward_dynamics(model, q, v, tau), *forces

    a, want, forces, bias = evaluate(q, v, tau)
    assert relative(a, want) < 1e-9
    assert np.abs(forces - tau).max() < 1e-9 * np.abs(bias).max()


def test_models_that_it_cannot_serve():
    tree = mbs.library.humanoid30().build()
    with pytest.raises(mbs.ModelError, match=r"divide_and_conquer.*use 'aba'"):
        mbs.forward_dynamics(tree, tree.neutral(), np.zeros(tree.nv), method="divide_and_conquer")
    massless = mbs.library.double_pendulum(1.0, 1.0, 1.0, 1.0).build()
    with pytest.raises(mbs.ModelError, match="no mass or no inertia"):
        mbs.forward_dynamics(massless, np.zeros(2), np.zeros(2), method="divide_and_conquer")


def test_a_gpu_prefers_it_for_long_chains(monkeypatch):
    long, short = mbs.library.chain(120).build(), mbs.library.chain(7).build()
    assert not divide_and_conquer.preferred(long)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert divide_and_conquer.preferred(long) and not divide_and_conquer.preferred(short)


@pytest.mark.slow
def test_batches():
    """The loops stay whole in mbs.jit; taken apart into scalars they would be hundreds of thousands."""
    model = chain(3)
    want, got = (
        mbs.jit(jax.vmap(lambda *x, m=method: mbs.forward_dynamics(model, *x, method=m)))(*states(model, 4))
        for method in ("aba", "divide_and_conquer")
    )
    assert relative(got, want) < 1e-10


@pytest.mark.slow
def test_simulations_take_it_too(monkeypatch):
    model = chain(3)
    q, v, tau = states(model)
    want = mbs.simulate(model, q, v, 0.1, 0.05, tau)
    monkeypatch.setattr(divide_and_conquer, "preferred", lambda model: True)
    monkeypatch.setattr(aba, "forward_dynamics", None)
    jax.clear_caches()
    assert relative(mbs.simulate(model, q, v, 0.1, 0.05, tau).q, want.q) < 1e-10
