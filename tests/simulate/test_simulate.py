"""Runge-Kutta 4 on the configuration manifold."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import case, compilations, relative
from tests.mechanisms import rates


def tumbling():
    """Two free bodies joined by a ball: quaternions at work."""
    return case(51, 2, kinds=("Spherical",), massless=0.0, free_base=True)


def swing(n=2):
    return mbs.library.chain(n).build(), np.full(n, 0.8), np.linspace(0, 1, n)


def difference(c, one, other):
    """Difference of two configurations that does not see the sign of a quaternion."""
    parts = []
    for j, sq, _ in c.mechanism.slices():
        x, y = one[sq].copy(), other[sq].copy()
        if j.motion in ("Spherical", "Free"):
            y[-4:] *= np.sign(x[-4:] @ y[-4:])
        parts.append(x - y)
    return np.abs(np.concatenate(parts)).max()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["angles", "quaternions"])
@pytest.mark.usually("quaternions")
def test_convergence_order_is_four(kind):
    if kind == "angles":
        model, q, v = swing(3)
    else:
        c = tumbling()
        model, q, v = c.model, c.q[0], c.v[0]
    runs = [mbs.simulate(model, q, v, 0.4, dt=0.4 / n, save_every=None) for n in (20, 40, 80, 320)]
    last = [np.asarray(r.v[-1]) for r in runs]
    errors = [np.abs(x - last[-1]).max() for x in last[:-1]]
    orders = np.log2(errors[:-1] / np.array(errors[1:]))
    assert np.all(orders > 3.7) and np.all(orders < 4.6), (errors, orders)
    if kind == "quaternions":
        ends = [np.asarray(r.q[-1]) for r in runs]
        errors = [difference(c, x, ends[-1]) for x in ends[:-1]]
        assert np.log2(errors[0] / errors[1]) > 3.7


def test_against_a_general_purpose_integrator():
    """The same motion from SciPy on the ambient coordinates, with Pinocchio's accelerations."""
    from scipy.integrate import solve_ivp

    c = tumbling()
    q, v = c.q[0], c.v[0]

    def slope(t, x):
        q, v = x[: len(x) - c.model.nv], x[len(x) - c.model.nv :]
        return np.concatenate([rates(c.mechanism, q, v), c.pinocchio.forward_dynamics(q, v, 0 * v)])

    exact = solve_ivp(slope, (0, 0.5), np.concatenate([q, v]), method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    solution = mbs.simulate(c.model, q, v, 0.5, dt=1e-3, save_every=None)
    assert difference(c, np.asarray(solution.q[-1]), exact[: c.model.nq]) < 1e-8
    assert relative(solution.v[-1], exact[c.model.nq :]) < 1e-8


def test_quaternions_stay_normalised():
    c = tumbling()
    solution = mbs.simulate(c.model, c.q[0], c.v[0], 0.5, dt=5e-3)
    for j, sq, _ in c.mechanism.slices():
        if j.motion in ("Spherical", "Free"):
            assert relative(np.linalg.norm(solution.q[:, sq][:, -4:], axis=1), np.ones(101)) < 1e-14


def test_energy_balance_with_drive():
    """energy_error = E - E0 - work, the drive's work included."""
    model, q, v = swing(3)
    tau = np.array([3.0, -1.0, 0.5])
    solution = mbs.simulate(model, q, v, 0.5, dt=1e-3, tau=tau, save_every=50)
    energy = np.array([sum(mbs.energy(model, *row)) for row in zip(solution.q, solution.v, strict=True)])
    gained = energy[-1] - energy[0]
    assert abs(gained) > 0.1
    assert gained == pytest.approx(float(tau @ (solution.q[-1] - solution.q[0])), abs=1e-8)
    assert np.abs(solution.energy_error).max() < 1e-9


def test_energy_balance_with_a_mode():
    """Work is counted once, whether or not there is a mode; elements that are switched off and locks do none."""
    mech = mbs.library.chain(3)
    mech.add_force("oil", mbs.Damper("hinge_2", 3.0))
    mech.add_force("jet", mbs.Thruster("link_3", thrust=9.0, direction=(1, 0, 0)))
    mech.add_force("hand", mbs.External(lambda model, t, q, v: 5.0 * jnp.cos(t + q)))
    model, q, v = mech.build(), np.full(3, 0.8), np.array([0.0, 0.5, 1.0])
    tau = np.array([3.0, -1.0, 0.5])

    @jax.jit
    def run(mode):
        return mbs.simulate(model, q, v, 0.3, dt=2e-3, tau=tau, mode=mode, save_every=50)

    plain, other = mbs.simulate(model, q, v, 0.3, dt=2e-3, tau=tau, save_every=50), run(model.mode())
    assert relative(other.q, plain.q) < 1e-12 and relative(other.energy_error, plain.energy_error) < 1e-12
    still = run(model.mode(lock="hinge_1"))
    off = run(model.mode(off=("oil", "jet", "hand")))
    ends = [np.asarray(x.q[-1]) for x in (plain, still, off)]
    assert min(np.abs(a - b).max() for a, b in itertools.combinations(ends, 2)) > 1e-2
    for x in (plain, still, off):
        assert np.abs(x.energy_error).max() < 1e-8
    work = tau @ (off.q[-1] - off.q[0])
    gained = [sum(mbs.energy(model, off.q[k], off.v[k])) for k in (0, -1)]
    assert gained[1] - gained[0] == pytest.approx(float(work), abs=1e-8) and abs(work) > 0.1


@pytest.mark.parametrize(
    ("t_end", "dt", "save_every", "rows"),
    [
        (0.5, 0.1, 1, [0, 0.1, 0.2, 0.3, 0.4, 0.5]),
        (0.25, 0.1, 1, [0, 0.1, 0.2, 0.25]),
        (0.5, 0.1, 2, [0, 0.2, 0.4, 0.5]),
        (0.4, 0.1, 2, [0, 0.2, 0.4]),
        (0.7, 0.1, 1, [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]),
        (0.05, 0.1, 1, [0, 0.05]),
        (0.33, 0.1, None, [0, 0.33]),
        (1.0, 1e-3, 400, [0, 0.4, 0.8, 1.0]),
    ],
)
@pytest.mark.usually("0.5-0.1-1-*", "0.7-0.1-1-*", "0.33-0.1-None-*", "0.4-0.1-2-*")
def test_rows_are_on_the_grid_and_exactly_at_the_end(t_end, dt, save_every, rows):
    model, q, v = swing()
    solution = mbs.simulate(model, q, v, t_end, dt=dt, save_every=save_every)
    assert solution.t.shape == (len(rows),)
    assert solution.q.shape == solution.v.shape == (len(rows), 2)
    assert solution.t[-1] == t_end
    grid = [round(x / dt) * dt for x in rows[:-1]]  # i dt, never a running sum
    assert np.array_equal(solution.t[:-1], grid)
    assert np.array_equal(solution.q[0], q)
    fine = mbs.simulate(model, q, v, t_end, dt=dt / 20, save_every=None)
    assert relative(solution.q[-1], fine.q[-1]) < 1e-2  # the last, shorter step lands where it should


def test_status_is_ok_or_says_what_went_wrong():
    model, q, v = swing()
    good = mbs.simulate(model, q, v, 0.1, dt=0.01)
    assert int(good.status) == mbs.Status.OK
    bad = mbs.simulate(model, q, v, 0.1, dt=0.01, tau=lambda m, t, q, v: jnp.where(t > 0.05, jnp.nan, 0.0) * v)
    assert int(bad.status) == mbs.Status.NOT_FINITE
    assert good.status.dtype == jnp.int32
    assert "finite" in mbs.Status(int(bad.status)).message


def test_a_failed_instance_leaves_the_others_alone():
    model, q, v = swing()
    speeds = np.stack([v, v * np.nan, v])
    runs = jax.vmap(lambda v: mbs.simulate(model, q, v, 0.1, dt=0.01))(speeds)
    assert runs.status.tolist() == [mbs.Status.OK, mbs.Status.NOT_FINITE, mbs.Status.OK]
    assert relative(runs.q[0], mbs.simulate(model, q, v, 0.1, dt=0.01).q) < 1e-12


def test_tau_may_be_a_function_of_time_and_state():
    """A computed torque makes every coordinate an oscillator: q = q0 cos t."""
    model, q, _ = swing()

    def tau(model, t, q, v):
        return mbs.inverse_dynamics(model, q, v, -q)

    solution = mbs.simulate(model, q, np.zeros(2), 1.0, dt=1e-2, tau=tau, save_every=10)
    assert relative(solution.q, q * np.cos(solution.t)[:, None]) < 1e-8


def test_rheonomic_joint_does_work():
    """A bob on a support that is driven along z: the energy error counts what the drive puts in."""
    mech = mbs.Mechanism("driven", gravity=(0, 0, -9.81))
    mech.add_body("bob", 1.0, (0, 0, -1.0), (0.1, 0.1, 0.1))

    def z(q, t):
        return jnp.stack([0.2 * jnp.sin(3 * t), 0 * t, 0 * t])

    def G(q, t):
        c, s, o, e = jnp.cos(q[0]), jnp.sin(q[0]), jnp.zeros_like(q[0]), jnp.ones_like(q[0])
        return jnp.stack([jnp.stack([c, o, s]), jnp.stack([o, e, o]), jnp.stack([-s, o, c])])

    mech.add_joint("joint", mbs.General(z, G, 1), "world", "bob")
    solution = mbs.simulate(mech.build(), np.array([0.5]), np.array([0.0]), 1.0, dt=2e-3)
    assert np.abs(solution.energy_error).max() < 1e-8


def test_fold_sees_every_grid_time():
    """Its carry is kept whatever is saved; here the largest angle and the number of visits."""
    model, q, v = swing()

    def fold(carry, model, t, q, v):
        return {"top": jnp.maximum(carry["top"], q[0]), "visits": carry["visits"] + 1, "t": t}

    start = {"top": jnp.float64(-9), "visits": 0, "t": jnp.float64(-1)}
    solution = mbs.simulate(model, q, v, 0.45, dt=0.1, save_every=None, fold=(start, fold))
    every = mbs.simulate(model, q, v, 0.45, dt=0.1)
    assert int(solution.folded["visits"]) == 6  # 0, 0.1, 0.2, 0.3, 0.4 and the end
    assert float(solution.folded["top"]) == pytest.approx(float(every.q[:, 0].max()), rel=1e-12)
    assert float(solution.folded["t"]) == pytest.approx(0.45, rel=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_derivatives_through_a_run(mode):
    model, _, v = swing()

    @jax.jit
    def end(x):
        changed = mbs.set(model, {"link_2.mass": x[0]})
        return mbs.simulate(changed, jnp.stack([x[1], x[2]]), jnp.asarray(v), 0.2, dt=0.02, save_every=None).q[-1]

    x, h = np.array([1.3, 0.8, 0.7]), 1e-3
    sides = [jnp.stack([end(x + k * h * e) for e in np.eye(3)], axis=1) for k in (-2, -1, 1, 2)]
    want = (sides[0] - 8 * sides[1] + 8 * sides[2] - sides[3]) / (12 * h)
    assert relative(mode(end)(x), want) < 1e-9


def test_a_batch_equals_its_rows():
    model, q, _ = swing()
    speeds = np.random.default_rng(0).normal(size=(3, 2))
    batch = jax.jit(jax.vmap(lambda v: mbs.simulate(model, q, v, 0.2, dt=0.01)))(speeds)
    assert batch.q.shape == (3, 21, 2)
    for row, v in zip(batch.q, speeds, strict=True):
        assert relative(row, mbs.simulate(model, q, v, 0.2, dt=0.01).q) < 1e-12


@pytest.mark.slow
@pytest.mark.interpreted
def test_a_run_may_begin_at_any_time():
    """Rows at t0 + i dt, to the bit, and exactly t_end; functions of time see those times."""
    model, q, v = swing()

    def drive(model, t, q, v):
        return jnp.stack([jnp.sin(7 * t), 0 * t])

    run = mbs.simulate(model, q, v, 1.75, dt=0.1, t0=1.3, tau=drive)
    np.testing.assert_allclose(run.t, [1.3, 1.4, 1.5, 1.6, 1.7, 1.75], rtol=1e-15)
    shifted = mbs.simulate(model, q, v, 0.45, dt=0.1, tau=lambda m, t, q, v: drive(m, t + 1.3, q, v))
    assert relative(run.q, shifted.q) < 1e-14
    assert relative(mbs.simulate(model, q, v, 0.45, dt=0.1, tau=drive).q[-1], run.q[-1]) > 1e-3
    first = mbs.simulate(model, q, v, 0.5, dt=0.1, t0=-0.1, save_every=None, fold=(0.0, lambda s, m, t, q, v: s + t))
    assert first.folded == pytest.approx(sum([-0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5])) and first.t[0] == -0.1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"dt": 0.0}, ["dt"]),
        ({"dt": -1.0}, ["dt"]),
        ({"dt": "soon"}, ["dt", "'soon'"]),
        ({"t_end": -1.0}, ["t_end", "t0"]),
        ({"t_end": np.inf}, ["t_end", "inf"]),
        ({"t0": 1.0}, ["t_end = 1.0", "t0 = 1.0"]),
        ({"t0": np.nan}, ["t0", "nan"]),
        ({"save_every": 0}, ["save_every"]),
        ({"method": "rk5"}, ["'rk5'", "'rk4'"]),
        ({"tau": np.ones(3)}, ["tau", "(3,)"]),
        ({"tau": lambda model, q, v, t: v}, ["simulate: tau", "fn(model, t, q, v)"]),
        ({"tau": lambda model, t, q, v: v[:1]}, ["simulate: tau", "(1,)", "(2,)"]),
        ({"tau": lambda model, t, q, v: 0.0}, ["simulate: tau", "()", "(2,)"]),
        ({"fold": (0.0, lambda model, t, q, v: t)}, ["simulate: fold", "fn(carry, model, t, q, v)"]),
        ({"fold": (0.0, lambda s, model, t, q, v: q)}, ["simulate: fold", "(2,)", "()"]),
    ],
)
def test_senseless_arguments(arguments, words):
    model, q, v = swing()

    def traced(model, q, v, **options):
        return jax.vmap(lambda q: mbs.simulate(model, q, v, **options))(q[None])

    for call in (mbs.simulate, traced):
        with pytest.raises(mbs.ModelError) as caught:
            call(model, q, v, **{"t_end": 1.0} | arguments)
        assert not [w for w in words if w not in str(caught.value)], caught.value


