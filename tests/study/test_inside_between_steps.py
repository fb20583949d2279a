"""The gap of a shape in a hollow one: against points of the shape, between steps, and its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pytest import approx
from scipy.spatial.transform import Rotation

from jaxmbs.study.outputs import Ball, Box, Capsule, Clearance, Cone, Panel, Tube
from tests.geometry.test_between_steps import flying, least
from tests.geometry.test_distance import Scene
from tests.study.test_rim_between_steps import ALONG, a_step, central

TUBE = Tube("a", axis=(0.6, 0, 0.8), center=(0.1, 0.2, 0.3), radius=0.6, length=1.4)
ROOM = Box("a", center=(0.1, 0.2, 0.3), size=(1.5, 1.6, 2.5), rotation=(0.8, 0.6, 0, 0))
SHAPES = {
    "box": Box("b", center=(0.1, 0, 0), size=(0.3, 0.4, 1.6)),
    "tube": Tube("b", axis=(0, 0, 1), radius=0.2, length=1.6),
    "cone": Cone("b", axis=(0, 0, 1), radius=0.3, length=1.5),
    "capsule": Capsule("b", axis=(0, 0, 1), radius=0.1, length=1.7),
    "panel": Panel("b", axis=(0, 0, 1), radius=0.3, length=0.9, thickness=0.02, angle=2.0, error=0.02),
    "ball": Ball("b", center=(0.1, 0, 0), radius=0.2),
}
RNG = np.random.default_rng(3)


def points_of(shape, number):
    """On its pieces, many, each with the radius of a ball about it."""
    found = []
    for piece in shape.pieces():
        weights = RNG.dirichlet(np.full(len(piece.centers), 0.3), number)
        angle = RNG.uniform(0, 2 * np.pi, number)
        u = np.cross(piece.axes[0], (0.6, 0, 0.8))
        u /= np.linalg.norm(u)
        around = np.outer(np.cos(angle), u) + np.outer(np.sin(angle), np.cross(piece.axes[0], u))
        found.append(weights @ piece.centers + (weights @ piece.radii)[:, None] * around)
    return np.concatenate(found), max(piece.ball for piece in shape.pieces())


@pytest.mark.parametrize("name", SHAPES)
def test_against_points_of_the_shape(name):
    """Placed at random, also with a part beyond the open ends: never more than the gap of any of its points."""
    points, ball = points_of(SHAPES[name], 40_000)
    axis = np.array(TUBE.axis)
    outputs = {"opened": Clearance(SHAPES[name], TUBE, True, True), "room": Clearance(SHAPES[name], ROOM, True)}
    gaps = jax.jit(lambda R, p: {key: o.measure(Scene(R, p)) for key, o in outputs.items()})
    cut = 0
    for _ in range(12):
        R = Rotation.from_rotvec(0.4 * RNG.normal(size=3)).as_matrix()
        p = np.array(TUBE.center) + 1.2 * RNG.uniform(-1, 1) * axis + 0.1 * RNG.normal(size=3)
        found = gaps(R, p)
        local = points @ R.T + p - TUBE.center
        height = local @ axis
        within, height_of_balls = np.abs(height) <= TUBE.length / 2, np.abs(height) - ball
        cut += 0 < within.sum() < len(points)
        radial = np.linalg.norm(local - np.outer(height, axis), axis=1)
        gap, counts = map(float, found["opened"])
        if within.any():
            want, least = (TUBE.radius - radial[x].max() - ball for x in (within, height_of_balls <= TUBE.length / 2))
            assert counts and least - 0.03 <= gap <= want + 1e-9
        elif not ball:
            assert not counts or np.abs(height).min() < TUBE.length / 2 + 0.01
        walls = np.array(ROOM.size) / 2 - np.abs(local @ ROOM.edges().T)
        assert found["room"][1] and walls.min() - ball - 0.03 <= float(found["room"][0]) <= walls.min() - ball + 1e-9
    assert cut > 2 or name == "ball"


MOTIONS = {  # shapes, open; position, velocity, rate of turning about x, acceleration; least gap and its instant
    "turns back": (
        (Ball("body", radius=0.1), Box("world", size=(1.0, 4.0, 4.0)), False),
        ((0.2, 0, 0), (1.0, 0, 0), 0.0, (-2.0, 0, 0)), (-0.05, 0.5),
    ),
    "leaves": (
        (Ball("body", radius=0.1), Tube("world", axis=(0, 0, 1), radius=3.0, length=1.0), True),
        ((0, 0, 0.1), (0, 2.0, 0.7), 0.0, (0, 0, 0)), (2.9 - 2.0 * 0.5 / 0.7, 0.5 / 0.7),
    ),
    "turns": (
        (Box("body", size=(1.0, 1.0, 1.0)), Box("world", size=(9.0, 1.5, 1.5)), False),
        ((0, 0, 0), (0, 0, 0), 1.0, (0, 0, 0)), (0.75 - np.sqrt(0.5), np.pi / 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MOTIONS)
def test_known_motions(name):
    """In three steps; a turn in a step is off by its fourth power / 384."""
    (a, b, opened), (position, velocity, turning, acceleration), (gap, at) = MOTIONS[name]
    model = flying("body", gravity=acceleration)
    q, v = jnp.array([*position, 1.0, 0, 0, 0]), jnp.array([turning, 0.0, 0.0, *velocity])
    outputs = {"gap": Clearance(a, b, True, opened), "at": Clearance(a, b, True, opened, reduce="time_of_min")}
    found = jax.jit(lambda q, v: least(model, q, v, 0.9, 0.3, outputs))(q, v)
    error, late = ((0.3 * turning) ** 4 / 384, 1e-3) if turning else (1e-9, 1e-6)
    assert float(found["gap"]) == approx(gap, abs=error + 1e-12)
    assert float(found["at"]) == approx(at, abs=late)


LONG = Box("b", size=(0.9, 0.3, 0.3))
OPENED = Clearance(LONG, Tube("world", center=(0.6, 0, 0), axis=(1, 0, 0), radius=0.5, length=1.2), True, True)
WITHIN = Clearance(LONG, Box("world", size=(3.0, 1.3, 1.3)), True)
STEPS = {  # output; place, velocity, acceleration and tilt about z; where the step of 0.1 s begins
    "turns back": (WITHIN, (0.3, 0.1, 0.0), (2.0, 0.2, 0.1), (0.0, -0.8, -0.2), 0.1, 0.2),
    "an edge slides out": (OPENED, (0.8, 0.05, 0.01), (2.0, 0.3, 0.1), (0.0, -3.0, -1.0), 0.1, 0.03),
    "all goes out": (OPENED, (1.5, 0.05, 0.02), (2.0, 0.4, 0.1), (0.0, 0.0, 0.0), 0.15, 0.0),
    "comes in": (OPENED, (1.75, 0.05, 0.02), (-2.0, -0.5, 0.1), (0.0, 0.0, 0.0), 0.15, 0.0),
}


@pytest.mark.parametrize("name", STEPS)
def test_derivatives_in_a_step(name):
    """Of both modes, and the value against many instants."""
    output, place, velocity, acceleration, tilt, begin = STEPS[name]
    in_a_step, x, rest = a_step(output._gap_at), np.array([*place, *velocity]), (acceleration, tilt, begin)
    c, s = np.cos(tilt), np.sin(tilt)
    R = jnp.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])

    def gap(t):
        p = x[:3] + t * x[3:] + t * t / 2 * np.array(acceleration)
        value, counts = output.measure(Scene(R, p))
        return jnp.where(counts, value, jnp.inf)

    gaps = jax.jit(jax.vmap(gap))(jnp.linspace(begin, begin + 0.1, 2001))
    assert float(in_a_step(x, rest)) == approx(float(gaps.min()), abs=1e-4)
    slope = central(in_a_step, x, ALONG, rest)
    assert float(jax.jvp(lambda x: in_a_step(x, rest), (x,), (ALONG,))[1]) == approx(slope, abs=1e-7)
    assert float(jax.grad(in_a_step)(x, rest) @ ALONG) == approx(slope, abs=1e-7)
