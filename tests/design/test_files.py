"""Problems from files: what is wrong is said with its key; the command leaves a design that `set` takes."""

import json
from pathlib import Path

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.design.file import read
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
    "component out of range": ("[0, 1]", "[0, 3]", "design.free[0]", "which has 3"),
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
