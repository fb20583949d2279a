"""Absolute and generalized coordinates describe the same motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from tests.absolute.helpers import EXACT, MODELS, all_solvers, case, joint_reactions, motion, quick, solved
from tests.cases import relative


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.usually("grounded tree", "point masses")
def test_motion_and_reactions(name):
    """Three solvers, accelerations, multipliers of the loops, reactions, and A_rel = P' A_abs P."""
    model, q, v, tau = case(name)

    s, found = solved(name)
    if model.loop_names:
        a, loop, _ = quick(mbs.constrained_dynamics)(model, q, v, tau)
    else:
        a, loop = np.array(scalar.forward_dynamics(model, q.tolist(), v.tolist(), tau.tolist())), ()
    want, P = motion(model, q, v, a)
    assert np.abs(s.residual).max() < 1e-13
    for solver, (X, multipliers) in found.items():
        assert relative(X, want) < EXACT, solver
        assert relative(multipliers[len(multipliers) - len(loop) :], loop) < EXACT, solver
        assert relative(s.M @ X.reshape(-1), s.F + s.Q.T @ multipliers) < EXACT, solver
        assert relative(s.Q @ X.reshape(-1), s.b) < EXACT, solver
    assert relative(P.T @ s.M @ P, scalar.mass_matrix(model, q.tolist())) < EXACT
    tree = sum(s.counts[: len(model.joint_names)])
    assert np.abs(s.Q[:tree] @ P).max() < 1e-13  # the joints' equations leave the generalized coordinates free
    assert len(s.b) == sum(x.stop - x.start for x in mbs.absolute.rows(model).values())


@pytest.mark.interpreted
def test_a_tree_of_two_bodies_without_compiling():
    mech = mbs.Mechanism("boom", gravity=(1.0, 0.5, -9.81))
    for name, parent, joint in (
        ("boom", "world", mbs.Universal((1, 0, 0), (0, 0.6, 0.8))), ("tip", "boom", mbs.Cylindrical((0, 0.6, 0.8))),
    ):  # fmt: skip
        mech.add_body(name, 1.0, (0.1, 0.2, -0.3), (0.2, 0.3, 0.25))
        mech.add_joint(name, joint, parent, name, mbs.Pose((0.3, 0, 0)), mbs.Pose((0.1, 0, 0)))
    model = mech.build()
    q, v, tau = np.random.default_rng(2).normal(size=(3, 4))
    a = np.array(scalar.forward_dynamics(model, q.tolist(), v.tolist(), tau.tolist()))
    s = mbs.absolute.system(model, q, v, tau)
    for X, multipliers in all_solvers(s).values():
        assert relative(X, motion(model, q, v, a)[0]) < EXACT
        assert relative(s.M @ X.reshape(-1), s.F + s.Q.T @ multipliers) < EXACT


@pytest.mark.slow
def test_reactions():
    model, q, v, tau = case("free tree")
    a = np.array(scalar.forward_dynamics(model, q.tolist(), v.tolist(), tau.tolist()))
    got = quick(lambda q, v, tau: mbs.absolute.reactions(model, q, v, tau, solver="ldl"))(q, v, tau)
    assert relative(got, joint_reactions(model, q, v, a)) < EXACT


def sprung_pin(gravity=-9.81):
    """(model, q, v): a body in the xz plane that a cut pin with a sprung and damped coil holds."""
    mech = mbs.Mechanism("sprung pin", gravity=(0, 0, gravity))
    mech.add_body("flap", 2.0, (0.5, 0, -0.2), (0.1, 0.2, 0.1))
    pose = mbs.Pose((0, 0, 0), ((1, 0, 0), (0, 0, -1), (0, 1, 0)))
    mech.add_joint("sheet", mbs.Planar(), "world", "flap", pose, pose)
    mech.close_loop("pin", mbs.Revolute((0, 1, 0)), "world", "flap")
    mech.add_force("coil", mbs.TorsionSpring("pin", stiffness=30.0, damping=2.0, rest_angle=1.0))
    mech.add_force("oil", mbs.Damper("pin", damping=3.0))
    angle = np.array([c.name.endswith(".angle") for c in mech.build().coordinates])
    return mech.build(), 0.3 * angle, 0.4 * angle


@pytest.mark.interpreted
def test_reactions_hold_what_acts_in_cut_joints():
    """With and without elements and the loop, and on a base that rises, which is more gravity."""
    model, q, v = sprung_pin()
    for mode in (None, model.mode(off="coil"), model.mode(off="pin")):
        got, want = (f(model, q, v, mode=mode) for f in (mbs.absolute.reactions, mbs.joint_reactions))
        assert np.abs(want[1, 1]) > 1  # the coil and the oil, about the pin
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-11)
    lift = mbs.textbook.MovingBase(position=lambda t: jnp.stack([0 * t, 0 * t, t**2]))
    got = mbs.absolute.reactions(model, q, v, base=lift)
    np.testing.assert_allclose(got, mbs.joint_reactions(sprung_pin(-11.81)[0], q, v), rtol=0, atol=1e-11)


