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
        ("booster_separation", ["opens", "opens", "aft_opens"], 1e-2),  # of megajoules
        ("fairing_jettison", ["jettison", "springs_out", "off_left", "off_right", "behind"], 2.0),  # of 20 gigajoules
        ("booster_in_air", ["strut_opens", "off"], 0.2),  # of gigajoules
        ("cubesat_drift", [], 1e-2),  # of 10 gigajoules
        ("hot_staging", ["clamps_open"], 50.0),  # of megajoules
        ("detumbling", ["release"], 1e-3),  # of 5 J in the springs
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
def test_a_booster_on_one_strut_swings_to_its_side():
    """Its fitting moves across the strut that is left, 12 outwards and 5 to the side, and turns it by little; from 60 ms
    on, the booster turns outwards freely. The motors have not ignited yet."""
    study = read(EXAMPLES / "booster_separation.toml")
    model = study.model
    masses = (9000.0, 9.0, 1.35), (14.0, 18.0, 0.6), (14.0, 1.5, 0.6)  # kg, m, m; the last two are propellant
    moment = 18.0 * sum(m * y for m, _, y in masses)
    aside = 300e3 + sum(m * x**2 for m, x, _ in masses)  # kg m2, about the aft joint
    outwards = aside + sum(m * y**2 for m, _, y in masses) + 1.0  # with the cross
    on_one = 0.01 * moment / (outwards + (5 / 12) ** 2 * aside)
    rates = [model.v_slice("outwards").start, model.v_slice("aft").start + 2]
    for left, right, side in ((0.05, 0.06, 1), (0.06, 0.05, -1), (0.06, 0.06, 0)):
        late = {"nose.ignition": 0.5, "left_opens.t": left, "right_opens.t": right}
        run = mbs.simulate(mbs.set(model, late), study.q0, study.v0, 0.08, 0.01)
        wanted = abs(side) * on_one + 0.02 * moment / outwards, side * 5 / 12 * on_one
        assert run.v[-1, rates] == pytest.approx(wanted, rel=1e-3, abs=1e-9)


@pytest.mark.slow
def test_the_springs_release_the_satellite():
    """Its speed follows from the energy of the springs and the reduced mass, its rate from the impulse of a spring that is
    stronger than the others; the momentum stays, and the wheels get no command until the controller starts."""
    study = read(EXAMPLES / "detumbling.toml")
    assert mbs.get(study.model, "attitude.offset") == 6.0
    more = 0.03 * 42.0  # N, of spring_1
    model = mbs.set(study.model, {"spring_1.preload": 42.0 + more})
    run = mbs.simulate(model, study.q0, study.v0, 6.0, 0.02, key=jax.random.key(0))
    for part in mbs.momentum(model, run.q[-1], run.v[-1]):
        assert np.abs(part).max() < 1e-6  # of 34 N s and 0.1 N m s
    assert not run.states["wheel_y.torque"].any()

    satellite, launcher = 120.0 + np.pi * 0.18**2 * 0.2 * 1008.0, 900.0  # kg, with the liquid
    reduced, stiffness, force = 1 / (1 / satellite + 1 / launcher), 3 * 500.0, 3 * 42.0
    energy = force * 0.06 - stiffness * 0.06**2 / 2
    released = run.v[100, study.model.v_slice("clamp")]  # at 2 s
    assert float(released[5]) == pytest.approx(np.sqrt(2 * energy / reduced), rel=0.02)  # which that spring makes more

    frequency = np.sqrt(stiffness / reduced)
    lasts = np.arccos(1 - stiffness * 0.06 / force) / frequency
    liquid = satellite - 120.0
    inertia = 13.0 + 120.0 * liquid / satellite * 0.275**2  # of the satellite about its centre, the liquid as a point
    assert float(released[1]) == pytest.approx(-more * 0.2 * lasts / inertia, rel=0.1)


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
