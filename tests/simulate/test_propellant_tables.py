"""Motors whose propellant has a centre of mass and radii of gyration that follow what is left of it."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad, simpson
from scipy.spatial.transform import Rotation

import jaxmbs as mbs
from tests.cases import relative

SPEED = 250 * 9.80665  # of the exhaust [m/s]
NOZZLE = -1.2
LEFT, COMS, GYRATIONS = (0.0, 20.0, 45.0), (-0.9, -0.7, 0.1), (0.1, 0.3, 0.6)  # along the axis, about axes across it
TABLES = {
    "left": LEFT,
    "coms": np.array([[0.0, 0.0, z] for z in COMS]).ravel(),
    "gyrations": np.array([[k, k, 0.2] for k in GYRATIONS]).ravel(),
}


def turning(joint: Any = mbs.Revolute(axis=(0, 1, 0)), **given):
    """A rocket on a shaft across its axis."""
    mech = mbs.Mechanism("rocket", gravity=(0.0, 0.0, 0.0))
    mech.add_body("stage", mass=100.0, inertia=(30.0, 30.0, 5.0))
    mech.add_joint("shaft", joint, "world", "stage")
    found = {"point": (0, 0, NOZZLE), "thrust": 8e3, "specific_impulse": 250.0, "propellant": 60.0, **TABLES, **given}
    mech.add_force("motor", mbs.Motor("stage", **found))
    return mech.build()


@pytest.fixture(scope="module")
def model():
    return mbs.free(turning(), ["motor.ignition"])


def run(model, **numbers):
    return mbs.simulate(mbs.set(model, numbers), [0.0], [1.0], t_end=20.0, dt=0.1)


def inertia(m, left=LEFT, coms=COMS):
    return 30.0 + m * (np.interp(m, left, coms) ** 2 + np.interp(m, left, GYRATIONS) ** 2)


def rate(m, start=60.0, left=LEFT, coms=COMS):
    """Rate of the rocket with m [kg] left: d(J w)/dt = -f e² w with f = -dm/dt, from 1 rad/s at the start."""
    ends = [m, *(x for x in left if m < x < start), start]
    damped = sum(
        quad(lambda x: 1 / inertia(x, left, coms), a, b, epsabs=1e-14, epsrel=1e-13)[0]
        for a, b in itertools.pairwise(ends)
    )
    return inertia(start, left, coms) / inertia(m, left, coms) * np.exp(-(NOZZLE**2) * damped)


def test_the_rate_of_a_rocket_that_turns_across_its_axis(model):
    """Also after the propellant is used up; the energy balance has no error at the rows."""
    found = run(model)
    for k in (50, 80, 120, 150, 200):
        left = float(found.states["motor.propellant"][k])
        assert found.v[k, 0] == pytest.approx(rate(max(left, 0.0)), rel=1e-9)
    assert left == pytest.approx(0.0, abs=1e-9)
    assert np.abs(found.energy_error).max() < 1e-8 * found.energy_exchanged


@pytest.mark.parametrize("ignition", [0.0, 1.0])
def test_propellant_that_begins_at_a_row(model, ignition):
    """It is below the row, also while it waits."""
    found = run(model, **{"motor.propellant": 45.0, "motor.ignition": ignition})
    assert found.v[-1, 0] == pytest.approx(rate(0.0, 45.0), rel=1e-9) and int(found.status) == 0
    assert np.abs(found.energy_error).max() < 1e-8 * found.energy_exchanged


def test_momentum_is_conserved_with_the_exhaust():
    """Of a tumbling rocket, the gas on its way to the nozzle, and the exhaust. The momentum P of that gas is steady in the
    body: it changes at the rate w x P. The nozzle is in a gimbal, whose corners lie between those of the tables and of the
    profile."""
    own, e, d = np.array([0.0, 0.0, 0.3]), np.array([0.0, 0.0, NOZZLE]), np.array([0.0, 0.0, 1.0])
    flow, legs = 8e3 / SPEED, np.array([0.0, 2.0, 5.0, 10.0])
    left = 60.0 - flow * legs[::-1]
    coms = np.array([[0.03, 0.0, -0.9], [0.0, 0.02, -0.4], [0.01, 0.0, 0.2], [-0.01, 0.05, 0.1]])
    gyrations = np.array([[0.1, 0.2, 0.05], [0.3, 0.3, 0.2], [0.2, 0.4, 0.2], [0.5, 0.4, 0.3]])
    mech = mbs.Mechanism("rocket", gravity=(0.0, 0.0, 0.0))
    mech.add_body("stage", mass=100.0, com=own, inertia=(30.0, 31.0, 5.0))
    mech.add_joint("flight", mbs.Free(), "world", "stage")
    tables = {"left": left, "coms": coms.ravel(), "gyrations": gyrations.ravel()}
    mech.add_force("motor", mbs.Gimbal("stage", e, d, 8e3, 250.0, 60.0, **tables))
    model = mech.build()
    run = mbs.simulate(model, model.neutral(), jnp.array([0.3, -0.2, 1.0, 0.0, 0.0, 0.0]), t_end=10.0, dt=0.005)
    I = np.diag([30.0, 31.0, 5.0]) + 100 * (own @ own * np.eye(3) - np.outer(own, own))
    within, lost = [], []
    t, q, v = (np.asarray(x) for x in (run.t, run.q, run.v))
    for a, b in itertools.pairwise(legs):
        begin, end = np.searchsorted(t, a - 1e-9), np.searchsorted(t, b - 1e-9) + 1
        slope = (_at(60 - flow * a, left, coms) - _at(60 - flow * b, left, coms)) / (flow * (b - a))
        rates = []
        for k in range(begin, end):
            m = 60 - flow * t[k]
            c, r = _at(m, left, coms), _at(m, left, gyrations)
            R, w, u = Rotation.from_quat(q[k][[4, 5, 6, 3]]).as_matrix(), v[k][:3], v[k][3:]
            J = I + m * (np.diag(r * r) + c @ c * np.eye(3) - np.outer(c, c))
            moment = 100 * own + m * c
            linear = R @ ((100 + m) * u + np.cross(w, moment))
            within.append([*linear, *(np.cross(q[k][:3], linear) + R @ (J @ w + np.cross(moment, u)))])
            P = flow * (e - c - m * slope)
            leaving, turned = flow * (R @ (u + np.cross(w, e) - SPEED * d)), R @ np.cross(w, P)
            about = np.cross(q[k][:3] + R @ e, leaving) + np.cross(R @ u, R @ P) + np.cross(q[k][:3], turned)
            rates.append([*(leaving + turned), *about])
        lost.append(simpson(np.array(rates), x=t[begin:end], axis=0))
    gone = np.sum(lost, axis=0)
    change = np.array(within[-1]) - within[0] + gone
    assert np.abs(change[:3]).max() < 2e-8 * np.abs(gone[:3]).max()
    assert np.abs(change[3:]).max() < 2e-8 * np.abs(gone[3:]).max()


def _at(m, left, table):
    return np.array([np.interp(m, left, column) for column in table.T])


def test_a_table_of_equal_rows_is_a_constant():
    """Within the table and beyond it, and so is a table of one row."""
    c, k = (0.02, 0.0, -0.5), (0.4, 0.5, 0.2)
    none = {"left": (0.0,), "coms": (0.0,), "gyrations": (0.0,)}
    rows = {"left": (5.0, 40.0), "coms": (*c, *c), "gyrations": (*k, *k)}
    one = {"left": (5.0,), "coms": c, "gyrations": k}
    plain = turning(mbs.Free(), **none, propellant_com=c, gyration=k)
    q, v = np.array([0, 0, 0, 0.9, 0.3, -0.1, 0.2]), np.array([0.1, 0.2, -0.3, 1.0, 0.0, 2.0])
    for table, masses in ((rows, (3.0, 30.0, 50.0)), (one, (50.0,))):
        tabled = turning(mbs.Free(), **table)
        for m in masses:
            a, b = (mbs.forward_dynamics(mbs.set(x, {"motor.propellant": m}), q, v) for x in (tabled, plain))
            assert relative(a, b) < 1e-13


@pytest.mark.slow
def test_derivatives(model):
    """By the masses of the rows, the centres of mass and the propellant at the start, against those of the closed form."""
    place = np.zeros((3, 9))
    place[range(3), [2, 5, 8]] = 1.0

    def end(left, coms, start):
        numbers = {
            "motor.left": left * np.array([0.0, 1.0, 1.0]),
            "motor.coms": coms @ place,
            "motor.propellant": start[0],
        }
        return mbs.simulate(mbs.set(model, numbers), jnp.zeros(1), jnp.ones(1), t_end=20.0, dt=0.1).v[-1, 0]

    at = np.array(LEFT), np.array(COMS), np.array([60.0])
    found = jax.jit(jax.grad(end, (0, 1, 2)))(*at)

    def closed(i, k, step):
        x = [a.copy() for a in at]
        x[i][k] += step
        return rate(0.0, x[2][0], x[0], x[1])

    for i, k in ((0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)):
        want = (8 * (closed(i, k, 1e-2) - closed(i, k, -1e-2)) - closed(i, k, 2e-2) + closed(i, k, -2e-2)) / 0.12
        assert found[i][k] == pytest.approx(want, rel=1e-7)
    along = np.array([0.0, 1.0, -2.0]), np.array([0.1, 0.2, 0.3]), np.array([2.0])
    _, slope = jax.jit(lambda *x: jax.jvp(end, x, along))(*at)
    assert slope == pytest.approx(sum(float(a @ b) for a, b in zip(found, along, strict=True)), rel=1e-9)


def test_a_batch_equals_single_runs(model):
    coms = np.stack([TABLES["coms"], 1.1 * TABLES["coms"], 0.5 * TABLES["coms"]])
    numbers = {"motor.propellant": np.array([30.0, 60.0, 44.0]), "motor.coms": coms}
    batch, axes = mbs.vary(model, numbers)

    def last(model):
        return mbs.simulate(model, jnp.zeros(1), jnp.ones(1), t_end=20.0, dt=0.1).v[-1]

    together = mbs.jit(last, in_axes=(axes,))(batch)
    for k in range(3):
        alone = run(model, **{name: x[k] for name, x in numbers.items()})
        np.testing.assert_allclose(together[k], alone.v[-1], rtol=1e-12)


def test_files_have_the_tables(tmp_path):
    mbs.save(turning(), tmp_path / "rocket.toml")
    again = mbs.load(tmp_path / "rocket.toml")
    for name in ("left", "coms", "gyrations"):
        np.testing.assert_array_equal(mbs.get(again, f"motor.{name}"), TABLES[name])


FAULTS = [
    ({"coms": (0.0, 0.0, 1.0)}, "coms has 3 numbers, left has 3; give 3 for each, row by row"),
    ({"left": (0.0, 50.0, 40.0)}, "left: the masses must not be negative, and must increase"),
    ({"gyrations": -TABLES["gyrations"]}, "gyrations: the radii must not be negative"),
    ({"propellant_com": (0.0, 0.0, 1.0)}, "propellant_com and coms are both given; leave one of them out"),
    ({"coms": (0.0,), "gyrations": (0.0,)}, "left has 3 numbers, and there is no table for them; give coms or gyrations"),
    ({"coms": (0.5,)}, "coms is one number that is not zero; give 3 for each of left, or leave it out"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "said"), FAULTS)
def test_tables_that_are_refused(given, said):
    with pytest.raises(mbs.ModelError, match=f"force 'motor': .*{said}"):
        turning(**given)
