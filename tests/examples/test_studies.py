"""The studies whose structure changes in motion: events in order, energy kept, nothing too coarse."""

import functools
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io.catalogue import builtin
from jaxmbs.io.generated import in_files
from jaxmbs.model.events import Action, Condition, OrbitReaches, StateReaches, When
from jaxmbs.study import Designs, read

EXAMPLES = Path(__file__).parents[2] / "examples"
slow = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, events, exact",
    [
        ("cubesat_dispenser", ["out"], 1e-7),
        pytest.param("fairing_halves", ["springs_out", "off_left", "off_right"], 1e-4, marks=slow),
        ("booster_separation", ["strut_opens", "hinge_opens"], 1e-2),  # of megajoules
        ("fairing_jettison", ["jettison", "springs_out", "off_left", "off_right", "behind"], 2.0),  # of 20 gigajoules
        ("booster_in_air", ["strut_opens", "off"], 0.2),  # of gigajoules
        ("cubesat_drift", [], 1e-2),  # of 10 gigajoules
        ("hot_staging", ["clamps_open"], 50.0),  # of megajoules
        ("detumbling", [], 1e-9),
        ("flexible_wings", ["latch", "latch"], 1e-3),
        pytest.param("satellite_release", ["go_1", "go_2", "go_3", "go_4"], 1e-5, marks=slow),
        pytest.param(
            "solar_array_deployment",
            ["latches", "latches"],
            1e-6,
            marks=slow,
        ),
    ],
)
def test_nominal_motion(name, events, exact):
    """exact [J]: of energies between 10 J and 400 kJ, where no other is given."""
    study = read(EXAMPLES / f"{name}.toml")
    time = study.simulation
    key = jax.random.key(0)
    run = mbs.simulate(
        study.model, study.q0, study.v0, time.t_end, time.dt, method=time.method, save_every=None, key=key
    )
    happened = [study.model.event_names[i] for i in run.events.index if i >= 0]
    sides = ("_left", "_right", "left_", "right_")
    plain = [functools.reduce(lambda name, side: name.replace(side, ""), sides, e) for e in happened]
    assert plain == [functools.reduce(lambda name, side: name.replace(side, ""), sides, e) for e in events]
    assert run.status == mbs.Status.OK and abs(float(run.energy_error[-1])) < exact
    assert np.all(np.diff(run.events.time) >= 0)


@pytest.mark.slow
def test_the_ascent_ends_in_its_orbit():
    """Cut off at the semi-major axis of the orbit, near a circle, in the plane of the pad; what is left of the propellant is
    what was not burnt in the time from ignition to cut-off."""
    study = read(EXAMPLES / "ascent.toml", trust=True)
    time, model = study.simulation, study.model
    run = mbs.simulate(
        model, study.q0, study.v0, time.t_end, time.dt, method=time.method, save_every=None, key=jax.random.key(0)
    )
    assert isinstance(model.structure.events[1].when, OrbitReaches)
    assert [model.event_names[i] for i in run.events.index if i >= 0] == ["separation", "cut_off"]
    assert run.status == mbs.Status.OK and abs(float(run.energy_error[-1])) < 1e6  # of 700 gigajoules
    burnt, end = 200e3 / (345.0 * 9.80665), float(run.events.time[1])
    left = float(run.states["engine.propellant"][-1])
    assert left == pytest.approx(24e3 - burnt * (end - 165.0), abs=1e-3)
    at_end = mbs.set(model, {"engine.propellant": left})
    orbit = mbs.orbital_elements(at_end, run.q[-1], run.v[-1], "upper", t=end)
    assert float(orbit.semi_major_axis) == pytest.approx(6_628_137.0, abs=10.0)
    assert float(orbit.eccentricity) < 5e-4 and float(np.degrees(orbit.inclination)) == pytest.approx(5.2, abs=0.01)


@pytest.mark.slow
def test_the_example_of_events_shows_every_condition_and_every_action():
    """Once each but When, of a function of the user, and those on orbits and on states; and every event happens."""
    study = read(EXAMPLES / "every_event.toml", need="simulation")
    events = study.model.structure.events
    for family, parts in ((Condition, [e.when for e in events]), (Action, [a for e in events for a in e.then])):
        assert {type(x) for x in parts} == set(in_files(family, builtin())) - {When, OrbitReaches, StateReaches}
    assert any(e.repeat for e in events) and any(e.after for e in events) and any(e.waits for e in events)
    run = mbs.simulate(study.model, study.q0, study.v0, study.simulation.t_end, study.simulation.dt, save_every=None)
    happened = [study.model.event_names[i] for i in run.events.index if i >= 0]
    assert set(happened) == set(study.model.event_names) and happened[-1] == "end" and happened.count("latch") > 2
    assert run.status == mbs.Status.OK and abs(float(run.energy_error[-1])) < 1e-3  # of 200 J
    assert bool(run.mode.lock[study.model.v_slice("hinge")][0])  # latched


def test_the_designs_of_the_stage_separation_are_read():
    designs = Designs.read(EXAMPLES / "stage_separation_designs.toml")
    assert designs.baseline == "now" and designs.studies["now"] == read(EXAMPLES / "stage_separation.toml")
    assert float(mbs.get(designs.studies["late"].model, "residual.thrust")) == 300.0
