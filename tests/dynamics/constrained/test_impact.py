"""Velocity jumps when constraints start to hold, against momentum balances in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs


def falling_rod(length=2.0, mass=3.0):
    """A thin rod along x, free, with a hinge that may catch its left end at the origin."""
    mech = mbs.Mechanism("rod", gravity=(0, 0, -9.81))
    across = mass * length**2 / 12
    mech.add_body("rod", mass, (length / 2, 0, 0), (1e-3, across, across))
    mech.add_joint("free", mbs.Free(), "world", "rod")
    mech.close_loop("latch", mbs.Revolute(axis=(0, 1, 0)), "world", "rod")
    return mech.build()


@pytest.mark.slow
def test_a_falling_rod_is_caught_at_its_end():
    """Angular momentum about the caught end is kept: w = 3 u / (2 l), and the impulse is m u / 4 upwards."""
    u, length, mass = 4.0, 2.0, 3.0
    model = falling_rod(length, mass)
    q, v = model.neutral(), jnp.array([0, 0, 0, 0, 0, -u])
    v_plus, impulses = mbs.impact(model, q, v, on="latch")
    np.testing.assert_allclose(v_plus, [0, 3 * u / (2 * length), 0, 0, 0, 0], rtol=0, atol=1e-12)
    free, latch = mbs.joint_impulses(model, q, v, v_plus, impulses)
    np.testing.assert_allclose(free, np.zeros(6), atol=1e-12)
    np.testing.assert_allclose(latch, [0, 0, 0, 0, 0, mass * u / 4], rtol=0, atol=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("e", [0.0, 0.4, 1.0])
def test_restitution_returns_its_share_of_the_velocity(e):
    """Newton's law on the caught end; e = 1 keeps the energy."""
    model = falling_rod()
    q, v = model.neutral(), jnp.array([0, 0.5, 0, 0, 0, -4.0])
    v_plus, impulses = mbs.impact(model, q, v, on=["latch"], restitution=e)
    np.testing.assert_allclose(v_plus[3:], [0, 0, 4.0 * e], rtol=0, atol=1e-12)
    A, (J, _) = mbs.mass_matrix(model, q), mbs.constraint_jacobian(model, q)
    np.testing.assert_allclose(A @ (v_plus - v), J.T @ impulses, rtol=0, atol=1e-11)
    lost = mbs.energy(model, q, v)[0] - mbs.energy(model, q, v_plus)[0]
    assert float(lost) >= -1e-12
    if e == 1.0:
        assert abs(float(lost)) < 1e-11


