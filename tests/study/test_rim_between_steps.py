"""The least gap of a rim in a shell lies between the steps: closed forms, short steps, and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pytest import approx

import jaxmbs as mbs
from jaxmbs.study.outputs import Clearance, Disc, RimClearance, Tube
from jaxmbs.study.outputs.hollow import Memory, least_gap
from jaxmbs.study.outputs.path import Path
from jaxmbs.study.outputs.rim_clearance import Rim, Shell
from tests.geometry.test_between_steps import flying, least

RADIUS, LENGTH, OWN = 0.5, 1.2, 0.4
SHELL = Tube("world", (LENGTH / 2, 0, 0), axis=(1, 0, 0), radius=RADIUS, length=LENGTH)
RIM = Disc("body", axis=(1, 0, 0), radius=OWN)
OUTPUTS = {name: Clearance(RIM, SHELL, True, True, reduce=x) for name, x in {"gap": "min", "at": "time_of_min"}.items()}


def test_the_older_name():
    """It gives the same output, from a shell that starts at its base."""
    given = {"axis": (0, 3, 4), "radius": 0.5}
    rim, shell = Rim("b", center=(0.1, 0, 0), **given), Shell("a", base=(1, 2, 3), length=2.0, **given)
    with pytest.warns(DeprecationWarning, match=r"use Clearance\(Disc"):
        found = RimClearance(rim, shell, unit="mm")
    tube = Tube("a", (1.0, 2.6, 3.8), length=2.0, **given)
    assert found == Clearance(Disc("b", (0.1, 0, 0), **given), tube, True, True, unit="mm")


CASES = {  # centre and velocity at the start, acceleration; tilt about z; least gap and its instant
    "turns back": ((0.3, 0, 0), (2.0, 0.2, 0), (0, -0.8, 0), 0.0, (0.1 - 0.025, 0.25)),
    "leaves all at once": ((0.3, 0, 0), (2.0, 0.1, 0), (0, 0, 0), 0.0, (0.1 - 0.045, 0.45)),
    "enters all at once": ((-0.3, 0, 0.09), (2.0, 0, -0.1), (0, 0, 0), 0.0, (0.1 - 0.075, 0.15)),
    "nearest point leaves": ((0.3, 0, 0), (2.0, 0.1, 0.02), (0, 0, 0), 0.1, None),
    "nearest point leaves first": ((0.3, 0, 0), (2.0, -0.1, 0.02), (0, 0, 0), 0.1, None),
    "nearest point leaves at once": ((0.3, 0, 0), (2.0, -0.1, 0), (0, 0, 0), 0.1, None),
    "never inside": ((-3.0, 0, 0), (2.0, 0, 0), (0, 0, 0), 0.1, (np.nan, np.nan)),
}  # fmt: skip
MODEL = flying("body", gravity=(1.0, 1.0, 1.0))


@jax.jit
def found(start, velocity, acceleration, tilt):
    """Least gap and its time; the rim is tilted about z."""
    c, s = jnp.cos(tilt), jnp.sin(tilt)
    x, y, z = velocity
    q = jnp.stack([*start, jnp.cos(tilt / 2), 0.0, 0.0, jnp.sin(tilt / 2)])
    v = jnp.stack([0.0, 0.0, 0.0, c * x + s * y, c * y - s * x, z])  # in axes of the body
    return least(mbs.set(MODEL, {"gravity": jnp.stack(acceleration)}), q, v, 1.0, 0.1, OUTPUTS)


def floats(*given):
    return jax.tree.map(float, given)


def brute(start, velocity, acceleration, tilt):
    """From points of the rim at many instants."""
    t = np.linspace(0, 1.0, 20_001)[:, None]
    center = np.asarray(start) + t * np.asarray(velocity) + t * t / 2 * np.asarray(acceleration)
    best = np.full(len(t), np.inf)
    for x in np.linspace(0, 2 * np.pi, 721):
        point = center + OWN * np.array([-np.sin(tilt) * np.cos(x), np.cos(tilt) * np.cos(x), np.sin(x)])
        gap = RADIUS - np.hypot(point[:, 1], point[:, 2])
        best = np.where((point[:, 0] >= 0) & (point[:, 0] <= LENGTH), np.minimum(best, gap), best)
    return best.min(), float(t[best.argmin(), 0])


@pytest.mark.parametrize("name", CASES)
def test_known_motions(name):
    """In steps of 0.1 s, in which the rim moves by 0.2 m."""
    *motion, want = CASES[name]
    x = found(*floats(*motion))
    gap, at = want or brute(*motion)
    error, late = (1e-8, 1e-6) if want else (1e-5, 1e-4)
    assert float(x["gap"]) == approx(gap, abs=error, nan_ok=True)
    assert float(x["at"]) == approx(at, abs=late, nan_ok=True)


def central(fn, x, d, rest, e=1e-6):
    return float(fn(x + e * d, rest) - fn(x - e * d, rest)) / (2 * e)


def a_step(gap_at):
    """The least gap in one of the steps of a motion, as a function of the place and the velocity x at its start."""

    @jax.jit
    def in_a_step(x, rest):
        acceleration, tilt, begin = rest
        c, s = jnp.cos(tilt), jnp.sin(tilt)
        rotation = c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0
        place, velocity, a = x[:3], x[3:], jnp.stack(acceleration)

        def at(t):
            return (*map(jnp.asarray, rotation), *(place + t * velocity + t * t / 2 * a)), velocity + t * a

        h = jnp.asarray(0.1)
        (here, leaving), (there, arriving) = at(begin), at(begin + h)
        rates = [(*(jnp.zeros(()),) * 9, *v) for v in (leaving, arriving)]
        path = Path(here, tuple(h * y for y in rates[0]), there, tuple(h * y for y in rates[1]))
        first = gap_at(here)
        falls = jax.jvp(lambda y: gap_at(y).value, (here,), (rates[0],))[1] < 0
        memory = Memory(begin, here, rates[0], falls, first.counts)
        return least_gap(gap_at, path, rates[1], h, memory)[0].value

    return in_a_step


in_a_step = a_step(OUTPUTS["gap"]._gap_at)
ALONG = np.array([0.3, 0.5, -0.2, 0.7, 0.4, 0.6])
VARIED = [name for name in CASES if name != "never inside"]


@pytest.mark.parametrize("name", VARIED)
def test_derivatives_in_a_step(name):
    """In both modes, also where the instant is that at which the rim, or its nearest point, goes out."""
    start, velocity, *rest, want = floats(*CASES[name][:4], CASES[name][4] or brute(*CASES[name][:4]))
    x, rest = np.array([*start, *velocity]), (*rest, np.floor(want[1] / 0.1) * 0.1)
    assert float(in_a_step(x, rest)) == approx(want[0], abs=1e-5)
    slope = central(in_a_step, x, ALONG, rest)
    assert float(jax.jvp(lambda x: in_a_step(x, rest), (x,), (ALONG,))[1]) == approx(slope, abs=1e-7)
    assert float(jax.grad(in_a_step)(x, rest) @ ALONG) == approx(slope, abs=1e-7)


@jax.jit
def gap(x, rest):
    return found(tuple(x[:3]), tuple(x[3:]), *rest)["gap"]


@pytest.mark.slow  # compiles a motion forwards and backwards
def test_derivatives_of_a_motion():
    """With respect to place and velocity at the start."""
    backwards = jax.jit(jax.grad(gap))
    forwards = jax.jit(lambda x, rest, d: jax.jvp(lambda x: gap(x, rest), (x,), (d,))[1])
    for name in VARIED:
        start, velocity, *rest = floats(*CASES[name][:4])
        x = np.array([*start, *velocity])
        slope = central(gap, x, ALONG, rest)
        assert float(forwards(x, rest, ALONG)) == approx(slope, abs=1e-7), name
        assert float(backwards(x, rest) @ ALONG) == approx(slope, abs=1e-7), name
