"""Elements of one's own in a file: from a module beside it, which is run for those who trust it, and from packages."""

import importlib.metadata
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import jaxmbs as mbs
from jaxmbs import batching
from jaxmbs.cli.app import app
from jaxmbs.io import InputError, catalogue, load
from jaxmbs.study import read, run

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def lid(tmp_path):
    """The example's two files in a folder of their own."""
    for name in ("magnets.toml", "magnetic_elements.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    return tmp_path / "magnets.toml"


def edited(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_a_files_module_is_not_run_without_trust(lid):
    (lid.parent / "magnetic_elements.py").write_text("raise SystemExit('it ran')", encoding="utf-8")
    for read_it in (load, read):
        with pytest.raises(
            InputError, match=r'needs to run the Python file "magnetic_elements.py".*--trust.*trust=True'
        ):
            read_it(lid)
    told = CliRunner().invoke(app, ["info", str(lid)])
    assert told.exit_code != 0 and "modules[0]" in told.output and "--trust" in told.output


def test_own_elements_are_full_citizens(lid):
    model = load(lid, trust=True)
    assert mbs.get(model, "magnet.strength") == 0.02
    up = mbs.forward_dynamics(model, np.array([0.0]), np.array([0.0]))
    assert up[0] == pytest.approx(0.02 / 0.02**2 / 2.0 - 9.81)
    with pytest.raises(mbs.ModelError, match=r"magnet\.strength.*negative"):
        mbs.set(model, {"magnet.strength": -1.0})
    assert load(lid, trust=True) == model, "one content is one class, however often it is read"
    study = read(lid, trust=True)
    assert study.quantities == {"top": "length"} and study.criteria[0].bound == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("old", "new", "path", "remedy"),
    [
        ("strength = 0.02", "strenght = 0.02", "mechanism.forces[0].strenght", 'did you mean "strength"?'),
        ("strength = 0.02", "strength = -0.02", "mechanism.forces[0].strength", "got -0.02"),
        ('type = "magnet"', 'type = "magnets"', "mechanism.forces[0].type", 'did you mean "magnet"'),
        ('"magnetic_elements.py"', '"../magnetic_elements.py"', "modules[0]", "beside this one"),
        ('"magnetic_elements.py"', '"magnetic.py"', "modules[0]", "cannot be read from the folder of the file"),
        ('["magnetic_elements.py"]', '"magnetic_elements.py"', "modules", "list of file names"),
    ],
)
def test_errors_in_files_with_own_elements(lid, old, new, path, remedy):
    with pytest.raises(InputError) as error:
        read(edited(lid, old, new), trust=True)
    assert [p for p in error.value.problems if p.path == path and remedy in p.message], error.value


def test_a_module_that_fails_or_takes_a_name_is_told(lid, monkeypatch):
    module = lid.parent / "magnetic_elements.py"
    source = module.read_text(encoding="utf-8")
    module.write_text("1 / 0", encoding="utf-8")
    with pytest.raises(InputError, match=r"modules.*ZeroDivisionError: division by zero"):
        load(lid, trust=True)
    module.write_text(source.replace("class Magnet(", "class Pusher("), encoding="utf-8")
    with pytest.raises(InputError, match='Pusher would be called "pusher" in a file'):
        load(lid, trust=True)
    module.write_text(f"{source}\n\ndef pull(model, t, q, v): return -v\n", encoding="utf-8")
    monkeypatch.setattr(catalogue, "installed", lambda: ((), {"magnetic_elements.pull": print}))
    with pytest.raises(InputError, match=r'a function "magnetic_elements\.pull" exists already'):
        load(lid, trust=True)


@pytest.mark.slow
def test_a_study_with_own_elements_runs_resumes_and_reports(lid, monkeypatch):
    """The folder of a run holds the module: it goes on without the file that it came from."""
    monkeypatch.setattr(batching, "use_all_cores", lambda: None)  # this process has used JAX
    run, out = CliRunner(), lid.parent / "run"
    done = run.invoke(app, ["study", str(lid), "-n", "64", "--block-rows", "64", "--out", str(out), "--trust"])
    assert done.exit_code == 0, done.output
    assert (out / "files" / "magnetic_elements.py").exists()
    for name in ("magnets.toml", "magnetic_elements.py"):
        (lid.parent / name).unlink()
    told = run.invoke(app, ["resume", str(out)])
    assert told.exit_code != 0 and "--trust" in told.output
    done = run.invoke(app, ["resume", str(out), "--trust"])
    assert done.exit_code == 0 and "top > 30 mm" in done.output, done.output
    (out / "files" / "magnetic_elements.py").write_text("changed = 1", encoding="utf-8")
    told = run.invoke(app, ["resume", str(out), "--trust"])
    assert told.exit_code != 0 and "was changed since the run began" in told.output


LEAK = """
from typing import Any

from jaxmbs.elements import Force, Kind, element, field, state


@element
class Leak(Force):
    joint: str = field(Kind.JOINT, "", "joint that it pushes")
    area: Any = field(Kind.POSITIVE, "m2", "on which the pressure acts", default=0.01)
    time: Any = field(Kind.POSITIVE, "s", "in which the pressure falls to 1/e", default=1.0)
    pressure: Any = state("Pa", "over the surroundings", default=1e4)

    def rates(self, p, scene):
        return {"pressure": -p["pressure"] / p["time"]}

    def apply(self, p, scene, loads):
        loads.joint(self.joint, (p["area"] * p["pressure"],))

    def power(self, p, scene):
        return p["area"] * p["pressure"] * scene.rates(self.joint)[0]
"""
VESSEL = """
modules = ["leak.py"]
criteria = ["left > 1 Pa"]
[mechanism]
bodies = [{ name = "cart", mass = 2.0 }]
joints = [{ name = "rail", type = "prismatic", axis = [1, 0, 0], parent = "world", child = "cart" }]
forces = [{ name = "vessel", type = "leak", joint = "rail", pressure = 2e4 }]
[simulation]
t_end = 1.0
dt = 0.01
[dispersions."vessel.pressure"]
distribution = "uniform"
apply = "multiply"
low = 0.5
high = 1.5
[outputs]
left = { type = "element_state", name = "vessel.pressure" }
speed = { type = "joint_velocity", joint = "rail" }
"""


def test_a_state_of_ones_own_in_a_file(tmp_path):
    """Its start is a key of the table and is dispersed; its history is an output by name, with the unit of the state."""
    (tmp_path / "leak.py").write_text(LEAK, encoding="utf-8")
    (tmp_path / "vessel.toml").write_text(VESSEL, encoding="utf-8")
    study = read(tmp_path / "vessel.toml", trust=True)
    assert mbs.get(study.model, "vessel.pressure") == 2e4 and study.quantities["left"] == "pressure"
    found = run(study, 64, tmp_path / "run", 64).arrays()
    start, left, speed = (np.asarray(found[name][:]) for name in ("vessel.pressure", "left", "speed"))
    assert not np.asarray(found["status"][:]).any() and np.ptp(start) > 0.5
    np.testing.assert_allclose(left, 2e4 * start / np.e, rtol=1e-9)
    np.testing.assert_allclose(speed, 2e4 * start * 0.01 / 2.0 * (1 - 1 / np.e), rtol=1e-9)
    for old, new, said in (
        (
            'name = "vessel.pressure"',
            'name = "vessel.presure"',
            r'outputs\.left\.name: .* did you mean "vessel\.pressure"',
        ),
        ("pressure = 2e4", "pressure = [2e4]", r"forces\[0\]\.pressure: needs one number"),
        ("1 Pa", "1 N", "left.* measures force, not pressure"),
    ):
        with pytest.raises(InputError, match=said):
            read(edited(tmp_path / "vessel.toml", old, new), trust=True)
        edited(tmp_path / "vessel.toml", new, old)


def test_elements_of_an_installed_package(tmp_path, monkeypatch):
    """A package names a module or a class as an entry point; what it defines needs no trust: it was installed."""
    text = (EXAMPLES / "magnetic_elements.py").read_text(encoding="utf-8").replace("class Height", "class Altitude")
    (tmp_path / "own_package.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    points = [
        importlib.metadata.EntryPoint(n, v, catalogue.GROUP) for n, v in (("m", "own_package"), ("bad", "no_such"))
    ]
    monkeypatch.setattr(catalogue.importlib.metadata, "entry_points", lambda group: points)
    catalogue.installed.cache_clear()
    try:
        file = tmp_path / "m.toml"
        file.write_text(
            (EXAMPLES / "magnets.toml").read_text(encoding="utf-8").replace('modules = ["magnetic_elements.py"]', ""),
            encoding="utf-8",
        )
        with pytest.warns(mbs.ModelWarning, match=r"'bad'.*left out.*no_such"):
            assert mbs.get(load(file), "magnet.strength") == 0.02
    finally:
        catalogue.installed.cache_clear()
        sys.modules.pop("own_package", None)
