"""Loops with more constraints than they need: reported, and exact all the same."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.constrained.multipliers import constrained_dynamics
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree

AXIS = np.array([0.3, 0.4, np.sqrt(0.75)])


def four_bar(closing, lengths=(1.0, 2.0, 1.8, 2.2)):
    """A planar linkage in an oblique plane: its redundancy hangs on numbers, not on zeros."""
    x = np.cross(AXIS, [1, 0, 0])
    x /= np.linalg.norm(x)
    crank, coupler, rocker, base = lengths
    mech = mbs.Mechanism("oblique", gravity=(0, 0, -9.81))
    for name, length in (("crank", crank), ("coupler", coupler), ("rocker", rocker)):
        mech.add_body(name, 1.0, tuple(x * length / 2), (0.2, 0.25, 0.3))
    hinge = mbs.Revolute(tuple(AXIS))
    mech.add_joint("h1", hinge, "world", "crank")
    mech.add_joint("h2", hinge, "crank", "coupler", mbs.Pose(tuple(x * crank)))
    mech.add_joint("h3", hinge, "world", "rocker", mbs.Pose(tuple(x * base)))
    mech.close_loop("pin", closing, "coupler", "rocker", mbs.Pose(tuple(x * coupler)), mbs.Pose(tuple(x * rocker)))
    return mech


@pytest.fixture(scope="module")
def redundant():
    with pytest.warns(mbs.ModelWarning):
        model = four_bar(mbs.Revolute(tuple(AXIS))).build()
    q, v, _, _ = mbs.assemble(model, jnp.array([1.0, -0.8, 1.6]), jnp.array([2.0, 0, 0]), fixed="h1")
    return model, q, v


def test_redundant_joints_are_named():
    with pytest.warns(mbs.ModelWarning, match=r"1 of 3 constraint rows.*\['h1', 'h2', 'h3', 'pin'\]"):
        four_bar(mbs.Revolute(tuple(AXIS))).build()
    with pytest.warns(mbs.ModelWarning, match="hinge_6"):
        mbs.library.bricard().build()


def test_needed_constraints_and_single_flat_positions_are_not_reported():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mbs.library.four_bar().build()
        mbs.library.four_bar_windows(2).build()
        mbs.library.andrews_squeezer().build()


def test_long_rows_of_windows_are_not_reported():
    """From where they lie nearly flat one would come to a place at which they are, whatever their number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not any(mbs.library.four_bar_windows(n).build().structure.redundant for n in (3, 8, 40))


def test_a_structure_is_reported():
    """Three rods in a triangle cannot move."""
    mech = mbs.library.four_bar(gravity=(0, 0, 0))
    mech.close_loop("strut", mbs.Fixed(), "crank", "world", mbs.Pose(), mbs.Pose())
    with pytest.warns(mbs.ModelWarning, match="cannot move"):
        mech.build()


def test_planar_rows_are_removed_by_structure():
    assert mbs.constraint_rows(mbs.library.four_bar().build()) == {"pin": slice(0, 2)}


@pytest.mark.interpreted
def test_motion_is_that_of_the_planar_linkage(redundant):
    """The same linkage without redundancy: two of the three rows, as functions."""
    model, q, v = redundant
    J, drift = (np.asarray(x) for x in mbs.constraint_jacobian(model, q, v))
    A, bias = np.asarray(mbs.mass_matrix(model, q)), np.asarray(mbs.bias_forces(model, q, v))
    a, multipliers, _ = mbs.constrained_dynamics(model, q, v)
    rows = np.linalg.svd(J)[0][:, :2].T  # an independent pair of combinations
    kkt = np.block([[A, -(rows @ J).T], [rows @ J, np.zeros((2, 2))]])
    want = np.linalg.solve(kkt, np.concatenate([-bias, -rows @ drift]))
    np.testing.assert_allclose(a, want[:3], rtol=0, atol=1e-11)
    np.testing.assert_allclose(multipliers, rows.T @ want[3:], rtol=0, atol=1e-10)  # of least norm


