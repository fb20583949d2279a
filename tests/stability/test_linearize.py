"""Linear equations against closed forms: springs under tension, loops, wheels, steady turning; their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import root_scalar

import jaxmbs as mbs
from jaxmbs.dynamics.constrained.constraints import constraints
from jaxmbs.dynamics.constrained.public import constrained_state
from jaxmbs.stability.rows import rows

G = 9.81


@pytest.mark.slow
def test_a_string_of_masses():
    """Fixed at both ends: w_k = 2 sqrt(T / m h) sin(k pi / 2 (n + 1)), from the tension of its springs alone."""
    n, h, m, k, rest = 6, 0.5, 0.3, 200.0, 0.4
    mech = mbs.Mechanism("string")
    for i in range(n):
        mech.add_body(f"mass_{i}", m, inertia=(0.1, 0.1, 0.1))
        mech.add_joint(f"way_{i}", mbs.Prismatic((0, 0, 1)), "world", f"mass_{i}", mbs.Pose(((i + 1) * h, 0, 0)))
    for i in range(n + 1):
        a, b = (f"mass_{j}" if 0 <= j < n else "world" for j in (i - 1, i))
        ends = [(j + 1) * h if not 0 <= j < n else 0.0 for j in (i - 1, i)]
        points = {"point_a": (ends[0], 0, 0), "point_b": (ends[1], 0, 0)}
        mech.add_force(f"spring_{i}", mbs.LinearSpring(a, b, **points, stiffness=k, rest_length=rest, damping=0.0))
    modes = mbs.modes(mech.build(), jnp.zeros(n))
    want = 2 * np.sqrt(k * (h - rest) / m / h) * np.sin(np.arange(1, n + 1) * np.pi / 2 / (n + 1))
    np.testing.assert_allclose(2 * np.pi * modes.frequency[::2], want, rtol=1e-12)
    np.testing.assert_allclose(modes.damping, 0, atol=1e-12)
    first = np.array([abs(complex(modes.shapes[f"way_{i}"][0, 0])) for i in range(n)])
    np.testing.assert_allclose(
        first / first[0], np.sin(np.arange(1, n + 1) * np.pi / (n + 1)) / np.sin(np.pi / (n + 1))
    )
    np.testing.assert_allclose(
        [modes.energy[f"mass_{i}"][0] for i in range(n)], first**2 / (first**2).sum(), rtol=1e-10
    )


def linkage():
    mech = mbs.library.four_bar()
    mech.add_force("coil", mbs.TorsionSpring("crank_hinge", stiffness=4.0, damping=0.3))
    model = mech.build()
    return model, mbs.equilibrium(model, [-1.0, 1.8, 1.9]).q


@pytest.mark.slow
def test_a_loop_against_its_energy_along_the_way_that_it_leaves():
    """With one freedom s: K is the second derivative of the potential, M twice the kinetic energy at ds/dt = 1."""
    model, q = linkage()
    linear = mbs.linearize(model, q, independent="crank_hinge")

    @jax.jit
    def at(s):
        q_s, v, *_ = mbs.assemble(model, q + jnp.array([1.0, 0, 0]) * s, jnp.array([1.0, 0, 0]), fixed="crank_hinge")
        kinetic, potential = mbs.energy(model, q_s, v)
        return 2 * kinetic, potential

    e = 1e-3
    U = [float(at(x)[1]) for x in (-2 * e, -e, 0.0, e, 2 * e)]
    second = (-U[0] + 16 * U[1] - 30 * U[2] + 16 * U[3] - U[4]) / (12 * e**2)
    np.testing.assert_allclose(linear.M[0, 0], at(0.0)[0], rtol=1e-10)
    np.testing.assert_allclose(linear.K[0, 0], second, rtol=1e-7)
    np.testing.assert_allclose(linear.C[0, 0], 0.3, rtol=1e-10)
    assert linear.S == 0 and linear.T == 1
    # at a low frequency it answers a torque like a spring, at a high one like a mass
    low, high = np.asarray(linear.response([1e-6, 1e4]))[:, 0, 0]
    np.testing.assert_allclose(low, 1 / second, rtol=1e-5)
    np.testing.assert_allclose(high * (2e4 * np.pi) ** 2, -1 / float(linear.M[0, 0]), rtol=1e-5)


def disc():
    """A disc on its rim, by joints for place, heading, lean and spin."""
    r, m = 0.3, 1.0
    mech = mbs.Mechanism("disc", gravity=(0, 0, -G))
    for name in ("carriage", "lift", "fork"):
        mech.add_body(name, 0.0)
    mech.add_body("wheel", m, inertia=(m * r * r / 4, m * r * r / 2, m * r * r / 4))
    mech.add_joint("place", mbs.Planar(), "world", "carriage")
    mech.add_joint("height", mbs.Prismatic((0, 0, 1)), "carriage", "lift", mbs.Pose((0, 0, r)))
    mech.add_joint("lean", mbs.Revolute((1, 0, 0)), "lift", "fork")
    mech.add_joint("spin", mbs.Revolute((0, 1, 0)), "fork", "wheel")
    mech.add_constraint("rim", mbs.RollingDisc("wheel", radius=r, axis=(0, 1, 0)))
    return mech.build()


@pytest.mark.slow
def test_a_disc_rolls_upright_faster_than_a_third_of_g_r():
    """The motion is stable for v² > g r / 3 [Routh; Neimark and Fufaev]: growth is g / r 4/5 - 12/5 W² squared."""
    model = disc()
    speeds = ["lean", "place.angle_rate", "spin"]

    def growth(spin):
        v = jnp.zeros(6).at[0].set(0.3 * spin).at[5].set(spin)
        linear = mbs.linearize(model, model.neutral(), v, independent=speeds)
        return linear.state_space()[0], linear.status

    critical = np.sqrt(G / 3 / 0.3)
    A, status = jax.jit(jax.vmap(growth))(jnp.array([0.9, 1.1]) * critical)
    np.testing.assert_array_equal(status, mbs.Status.OK)
    for at, spin in zip(np.linalg.eigvals(np.asarray(A)), (0.9 * critical, 1.1 * critical), strict=True):
        want = np.emath.sqrt(0.8 * G / 0.3 - 2.4 * spin**2)
        for x in (want, -want):
            assert np.abs(at - x).min() < 1e-10
        assert (np.abs(at) < 1e-5).sum() == len(at) - 2


def test_a_free_body_that_spins():
    """About axis z: w² = W² (C - A) (C - B) / (A B) in its own axes, unstable about the middle one."""
    mech = mbs.Mechanism("satellite")
    mech.add_body("body", 3.0, inertia=(1.1, 2.0, 2.5))
    mech.add_joint("free", mbs.Free(), "world", "body")
    model, spin = mech.build(), 1.7
    for moments in ((1.1, 2.0, 2.5), (1.1, 3.0, 2.5)):
        model = mbs.set(model, {"body.inertia": moments})
        modes = mbs.modes(model, model.neutral(), [0, 0, spin, 0, 0, 0])
        a, b, c = moments
        want = np.emath.sqrt(-(spin**2) * (c - a) * (c - b) / (a * b))
        assert np.abs(np.asarray(modes.eigenvalues) - want).min() < 1e-12
        assert bool(modes.largest_real_part > modes.margin) == (c < b)
        # what stands in space, or moves straight on, turns in its axes: one rotation, one place, one velocity
        assert (np.abs(np.asarray(modes.eigenvalues) - 1j * spin) < 1e-4).sum() == 3
        assert int(modes.status) == mbs.Status.OK
        tumbling = mbs.linearize(model, model.neutral(), [0.3, 0.2, spin, 0, 0, 0])
        assert int(tumbling.status) == mbs.Status.UNSTEADY


def test_a_column_under_a_force_that_follows_it():
    """Ziegler's paradox [Ziegler 1952; Herrmann and Jong 1965]: it flutters beyond 2.086 c/l, and where a little damping
    is in its hinges, beyond 1.464 c/l already."""
    mech = mbs.library.double_pendulum(mass_1=2.0, gravity=(0, 0, 0))
    for joint in ("shoulder", "elbow"):
        mech.add_force(joint + "_spring", mbs.TorsionSpring(joint, stiffness=1.0, damping=0.0))
    model = mech.build()

    def matrix(load, damping):
        damped = mbs.set(model, {"shoulder_spring.damping": damping, "elbow_spring.damping": damping})

        def follower(model, t, q, v):
            return jnp.stack([-load * jnp.sin(q[1]), 0 * load])

        return mbs.linearize(damped, jnp.zeros(2), tau=follower).state_space()[0]

    exact, small = 7 / 2 - np.sqrt(2), 1e-3
    damped = 41 / 28 + small**2 / 2
    assert (round(exact, 3), round(damped, 3)) == (2.086, 1.464)
    loads = jnp.array([0.999 * exact, 1.001 * exact, damped - 1e-4, damped + 1e-4])
    A = jax.jit(jax.vmap(matrix))(loads, jnp.array([0.0, 0.0, small, small]))
    growth = np.linalg.eigvals(np.asarray(A)).real.max(axis=1)
    assert abs(growth[0]) < 1e-9 and growth[1] > 1e-3 and growth[2] < 0 < growth[3]


def windows(n):
    """A row of windows that a spring holds, and the angles of its rods at 1 rad."""
    mech = mbs.library.four_bar_windows(n)
    mech.add_force("coil", mbs.TorsionSpring("foot_0", stiffness=50.0 * n, damping=1.0 * n, rest_angle=1.5))
    model = mech.build()
    return model, np.array([1.0 if name.startswith("foot") else -1.0 for name in model.joint_names])


@pytest.mark.interpreted
def test_rows_of_many_loops():
    """Those of fronts are those that are written out; a joint is held, a window is open."""
    model, sign = windows(7)
    q, v = 1.1 * sign + 0.1 * jnp.cos(jnp.arange(15.0)), jnp.sin(jnp.arange(15.0))
    mode = model.mode(off=["window_3"])
    want = constraints(constrained_state(model, q, v, 0.0, mode))
    found = rows(model, q, v, 0.0, mode, (2,))
    for own, other in zip(found[:4], (want.jacobian(), want.drift, want.rate, want.residual), strict=True):
        np.testing.assert_allclose(own[:-1], np.array(other, float), rtol=0, atol=1e-12)
    assert not np.asarray(found.J[4:6]).any() and found.J[-1].tolist() == np.eye(15)[2].tolist()


@pytest.mark.slow
def test_many_windows_rest_and_vibrate_as_one():
    """A row of 40 has one freedom, in closed form."""
    n = 40
    model, sign = windows(n)
    mass, weight = (n + 1) / 3 + n, ((n + 1) / 2 + n) * G
    rest = root_scalar(lambda x: 50 * n * (x - 1.5) + weight * np.cos(x), bracket=(1, 2)).root
    q, _, status, _ = mbs.equilibrium(model, 1.3 * sign)
    assert int(status) == mbs.Status.OK
    np.testing.assert_allclose(q, rest * sign, rtol=0, atol=1e-12)
    stiffness = 50 * n - weight * np.sin(rest)
    linear = mbs.linearize(model, q, independent="foot_0")
    np.testing.assert_allclose([linear.M[0, 0], linear.C[0, 0], linear.K[0, 0]], [mass, n, stiffness], rtol=1e-10)
    modes = mbs.modes(model, q, independent="foot_0")
    want = np.roots([mass, n, stiffness])
    np.testing.assert_allclose(modes.eigenvalues, want[np.argsort(-want.imag)], rtol=1e-10)
    np.testing.assert_allclose(np.abs(modes.shapes["head_7"]), np.full((2, 1), (2 * n + 1) ** -0.5), rtol=1e-10)


def test_what_cannot_be_linearised():
    model, q = mbs.library.four_bar().build(), jnp.array([0.0, 0.1, 1.5])
    with pytest.raises(mbs.ModelError, match="leave no degree of freedom"):
        mbs.linearize(model, q, fixed=["crank_hinge"])
    with pytest.raises(mbs.ModelError, match="names 2 speeds, but the constraints leave 1"):
        mbs.linearize(model, q, independent=["crank_hinge", "rocker_hinge"])
    with pytest.raises(mbs.ModelError, match="did you mean 'crank_hinge"):
        mbs.linearize(model, q, independent="crank_hing")
    with pytest.raises(mbs.ModelError, match="locks of the mode are traced"):
        jax.jit(lambda mode: mbs.linearize(model, q, mode=mode))(model.mode(lock="crank_hinge"))
