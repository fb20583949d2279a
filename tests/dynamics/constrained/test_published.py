"""Mechanisms with published or exact motions: the IFToMM benchmarks A01 to A04, and a disc by Newton and Euler."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import jaxmbs as mbs
from jaxmbs.library import ANDREWS_START


def test_a01_pendulum_by_a_constraint():
    """A point mass held at 1 m from the origin, released level: swings through 180 degrees in ten seconds as it must."""
    g, t_end = 9.81, 10.0
    mech = mbs.Mechanism("A01", gravity=(0, -g, 0))
    mech.add_body("slider")
    mech.add_body("mass", 1.0)
    mech.add_joint("x", mbs.Prismatic((1, 0, 0)), "world", "slider")
    mech.add_joint("y", mbs.Prismatic((0, 1, 0)), "slider", "mass")
    mech.add_constraint("rod", mbs.Holonomic(lambda m, t, q, v: (q @ q - 1.0) / 2))
    run = mbs.simulate(mech.build(), jnp.array([1.0, 0.0]), jnp.zeros(2), t_end, 2e-3, save_every=250)
    k = np.sin(np.pi / 4)  # release at 90 degrees from the lowest point
    sn = ellipj(np.sqrt(g) * np.asarray(run.t) + ellipk(k**2), k**2)[0]
    half = np.arcsin(k * sn)
    np.testing.assert_allclose(run.q, np.stack([np.sin(2 * half), -np.cos(2 * half)], 1), rtol=0, atol=1e-8)
    assert np.abs(run.energy_error).max() < 1e-8
    assert run.constraint_error.max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(("n", "t_end"), [(1, 10.0), (2, 10.0), pytest.param(10, 10.0, marks=pytest.mark.slow)])
@pytest.mark.usually("1-*")
def test_a02_windows_pass_the_flat_position(n, t_end):
    """All posts turn alike, an exact system with one freedom; flat, the mechanism could branch in n ways."""
    model, rate = mbs.library.four_bar_windows(n).build(), -1.0  # heads move at 1 m/s towards +x
    sign = np.array([1.0 if name.startswith("foot") else -1.0 for name in model.joint_names])
    run = mbs.simulate(model, sign * np.pi / 2, sign * rate, t_end, 2e-3, save_every=50)
    inertia, weight = (n + 1) / 3 + n, ((n + 1) / 2 + n) * 9.81
    exact = solve_ivp(
        lambda t, y: [y[1], -weight * np.cos(y[0]) / inertia],
        (0, t_end), [np.pi / 2, rate], t_eval=np.asarray(run.t), rtol=1e-12, atol=1e-12, method="DOP853",
    )  # fmt: skip
    assert (np.diff(np.signbit(np.sin(exact.y[0])))).sum() >= 5  # it was flat that often
    np.testing.assert_allclose(run.q, np.outer(exact.y[0], sign), rtol=0, atol=1e-7)
    assert np.abs(run.energy_error).max() < 1e-8
    assert run.constraint_error.max() < 1e-10


@pytest.mark.slow
def test_a02_starts_flat_and_keeps_the_branch_of_its_velocity():
    """At the branching point itself only the velocity tells which of the two motions it is."""
    model = mbs.library.four_bar_windows(1, gravity=(0, 0, 0)).build()
    parallel = np.array([1.0 if name.startswith("foot") else -1.0 for name in model.joint_names])
    run = mbs.simulate(model, np.zeros(3), parallel, 1.0, 2e-3, save_every=None)
    np.testing.assert_allclose(run.q[-1], parallel, rtol=0, atol=1e-8)  # turns at constant speed


def andrews():
    model = mbs.library.andrews_squeezer().build()
    q = jnp.array([ANDREWS_START[n] for n in model.joint_names])
    return model, q, jnp.zeros(7).at[model.v_slice("O")].set(0.033)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["multipliers", "elimination"])
@pytest.mark.usually("elimination")
def test_a03_initial_accelerations(method):
    """Hairer and Wanner II, VII.7: the published accelerations and multipliers at the start."""
    model, q, tau = andrews()
    a, multipliers, residual = mbs.constrained_dynamics(model, q, jnp.zeros(7), tau, method=method)
    want = np.zeros(7)
    want[model.v_slice("O")], want[model.v_slice("K1-K2")] = 14222.4439199541138705911625887, -10666.8329399655854029
    np.testing.assert_allclose(a, want, rtol=1e-11, atol=1e-6)
    beta = ANDREWS_START["O"]
    turn = np.array([[np.cos(beta), np.sin(beta)], [-np.sin(beta), np.cos(beta)]])  # multipliers are in axes of K2
    rows = mbs.constraint_rows(model)
    published = turn @ [98.5668703962410896057654982170, -6.12268834425566265503114393122]
    np.testing.assert_allclose(np.abs(multipliers[rows["K3-E"]]), np.abs(published), rtol=1e-11)
    np.testing.assert_allclose(multipliers[rows["K4-E"]], 0, atol=1e-11)
    assert np.abs(residual).max() < 1e-14


def test_a03_final_angles():
    """The reference solution of the test set for initial value problem solvers at t = 0.03 s."""
    model, q, tau = andrews()
    run = mbs.simulate(model, q, jnp.zeros(7), 0.03, 1e-5, tau, save_every=None)
    want = {
        "O": 15.81077119629904, "K1-K2": -15.75637105984298, "B": 0.04082224013073101, "A5": 0.5244099658805304,
        "K5-K4": -0.5347301163226948, "A7": 1.048080741042263, "K7-K6": 0.5347301163226948,
    }  # fmt: skip
    np.testing.assert_allclose(run.q[-1], [want[n] for n in model.joint_names], rtol=0, atol=5e-9)
    assert run.constraint_error.max() < 1e-14


@pytest.mark.filterwarnings("ignore::jaxmbs.ModelWarning")
@pytest.mark.slow
def test_a04_bricard():
    """Counting gives no freedom, there is one: sin x + sin y + sin x sin y = 0 for the hinges in turn.

    That relation of the trihedral linkage makes a system with one coordinate of the tree without its loop.
    """
    model = mbs.library.bricard().build()
    run = mbs.simulate(model, jnp.zeros(5), jnp.zeros(5), 10.0, 2.5e-3, save_every=80)
    assert int(run.status) == mbs.Status.OK
    assert np.abs(run.energy_error).max() < 1e-8
    assert run.constraint_error.max() < 1e-12

    def configuration(x):
        y = -jnp.arcsin(jnp.sin(x) / (1 + jnp.sin(x)))
        return jnp.array([x, y, x, y, x])

    @jax.jit
    def acceleration(x, rate):
        def energies(x, rate):
            q, v = jax.jvp(configuration, (x,), (rate,))
            return mbs.energy(model, q, v)

        inertia = 2 * energies(x, 1.0)[0]
        forces = jax.grad(lambda x: energies(x, rate)[0])(x) + jax.grad(lambda x: energies(x, 0.0)[1])(x)
        return -forces / inertia  # I x'' + I' x'^2 / 2 + V' = 0

    exact = solve_ivp(
        lambda t, y: [y[1], float(acceleration(*y))], (0, 2.0), [0.0, 0.0], t_eval=np.asarray(run.t[:11]), rtol=1e-11,
        atol=1e-12, method="DOP853",
    )  # fmt: skip
    want = np.stack([configuration(x) for x in exact.y[0]])
    np.testing.assert_allclose(run.q[:11], want, rtol=0, atol=1e-8)


def test_rolling_disc_against_newton_and_euler():
    """Angular acceleration and contact force of a leaning, spinning disc from moments about its centre.

    These are the equations that Kane's generalized speeds lead to (Kane and Levinson, Dynamics, 1985): with d from the
    centre down to the contact point, I w' + w x I w = r d x F and m (r d x w' - r w x d') = F + m g.
    """
    r, g, theta = 0.3, 9.81, 0.35
    s, c = np.sin(theta), np.cos(theta)
    n, d = np.array([0, c, s]), np.array([0, s, -c])  # the disc's axis, the way down in its plane
    w = np.array([0.4, 0, 0]) - 0.7 * d + 6.0 * n
    to_body = np.array([[1, 0, 0], [0, c, s], [0, -s, c]])
    q = jnp.array([0, 0, r * c, np.cos(theta / 2), np.sin(theta / 2), 0, 0])
    v = jnp.concatenate([to_body @ w, to_body @ np.cross(w, -r * d)])
    a, multipliers, residual = mbs.constrained_dynamics(_disc(r), q, v)
    assert np.abs(residual).max() < 1e-14
    inertia = r**2 / 4 * (np.eye(3) + np.outer(n, n))
    n_rate = np.cross(w, n)
    # d = (n.z n - up) / sin of the angle between n and up, which is c
    d_rate = (n_rate * n[2] + n * n_rate[2]) / c + d * n[2] * n_rate[2] / c**2
    d_cross = np.cross(np.eye(3), d)
    equations = np.block([[inertia, -r * d_cross], [r * d_cross, -np.eye(3)]])
    right = np.concatenate([-np.cross(w, inertia @ w), r * np.cross(w, d_rate) + [0, 0, -g]])
    found = np.linalg.solve(equations, right)
    np.testing.assert_allclose(to_body.T @ a[:3], found[:3], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(multipliers, found[3:], rtol=1e-12, atol=1e-12)


def _disc(radius):
    mech = mbs.Mechanism("disc", gravity=(0, 0, -9.81))
    mech.add_body("wheel", mass=1.0, inertia=(0.25 * radius**2, 0.5 * radius**2, 0.25 * radius**2))
    mech.add_joint("free", mbs.Free(), "world", "wheel")
    mech.add_constraint("disc", mbs.RollingDisc("wheel", radius=radius, axis=(0, 1, 0)))
    return mech.build()
