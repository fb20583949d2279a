"""Blades and rolling discs against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs


def skate():
    mech = mbs.Mechanism("skate")
    mech.add_body("sled", mass=2.0, inertia=(0.1, 0.1, 0.15))
    mech.add_joint("ice", mbs.Planar(), "world", "sled")
    mech.add_constraint("blade", mbs.KnifeEdge("sled", point=(0, 0, 0), normal=(0, 1, 0)))
    return mech.build()


def sleigh(offset=0.4, mass=2.0, inertia=0.15):
    """Chaplygin's sleigh: a blade behind the centre of mass."""
    mech = mbs.Mechanism("sleigh")
    mech.add_body("sled", mass=mass, com=(offset, 0, 0), inertia=(0.1, 0.1, inertia))
    mech.add_joint("ice", mbs.Planar(), "world", "sled")
    mech.add_constraint("blade", mbs.KnifeEdge("sled"))
    return mech.build()


def disc(radius=0.3):
    mech = mbs.Mechanism("disc", gravity=(0, 0, -9.81))
    mech.add_body("wheel", mass=1.0, inertia=(0.25 * radius**2, 0.5 * radius**2, 0.25 * radius**2))
    mech.add_joint("free", mbs.Free(), "world", "wheel")
    mech.add_constraint("disc", mbs.RollingDisc("wheel", radius=radius, axis=(0, 1, 0)))
    return mech.build()


def test_skate_moves_on_a_circle():
    """With the centre of mass above the blade speed and turning are constant: radius v / omega [K]."""
    v, omega, t = 1.0, 2.0, 2.0
    s = mbs.simulate(skate(), jnp.zeros(3), jnp.array([v, 0.0, omega]), t, 1e-3, save_every=None)
    r = v / omega
    np.testing.assert_allclose(
        s.q[-1], [r * np.sin(omega * t), r * (1 - np.cos(omega * t)), omega * t], rtol=0, atol=1e-11
    )
    assert float(s.constraint_error.max()) < 1e-14
    assert abs(float(s.energy_error[-1])) < 1e-13


def test_chaplygin_sleigh():
    """With the centre of mass a ahead of the blade: u' = a w², w' = -m a u w / (I + m a²), hence tanh and sech."""
    a, m, inertia = 0.4, 2.0, 0.15
    k2 = (inertia + m * a**2) / m  # u² + k2 w² is constant
    w0, t = 3.0, 1.5
    s = mbs.simulate(sleigh(a, m, inertia), jnp.zeros(3), jnp.array([0.0, 0.0, w0]), t, 1e-3, save_every=None)
    c = a * w0 / np.sqrt(k2)
    angle, velocity = float(s.q[-1, 2]), np.asarray(s.v[-1])
    forward = velocity[0] * np.cos(angle) + velocity[1] * np.sin(angle)
    np.testing.assert_allclose(forward, np.sqrt(k2) * w0 * np.tanh(c * t), rtol=1e-10)
    np.testing.assert_allclose(velocity[2], w0 / np.cosh(c * t), rtol=1e-10)


def test_multiplier_of_the_blade_is_its_force():
    """The blade turns the momentum: its force is m v omega, across the blade."""
    _, multipliers, _ = mbs.constrained_dynamics(skate(), jnp.zeros(3), jnp.array([1.5, 0.0, 2.0]))
    np.testing.assert_allclose(multipliers, [2.0 * 1.5 * 2.0], rtol=1e-13)


