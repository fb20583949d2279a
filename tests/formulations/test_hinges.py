"""Moving body 0, hinge forces and moments, and the prosthetic arm [Y 3.3, 3.4; Wi]."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics import general_joints, wittenburg
from jaxmbs.dynamics.public import _state
from jaxmbs.dynamics.system import system, turned
from jaxmbs.library.prosthetic_arm import bryant

from ..cases import relative
from .helpers import EXACT, free_and_rotational, general, quick, rotational


def position(t):
    return jnp.stack([0.3 * jnp.sin(2 * t), 0.1 * t**2, 0.05 * jnp.cos(3 * t)])


def rotation(t):
    return bryant(jnp.stack([0.2 * jnp.sin(t), 0.3 * t, 0.1 * jnp.cos(2 * t)]))


BASE = mbs.MovingBase(position, rotation)


def carried(model_of):
    """The same mechanism on a body with a Free joint, whose motion is prescribed to be that of the base."""
    mech = model_of("trunk")
    mech.add_body("trunk", 5.0, (0.1, 0, 0.2), (1.0, 1.1, 1.2))
    mech.add_joint("trunk", mbs.Free(), "world", "trunk")
    return mech.build()


def two_hinges(on):
    """Two joints on body 0, one of them away from its origin."""
    mech = mbs.Mechanism("on a base", gravity=(0, 0, -9.81))
    mech.add_body("a", 1.0, (0.1, 0.2, -0.3), (0.1, 0.2, 0.25))
    mech.add_body("b", 2.0, (0.2, 0, -0.1), (0.3, 0.2, 0.25))
    mech.add_body("c", 1.5, (0, 0.1, 0.2), (0.3, 0.2, 0.25))
    mech.add_joint(
        "a", mbs.Universal((1, 0, 0), (0, 0.6, 0.8)), on, "a", mbs.Pose((0.5, -0.2, 0.3), (0.9, 0.1, 0.3, 0.2))
    )
    mech.add_joint("b", mbs.Spherical(), "a", "b", mbs.Pose((0.1, 0.4, 0)), mbs.Pose((0, 0, 0.3)))
    mech.add_joint("c", mbs.Revolute((0, 1, 0)), on, "c", mbs.Pose((-0.4, 0, 0.1)), mbs.Pose((0.1, 0.2, 0)))
    return mech


def quaternion(R):
    w = np.sqrt(1 + np.trace(R)) / 2
    return np.array([w, R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / np.array([1, *3 * [4 * w]])


@pytest.mark.parametrize("method", ["barycentric", "configuration"])
def test_moving_base_against_a_body_with_prescribed_motion(method):
    """r0(t), omega0(t) in the dense forms; the articulated-body algorithm with a locked, driven Free joint."""
    model, on_trunk = two_hinges("world").build(), carried(two_hinges)
    rng = np.random.default_rng(0)
    q, v, tau = np.array([0.4, -0.9, 0.8, 0.3, 0.2, -0.4, 0.6]), *rng.normal(size=(2, model.nv))
    t = 0.7
    base = BASE.at(t, jnp.float64)
    R, own = np.asarray(base.A), {k: np.asarray(getattr(base, k)) for k in ("r", "v", "omega", "a", "alpha")}
    # Free: rates are components in the axes of the body; d/dt(R'v) = R'(v' - omega x v)
    drift = own["a"] - np.cross(own["omega"], own["v"])
    names = on_trunk.joint_names
    put_q = {"trunk": np.concatenate([own["r"], quaternion(R)]), "a": q[:2], "b": q[2:6], "c": q[6:]}
    put_v = {"trunk": np.concatenate([R.T @ own["omega"], R.T @ own["v"]]), "a": v[:2], "b": v[2:5], "c": v[5:]}
    driven = {
        "trunk": np.concatenate([R.T @ own["alpha"], R.T @ drift]),
        "a": 0 * v[:2],
        "b": 0 * v[2:5],
        "c": 0 * v[5:],
    }
    force = {"trunk": np.zeros(6), "a": tau[:2], "b": tau[2:5], "c": tau[5:]}
    Q, V, D, F = (np.concatenate([x[n] for n in names]) for x in (put_q, put_v, driven, force))
    mode = on_trunk.mode(lock=["trunk"])
    want = mbs.forward_dynamics(on_trunk, Q, V, F, mode=mode, prescribed=D)
    want = np.concatenate([want[on_trunk.v_slice(n)] for n in model.joint_names])
    assert relative(mbs.moving_base_dynamics(model, q, v, tau, base=BASE, t=t, method=method), want) < EXACT
    got = mbs.hinge_reactions(model, q, v, tau, base=BASE, t=t, method=method)
    rows = mbs.joint_reactions(on_trunk, Q, V, F, mode=mode, prescribed=D)
    assert relative(got, [rows[names.index(n)] for n in model.joint_names]) < EXACT


def test_hinge_reactions_of_any_tree():
    """X^c and Y^c against the joint wrenches of the recursive algorithm, springs and drives included."""
    for model_case, method in (
        (rotational(), "barycentric"), (free_and_rotational(), "barycentric"), (general(), "configuration"),
    ):  # fmt: skip
        q, v, _, tau = next(model_case.rows())
        want = mbs.joint_reactions(model_case.model, q, v, tau)
        assert relative(mbs.hinge_reactions(model_case.model, q, v, tau, method=method), want) < EXACT


def test_reactions_with_turned_arcs():
    """X^c and Y act with + on i+, at the hinge point of i-: they change sign with the arc, and Y its point by z."""
    for c, module in ((rotational(), wittenburg), (general(), general_joints)):
        q, v, a, _ = next(c.rows())

        def f(q, v, a, module=module, c=c):
            s = system(_state(c.model, q, v, 0.0, None))
            s = wittenburg.hinged(s) if module is wittenburg else s
            return module.reactions(s, a), module.reactions(turned(s, [1, 3]), a), s.hinges.z

        (X, Y), (X_turned, Y_turned), z = (np.asarray(x) for x in quick(f)(q, v, a))
        on = np.array([1, 0, 1])[:, None]
        assert relative((1 - 2 * on) * X_turned, X) < EXACT
        assert relative((1 - 2 * on) * Y_turned, Y + on * np.cross(z, X)) < EXACT


def test_prosthetic_arm():
    """A symmetric and positive definite; a moving trunk as body 0 equals a shoulder that depends on time; the shoulder
    bears no moment besides its friction."""
    arm, moved = mbs.library.prosthetic_arm().build(), mbs.library.prosthetic_arm(BASE).build()
    rng = np.random.default_rng(0)
    for t in (0.0, 1.3):
        q, v, tau = rng.uniform(-1, 1, 6), rng.normal(size=6), rng.normal(size=6)
        want = mbs.forward_dynamics(moved, q, v, tau, t=t)
        A = np.asarray(mbs.mass_matrix(arm, q, method="barycentric"))
        assert relative(A, A.T) < EXACT and np.linalg.eigvalsh(A).min() > 0
        for method in ("barycentric", "configuration"):
            assert relative(mbs.moving_base_dynamics(arm, q, v, tau, base=BASE, t=t, method=method), want) < EXACT
            got = mbs.hinge_reactions(arm, q, v, tau, base=BASE, t=t, method=method)
            assert relative(got, mbs.joint_reactions(moved, q, v, tau, t=t)) < EXACT
    reactions = mbs.hinge_reactions(arm, q, 0 * v, base=BASE, t=t, method="barycentric")
    assert np.abs(reactions[0, :3]).max() < 1e-12  # the shoulder is spherical: no moment without friction or drive
    axes = np.array([np.cos(q[5]), 0, np.sin(q[5])]), np.array([0.0, 1, 0])  # of the wrist, in the hand
    assert max(abs(axis @ reactions[2, :3]) for axis in axes) < 1e-12


def test_moving_base_is_differentiable():
    arm = mbs.library.prosthetic_arm().build()

    def f(x):
        return jnp.sum(mbs.moving_base_dynamics(arm, x, 0 * x, base=BASE, t=0.4, method="barycentric"))

    def moved(x):
        return jnp.sum(mbs.forward_dynamics(mbs.library.prosthetic_arm(BASE).build(), x, 0 * x, t=0.4))

    x = jnp.zeros(6)
    got, want = quick(lambda x: (jax.jvp(f, (x,), (jnp.ones(6),))[1], jax.jvp(moved, (x,), (jnp.ones(6),))[1]))(x)
    assert relative(got, want) < EXACT


def test_a_base_carries_no_free_body():
    c = free_and_rotational()
    q, v, *_ = next(c.rows())
    with pytest.raises(mbs.ModelError, match="leave bodies free"):
        mbs.moving_base_dynamics(c.model, q, v, base=BASE)
    c = general()
    q, v, *_ = next(c.rows())
    with pytest.raises(mbs.ModelError, match="use 'configuration'"):
        mbs.hinge_reactions(c.model, q, v, method="barycentric")
    with pytest.raises(mbs.ModelError, match="no method named 'aba'"):
        mbs.hinge_reactions(c.model, q, v, method="aba")
