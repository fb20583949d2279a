"""The family of integrators: orders, closed forms, tolerances, stiffness, long runs, memory of derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.custom_derivatives import SymbolicZero

import jaxmbs as mbs
from jaxmbs.simulate.loops import shared, sizes, varied
from jaxmbs.simulate.steppers import METHODS, MuntheKaas, Variational
from jaxmbs.simulate.steppers.runge_kutta import tableau
from tests.cases import compilations

G = (0.0, 0.0, -9.81)
ORDERS = {"dopri5": 5, "dop853": 8, "implicit": 5, "symplectic": 2, "on the group": 4}
LENGTHS = dict.fromkeys(ORDERS, (0.02, 0.01)) | {"dop853": (0.1, 0.05)}


def top_with_rotor():
    """A heavy top that carries a driven flywheel: a quaternion and an angle, time in the forces."""
    mech = mbs.Mechanism("top", gravity=G)
    mech.add_body("top", mass=1.0, com=(0.0, 0.02, 0.15), inertia=(0.02, 0.03, 0.01))
    mech.add_body("wheel", mass=0.3, com=(0.01, 0.0, 0.0), inertia=(0.002, 0.002, 0.004))
    mech.add_joint("tip", mbs.Spherical(), "world", "top")
    mech.add_joint("axle", mbs.Revolute(axis=(1, 0, 0)), "top", "wheel", parent_pose=mbs.Pose(position=(0.1, 0, 0.1)))
    q = np.array([0.9, 0.3, -0.1, 0.2, 0.4])
    q[:4] /= np.linalg.norm(q[:4])
    return mech.build(), q, np.array([1.0, -2.0, 3.0, 5.0])


def drive(model, t, q, v):
    return jnp.stack([0 * t, 0 * t, 0 * t, 0.02 * jnp.sin(7 * t)])


def end(run):
    q, v = np.asarray(run.q[-1]), np.asarray(run.v[-1])
    return np.concatenate([q * np.sign(q[0]), v])


def test_coefficients_are_those_of_scipy():
    from scipy import integrate

    for name, theirs, errors in (("dopri5", integrate.RK45, "E"), ("dop853", integrate.DOP853, "E5 E3")):
        ours, s = tableau(name), len(theirs.B)
        assert np.array_equal(ours.A[:s, : theirs.A.shape[1]], theirs.A[:s]) and np.array_equal(ours.A[s, :s], theirs.B)
        assert np.array_equal(ours.c[:s], theirs.C[:s]) and ours.c[s] == 1 and np.array_equal(ours.b[:s], theirs.B)
        assert np.array_equal(ours.errors, [getattr(theirs, e) for e in errors.split()]) and ours.stages == s
        assert (ours.order, ours.error_order) == (theirs.order, theirs.error_estimator_order)


def test_a_loop_whose_carry_varies_from_the_start_is_differentiated_once():
    zeros = []  # per differentiation which arguments do not vary

    @jax.custom_jvp
    def next_of(*x):
        return jnp.sin(sum(x))

    def rule(x, dx):
        zeros.append([isinstance(d, SymbolicZero) for d in dx])
        return next_of(*x), jnp.cos(sum(x)) * sum(0.0 if isinstance(d, SymbolicZero) else d for d in dx)

    next_of.defjvp(rule, symbolic_zeros=True)

    def last(x, start):
        def body(carry, _):
            a, b, c, n = carry
            return (b, c, next_of(a, c, x), n + 1), None

        carry = start((0.1, jnp.full((), 0.2), 0.3, 0), {"x": x, "n": 3})
        return jax.lax.scan(body, carry, None, length=5)[0][2]

    found = {}
    for name, start in (("handed on", lambda c, of: c), ("varied", varied)):
        zeros.clear()
        found[name] = (
            jax.grad(last)(0.4, start),
            jax.jvp(functools.partial(last, start=start), (0.4,), (1.0,)),
            list(zeros),
        )
    one, two = found["handed on"], found["varied"]
    assert np.allclose(one[0], two[0], rtol=1e-14) and np.allclose(one[1], two[1], rtol=1e-14)
    assert not any(map(any, two[2])) and [True, False, False] in one[2]


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.usually("dop*", "implicit", "on the group")
def test_orders_on_the_manifold(name):
    """The error of one step is of one order more than that of a motion; one program serves every length."""
    model, q, v = top_with_rotor()
    method = MuntheKaas("rk4") if name == "on the group" else name
    errors = []
    for h in LENGTHS[name]:
        run = mbs.simulate(model, q, v, h, h, drive, method=method, save_every=None)
        truth = mbs.simulate(model, q, v, h, h / 4, drive, method="dop853", tolerance=1e-13, save_every=None)
        errors.append(np.abs(end(run) - end(truth)).max())
        assert abs(np.linalg.norm(run.q[-1, :4]) - 1) < 1e-14
    assert errors[1] > 1e-13, "too near to rounding to say"
    assert ORDERS[name] + 0.6 < np.log2(errors[0] / errors[1]) < ORDERS[name] + 1.9, errors


def free_body(inertia):
    mech = mbs.Mechanism("stone", gravity=(0, 0, 0))
    mech.add_body("stone", mass=2.0, inertia=inertia)
    mech.add_joint("flight", mbs.Free(), "world", "stone")
    return mech.build()


@pytest.mark.slow
def test_torque_free_rotation_against_jacobi_functions():
    """40 s of it, and turning about the middle axis, which flips: angular velocities in elliptic functions [Landau I.37]."""
    from scipy.special import ellipj, ellipk

    I = np.array([1.0, 2.0, 3.0])
    start = np.array(
        [[1.0, 0.0, 1.2], [1.2, 0.0, 0.3], [0.7, 0.0, 0.4042]]
    )  # the last all but on the separatrix: flips
    model = free_body(tuple(I))

    @jax.jit
    @jax.vmap
    def run(w):
        v = jnp.concatenate([w, jnp.array([0.3, 0.2, 0.1])])
        return mbs.simulate(model, model.neutral(), v, 40.0, 1.0, method="dop853", tolerance=3e-13, max_steps=3000)

    found = run(jnp.asarray(start))
    assert not np.any(found.status)
    t = np.asarray(found.t[0])
    for w, rows in zip(start, np.asarray(found.v[:, :, :3]), strict=True):
        E2, M2 = I @ w**2, (I @ (I * w**2))
        order = [0, 1, 2] if E2 * I[1] < M2 else [2, 1, 0]
        a, b, c = I[order]
        rate = np.sqrt(abs((c - b) * (M2 - E2 * a) / (a * b * c)))
        m = (b - a) * (E2 * c - M2) / ((c - b) * (M2 - E2 * a))
        sn, cn, dn, _ = ellipj(rate * t, m)
        exact = np.empty_like(rows)
        exact[:, order[0]], exact[:, order[2]] = w[order[0]] * cn, w[order[2]] * dn
        sign = -np.sign(w[0] * w[2])
        exact[:, order[1]] = sign * np.sqrt(abs((E2 * c - M2) / (b * (c - b)))) * sn
        if abs(exact[1, 1] - rows[1, 1]) > abs(exact[1, 1] + rows[1, 1]):
            exact[:, order[1]] *= -1
        assert ellipk(m) / rate < 40, "it turns over at least once"
        assert np.abs(rows - exact).max() < 1e-9


def test_tolerance_of_each_instance_its_own():
    """Rows of a batch are what they are whatever the others do, errors follow tolerances, derivatives are exact."""
    model = mbs.library.double_pendulum().build()

    @jax.jit
    @jax.vmap
    def run(q, tolerance):
        return mbs.simulate(model, q, [1.0, 0.0], 2.0, 0.5, method="dopri5", tolerance=tolerance, max_steps=2000)

    q = jnp.outer(jnp.linspace(0.5, 1.5, 8), jnp.array([1.0, -0.4]))
    tolerance = jnp.logspace(-4, -10, 8)
    batch = run(q, tolerance)
    exact = run(q, jnp.full(8, 1e-11))
    errors = np.abs(batch.v[:, -1] - exact.v[:, -1]).max(axis=1)
    assert np.all(errors < 100 * tolerance) and errors[0] > 1e-6
    assert np.all(np.diff(batch.steps.taken) > 0) and np.all(batch.steps.refused > 0) and not np.any(batch.status)
    for k in (0, 7):  # among copies of itself
        alone = run(jnp.tile(q[k], (8, 1)), jnp.full(8, tolerance[k]))
        assert (
            np.allclose(alone.v[3], batch.v[k], rtol=1e-12, atol=1e-14) and alone.steps.taken[3] == batch.steps.taken[k]
        )

    def last(q):
        return run(q[None], jnp.full(1, 1e-9)).v[0, -1]

    x = q[3]
    forward = jax.jacfwd(last)(x)
    h = 1e-4
    about = jnp.stack([x + s * h * e for e in jnp.eye(2) for s in (1, -1, 2, -2)])
    a = run(about, jnp.full(8, 1e-11)).v[:, -1].reshape(2, 4, 2)
    differences = ((8 * (a[:, 0] - a[:, 1]) - (a[:, 2] - a[:, 3])) / (12 * h)).T
    assert np.abs(forward - differences).max() < 1e-7 * np.abs(differences).max()


@pytest.mark.cpu
def test_reverse_mode_with_checkpoints(monkeypatch):
    """The same gradient, less memory; without them, what the four stages of a step begin with and their accelerations.

    Asked of XLA, which tells how much memory it takes.
    """
    monkeypatch.setenv("JAXMBS_KERNELS", "xla")
    model = mbs.library.double_pendulum().build()
    used, found = [], []
    for levels in (False, 2):

        def last(v, levels=levels):
            run = mbs.simulate(model, [0.5, 1.0], v, 4.0, 1e-3, checkpoint=levels, save_every=None)
            return run.q[-1] @ jnp.array([1.0, 2.0])

        compiled = jax.jit(jax.grad(last)).lower(jnp.zeros(2)).compile()
        analysis = compiled.memory_analysis()
        assert analysis is not None
        used.append(analysis.temp_size_in_bytes)
        found.append(compiled(jnp.zeros(2)))
    assert np.allclose(found[1], found[0], rtol=1e-12, atol=0)
    assert 10 * used[1] < used[0] < 4000 * 8 * (4 * 3 + 4 + 20), used


@pytest.mark.slow
def test_reverse_mode_of_adaptive_steps():
    model = mbs.library.double_pendulum().build()

    def last(v, dt, **more):
        return mbs.simulate(model, [0.5, 1.0], v, 4.0, dt, **more).q[-1] @ jnp.array([1.0, 2.0])

    v = jnp.zeros(2)
    own = jax.grad(last)(v, 0.1, method="dopri5", tolerance=1e-11, checkpoint=2, max_steps=4000)
    assert np.allclose(own, jax.grad(last)(v, 1e-3), rtol=1e-7)


@pytest.mark.parametrize(
    ("levels", "groups", "each"), [(0, 5, 7), (1, 5, 7), (2, 50, 7), (3, 2, 700), (2, 1, 9), (4, 99, 1)]
)
def test_levels_are_shared_between_loops(levels, groups, each):
    outer, inner = shared(levels, groups, each)
    assert outer + inner == levels and (inner == 0 or each > 1) and (outer == 0 or groups > 1)
    for n, k in ((groups, outer), (each, inner)):
        assert n <= np.prod(sizes(n, k)) <= 2 * n


@pytest.mark.slow
def test_stiff_pad_beside_a_slow_swing():
    """A light sensor on a pad of 1e6 N/m on a swinging boom: the implicit method steps as the swing does."""
    mech = mbs.Mechanism("boom", gravity=G)
    mech.add_body("boom", mass=2.0, com=(0, 0, -0.5), inertia=(0.2, 0.2, 0.02))
    mech.add_body("sensor", mass=0.05, inertia=(1e-5, 1e-5, 1e-5))
    mech.add_joint("hinge", mbs.Revolute(axis=(0, 1, 0)), "world", "boom")
    mech.add_joint("pad", mbs.Prismatic(axis=(0, 0, 1)), "boom", "sensor", parent_pose=mbs.Pose(position=(0, 0, -1)))
    mech.add_force("rubber", mbs.TorsionSpring("pad", stiffness=1e6, damping=50.0))
    model, start = mech.build(), ([1.0, 0.0], [0.0, 0.0])

    def run(dt, method, tolerance):
        return mbs.simulate(
            model, *start, 4.0, dt, method=method, tolerance=tolerance, max_steps=60000, save_every=None
        )

    exact = run(0.5, "dop853", 1e-11)
    implicit, explicit = run(0.5, "implicit", 1e-7), run(0.5, "dopri5", 1e-7)
    assert not any(int(x.status) for x in (exact, implicit, explicit))
    errors = [float(abs(x.q[-1, 0] - exact.q[-1, 0])) for x in (implicit, explicit)]
    calls = [int(sum(x.steps)) for x in (implicit, explicit)]
    evaluations = [calls[0] * (8 + 2 * model.nv + 1), calls[1] * 7]
    assert errors[0] < max(errors[1], 1e-6) and evaluations[1] > 20 * evaluations[0], (errors, evaluations)


def test_symplectic_runs_keep_what_is_kept():
    """Momenta to rounding, energy within a band that does not grow; the same run by Runge-Kutta drifts."""
    model = free_body((0.1, 0.25, 0.3))
    v = jnp.array([0.4, 3.0, 0.3, 0.1, -0.2, 0.3])
    run = mbs.simulate(model, model.neutral(), v, 100.0, 0.05, method="symplectic", save_every=20)
    angular = np.array([mbs.momentum(model, *x) for x in zip(run.q[::10], run.v[::10], strict=True)])
    assert np.abs(angular - angular[0]).max() < 1e-11
    early, late = np.ptp(run.energy_error[1:50]), np.ptp(run.energy_error[50:])
    assert 1e-6 < late < 1.1 * early
    other = mbs.simulate(model, model.neutral(), v, 100.0, 0.05, save_every=20)
    assert abs(other.energy_error[-1]) > 3 * abs(other.energy_error[20])


def test_a_heavy_top_keeps_its_vertical_momentum():
    """Gravity turns it, and leaves the angular momentum about the vertical, to rounding; energy stays within its band."""
    mech = mbs.Mechanism("top", gravity=G)
    mech.add_body("top", mass=1.0, com=(0.0, 0.05, 0.15), inertia=(0.02, 0.03, 0.01))
    mech.add_joint("tip", mbs.Spherical(), "world", "top")
    model = mech.build()
    run = mbs.simulate(model, [0.9, 0.3, -0.1, 0.2], [1.0, -2.0, 9.0], 60.0, 0.02, method="symplectic", save_every=50)

    @jax.vmap
    def vertical(q, v):
        return (mbs.body_poses(model, q).rotation[0] @ (mbs.mass_matrix(model, q) @ v))[2]

    momentum = np.asarray(vertical(run.q, run.v))[1:]  # the first q is no unit quaternion yet
    assert np.ptp(momentum) < 1e-11
    energy = np.asarray(run.energy_error[1:]).reshape(4, -1)
    assert 1e-4 < np.ptp(energy[0]) < 0.1 and np.ptp(energy[3]) < 1.3 * np.ptp(energy[0])
    # the error of the method itself; with the force applied otherwise, it is of second order too, but 0.0181
    fine, coarse = (
        mbs.simulate(model, run.q[0], run.v[0], 1.0, dt, method=method, save_every=None).q[-1]
        for dt, method in ((1e-3, "rk4"), (0.02, "symplectic"))
    )
    assert 0.0137 < np.abs(coarse - fine).max() < 0.0139


@pytest.mark.slow
def test_steady_precession_over_a_hundred_turns():
    """A symmetric top at the rate at which gravity just turns its angular momentum: its axis comes back."""
    A, C, m, arm, tilt, precession = 0.02, 0.03, 1.0, 0.15, 0.7, 6.0
    mech = mbs.Mechanism("top", gravity=G)
    mech.add_body("top", mass=m, com=(0.0, 0.0, arm), inertia=(A, A, C))
    mech.add_joint("tip", mbs.Spherical(), "world", "top")
    about_tip = A + m * arm**2
    spin = (m * 9.81 * arm + about_tip * precession**2 * np.cos(tilt)) / (C * precession)
    model, q = mech.build(), [np.cos(tilt / 2), np.sin(tilt / 2), 0.0, 0.0]
    v = [0.0, precession * np.sin(tilt), spin]
    t_end = 100 * 2 * np.pi / precession
    run = mbs.simulate(model, q, v, t_end, t_end / 400, method="dop853", tolerance=1e-13, max_steps=60000)
    axes = jax.vmap(lambda q: mbs.body_poses(model, q).rotation[0, :, 2])(run.q)
    angle = precession * run.t
    exact = np.stack([np.sin(angle) * np.sin(tilt), -np.cos(angle) * np.sin(tilt), np.full(401, np.cos(tilt))], axis=1)
    assert run.status == 0 and np.abs(axes - exact).max() < 1e-8


@pytest.mark.slow
def test_a_million_symplectic_steps_of_ten_links():
    """The energy stays in a band that is as wide in the second half of the run as in the first. How wide it is in a window
    depends on the motion, which is chaotic: windows of one motion differ by a factor of five, hence the mean of eight."""
    model = mbs.library.chain(10).build()

    def energies(q):
        run = mbs.simulate(model, q, np.zeros(10), 2000.0, 2e-3, method=Variational(6), save_every=1000)
        return run.energy_error, run.energy_exchanged, run.status

    q = jnp.full((8, 10), 0.3) + 1e-6 * jnp.arange(8)[:, None]
    error, exchanged, status = (np.asarray(x) for x in mbs.jit(energies, in_axes=0)(q))
    first, second = np.ptp(error[:, 1:].reshape(8, 2, 5, -1), axis=3).mean(axis=(0, 2))
    assert not status.any() and 0.7 < second / first < 1.4 and (np.abs(error).max(1) < 5e-4 * exchanged).all()


@pytest.mark.slow
def test_four_thousand_tolerances():
    """In one batch as one by one; derivatives are those of finite differences, to the tolerance of each."""
    model, rng = mbs.library.double_pendulum().build(), np.random.default_rng(8)
    q, tolerance = rng.uniform(-1.5, 1.5, (4096, 2)), 10 ** rng.uniform(-10, -4, 4096)

    def run(q, tolerance):
        return mbs.simulate(
            model, q, [1.0, 0.0], 2.0, 0.5, method="dopri5", tolerance=tolerance, max_steps=2000, save_every=None
        )

    def last(q, tolerance):
        found = run(q, tolerance)
        return found.v[-1, -1], (found.v[-1], found.steps.taken, found.status)

    ends = mbs.jit(last, in_axes=0)
    _, (v, taken, status) = ends(q, tolerance)
    assert not np.any(status) and taken.max() > 10 * taken.min()
    for k in range(0, 4096, 256):
        alone = ends(q[k : k + 1], tolerance[k : k + 1])[1]
        assert np.array_equal(alone[0][0], v[k]) and alone[1][0] == taken[k]
        by_xla = run(jnp.asarray(q[k]), jnp.asarray(tolerance[k]))
        assert np.allclose(by_xla.v[-1], v[k], rtol=1e-11, atol=1e-11) and by_xla.steps.taken == taken[k]

    gradient = mbs.jit(jax.grad(lambda q, tolerance: last(q, tolerance)[0]), in_axes=0)
    h, finest = 1e-4, np.full(4096, 1e-12)
    a = [[np.asarray(ends(q + s * h * e, finest)[0]) for s in (1, -1, 2, -2)] for e in np.eye(2)]
    differences = np.stack([(8 * (x[0] - x[1]) - (x[2] - x[3])) / (12 * h) for x in a], axis=1)
    for allowed, median, most in ((tolerance, 20, 2e4), (1e-9, 20, 2e4)):
        given = np.broadcast_to(allowed, 4096)
        error = np.abs(gradient(q, given) - differences).max(axis=1) / np.abs(differences).max(axis=1)
        assert np.median(error / given) < median and np.max(error / given) < most


@pytest.mark.slow
def test_events_at_steps_of_ones_own():
    """A bouncing ball at a tolerance: instants of impact and heights against the parabola; locks in symplectic steps."""
    mech = mbs.Mechanism("ball", gravity=G)
    mech.add_body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("fall", mbs.Prismatic(axis=(0, 0, 1)), "world", "ball")
    mech.add_event(
        "floor", when=mbs.JointReaches("fall", 0.0, direction="down"), then=mbs.Bounce("fall", 0.8), repeat=True
    )
    model = mech.build()
    g = 9.81
    first = np.sqrt(2 / g)
    times = first + np.concatenate([[0], 2 * first * np.cumsum(0.8 ** np.arange(1, 3))])
    for method, tolerance in (("dopri5", 1e-10), ("symplectic", None)):
        run = mbs.simulate(model, [1.0], [0.0], 1.9, 0.1, method=method, tolerance=tolerance)
        assert run.status == 0
        assert np.allclose(run.events.time[:3], times, rtol=1e-9 if tolerance else 1e-12)


def test_a_tolerance_that_no_step_meets_is_a_status():
    """A force without bound at an instant; the other instances go on."""
    mech = mbs.library.double_pendulum()
    model = mech.build()

    @jax.vmap
    def run(strength):
        def tau(model, t, q, v):
            return strength * jnp.stack([1 / (0.987 - t) ** 2, 0 * t])

        return mbs.simulate(
            model, [0.1, 0.1], [0.0, 0.0], 1.3, 0.1, tau, method="dopri5", tolerance=1e-6, max_steps=4000
        )

    found = run(jnp.array([0.0, 1.0]))
    assert found.status.tolist() == [mbs.Status.OK, mbs.Status.STEP_UNDERFLOW]
    assert np.all(np.isfinite(found.q)) and found.steps.refused[1] > 10
    few = mbs.simulate(model, [2.0, 0.0], [0.0, 0.0], 3.0, 1.0, method="dopri5", tolerance=1e-9, max_steps=10)
    assert few.status == mbs.Status.UNFINISHED


def test_steps_without_a_length_are_as_long_as_the_tolerance_allows():
    """A pendulum for ten seconds, against the same with steps of one millisecond; rows at given times change little."""
    model = mbs.library.double_pendulum().build()
    q, v = [0.5, 0.3], [0.0, 0.0]
    fine = mbs.simulate(model, q, v, 10.0, 1e-3, save_every=2500)

    def run(**more):
        return mbs.simulate(model, q, v, method="dop853", tolerance=1e-10, **more)

    free, seen, bound = run(t_end=10.0), run(times=[0.0, 2.5, 5.0, 7.5, 10.0]), run(t_end=10.0, dt=0.02, save_every=125)
    assert free.t.tolist() == [0.0, 10.0] and seen.t.tolist() == fine.t.tolist()
    for found in (free, seen, bound):
        assert found.status == mbs.Status.OK
        np.testing.assert_allclose(found.q[-1], fine.q[-1], rtol=0, atol=1e-8)
    np.testing.assert_allclose(seen.q, fine.q, rtol=0, atol=1e-8)
    assert free.steps.taken < 250 and seen.steps.taken < free.steps.taken + 20 and bound.steps.taken >= 500


def test_times_are_data():
    """Other times with as many steps, another tolerance: nothing is compiled."""
    model = mbs.library.double_pendulum().build()

    def run(t_end, dt, **more):
        return mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end, dt, **more)

    run(0.2, 0.1)
    run(0.2, 0.1, method="dopri5", tolerance=1e-6)
    found = []

    def others():
        found.extend([run(0.4, 0.2), run(0.5, 0.2, t0=0.1, method="dopri5", tolerance=1e-7)])

    assert compilations(others) == 0
    assert found[0].t.tolist() == [0, 0.2, 0.4] and np.allclose(found[1].t, [0.1, 0.3, 0.5], rtol=1e-15)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"method": "rk5"}, ["'rk5'", "'rk4'"]),
        ({"method": 4}, ["method is 4", "mbs.steppers"]),
        ({"tolerance": 1e-6}, ["'rk4'", "dopri5 or dop853 or implicit"]),
        ({"method": "dopri5", "tolerance": 1e-17}, ["1e-17", "rounding"]),
        ({"method": "dopri5", "tolerance": -1e-3}, ["-0.001"]),
        ({"method": "dopri5", "tolerance": [1e-3] * 3}, ["shape (3,)", "(2,)"]),
        ({"method": "dopri5", "tolerance": 1e-3, "max_steps": 0}, ["max_steps is 0"]),
        ({"checkpoint": 99}, ["checkpoint is 99", "levels"]),
    ],
)
def test_what_makes_no_run(change, said):
    model = mbs.library.double_pendulum().build()
    with pytest.raises(mbs.ModelError) as error:
        mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], 0.2, 0.1, **change)
    assert all(words in str(error.value) for words in said), error.value


def test_methods_that_do_not_serve_say_so():
    mech = mbs.library.four_bar()
    model = mech.build()
    with pytest.raises(mbs.ModelError, match=r"'symplectic' does not support .*loops"):
        mbs.simulate(model, model.neutral(), np.zeros(model.nv), 0.1, method="symplectic")
    assert all(m.obstacle(mbs.library.chain(2).build().structure) is None for m in METHODS.values())