@pytest.mark.interpreted
def test_rows_of_blades_and_discs():
    """Velocities of the points that touch, from the Jacobians of these points; the drift is their rate."""
    radius, normal, point, axis = 0.3, np.array([0.6, 0.8, 0]), np.array([0.1, -0.2, 0.3]), np.array([0, 0.6, 0.8])
    mech = mbs.Mechanism("toy", gravity=(0, 0, -9.81))
    mech.add_body("b", mass=1.0, inertia=(1, 1, 1))
    mech.add_joint("free", mbs.Free(), "world", "b")
    mech.add_constraint("blade", mbs.KnifeEdge("b", point=point, normal=normal))
    mech.add_constraint("disc", mbs.RollingDisc("b", radius=radius, axis=axis))
    model = mech.build()
    q, v = np.array([0.1, 0.2, 0.3, 0.8, 0.3, -0.4, 0.2]), np.array([0.5, -0.3, 0.7, 0.2, 0.6, -0.4])
    q[3:] /= np.linalg.norm(q[3:])

    def rows(q):
        R = np.asarray(mbs.body_poses(model, q).rotation[0])
        n = R @ axis
        down = n * n[2] - (0, 0, 1)
        touching = R.T @ (radius * down / np.linalg.norm(down))
        edge, rim = (np.asarray(mbs.jacobian(model, q, "b", point=p))[3:] for p in (point, touching))
        return np.concatenate([[R @ normal @ edge], rim])

    J, drift = mbs.constraint_jacobian(model, q, v)
    assert np.abs(J - rows(q)).max() < 1e-13
    omega, e = v[:3], 1e-5
    rate = np.array([-q[4:] @ omega, *(q[3] * omega + np.cross(q[4:], omega))]) / 2
    rate = np.concatenate([np.asarray(mbs.body_poses(model, q).rotation[0]) @ v[3:], rate])
    np.testing.assert_allclose(drift, (rows(q + e * rate) - rows(q - e * rate)) @ v / (2 * e), rtol=0, atol=1e-8)


@pytest.mark.slow
def test_disc_rolls_straight():
    model, r, rate = disc(), 0.3, 4.0
    q = jnp.array([0, 0, r, 1.0, 0, 0, 0])
    v = jnp.array([0, rate, 0, r * rate, 0, 0])
    s = mbs.simulate(model, q, v, 1.0, 1e-3, save_every=None)
    np.testing.assert_allclose(s.q[-1, :3], [r * rate, 0, r], rtol=0, atol=1e-11)
    assert int(s.status) == mbs.Status.OK


@pytest.mark.slow
def test_disc_on_a_steady_circle():
    """A disc leaning by theta rolls round a circle at the rate P about the vertical.

    With n = (0, c, s) the axis, d = (0, s, -c) from the centre to the contact, angular velocity N n - P c d: the centre
    moves with r N x, its acceleration is r N P y. The moment of the contact force about the centre, r (s g + c r N P) x,
    equals the rate P (I P c s - J N c) x of the angular momentum J N n - I P c d; hence N.
    """
    r, theta, P, g = 0.3, 0.4, 3.0, 9.81
    I, J, s, c = r**2 / 4, r**2 / 2, np.sin(theta), np.cos(theta)
    N = (I * P**2 * c * s - g * r * s) / ((J + r**2) * P * c)
    to_body = np.array([[1, 0, 0], [0, c, s], [0, -s, c]])
    w = to_body @ (N * np.array([0, c, s]) - P * c * np.array([0, s, -c]))
    q = jnp.array([0, 0, r * c, np.cos(theta / 2), np.sin(theta / 2), 0, 0])
    v = jnp.concatenate([w, to_body @ np.array([r * N, 0, 0])])
    model = disc(r)
    assert np.abs(mbs.constrained_dynamics(model, q, v)[2]).max() < 1e-14
    period = 2 * np.pi / P
    s = mbs.simulate(model, q, v, period, period / 2000, save_every=500)
    np.testing.assert_allclose(s.q[:, 2], r * c, rtol=1e-10)  # neither falls nor rises
    np.testing.assert_allclose(s.q[-1, :2], [0, 0], rtol=0, atol=1e-9)  # and closes the circle
    np.testing.assert_allclose(s.q[2, :2], [0, 2 * r * N / P], rtol=0, atol=1e-9)  # having crossed it


@pytest.mark.slow
def test_energy_of_a_wobbling_disc():
    r, theta = 0.3, 0.3
    model = disc(r)
    q = jnp.array([0, 0, r * np.cos(theta), np.cos(theta / 2), np.sin(theta / 2), 0, 0])
    q, v, status, _ = mbs.assemble(model, q, jnp.array([0, 5.0, 1.0, 0, 0, 0]))
    assert int(status) == mbs.Status.OK
    s = mbs.simulate(model, q, v, 1.0, 1e-3, save_every=None)
    assert abs(float(s.energy_error[-1])) < 1e-8
    assert float(s.constraint_error.max()) < 1e-12