@pytest.mark.interpreted
def test_traced_locks_give_no_numbers():
    """One row is free, the other is locked."""
    model, q, v = sprung_pin()
    modes = jax.tree_util.tree_map(lambda *x: jnp.stack(x), model.mode(), model.mode(lock="sheet"))

    def numbers(mode):
        s = mbs.absolute.system(model, q, v, mode=mode)
        found = mbs.absolute.accelerations(model, q, v, mode=mode)
        return (
            s.inertia,
            s.force,
            s.near,
            s.far,
            s.target,
            s.residual,
            *found,
            mbs.absolute.reactions(model, q, v, mode=mode),
        )

    for free, locked in jax.vmap(numbers)(modes):
        assert np.isfinite(free).all() and np.isnan(locked).all()


@pytest.mark.parametrize("name", ["double pendulum", "point masses", "crank-slider", "solar array"])
@pytest.mark.usually("point masses")
def test_in_a_plane(name):
    """Three coordinates per body give what six do, seen in the plane."""
    model, q, *_ = case(name)
    X, multipliers = solved(name)[1]["dense"]
    rotation = np.array([R for _, R in scalar.body_poses(model, q.tolist())], float).reshape(-1, 3, 3)
    s, found = solved(name, planar=True)
    k = int(np.flatnonzero(mbs.get(model, f"{model.joint_names[0]}.axis"))[0])
    about = np.einsum("ixy,iy->ix", rotation, X[:, :3])[:, k]
    want = np.stack([X[:, 3 + (k + 1) % 3], X[:, 3 + (k + 2) % 3], about], axis=1)
    n = len(model.body_names)
    equations = {"double pendulum": 4, "point masses": 4, "crank-slider": 8, "solar array": 10}[name]
    assert s.M.shape == (3 * n, 3 * n) and s.Q.shape == (equations, 3 * n)
    assert np.abs(s.residual).max() < 1e-13
    for got, own in found.values():
        assert relative(got, want) < EXACT
        for loop in model.loop_names:
            pair = (mbs.absolute.rows(model)[loop], mbs.absolute.rows(model, planar=True)[loop])
            assert relative(own[pair[1]], multipliers[pair[0]]) < EXACT


def test_double_physical_pendulum_of_the_source():
    """[Y 2.1, 2.3] as corrected, on rods of half length l along x at alpha = 0."""
    model = mbs.library.triple_pendulum().build()
    q, v = np.random.default_rng(4).normal(size=(2, 3))
    X, multipliers = mbs.absolute.accelerations(model, q, v, planar=True)
    (x, y, alpha), l, m, J = X[0], 1.0, 1.0, 1.0
    c, s, rate = np.cos(q[0]), np.sin(q[0]), v[0]
    assert abs(x + l * alpha * s + l * rate**2 * c) < 1e-12
    assert abs(y - l * alpha * c + l * rate**2 * s) < 1e-12
    rows = mbs.absolute.rows(model, planar=True)
    turns = [np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]) for t in np.cumsum(q)]
    # R10 and R12 of the source act on body 1 with - and +
    R10 = -turns[0] @ multipliers[rows["hinge_1"]]
    R12 = -turns[1] @ multipliers[rows["hinge_2"]]
    assert abs(m * x - (-R10[0] + R12[0])) < 1e-12
    assert abs(m * y - (-1.0 - R10[1] + R12[1])) < 1e-12
    assert abs(J * alpha - l * (c * (R10[1] + R12[1]) - s * (R10[0] + R12[0]))) < 1e-12


@pytest.mark.slow
def test_switches():
    """A loop that the mode switches off leaves the tree; locks are refused."""
    model, q, v, tau = case("spatial loop")
    a = np.array(scalar.forward_dynamics(model, q.tolist(), v.tolist(), tau.tolist()))
    want, _ = motion(model, q, v, a)

    def f(mode):
        return all_solvers(mbs.absolute.system(model, q, v, tau, mode=mode))

    for X, multipliers in quick(f)(model.mode(off=["ball"])).values():
        assert relative(X, want) < EXACT
        assert np.abs(multipliers[mbs.absolute.rows(model)["ball"]]).max() < EXACT
    with pytest.raises(mbs.ModelError, match="no locks"):
        mbs.absolute.accelerations(model, q, v, mode=model.mode(lock=["motor"]))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "planar"), [("double pendulum", False), ("solar array", True)])
def test_float32(name, planar):
    """Single precision in, single precision out, to 1e-4 of the largest value."""
    model, *state = case(name)

    def f(q, v, tau):
        return all_solvers(mbs.absolute.system(model, q, v, tau, planar=planar))

    got = quick(f)(*(x.astype(jnp.float32) for x in state))
    for x, y in zip(*map(jax.tree_util.tree_leaves, (got, solved(name, planar)[1])), strict=True):
        assert x.dtype == jnp.float32
        assert relative(x, y) < 1e-4
