"""Events of samples: their values just before, how often and when they happen, in the results and in the report."""

import html
import json
import re
import shutil

import numpy as np
import pytest
import zarr

import jaxmbs as mbs
from jaxmbs.io.errors import InputError
from jaxmbs.study import read, repeat, report, resume, run
from jaxmbs.study.outputs import JointPosition, JointVelocity
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.examination import examined
from jaxmbs.study.results.provenance import signed
from tests.study.conftest import CART

LATCHING = CART.replace("damping = 0.5", "damping = 0.0").replace(
    '"reach > 90 mm", "speed < 0.9 m/s"', '"speed_then < 2 m/s"'
)
LATCHING += """
[[mechanism.events]]
name = "latch"
when = {type = "joint_reaches", joint = "rail", value = 0.02, direction = "up"}
then = [{type = "lock", joint = "rail"}]
[[mechanism.events]]
name = "far"
when = {type = "joint_reaches", joint = "rail", value = 5.0}
then = [{type = "finish"}]
[outputs.speed_then]
type = "joint_velocity"
joint = "rail"
reduce = "at"
when = "event latch"
[outputs.instant]
type = "joint_velocity"
joint = "rail"
reduce = "time_at"
when = "event latch"
[outputs.never]
type = "joint_position"
joint = "rail"
reduce = "at"
when = "event far"
[outputs.told]
type = "event_time"
event = "latch"
"""
SAMPLES = 64
WHEN = "joint_reaches rail, value 0.02, direction up"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    (folder / "cart.toml").write_text(LATCHING, encoding="utf-8")
    return run(read(folder / "cart.toml"), SAMPLES, folder / "run", 64)


@pytest.fixture(scope="module")
def raw(finished):
    return {name: x[:] for name, x in zarr.open_group(str(finished.folder / "results.zarr"), mode="r").arrays()}


def test_values_just_before_an_event(finished, raw):
    """The spring, 0.2 m short of its rest length, drives the cart; it is caught at 20 mm."""
    stiffness, mass, start = 50.0 * raw["spring.stiffness"], 2.0 * raw["cart.mass"], raw["initial.rail.v"]
    expected = np.sqrt(start**2 + stiffness / mass * (0.2**2 - 0.18**2))
    assert raw["speed_then"] == pytest.approx(expected, rel=1e-9)
    assert raw["speed"] == pytest.approx(np.zeros(SAMPLES)) and raw["reach"] == pytest.approx(np.full(SAMPLES, 0.02))
    omega = np.sqrt(stiffness / mass)
    phases = np.arctan2(expected / omega, 0.18) - np.arctan2(start / omega, 0.2)  # of the oscillation about rest
    assert raw["instant"] == pytest.approx(phases / omega, rel=1e-8)
    assert np.array_equal(raw["told"], raw["instant"]) and np.isnan(raw["never"]).all()
    assert np.array_equal(raw["event_counts"], np.tile([1, 0], (SAMPLES, 1)))
    assert np.array_equal(raw["event_times"][:, 0], raw["told"]) and np.isnan(raw["event_times"][:, 1]).all()
    again = repeat(read(finished.folder / "study.toml"), [5, 3])
    for name in ("speed_then", "instant", "never", "reach"):
        assert again.outputs[name] == pytest.approx(raw[name][[5, 3]], rel=1e-9, nan_ok=True)


TAKEN = '[outputs.then]\ntype = "joint_velocity"\njoint = "rail"\nreduce = "at"\nwhen = "event latch"'


@pytest.mark.parametrize("more", ["", TAKEN], ids=["plain", "taken at the event"])
def test_a_run_that_an_impact_ends_ends_with_what_it_leaves(tmp_path, more):
    """As its history does, whether or not other outputs are taken at events."""
    text = LATCHING[: LATCHING.index("[[mechanism.events]]")].replace("speed_then < 2", "speed < 2")
    text += LATCHING[LATCHING.index("[[mechanism.events]]") : LATCHING.index('[[mechanism.events]]\nname = "far')]
    text = text.replace('joint = "rail"}]', 'joint = "rail"}, {type = "finish"}]')
    (tmp_path / "cart.toml").write_text(text + more, encoding="utf-8")
    study = read(tmp_path / "cart.toml")
    done = run(study, 16, tmp_path / "run", 64)
    raw = {name: x[:] for name, x in zarr.open_group(str(done.folder / "results.zarr"), mode="r").arrays()}
    history = repeat(study, [3])
    assert history.v[0, -1, 0] == 0
    assert np.array_equal(raw["speed"], np.zeros(16)) and raw["reach"] == pytest.approx(np.full(16, 0.02))
    assert not more or (raw["then"] > 0.1).all()