@pytest.mark.parametrize("kind", [mbs.Holonomic, mbs.Nonholonomic])
@pytest.mark.usually("Nonholonomic")
def test_user_functions_equal_built_in_constraints(kind):
    """A blade as a function of v; a plane joint's height as a function of q."""
    if kind is mbs.Nonholonomic:
        built_in = skate()
        mech = mbs.Mechanism("skate")
        mech.add_body("sled", mass=2.0, inertia=(0.1, 0.1, 0.15))
        mech.add_joint("ice", mbs.Planar(), "world", "sled")
        mech.add_constraint("blade", mbs.Nonholonomic(lambda m, t, q, v: -jnp.sin(q[2]) * v[0] + jnp.cos(q[2]) * v[1]))
        q, v = jnp.array([0.1, 0.2, 0.7]), jnp.array([np.cos(0.7), np.sin(0.7), 2.0])
    else:
        built_in, mech = (mbs.Mechanism("lift", gravity=(0.5, 0, -9.81)) for _ in range(2))
        for m in (built_in, mech):
            m.add_body("b", mass=1.0, com=(0.1, 0, 0), inertia=(1, 1, 1))
            m.add_joint("f", mbs.Free(), "world", "b")
        built_in.close_loop("c", mbs.Spherical(), "world", "b", mbs.Pose(), mbs.Pose((0.2, 0.1, 0.3)))
        built_in = built_in.build()
        point = jnp.array([0.2, 0.1, 0.3])

        def position(m, t, q, v):
            P = mbs.body_poses(m, q)
            return P.rotation[0].T @ (P.position[0] + P.rotation[0] @ point)

        mech.add_constraint("c", mbs.Holonomic(position))
        q, v, _, _ = mbs.assemble(built_in, jnp.array([0.1, 0, 0, 1.0, 0.2, 0.1, 0]), jnp.arange(6.0))
    model = mech.build()
    want, got = mbs.constrained_dynamics(built_in, q, v), mbs.constrained_dynamics(model, q, v)
    np.testing.assert_allclose(got[0], want[0], rtol=0, atol=1e-10)
    assert np.abs(got[2]).max() < 1e-10


@pytest.mark.slow
def test_derivatives_through_a_rolling_motion():
    model = skate()

    def end(v):
        return mbs.simulate(model, jnp.zeros(3), v, 0.05, 1e-2, save_every=None).q[-1]

    v, d = jnp.array([1.0, 0.0, 2.0]), jnp.array([0.3, 0.0, 0.5])
    e = 1e-6
    central = (end(v + e * d) - end(v - e * d)) / (2 * e)
    np.testing.assert_allclose(jax.jacfwd(end)(v) @ d, central, rtol=0, atol=1e-8)
    np.testing.assert_allclose(jax.jacrev(end)(v) @ d, central, rtol=0, atol=1e-8)


def test_rheonomic_constraints_and_their_work():
    """A sled on a blade that is swept sideways, v_y = 0.3 t, while a rail moves it along x as 0.2 sin 3t.

    One holonomic and one nonholonomic constraint together, both moving in time: the path is given, and their work is the
    kinetic energy.
    """
    mech = mbs.Mechanism("swept")
    mech.add_body("sled", mass=2.0, inertia=(0.1, 0.1, 0.15))
    mech.add_joint("ice", mbs.Planar(), "world", "sled")
    mech.add_constraint("rail", mbs.Holonomic(lambda m, t, q, v: q[0] - 0.2 * jnp.sin(3 * t)))
    mech.add_constraint("sweep", mbs.Nonholonomic(lambda m, t, q, v: v[1] - 0.3 * t))
    model = mech.build()
    for method in ("multipliers", "elimination"):
        v = jnp.array([0.6 * np.cos(2.1), 0.3 * 0.7, 1.0])
        q = jnp.array([0.2 * np.sin(2.1), 0.0, 0.0])
        a, multipliers, residual = mbs.constrained_dynamics(model, q, v, t=0.7, method=method)
        np.testing.assert_allclose(a, [-1.8 * np.sin(2.1), 0.3, 0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(multipliers, 2.0 * a[:2], rtol=0, atol=1e-12)
        assert np.abs(residual).max() < 1e-14
    run = mbs.simulate(model, jnp.zeros(3), jnp.array([0.6, 0.0, 1.0]), 2.0, 1e-3, save_every=None)
    np.testing.assert_allclose(run.q[-1], [0.2 * np.sin(6.0), 0.6, 2.0], rtol=0, atol=1e-10)
    assert abs(float(run.energy_error[-1])) < 1e-9
    assert float(run.constraint_error[-1]) < 1e-12
