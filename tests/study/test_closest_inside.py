"""Nearest points of a shape in a hollow one, which pictures show: against the gap that studies compute."""

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxmbs.study.outputs import Ball, Box, Clearance, Cone, Disc, Tube
from jaxmbs.study.outputs.inside import gap_in
from jaxmbs.study.reports.inside import nearest_inside

DISC = Disc("a", (0.1, 0.0, 0.0), axis=(1.0, 0.0, 0.0), radius=0.3)
SHAPES = [
    DISC,
    Ball("a", (0.0, 0.1, 0.0), radius=0.2),
    Cone("a", (0.0, 0.0, 0.0), axis=(1, 0, 0), radius=0.3, length=0.5),
]
HOLLOW = [
    (Tube("b", (0.1, 0.2, 0.0), axis=(0.6, 0.8, 0.0), radius=1.0, length=1.5), True),
    (Tube("b", (0.1, 0.2, 0.0), axis=(0.6, 0.8, 0.0), radius=1.0, length=1.5), False),
    (Ball("b", (0.0, 0.0, 0.1), radius=1.2), False),
    (Box("b", (0.0, 0.1, 0.0), size=(2.0, 2.4, 1.8)), False),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize(("hollow", "opened"), HOLLOW, ids=["open", "tube", "ball", "box"])
def test_ends_of_the_gap_are_as_far_apart_as_the_gap(shape, hollow, opened):
    output = Clearance(shape, hollow, inside=True, open=opened)
    computed = jax.jit(lambda *placed: gap_in(shape, hollow, opened, placed).value)
    rng = np.random.default_rng(3)
    for seed in range(3):
        R, p = Rotation.random(random_state=seed).as_matrix(), 0.15 * rng.normal(size=3)
        on_shape, on_wall = nearest_inside(output, R, p)
        gap = float(computed(*map(float, (*R.ravel(), *p))))
        assert np.linalg.norm(on_wall - on_shape) == pytest.approx(abs(gap), abs=2e-3)
        if isinstance(hollow, Ball):
            assert np.linalg.norm(on_wall - np.asarray(hollow.center)) == pytest.approx(hollow.radius)