@pytest.mark.interpreted
def test_constraints_that_are_not_struck_do_not_rebound():
    mech = mbs.Mechanism("carts")
    for k, name in enumerate(("a", "b")):
        mech.add_body(name, 1.0 + k, inertia=(1, 1, 1))
        mech.add_joint(f"rail {name}", mbs.Prismatic((1, 0, 0)), "world", name)
        mech.add_constraint(f"stop {name}", mbs.Nonholonomic(lambda model, t, q, v, k=k: v[k : k + 1]))
    v_plus, impulses = mbs.impact(mech.build(), np.zeros(2), np.array([2.0, 3.0]), on="stop a", restitution=0.5)
    np.testing.assert_allclose(v_plus, [-1.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(impulses, [-3.0, -6.0], rtol=1e-14)


@pytest.mark.interpreted
def test_docking_keeps_the_momentum_of_both():
    mech = mbs.Mechanism("docking")
    for name, mass in (("chaser", 2.0), ("target", 5.0)):
        mech.add_body(name, mass, (0.1, 0, 0), (0.3, 0.4, 0.5))
        mech.add_joint(f"free_{name}", mbs.Free(), "world", name)
    mech.close_loop("port", mbs.Fixed(), "chaser", "target", mbs.Pose((0.5, 0, 0)), mbs.Pose((-0.5, 0, 0)))
    model = mech.build()
    q = jnp.array([0, 0, 0, 1.0, 0, 0, 0, 1.0, 0, 0, 1.0, 0, 0, 0])
    v = jnp.array([0.1, -0.2, 0.3, 1.0, 0.2, -0.1, 0.0, 0.1, 0.0, 0.1, 0.0, 0.3])
    v_plus, impulses = mbs.impact(model, q, v)
    for before, after in zip(mbs.momentum(model, q, v), mbs.momentum(model, q, v_plus), strict=True):
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-12)
    np.testing.assert_allclose(v_plus[:3], v_plus[6:9], rtol=0, atol=1e-12)  # they turn as one
    assert float(mbs.energy(model, q, v_plus)[0]) < float(mbs.energy(model, q, v)[0])
    *_, port = mbs.joint_impulses(model, q, v, v_plus, impulses)
    np.testing.assert_allclose(port[3:], 5.0 * _jump_of_centre(v, v_plus), rtol=0, atol=1e-11)


def _jump_of_centre(v, v_plus):
    """Velocity jump of the target's centre of mass, which only the port's impulse moves."""
    jump = np.asarray(v_plus - v)[6:]
    return jump[3:] + np.cross(jump[:3], [0.1, 0, 0])


@pytest.mark.filterwarnings("ignore::jaxmbs.ModelWarning")  # held at its tip it cannot move
def test_impulses_in_tree_joints():
    """A double pendulum struck at its tip: the impulse in the shoulder is what momentum asks for."""
    mech = mbs.library.double_pendulum()
    mech.close_loop("stop", mbs.Spherical(), "world", "lower", mbs.Pose((0, 0, -2.0)), mbs.Pose((0, 0, -1.0)))
    model = mech.build()
    q, v = jnp.zeros(2), jnp.array([1.0, 0.5])
    v_plus, impulses = mbs.impact(model, q, v)
    shoulder, elbow, stop = mbs.joint_impulses(model, q, v, v_plus, impulses)
    change = np.asarray(mbs.momentum(model, q, v_plus)[1] - mbs.momentum(model, q, v)[1])
    np.testing.assert_allclose(shoulder[3:] + stop[3:], change, rtol=0, atol=1e-12)
    np.testing.assert_allclose(elbow[jnp.array([0, 2])], 0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.interpreted
def test_impacts_are_differentiable_and_batched():
    model = falling_rod()
    q = model.neutral()

    def turn(u):
        return mbs.impact(model, q, jnp.array([0, 0, 0, 0, 0, 1.0]) * -u, on="latch")[0][1]

    np.testing.assert_allclose(jax.vmap(jax.grad(turn))(jnp.array([1.0, 2.0])), 3 / 4, rtol=1e-12)
    np.testing.assert_allclose(jax.jvp(turn, (1.0,), (1.0,))[1], 3 / 4, rtol=1e-12)


def test_unknown_constraints_are_refused():
    with pytest.raises(mbs.ModelError, match=r"'lach'.*'latch'"):
        mbs.impact(falling_rod(), np.zeros(7), np.zeros(6), on="lach")
    with pytest.raises(mbs.ModelError, match="no constraints"):
        mbs.impact(mbs.library.double_pendulum().build(), np.zeros(2), np.zeros(2))


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize("e", [0.0, 0.3])
def test_a_lock_stops_a_moving_joint(e):
    """The forearm of a falling pendulum latches: momentum about the shoulder is kept, the latch takes what is missing."""
    model = mbs.library.double_pendulum().build()
    q, v = jnp.array([0.4, 0.3]), jnp.array([1.0, -2.0])
    elbow = model.joint_names[1]
    v_plus, impulses = mbs.impact(model, q, v, mode=model.mode(lock=elbow), restitution=e)
    assert impulses.shape == (0,)
    np.testing.assert_allclose(v_plus[1], 2.0 * e, rtol=0, atol=1e-15)
    A = mbs.mass_matrix(model, q)
    np.testing.assert_allclose(A[0] @ (v_plus - v), 0.0, atol=1e-14)  # nothing acts on the shoulder
    assert float(A[1] @ (v_plus - v)) > 0.1
    with pytest.raises(mbs.ModelError, match=elbow + ".*impact"):
        mbs.simulate(model, q, v, 0.1, mode=model.mode(lock=elbow))
    run = jax.vmap(lambda v: mbs.simulate(model, q, v, 0.02, 0.01, mode=model.mode(lock=elbow)))(
        jnp.stack([v, v.at[1].set(0.0)])
    )
    assert run.status.tolist() == [mbs.Status.INCONSISTENT, mbs.Status.OK]


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.filterwarnings("ignore::jaxmbs.ModelWarning")
def test_locks_and_constraints_strike_together():
    """A lock is a row like any other: a joint held by the mode jumps as one held by a constraint on its rate."""

    def arm(locked):
        mech = mbs.library.chain(5)
        last = mech.build().body_names[-1]
        mech.close_loop("peg", mbs.Spherical(), "world", last, mbs.Pose((0.1, 0, 0)), mbs.Pose((0, 0.05, 0.1)))
        if not locked:
            mech.add_constraint("brake", mbs.Nonholonomic(lambda m, t, q, v: v[jnp.array([1, 3])]))
        return mech.build()

    free, braked = arm(True), arm(False)
    q, v = 0.3 + 0.1 * jnp.arange(5.0), jnp.cos(jnp.arange(5.0))
    mode = free.mode(lock=[free.joint_names[k] for k in (1, 3)])
    want, pulls = mbs.impact(braked, q, v, on="peg", restitution=0.5)
    got, impulses = mbs.impact(free, q, v, on="peg", restitution=0.5, mode=mode)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-11)
    np.testing.assert_allclose(impulses, pulls[:3], rtol=0, atol=1e-11)
    np.testing.assert_allclose(got[jnp.array([1, 3])], 0.0, atol=1e-13)
    back, _ = mbs.impact(free, q, v, on=[free.joint_names[1]], restitution=0.5, mode=mode)
    np.testing.assert_allclose(back[jnp.array([1, 3])], [-0.5 * v[1], 0.0], rtol=0, atol=1e-13)