@pytest.mark.parametrize("taken", [False, True], ids=["plain", "others are taken at the event"])
def test_a_run_that_an_event_finishes_within_a_step_ends_at_its_instant(taken):
    """In steps of 0.25 s a block of 1 kg is pulled by 1 N, until it has gone 0.7 m: at t = sqrt(1.4) s."""
    mech = mbs.Mechanism("block")
    mech.add_body("block", 1.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "block")
    mech.add_force("pull", mbs.Thruster("block", direction=(1, 0, 0), thrust=1.0))
    mech.add_event("end", mbs.JointReaches("rail", 0.7), mbs.Finish())
    of = {"position": JointPosition("rail"), "speed": JointVelocity("rail", reduce="max")}
    of |= {"mean": JointVelocity("rail", reduce="mean"), "when": JointVelocity("rail", reduce="time_of_max")}
    if taken:
        of["then"] = JointVelocity("rail", reduce="at", when="event end")
    varied = {"pull.thrust": mbs.study.Normal(std=1e-12)}
    study = mbs.study.Study(model=mech.build(), simulation={"t_end": 5.0, "dt": 0.25}, outputs=of, dispersions=varied)
    found = {name: float(x[0]) for name, x in repeat(study, [0]).outputs.items()}
    end = np.sqrt(1.4)
    want = {"position": 0.7, "speed": end, "mean": 0.7 / end, "when": end} | ({"then": end} if taken else {})
    assert found == pytest.approx(want, rel=1e-9)


def test_the_report_tells_of_events(finished, raw):
    written = report(finished.folder)
    text = html.unescape(
        re.sub(r"<svg.*?</svg>|<[^>]+>", "\n", written.path.read_text(encoding="utf-8"), flags=re.DOTALL)
    )
    said = re.sub(r"\n+", "\n", text)
    times = [f"{np.quantile(raw['told'], q):.5g}" for q in (0.01, 0.05, 0.5, 0.95, 0.99)]
    latched = [
        "latch",
        WHEN,
        "lock rail, restitution 0, rest_rate 0.01",
        f"{SAMPLES} of {SAMPLES} (100.00%)",
        "1",
        *times,
    ]
    assert "\n".join(latched) in said
    assert (
        "\n".join(["far", "joint_reaches rail, value 5, direction either", "finish", f"0 of {SAMPLES} (0.00%)", "0"])
        in said
    )
    latch = written.document["events"]["latch"]
    assert (latch["samples"], latch["of"], latch["most"]) == (SAMPLES, SAMPLES, 1)
    assert latch["first"]["0.5"] == np.quantile(raw["told"], 0.5)


@pytest.mark.parametrize("event", ["ltach", "t > 0.1 s"])
def test_an_event_that_is_not_there_is_named(event, tmp_path):
    (tmp_path / "cart.toml").write_text(LATCHING.replace('"event far"', f'"event {event}"'), encoding="utf-8")
    with pytest.raises(InputError, match=r"outputs\.never\.when: there is no event "):
        read(tmp_path / "cart.toml")


def test_a_run_of_another_version_is_not_called_damaged(finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished.folder, folder)
    shutil.rmtree(folder / "results.zarr" / "event_times")
    with pytest.raises(InputError, match="damaged"):
        report(folder)
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    record["versions"]["jaxmbs"] = "0.0.1"
    del record["format"], record["digest"]
    before = (folder / "results.zarr" / "zarr.json").read_bytes()
    for older in (record, signed(record)):
        (folder / "provenance.json").write_text(json.dumps(older), encoding="utf-8")
        for use in (report, resume, examined, stores.open_folder):
            if (use, older) != (stores.open_folder, signed(record)):
                with pytest.raises(InputError, match=r"is a run of jaxmbs 0\.0\.1, .*nothing is damaged"):
                    use(folder, True) if use is resume else use(folder)
    assert (folder / "results.zarr" / "zarr.json").read_bytes() == before


def test_a_delay_is_dispersed_like_any_number(cart, command):
    """Each sample begins with the delay that it drew."""
    more = "damping = 0.5\ndelay = 0.01\n", '[outputs.began]\ntype = "event_time"\nevent = "spring"\n'
    spread = '[dispersions."spring.delay"]\ndistribution = "uniform"\nlow = 0.0\nhigh = 0.1\n'
    path = cart("damping = 0.5\n", more[0], "[simulation]", spread + more[1] + "[simulation]")
    found = repeat(read(path), [0, 1, 2])
    assert found.numbers is not None and len(set(found.outputs["began"])) == 3
    assert found.outputs["began"] == pytest.approx(found.numbers.parameters["spring.delay"], rel=1e-12)
    said = command("info", path).stdout
    assert "delay, delay 0.01" in said and "enable spring" in said
