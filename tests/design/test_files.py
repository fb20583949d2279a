"""Problems from files: what is wrong is said with its key; the command leaves a design that `set` takes."""

import json
import re
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.cli import common
from jaxmbs.cli.commands import synthesize
from jaxmbs.design.file import read
from jaxmbs.design.local import Problems
from jaxmbs.io import InputError
from tests.study.conftest import command  # noqa: F401

ARM = """
[mechanism]
name = "arm"
gravity = [0.0, 0.0, 0.0]
[[mechanism.bodies]]
name = "upper"
mass = 2.0
com = [0.2, 0.0, 0.0]
inertia = [0.01, 0.1, 0.1]
[[mechanism.bodies]]
name = "fore"
mass = 1.0
com = [0.15, 0.02, 0.0]
inertia = [0.01, 0.05, 0.05]
[[mechanism.joints]]
name = "shoulder"
type = "revolute"
axis = [0.0, 0.0, 1.0]
parent = "world"
child = "upper"
[[mechanism.joints]]
name = "elbow"
type = "revolute"
axis = [0.0, 0.0, 1.0]
parent = "upper"
child = "fore"
parent_pose = {position = [0.5, 0.0, 0.0]}

[design]
starts = 2
check = 200
[[design.free]]
type = "parameter"
names = ["fore.com"]
components = [0, 1]
low = -300
high = 300
unit = "mm"
[[design.objectives]]
type = "configuration_independence"
configurations = 8
"""

CASES = {
    "no design": (ARM[ARM.index("[design]") :], "", "design", "missing"),
    "unknown key": ("starts = 2", "start = 2", "design.start", 'did you mean "starts"?'),
    "no starts": ("starts = 2", "starts = 0", "design.starts", "got 0"),
    "unknown type of what is free": ('"parameter"', '"paramter"', "design.free[0].type", 'did you mean "parameter"?'),
    "unknown parameter": ('"fore.com"', '"fore.cm"', "design.free[0]", "did you mean 'fore.com'"),
    "component out of range": ("[0, 1]", "[0, 3]", "design.free[0]", "it has 3"),
    "bounds in the wrong order": ("low = -300", "low = 400", "design.free[0]", "exchange them"),
    "unit of another quantity": ('"mm"', '"kg"', "design.free[0]", "measures mass"),
    "unknown objective": ('"configuration_independence"', '"independence"', "design.objectives[0].type", "configuration"),
    "unknown joint": ("configurations = 8", 'rows = "elbw"', "design.objectives[0]", "did you mean 'elbow'"),
    "no objective": ('[[design.objectives]]\ntype = "configuration_independence"\nconfigurations = 8\n', "", "design.objectives", "missing"),  # noqa: E501
    "error in the mechanism": ("mass = 2.0", "mas = 2.0", "mechanism.bodies[0].mas", 'did you mean "mass"?'),
    "output that is not there": ('type = "configuration_independence"\nconfigurations = 8', 'type = "output_value"\noutput = "rate"', "design.objectives[0]", "no output named 'rate'"),  # noqa: E501
}  # fmt: skip


def written(tmp_path, text) -> Path:
    path = tmp_path / "arm.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("case", CASES)
def test_wrong_files(case, tmp_path):
    old, new, path, message = CASES[case]
    assert old in ARM
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, ARM.replace(old, new, 1)))
    assert any(p.path == path and message in p.message for p in caught.value.problems), caught.value


