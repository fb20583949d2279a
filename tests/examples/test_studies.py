"""The studies whose structure changes in motion: events in order, energy kept, nothing too coarse."""

from pathlib import Path

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.study import read

EXAMPLES = Path(__file__).parents[2] / "examples"
slow = pytest.mark.slow


@pytest.mark.parametrize(
    "name, events, exact",
    [
        ("cubesat_dispenser", ["out"], 1e-7),
        pytest.param("fairing_halves", ["springs_out", "off_left", "off_right"], 1e-4, marks=slow),
        pytest.param("satellite_release", ["go_1", "go_2", "go_3", "go_4"], 1e-5, marks=slow),
        pytest.param(
            "solar_array_deployment",
            [f"{part}_latch" for part in ("middle", "yoke", "outer", "inner") for _ in range(2)],
            1e-6,
            marks=slow,
        ),
    ],
)
def test_nominal_motion(name, events, exact):
    """exact [J]: of energies between 10 J and 400 kJ."""
    study = read(EXAMPLES / f"{name}.toml")
    time = study.simulation
    run = mbs.simulate(study.model, study.q0, study.v0, time.t_end, time.dt, save_every=None)
    happened = [study.model.event_names[i] for i in run.events.index if i >= 0]
    assert [e.removesuffix("_left").removesuffix("_right") for e in happened] == [
        e.removesuffix("_left").removesuffix("_right") for e in events
    ]
    assert run.status == mbs.Status.OK and abs(float(run.energy_error[-1])) < exact
    assert np.all(np.diff(run.events.time) >= 0)