@pytest.mark.slow
@pytest.mark.interpreted
def test_derivatives_are_those_at_constant_rank(redundant):
    model, q, v = redundant

    def f(v):
        return mbs.constrained_dynamics(model, q, v)[0]

    d, e = jnp.array(v), 1e-6  # along the motion
    central = (f(v + e * d) - f(v - e * d)) / (2 * e)
    np.testing.assert_allclose(jax.jvp(f, (v,), (d,))[1], central, rtol=0, atol=1e-7)
    assert np.isfinite(jax.jacrev(f)(v)).all()


@pytest.mark.slow
@pytest.mark.interpreted
def test_flat_position_is_finite_and_exact():
    """A parallelogram lying flat has rank one; with gravity across nothing bends it, so it turns on at constant speed."""
    model = mbs.library.four_bar_windows(1, gravity=(0, 0, -9.81)).build()
    q, v = jnp.zeros(3), jnp.array([1.0, 1.0, -1.0])
    v = jnp.array([1.0 if n.startswith("foot") else -1.0 for n in model.joint_names])
    for method in ("multipliers", "elimination"):
        a, multipliers, residual = mbs.constrained_dynamics(model, q, v, method=method)
        np.testing.assert_allclose(a, 0, atol=1e-12)
        assert np.isfinite(multipliers).all() and np.abs(residual).max() < 1e-15
    slopes = jax.jacfwd(lambda q: mbs.constrained_dynamics(model, q, v)[0])(q)
    assert np.isfinite(slopes).all()


@pytest.mark.slow
def test_baumgarte_keeps_the_loop_closed_nearly():
    model = mbs.library.four_bar().build()
    q, v, _, _ = mbs.assemble(model, jnp.array([1.0, -0.8, 1.6]), jnp.array([2.0, 0, 0]), fixed="crank_hinge")
    exact = mbs.simulate(model, q, v, 1.0, 1e-3, save_every=None)
    held = mbs.simulate(model, q, v, 1.0, 1e-3, save_every=None, baumgarte=50.0)
    assert 0 < float(held.constraint_error[-1]) < 1e-8
    np.testing.assert_allclose(held.q[-1], exact.q[-1], rtol=0, atol=1e-7)
    off = q + jnp.array([0.0, 1e-3, 0.0])  # a violation dies out; projection is not asked for it
    back = mbs.simulate(model, off, v, 1.0, 1e-3, save_every=None, baumgarte=50.0)
    assert float(back.constraint_error[0]) > 1e-4 and float(back.constraint_error[-1]) < 1e-7


def parallelogram(gravity):
    """Three rods of length 1; the axes of the pin lie askew, so that its rows become parallel in the flat position."""
    mech = mbs.Mechanism("parallelogram", gravity=gravity)
    for name in ("left", "right", "bar"):
        mech.add_body(name, 1.0, (0.5, 0, 0), (0, 1 / 12, 1 / 12))
    hinge, askew = mbs.Revolute((0, 0, 1)), (np.cos(0.35), 0, 0, np.sin(0.35))
    mech.add_joint("left_foot", hinge, "world", "left")
    mech.add_joint("right_foot", hinge, "world", "right", mbs.Pose((1, 0, 0)))
    mech.add_joint("head", hinge, "left", "bar", mbs.Pose((1, 0, 0)))
    mech.close_loop("pin", hinge, "bar", "right", mbs.Pose((1, 0, 0), askew), mbs.Pose((1, 0, 0), askew))
    return mech.build()


TURNING = np.array([1.0, 1.0, -1.0])