def test_the_command_leaves_a_design(command, tmp_path):  # noqa: F811
    file, out = written(tmp_path, ARM), tmp_path / "out"
    done = command("synthesize", file, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "MET: every condition holds" in done.stdout and "fore.com.x = 0" in done.stdout
    record = json.loads((out / "design.json").read_text(encoding="utf-8"))
    model = mbs.set(mbs.load(file), record["parameters"])
    assert np.abs(mbs.get(model, "fore.com")).max() < 1e-10 and record["status"] == "MET"
    assert record["rank"] == 2 and all(r["exact"] and r["residual"] < 1e-12 for r in record["relations"])
    before, after = (record["comparison"][0][k] for k in ("before", "after"))
    assert before > 0.1 and after < 1e-9
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "fore.com.x = 0" in page and page.count("<svg") == 1
    assert 'href="http' not in page.replace("xlink", "") and " src=" not in page and "<script" not in page
    again = command("synthesize", file, "--out", out)
    assert again.returncode == 1 and "exists already" in again.stderr


def test_the_command_says_when_it_found_nothing(command, tmp_path):  # noqa: F811
    file = written(tmp_path, ARM.replace("low = -300", "low = 50").replace("components = [0, 1]", "components = [0]"))
    done = command("synthesize", file, "--out", tmp_path / "out")
    assert done.returncode == 3 and "INFEASIBLE" in done.stdout and "fore.com is at its lower bound" in done.stdout
    assert json.loads((tmp_path / "out" / "design.json").read_text(encoding="utf-8"))["relations"] == []


UNDER_A_CONDITION = """modules = ["centre.py"]
{arm}
[design]
method = "constrained"
starts = 1
check = 10
[[design.free]]
type = "parameter"
names = ["fore.com"]
components = [0, 1]
[[design.objectives]]
type = "function"
fn = "centre.away"
goal = "lowest"
configurations = 1
[[design.objectives]]
type = "function"
fn = "centre.along"
at_least = 0.2
configurations = 1
"""


@pytest.fixture
def under_a_condition(tmp_path):
    """The centre of mass nearest to the elbow, at (0.15, 0.02) m, that is 0.2 m or more along the arm."""
    (tmp_path / "centre.py").write_text(
        "import jaxmbs as mbs\n\n"
        "def away(model, q):\n    return (mbs.get(model, 'fore.com') ** 2).sum()[None]\n\n"
        "def along(model, q):\n    return mbs.get(model, 'fore.com')[:1]\n",
        encoding="utf-8",
    )
    return written(tmp_path, UNDER_A_CONDITION.format(arm=ARM[: ARM.index("[design]")]))


@pytest.fixture
def evaluated(monkeypatch):
    """The number of points evaluated in each call of a search under conditions."""
    points, call = [], Problems.__call__
    monkeypatch.setattr(Problems, "__call__", lambda self, x: points.append(len(x)) or call(self, x))
    return points


def test_a_search_says_how_far_it_is(command, under_a_condition, evaluated, tmp_path, monkeypatch):  # noqa: F811
    """On standard error, where no terminal is."""
    monkeypatch.setattr(synthesize, "LINES", 1e-9)
    done = command("synthesize", under_a_condition, "--trust", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0] == "compiling" and lines[-1] == "writing the report"
    first = "searching: no point meets the conditions yet, largest violation 0.05, 1 evaluations"
    assert lines[1] == first
    last = [line for line in lines if "best value" in line][-1]
    assert last == f"looking at the result: best value 0.04, largest violation 0, {sum(evaluated)} evaluations"


@pytest.mark.slow
def test_a_search_gone_on_with_counts_what_it_did(command, under_a_condition, evaluated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(synthesize, "LINES", 1e-9)
    out, said, points = under_a_condition.parent / "out", [], 0
    for _ in range(2):
        done = command("synthesize", under_a_condition, "--trust", "--out", out)
        said.append(next(line for line in done.stderr.splitlines() if line.startswith("comparing")))
        (out / "design.json").unlink()
        points = points or sum(evaluated)
    assert said == [f"comparing with the original: {points} evaluations"] * 2 and sum(evaluated) < 2 * points


@pytest.mark.parametrize("option, lines", [(None, ["compiling"]), ("--json", []), ("--quiet", [])])
def test_a_short_search_says_little(option, lines, command, tmp_path, monkeypatch):  # noqa: F811
    """One line within the time between two, none for programs."""
    monkeypatch.setattr(synthesize, "LINES", 1e9)
    options = [option] if option else []
    done = command("synthesize", written(tmp_path, ARM), "--out", tmp_path / "out", *options)
    assert done.returncode == 0 and done.stderr.splitlines() == lines


@pytest.mark.slow
def test_a_terminal_shows_the_search_in_place(command, tmp_path, monkeypatch):  # noqa: F811
    shown = []

    @contextmanager
    def status(text):
        yield SimpleNamespace(update=shown.append)

    monkeypatch.setattr(common, "problems", lambda: SimpleNamespace(status=status))
    monkeypatch.setattr(common, "sys", SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: True)))
    done = command("synthesize", written(tmp_path, ARM), "--out", tmp_path / "out")
    record = json.loads((tmp_path / "out" / "design.json").read_text(encoding="utf-8"))
    assert done.returncode == 0 and record["status"] == "MET" and shown[0] == "compiling"
    assert re.fullmatch(r"searching: best value 0\.\d+, largest violation 0\.38, 2 evaluations", shown[1])


@pytest.mark.parametrize("name", ["separation_synthesis", "two_arm_synthesis", "wing_synthesis", "coupler_curve"])
def test_examples_are_read(name):
    problem = read(Path(__file__).parents[2] / "examples" / f"{name}.toml").problem
    assert len(problem.free) > 3 and problem.objectives


def test_a_study_does_not_mind_a_design(tmp_path):
    from jaxmbs.study import read as read_study

    assert read_study(written(tmp_path, ARM), need="mechanism").model.nv == 2


def test_an_objective_that_is_a_function_of_ones_own(tmp_path):
    """A file names it, by the module that stands beside."""
    (tmp_path / "level.py").write_text(
        "import jaxmbs as mbs\n\ndef height(model, q):\n    return mbs.energy(model, q, 0 * q)[1]\n", encoding="utf-8"
    )
    text = 'modules = ["level.py"]\n' + ARM.replace(
        'type = "configuration_independence"', 'type = "function"\nfn = "level.height"'
    )
    file = tmp_path / "arm.toml"
    file.write_text(text, encoding="utf-8")
    problem = read(file, trust=True).problem
    assert problem.objectives[0].fn.__name__ == "height"
    file.write_text(text.replace("level.height", "level.hight"), encoding="utf-8")
    with pytest.raises(
        InputError, match=r'objectives\[0\]\.fn: there is no function "level\.hight"; did you mean "level\.height"'
    ):
        read(file, trust=True)
