"""Bodies and a world with given motion [Y 2.3], and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from tests.absolute.helpers import EXACT, case, motion, quick
from tests.cases import relative

SOLVERS = ("dense", "schur", "ldl")


def floating():
    """A free body and two links."""
    mech = mbs.Mechanism("floating", gravity=(0, 0, -9.81))
    mech.add_body("hull", 2.0, (0.1, 0, 0), (0.1, 0.2, 0.15))
    mech.add_body("boom", 1.0, (0.2, 0.05, 0), (0.02, 0.05, 0.06))
    mech.add_body("tip", 0.5, (0.1, 0, 0.02), (0.01, 0.02, 0.02))
    mech.add_joint("flight", mbs.Free(), "world", "hull")
    mech.add_joint("root", mbs.Revolute((0, 1, 0)), "hull", "boom", mbs.Pose((0.3, 0, 0)))
    mech.add_joint("wrist", mbs.Universal((1, 0, 0), (0, 0.6, 0.8)), "boom", "tip", mbs.Pose((0.4, 0, 0)))
    return mech.build()


@pytest.mark.parametrize("body", ["boom", "hull"])
def test_a_body_with_given_acceleration(body):
    """The given one that moves it anyhow needs no wrench; another takes a wrench on this body alone."""
    model = floating()
    rng = np.random.default_rng(5)
    q = np.asarray(model.neutral()) + 0.3 * rng.normal(size=model.nq)
    v, a = rng.normal(size=(2, model.nv))
    X, _ = motion(model, q, v, a)
    tau = np.array(scalar.inverse_dynamics(model, q.tolist(), v.tolist(), a.tolist()))
    k = model.body_names.index(body)

    def f(given):
        return [mbs.absolute.accelerations(model, q, v, tau, prescribed={body: given}, solver=s) for s in SOLVERS]

    f = quick(f)
    s = quick(lambda tau: mbs.absolute.system(model, q, v, tau))(tau)
    other = X[k] + rng.normal(size=6)
    for given, needed in ((X[k], False), (other, True)):
        for got, multipliers in f(jnp.asarray(given)):
            assert relative(got[k], given) < EXACT
            assert relative(got, X) < EXACT or needed
            assert relative(s.Q @ got.reshape(-1), s.b) < EXACT
            wrench = (s.M @ got.reshape(-1) - s.F - s.Q.T @ multipliers).reshape(-1, 6)
            assert np.abs(np.delete(wrench, k, axis=0)).max() < 1e-11
            assert (np.abs(wrench[k]).max() > 0.1) == needed


@pytest.mark.slow
def test_a_moving_world():
    """Body 0 moves as a function of time: the motion of `moving_base_dynamics`."""
    model, q, v, tau = case("double pendulum")
    base = mbs.textbook.MovingBase(_position, _turned)
    t = 0.4

    def f(q, v, tau):
        a = mbs.textbook.moving_base_dynamics(model, q, v, tau, base=base, t=t)
        X = [mbs.absolute.accelerations(model, q, v, tau, base=base, t=t, solver=s)[0] for s in SOLVERS]
        return (
            a,
            X,
            mbs.joint_reactions(model, q, v, tau, base=base, t=t),
            mbs.absolute.reactions(model, q, v, tau, base=base, t=t),
        )

    a, found, want, reactions = quick(f)(q, v, tau)
    assert relative(reactions, want) < EXACT
    # the second hinge is fixed in both links: their angular accelerations differ by its own and omega x Omega
    for X in found:
        assert relative(X, found[0]) < EXACT
        R = np.asarray(mbs.body_poses(model, q).rotation)
        local = R[1].T @ R[0] @ X[0, :3] - X[1, :3]
        assert abs(local[1] + a[1]) < 1e-10


def _position(t):
    return jnp.stack([jnp.sin(t), 0.3 * t * t, jnp.cos(2 * t)])


def _turned(t):
    c, s, one, zero = jnp.cos(0.7 * t), jnp.sin(0.7 * t), jnp.ones_like(t), jnp.zeros_like(t)
    return jnp.stack([jnp.stack([one, zero, zero]), jnp.stack([zero, c, -s]), jnp.stack([zero, s, c])])


def test_refusals():
    model = mbs.library.helix_slide().build()
    q = jnp.zeros(2)
    with pytest.raises(mbs.ModelError, match=r"joint 'wire' is General.*mbs.forward_dynamics"):
        mbs.absolute.accelerations(model, q, q)
    mech = mbs.library.chain(2, axes=((0, 1, 0),))
    mech.add_constraint("edge", mbs.KnifeEdge("link_2"))
    with pytest.raises(mbs.ModelError, match=r"constraint 'edge' is KnifeEdge.*mbs.constrained_dynamics"):
        mbs.absolute.system(mech.build(), q, q)
    model = mbs.library.chain(2).build()
    with pytest.raises(mbs.ModelError, match=r"does not move in a coordinate plane.*'hinge_2'.*planar=False"):
        mbs.absolute.system(model, q, q, planar=True)
    with pytest.raises(mbs.ModelError, match="no solver named 'ldlt'; did you mean 'ldl'"):
        mbs.absolute.accelerations(model, q, q, solver="ldlt")
    with pytest.raises(mbs.ModelError, match=r"acceleration of body 'link_1' has shape \(3,\); it needs \(6,\)"):
        mbs.absolute.accelerations(model, q, q, prescribed={"link_1": jnp.zeros(3)})
    with pytest.raises(mbs.ModelError, match="no body named 'link_9'"):
        mbs.absolute.accelerations(model, q, q, prescribed={"link_9": jnp.zeros(6)})
    with pytest.raises(mbs.ModelError, match="cannot have a moving base"):
        mbs.absolute.system(mbs.library.double_pendulum().build(), q, q, base=mbs.textbook.MovingBase(), planar=True)
    with pytest.raises(mbs.ModelError, match="q has shape"):
        mbs.absolute.accelerations(model, jnp.zeros(3), q)