@pytest.mark.interpreted
@pytest.mark.parametrize("distance", [1e-1, 1e-3, 1e-4, 3e-5, -1e-5])
def test_accelerations_next_to_the_flat_position(distance):
    """All rods but the bar are pendulums: (2/3 m l² + m l²) w' = -2 m g l cos(angle)."""
    model = parallelogram((0, -9.81, 0))
    a, multipliers, _ = mbs.constrained_dynamics(model, distance * TURNING, 1.3 * TURNING)
    want = -2 * 9.81 * np.cos(distance) / (5 / 3) * TURNING
    np.testing.assert_allclose(a, want, rtol=1e-9)
    balance, J = mbs.inverse_dynamics(model, distance * TURNING, 1.3 * TURNING, want), mbs.constraint_jacobian
    np.testing.assert_allclose(J(model, distance * TURNING)[0].T @ multipliers, balance, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_a_run_that_steps_on_the_flat_position_says_so():
    model = parallelogram((0, 0, -9.81))

    def run(start):
        return mbs.simulate(model, start * TURNING, jnp.asarray(TURNING), 0.1, 0.01, save_every=5)

    runs = jax.vmap(run)(jnp.array([-0.05 + 3e-7, -0.055]))
    assert runs.status.tolist() == [mbs.Status.SINGULAR, mbs.Status.OK]
    assert float(runs.conditioning[0].min()) < 1e-12 < 1e-6 < float(runs.conditioning[1].min())


@pytest.mark.slow
def test_batches_share_the_load_as_single_instances_do(redundant):
    """Multipliers of least norm through the kernels for batches."""
    model, q, v = redundant
    tau = jnp.cos(jnp.arange(3.0 * 1100).reshape(1100, 3))

    def loaded(tau):
        return mbs.constrained_dynamics(model, q, v, tau)[:2]

    for got, want in zip(mbs.jit(loaded, in_axes=0)(tau), jax.vmap(loaded)(tau), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-10)
    J = np.asarray(mbs.constraint_jacobian(model, q)[0])
    idle = np.linalg.svd(J)[0][:, 2]
    np.testing.assert_allclose(np.asarray(mbs.jit(loaded, in_axes=0)(tau)[1]) @ idle, 0, atol=1e-10)


def carts():
    """Two of 1 kg on rails along x: one is held at a place, the other goes as fast as 0.3 times the first."""
    mech = mbs.Mechanism("carts", gravity=(0, 0, 0))
    for name in ("a", "b"):
        mech.add_body(name, 1.0, inertia=(1, 1, 1))
        mech.add_joint(name, mbs.Prismatic((1, 0, 0)), "world", name)
    mech.add_constraint("place", mbs.Holonomic(lambda model, t, q, v: q[:1] - 0.2))
    mech.add_constraint("speed", mbs.Nonholonomic(lambda model, t, q, v: v[1:] - 0.3 * v[:1]))
    return mech.build()


def state(model, q, v, mode=None):
    return State(Tree(model, jnp.float64), jnp.array(q), jnp.array(v), 0.0, mode)


@pytest.mark.interpreted
def test_baumgarte_adds_what_damps_critically():
    """Of a holonomic row J a + drift = -2 w J v - w² g; of a nonholonomic one -w J v."""
    w = 3.0
    a, _, _ = constrained_dynamics(state(carts(), [0.5, 0.1], [0.7, -0.4]), None, baumgarte=w)
    pulled = -2 * w * 0.7 - w * w * 0.3
    np.testing.assert_allclose(a, [pulled, 0.3 * pulled - w * (-0.4 - 0.3 * 0.7)], rtol=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("off", "want"), [("place", [(1 + 0.3 * 2) / 1.09, 0.3 * (1 + 0.3 * 2) / 1.09]), ("speed", [0.0, 2.0])]
)
def test_a_constraint_that_is_switched_off_holds_nothing(off, want):
    model = carts()
    a, multipliers, _ = constrained_dynamics(state(model, [0.2, 0.1], [0.0, 0.0], model.mode(off=off)), [1.0, 2.0])
    np.testing.assert_allclose(a, want, rtol=0, atol=1e-14)
    assert multipliers[model.constraint_names.index(off)] == 0