def test_traced_times_are_refused_with_the_remedy():
    model, q, v = swing()
    for name in ("t_end", "dt", "t0"):
        with pytest.raises(mbs.ModelError, match=f"{name} is traced.*static"):
            jax.jit(lambda x, name=name: mbs.simulate(model, q, v, **{"t_end": 1.0, name: x}).q)(0.5)


def test_a_lambda_in_the_call_compiles_once():
    """Also with other numbers in it, if they are arrays; and its results are those of these numbers."""
    model, q, v = swing()

    def run(gain, dt=0.05):
        return mbs.simulate(
            model,
            q,
            v,
            0.1,
            dt=dt,
            tau=lambda model, t, q, v: -gain * v,
            fold=(0.0, lambda s, model, t, q, v: s + gain * t),
        )

    first = run(jnp.asarray(2.0))
    assert compilations(lambda: run(jnp.asarray(2.0), dt=0.001)) > 0  # the counter counts
    again = [jnp.asarray(g) for g in (2.0, 5.0)]
    runs = []
    assert compilations(lambda: runs.extend(map(run, again))) == 0
    assert np.array_equal(runs[0].q, first.q) and np.abs(runs[1].v - first.v).max() > 1e-3
    assert runs[1].folded == pytest.approx(2.5 * first.folded)
    for gain in (5.0, 5.0):  # a plain number is part of the program, which is compiled once
        number = run(gain)
    assert relative(number.v, runs[1].v) < 1e-14
    assert compilations(lambda: run(5.0)) == 0


