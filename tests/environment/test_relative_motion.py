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
