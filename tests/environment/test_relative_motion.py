"""Two bodies that separate in an orbit, against the linear equations of relative motion (Hill; Clohessy and Wiltshire)."""

import functools

import numpy as np
import pytest

import jaxmbs as mbs

MU, RADIUS = 3.986004418e14, 6.8e6  # m³/s², m
RATE = (MU / RADIUS**3) ** 0.5  # of a circular orbit
# at the start, in axes that do not turn [m, m/s]
APART, DRIFT = np.array([0.3, 1.0, 0.2]), np.array([0.004, 0.002, -0.003])


@functools.cache
def pair(parent):
    """A stage in a circular orbit, and a satellite whose place is that relative to `parent`; no moment turns them."""
    mech = mbs.Mechanism("pair")
    mech.add_body("stage", 300.0, inertia=(60.0, 60.0, 60.0))
    mech.add_body("satellite", 4.0, inertia=(0.03, 0.03, 0.03))
    mech.add_joint("orbit", mbs.Free(), "world", "stage")
    mech.add_joint("apart", mbs.Free(), parent, "satellite")
    mech.set_environment(planet=mbs.Earth(j2=False))
    return mech.build()


def flown(parent, t, dtype):
    """How far the satellite is from the stage at t, from coordinates of this precision."""
    speed = np.array([0.0, RATE * RADIUS, 0.0])
    at, moves = (0.0, 0.0) if parent == "stage" else ([RADIUS, 0.0, 0.0], speed)
    q = np.array([RADIUS, 0, 0, 1, 0, 0, 0, *(APART + at), 1, 0, 0, 0], dtype)
    v = np.array([0, 0, 0, *speed, 0, 0, 0, *(DRIFT + moves)], dtype)
    run = mbs.simulate(pair(parent), q, v, t, dt=t / 50, save_every=None)
    assert run.q.dtype == dtype and run.status == mbs.Status.OK
    end = np.asarray(run.q[-1], float)
    return end[7:10] - (0.0 if parent == "stage" else end[:3])


def solved(t):
    """The same in closed form, without terms of the square of the distance over the radius (1e-7 m)."""
    n, s, c = RATE, np.sin(RATE * t), np.cos(RATE * t)
    x, y, z = APART  # up, forward and across, in axes that turn with the orbit
    a, b, d = DRIFT - np.cross([0, 0, n], APART)
    up = (4 - 3 * c) * x + s / n * a + 2 * (1 - c) / n * b
    forward = 6 * (s - n * t) * x + y - 2 * (1 - c) / n * a + (4 * s - 3 * n * t) / n * b
    return np.array([c * up - s * forward, s * up + c * forward, c * z + s / n * d])


def test_a_satellite_that_leaves_a_stage_in_orbit():
    """The gradient of gravity moves it by 6 mm within 100 s."""
    wanted = solved(100.0)
    assert 5e-3 < np.abs(APART + 100 * DRIFT - wanted).max() < 7e-3
    assert flown("stage", 100.0, np.float64) == pytest.approx(wanted, abs=1e-8)


def test_places_relative_to_a_neighbour_keep_their_digits_in_float32():
    """To the rounding of gravity, 9 m/s² times 1.2e-7: half of that times t². The difference of places from the centre of
    the earth has errors of decimetres after the same time."""
    t = 10.0
    wanted, acceleration = solved(t), MU / RADIUS**2 * float(np.finfo(np.float32).eps)
    assert flown("stage", t, np.float32) == pytest.approx(wanted, abs=2 * acceleration * t * t / 2)
    assert np.abs(flown("world", t, np.float32) - wanted).max() > 0.05


PUSH = {"direction": (0.6, 0.0, 0.8), "stiffness": 50.0, "preload": 40.0, "stroke": 2.0}
ENDS = {"point_a": (0.1, 0.2, -0.1), "point_b": (0.02, -0.03, 0.05)}
BETWEEN = {
    "a spring with damping": mbs.LinearSpring("stage", "satellite", stiffness=100.0, damping=30.0, rest_length=0.3, **ENDS),
    "a pusher": mbs.Pusher("stage", "satellite", **ENDS, **PUSH),
    "a bushing": mbs.Bushing("stage", "satellite", stiffness=(10.0, 20.0, 30.0), damping=(5.0, 6.0, 7.0)),
    "a contact": mbs.Contact(
        "satellite", (0, 0, 0), mbs.Plane((0, 0, 0.4), (0, 0, 1)), "stage", stiffness=500.0, damping=1.0, friction=0.3
    ),
    "air": mbs.Aerodynamics(
        "satellite", area=1.0, relative_to="stage",
        coefficients=mbs.Coefficients(distance=(0.0, 1.0), drag=(0.0, 1.0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BETWEEN)
def test_forces_between_neighbours_keep_their_digits_in_float32(name):
    """Both turn, at the speed of an orbit: in the world, places are wrong by half a metre, velocities by 5e-4 m/s."""
    mech = mbs.Mechanism("pair")
    for body, mass in (("stage", 300.0), ("satellite", 4.0)):
        mech.add_body(body, mass, inertia=(60.0, 60.0, 60.0))
    mech.add_joint("orbit", mbs.Free(), "world", "stage")
    mech.add_joint("apart", mbs.Free(), "stage", "satellite")
    mech.set_environment(planet=mbs.Earth(j2=False), atmosphere=mbs.ExponentialAtmosphere(scale_height=1e6))
    mech.add_force("between", BETWEEN[name])
    model = mech.build()
    turned = np.array([0.9, 0.1, -0.2, 0.3]) / np.linalg.norm([0.9, 0.1, -0.2, 0.3])
    q = np.array([4.1e6, 4.3e6, 2.9e6, *turned, 0.123, 0.2, 0.3, 0.8, 0.6, 0, 0])
    v = np.array([0.01, -0.02, 0.015, 3e3, 5e3, 4e3, 0.02, 0.01, -0.03, 0.01, 0.02, -0.04])
    exact, single = (mbs.element_forces(model, q.astype(x), v.astype(x))["between"] for x in (np.float64, np.float32))
    assert np.abs(exact.wrenches).max() > 1e-12
    for a, b in zip(single.wrenches, exact.wrenches, strict=True):
        assert np.abs(a - b).max() < 3e-5 * np.abs(exact.wrenches).max()


def test_a_child_that_moves_as_given_in_float32():
    """Its velocity beside its parent is found from those in the world."""
    mech = mbs.Mechanism("pair")
    for body in ("stage", "arm", "satellite"):
        mech.add_body(body, 10.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("orbit", mbs.Free(), "world", "stage")
    mech.add_joint("driven", mbs.Carried(acceleration=(0.1, 0.0, 0.0)), "stage", "arm", mbs.Pose((0, 0.5, 0)))
    mech.add_joint("apart", mbs.Free(), "arm", "satellite")
    spring = mbs.LinearSpring("stage", "satellite", stiffness=100.0, damping=30.0, rest_length=0.3)
    mech.add_force("between", spring)
    model = mech.build()
    q = np.zeros(model.nq)
    q[model.q_slice("orbit")] = [6e6, 1e6, 0, 1, 0, 0, 0]
    q[model.q_slice("apart")] = [0.3, 0.1, 0.2, 1, 0, 0, 0]
    v = np.linspace(0.01, 0.1, model.nv)
    exact, single = (
        mbs.element_forces(model, q.astype(x), v.astype(x), t=2.0)["between"] for x in (np.float64, np.float32)
    )
    for a, b in zip(single.wrenches, exact.wrenches, strict=True):
        assert np.abs(a - b).max() < 3e-5 * np.abs(exact.wrenches).max()