def test_who_compiles_again_and_again_is_told():
    model, q, v = swing(1)
    with jax.disable_jit(), pytest.warns(mbs.ModelWarning, match=r"simulate: tau.*test_simulate.*jnp\.asarray"):
        for gain in range(6):
            mbs.simulate(model, q, v, 0.1, dt=0.1, tau=lambda model, t, q, v, gain=gain: gain * v)


def test_a_solution_says_what_it_is_in_a_line():
    model, q, v = swing()
    run = mbs.simulate(model, q, v, 0.1, dt=0.01)
    assert repr(run) == "<Solution: 11 rows, nq = 2, nv = 2, t = 0 to 0.1 s, OK>"
    runs = jax.vmap(lambda v: mbs.simulate(model, q, v, 0.1, dt=0.01))(np.stack([v, v * np.nan, v]))
    assert repr(runs) == "<Solution: 3 instances of 11 rows, nq = 2, nv = 2, t = 0 to 0.1 s, 2 OK, 1 NOT_FINITE>"
    said = []
    jax.eval_shape(lambda q: said.append(repr(mbs.simulate(model, q, v, 0.1, dt=0.01))), q)
    assert said == ["<Solution: 11 rows, nq = 2, nv = 2>"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_steps_that_are_too_long_have_a_status(dtype):
    """A spring of two seconds: a tenth of a second per step loses a percent of its energy in a minute, unseen in the end
    alone where kinetic and potential energy have come back."""
    mech = mbs.Mechanism("oscillator")
    mech.add_body("mass", mass=2.0)
    mech.add_joint("rail", mbs.Prismatic((1, 0, 0)), "world", "mass")
    mech.add_force(
        "spring", mbs.LinearSpring("world", "mass", point_a=(-1, 0, 0), stiffness=2 * np.pi**2, rest_length=1.0)
    )
    model, start = mech.build(), (np.array([0.3], dtype), np.zeros(1, dtype))
    for save_every in (None, 7):
        coarse, fine = (mbs.simulate(model, *start, 60.0, dt, save_every=save_every) for dt in (0.1, 0.05))
        assert coarse.status == mbs.Status.COARSE and fine.status == mbs.Status.OK
        assert abs(float(coarse.energy_error[-1])) > 2e-3 * np.pi**2 * 0.3**2


def test_a_free_body_that_only_tumbles_keeps_its_status():
    """Nothing is exchanged there: the error is measured by the energy it has."""
    mech = mbs.Mechanism("tumbler")
    mech.add_body("body", mass=1.0, inertia=(1.0, 2.0, 2.5))
    mech.add_joint("flight", mbs.Free(), "world", "body")
    model = mech.build()
    v = np.array([0.1, 3.0, 0.1, 0, 0, 0])
    runs = [mbs.simulate(model, model.neutral(), v, 10.0, dt, save_every=None) for dt in (0.01, 0.4)]
    assert [int(r.status) for r in runs] == [mbs.Status.OK, mbs.Status.COARSE]
    for term in ("0.1 % of the energy exchanged", "0.001 % of the largest kinetic energy", "rounding"):
        assert term in runs[1].message(model)


@pytest.mark.slow
@pytest.mark.parametrize("event", [False, True])
@pytest.mark.usually("True")
def test_rows_at_given_times_are_those_of_the_same_steps(event):
    """Also where events cut the steps; what does not fit is said."""
    mech = mbs.library.double_pendulum()
    if event:
        mech.add_event(
            "stop", when=mbs.JointReaches("shoulder", 0.45, direction="down"), then=mbs.Bounce("shoulder", 0.5)
        )
    model, start = mech.build(), ([0.5, 0.0], [0.0, 0.0])
    times = np.array([0.1, 0.15, 0.4, 0.41, 0.7])
    every = mbs.simulate(model, *start, 0.7, 1e-2, t0=0.1)
    some = mbs.simulate(model, *start, times=times, dt=1e-2)
    rows = np.array([0, 5, 30, 31, 60])
    np.testing.assert_array_equal(some.t, times)
    for name in ("q", "v", "energy_error"):
        np.testing.assert_allclose(getattr(some, name), getattr(every, name)[rows], rtol=0, atol=1e-12)
    assert int(some.status) == mbs.Status.OK and some.conditioning.shape == (5,)
    for wrong in ({}, {"t_end": 1.0, "times": times}, {"times": times, "t0": 0.1}, {"times": times, "save_every": 2}):
        with pytest.raises(mbs.ModelError, match="times"):
            mbs.simulate(model, *start, **wrong)
