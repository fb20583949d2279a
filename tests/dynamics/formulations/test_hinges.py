"""Moving body 0, hinge forces and moments, and the prosthetic arm [Y 3.3, 3.4; Wi]."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.formulations import general_joints, wittenburg
from jaxmbs.dynamics.formulations.moving_base import MovingBase
from jaxmbs.dynamics.formulations.system import system, turned
from jaxmbs.dynamics.trees import _state
from jaxmbs.library.prosthetic_arm import bryant
from tests.cases import relative
from tests.dynamics.formulations.helpers import EXACT, free_and_rotational, general, quick, rotational

pytestmark = pytest.mark.interpreted


def position(t):
    return jnp.stack([0.3 * jnp.sin(2 * t), 0.1 * t**2, 0.05 * jnp.cos(3 * t)])


def rotation(t):
    return bryant(jnp.stack([0.2 * jnp.sin(t), 0.3 * t, 0.1 * jnp.cos(2 * t)]))


BASE = mbs.textbook.MovingBase(position, rotation)


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


def test_moving_base_against_a_body_with_prescribed_motion():
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
    methods = ("barycentric", "configuration")

    def all_of(q, v, Q, V):
        dense = [
            (mbs.textbook.moving_base_dynamics(model, q, v, tau, base=BASE, t=t, method=m),
             mbs.joint_reactions(model, q, v, tau, base=BASE, t=t, method=m)) for m in methods
        ]  # fmt: skip
        given = {"mode": mode, "prescribed": D}
        return dense, mbs.forward_dynamics(on_trunk, Q, V, F, **given), mbs.joint_reactions(on_trunk, Q, V, F, **given)

    dense, a, rows = quick(all_of)(q, v, Q, V)
    a = np.concatenate([a[on_trunk.v_slice(n)] for n in model.joint_names])
    for got, reactions in dense:
        assert relative(got, a) < EXACT
        assert relative(reactions, [rows[names.index(n)] for n in model.joint_names]) < EXACT


@pytest.mark.parametrize(("which", "method"), [
    (rotational, "barycentric"), (general, "configuration"),
    pytest.param(free_and_rotational, "barycentric", marks=pytest.mark.slow),
])  # fmt: skip
def test_reactions_of_any_tree_by_explicit_formulas(which, method):
    """X^c and Y^c against the joint wrenches of the recursive algorithm, drives included."""
    c = which()
    q, v, _, tau = next(c.rows())

    def both(q, v):
        return mbs.joint_reactions(c.model, q, v, tau, method=method), mbs.joint_reactions(c.model, q, v, tau)

    got, want = quick(both)(q, v)
    assert relative(got, want) < EXACT


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


@pytest.mark.slow
def test_prosthetic_arm():
    """A symmetric and positive definite; a moving trunk as body 0 equals a shoulder that depends on time; the shoulder
    bears no moment besides its friction, the wrist none about its axes."""
    arm, moved = mbs.library.prosthetic_arm().build(), mbs.library.prosthetic_arm(BASE).build()
    rng = np.random.default_rng(0)
    methods = ("barycentric", "configuration")

    def all_of(t, q, v, tau):
        dense = [
            (mbs.textbook.moving_base_dynamics(arm, q, v, tau, base=BASE, t=t, method=m),
             mbs.joint_reactions(arm, q, v, tau, base=BASE, t=t, method=m)) for m in methods
        ]  # fmt: skip
        carried = mbs.forward_dynamics(moved, q, v, tau, t=t), mbs.joint_reactions(moved, q, v, tau, t=t)
        return mbs.mass_matrix(arm, q, method="barycentric"), dense, carried

    f = quick(all_of)
    for t, still in ((0.0, 0), (1.3, 0), (0.7, 1)):
        q, v, tau = rng.uniform(-1, 1, 6), rng.normal(size=6) * (1 - still), rng.normal(size=6) * (1 - still)
        A, dense, carried = f(t, q, v, tau)
        assert relative(A, A.T) < EXACT and np.linalg.eigvalsh(A).min() > 0
        for found in dense:
            assert all(relative(x, y) < EXACT for x, y in zip(found, carried, strict=True))
    assert np.abs(dense[0][1][0, :3]).max() < 1e-12  # at rest, no drive: no moment in the shoulder
    axes = np.array([np.cos(q[5]), 0, np.sin(q[5])]), np.array([0.0, 1, 0])  # of the wrist, in the hand
    assert max(abs(axis @ np.asarray(dense[0][1])[2, :3]) for axis in axes) < 1e-12


@pytest.mark.interpreted
def test_velocities_of_a_base_stand_in_inertial_axes():
    """dA/dt = omega x A and its derivative, of a base that turns about an axis that turns."""

    def turn(angle, axis):
        x, y, z = axis
        K = jnp.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return jnp.eye(3) + jnp.sin(angle) * K + (1 - jnp.cos(angle)) * K @ K

    def rotation(t):
        return turn(1.3 * t, (0, 0, 1)) @ turn(t * t, (1, 0, 0))

    at, e = MovingBase(rotation=rotation).at(0.4, jnp.float64), 1e-4
    ahead, behind = (np.asarray(rotation(jnp.asarray(0.4 + s))) for s in (e, -e))
    middle = np.asarray(rotation(jnp.asarray(0.4)))
    omega, alpha = np.asarray(at.omega), np.asarray(at.alpha)
    assert np.abs((ahead - behind) / (2 * e) - np.cross(omega, middle.T).T).max() < 1e-7
    second = np.cross(alpha, middle.T) + np.cross(omega, np.cross(omega, middle.T))
    assert np.abs((ahead - 2 * middle + behind) / e**2 - second.T).max() < 1e-6


@pytest.mark.slow
def test_moving_base_is_differentiable():
    """Forward and reverse mode with respect to the state agree with each other and with central differences."""
    model = two_hinges("world").build()
    q, v = model.neutral(), jnp.zeros(model.nv)
    dq = jnp.arange(1.0, model.nq + 1)

    def f(q):
        return jnp.sum(mbs.textbook.moving_base_dynamics(model, q, v, base=BASE, t=0.4, method="barycentric"))

    forward, reverse, h = quick(lambda q: jax.jvp(f, (q,), (dq,))[1])(q), quick(jax.grad(f))(q) @ dq, 1e-6
    value = quick(f)
    assert relative(reverse, forward) < EXACT
    assert relative(forward, (value(q + h * dq) - value(q - h * dq)) / (2 * h)) < 1e-6


def test_a_base_carries_no_free_body():
    c = free_and_rotational()
    q, v, *_ = next(c.rows())
    with pytest.raises(mbs.ModelError, match="cannot carry bodies with Free joints"):
        mbs.textbook.moving_base_dynamics(c.model, q, v, base=BASE)
    c = general()
    q, v, *_ = next(c.rows())
    with pytest.raises(mbs.ModelError, match="use 'configuration'"):
        mbs.joint_reactions(c.model, q, v, method="barycentric")
    with pytest.raises(mbs.ModelError, match="leave out one or the other"):
        mbs.joint_reactions(c.model, q, v, mode=c.model.mode(), method="configuration")
    with pytest.raises(mbs.ModelError, match="no method named 'aba'"):
        mbs.joint_reactions(c.model, q, v, method="aba")


@pytest.mark.parametrize("function", [
    lambda m, q, v: mbs.joint_reactions(m, q, v, method="configuration"),
    lambda m, q, v: mbs.textbook.moving_base_dynamics(m, q, v, base=BASE),
    lambda m, q, v: mbs.textbook.controlled_dynamics(m, q, v, motions={m.joint_names[0]: jnp.sin}),
    lambda m, q, v: mbs.textbook.free_dynamics(m, q, v, method="configuration"),
])  # fmt: skip
def test_formulas_of_trees_leave_no_constraint_out(function):
    model = mbs.library.crank_slider().build()
    with pytest.raises(mbs.ModelError, match=r"'crank-slider' has constraints, .*; .*mbs.constrained_dynamics"):
        function(model, model.neutral(), jnp.zeros(model.nv))
