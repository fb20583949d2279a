"""Rest against closed forms, from guesses near and far; derivatives; batches in which some rows have none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import root_scalar

import jaxmbs as mbs

G = 9.81


def hanging(n, span, length=1.0, mass=1.0):
    """A chain in the plane, both ends at one height."""
    mech = mbs.library.chain(n, length / n, mass / n, 0.0, axes=((0, 1, 0),))
    end, far = mbs.Pose((0, 0, -length / n)), mbs.Pose((span, 0, 0))
    mech.close_loop("end", mbs.Revolute((0, 1, 0)), f"link_{n}", "world", end, far)
    return mech.build()


@pytest.mark.slow
def test_a_hanging_chain_is_a_catenary():
    """Of rods exactly: the slopes of the rods grow by m g / H from one to the next; and near the curve."""
    n, span = 12, 0.7
    model = hanging(n, span)
    # a poor guess: straight down, and the loop open by more than its span
    q, multipliers, status, residual = mbs.equilibrium(model, jnp.zeros(n).at[0].set(-0.8).at[n // 2].set(-0.5))
    assert int(status) == mbs.Status.OK and np.abs(residual).max() < 1e-12
    k = np.arange(n) - (n - 1) / 2
    weight = G / n
    H = root_scalar(lambda H: np.sum(np.cos(np.arctan(k * weight / H))) / n - span, bracket=(0.01, 10)).root
    along = np.array([-np.cos(np.arctan(k * weight / H)), -np.sin(np.arctan(k * weight / H))]) / n
    np.testing.assert_allclose(-np.cumsum(along[0])[:-1], mbs.body_poses(model, q).position[1:, 0], atol=1e-12)
    np.testing.assert_allclose(np.cumsum(along[1])[:-1] * -1, mbs.body_poses(model, q).position[1:, 2], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(multipliers), np.hypot(H, G / 2), rtol=1e-12)  # the pull of the end
    a = root_scalar(lambda a: 2 * a * np.sinh(span / 2 / a) - 1, bracket=(0.05, 10)).root
    sag = float(-mbs.body_poses(model, q).position[:, 2].min())
    assert abs(sag - a * (np.cosh(span / 2 / a) - 1)) < 2e-3


@pytest.fixture(scope="module")
def pendulum():
    return mbs.library.double_pendulum().build()


@pytest.mark.slow
def test_from_anywhere_to_a_rest_and_from_far_never_uphill(pendulum):
    guesses = jax.random.uniform(jax.random.key(0), (200, 2), minval=-np.pi, maxval=np.pi)
    found = mbs.jit(lambda q: mbs.equilibrium(pendulum, q), in_axes=0)(guesses)
    np.testing.assert_array_equal(found.status, mbs.Status.OK)
    assert np.abs(np.sin(found.q)).max() < 1e-12  # both rods upright or hanging
    before, after = (jax.vmap(lambda q: mbs.energy(pendulum, q, jnp.zeros(2))[1])(q) for q in (guesses, found.q))
    assert (after < before + 1e-2).all()
    assert np.mean(after < -29.4) > 0.8


def test_a_guess_near_an_unstable_rest_stays(pendulum):
    q, *_, status, _ = mbs.equilibrium(pendulum, [np.pi + 0.01, -0.02])
    np.testing.assert_allclose(q, [np.pi, 0], rtol=0, atol=1e-12)
    assert int(status) == mbs.Status.OK
    farther = jnp.array([-2.98, -0.05])  # from where Newton's method would rise
    sunk = mbs.equilibrium(pendulum, farther).q
    assert mbs.energy(pendulum, sunk, jnp.zeros(2))[1] < mbs.energy(pendulum, farther, jnp.zeros(2))[1]


def test_what_holds_a_joint(pendulum):
    """The elbow hangs; the shoulder's torque is that of inverse dynamics, and goes along with the guess."""

    def held(angle):
        found = mbs.equilibrium(pendulum, jnp.stack([angle, 0.3]), fixed=["shoulder"])
        return found.multipliers, found.q, found.status

    (torque, q, status), slope = held(jnp.asarray(0.5)), jax.jit(jax.jacfwd(lambda x: held(x)[:2]))(0.5)
    np.testing.assert_allclose(q, [0.5, -0.5], atol=1e-14)
    np.testing.assert_allclose(torque, [2 * G * np.sin(0.5)], rtol=1e-14)
    np.testing.assert_allclose(slope[0], [2 * G * np.cos(0.5)], rtol=1e-12)
    np.testing.assert_allclose(slope[1], [1, -1], rtol=0, atol=1e-12)
    assert int(status) == mbs.Status.OK


@pytest.mark.slow
def test_a_batch_of_linkages_with_derivatives_of_any_order():
    """A four-bar linkage under a spring; one row cannot close. Against finite differences of the same."""
    mech = mbs.library.four_bar()
    mech.add_force("coil", mbs.TorsionSpring("crank_hinge", stiffness=4.0, rest_angle=0.4))
    model = mech.build()

    def angle(stiffness, shift, q=jnp.array([-1.0, 1.8, 1.9])):
        changed = mbs.set(model, {"coil.stiffness": stiffness, "rocker_hinge.parent_pose.position": shift})
        found = mbs.equilibrium(changed, q)
        return found.q[0], found.status

    base = mbs.get(model, "rocker_hinge.parent_pose.position")
    places = jnp.stack([base, 1.01 * base, 50 * base])
    run = jax.jit(jax.vmap(angle, in_axes=(None, 0)))
    _, status = run(4.0, places)
    np.testing.assert_array_equal(status, [mbs.Status.OK, mbs.Status.OK, mbs.Status.UNREACHABLE])

    def first(k):
        return angle(k, places[1])[0]

    e = 1e-4
    values = [float(run(4.0 + d, places)[0][1]) for d in (-e, 0, e)]
    forward, backward, second = jax.jit(
        lambda k: (jax.jacfwd(first)(k), jax.grad(first)(k), jax.jacfwd(jax.grad(first))(k))
    )(4.0)
    np.testing.assert_allclose([forward, backward], (values[2] - values[0]) / (2 * e), rtol=1e-6)
    np.testing.assert_allclose(second, (values[2] - 2 * values[1] + values[0]) / e**2, rtol=1e-4)


def test_nothing_holds_a_free_body():
    mech = mbs.Mechanism("stone", gravity=(0, 0, -G))
    mech.add_body("stone", 2.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("free", mbs.Free(), "world", "stone")
    model = mech.build()
    found = mbs.equilibrium(model, model.neutral())
    assert int(found.status) == mbs.Status.UNBALANCED and "supports" in mbs.Status(int(found.status)).message
    np.testing.assert_allclose(found.residual[3:], [0, 0, 2 * G], atol=1e-12)
    assert int(mbs.equilibrium(model, model.neutral(), tau=[0, 0, 0, 0, 0, 2 * G]).status) == mbs.Status.OK
