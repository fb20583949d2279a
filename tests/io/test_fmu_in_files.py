"""FMUs in files: the same models as in Python, trust, checksums, and runs that hold them."""

import json
import shutil
import sys
import zipfile

import numpy as np
import pytest
import scipy.linalg
import xarray as xr

import jaxmbs as mbs
from jaxmbs.io.fmu import Law, Reading
from jaxmbs.study import bundle, read, report, resume, run
from jaxmbs.study.evidence.bundle import examined_bundle
from jaxmbs.study.folder.shell import needs_trust
from jaxmbs.study.problem.programs import content
from jaxmbs.study.results.examination import examined
from jaxmbs.study.results.provenance import provenance, salt
from tests.exporting.test_programs import needs_compiler
from tests.io.test_fmu import cart, lag, pytestmark  # noqa: F401
from tests.study.conftest import command  # noqa: F401

pytestmark = [*pytestmark, pytest.mark.filterwarnings("ignore:the FMU:jaxmbs.ModelWarning")]

MECHANISM = """
[mechanism]
name = "cart"
gravity = [0.0, 0.0, 0.0]
[[mechanism.bodies]]
name = "cart"
mass = 2.0
inertia = [0.1, 0.1, 0.1]
[[mechanism.joints]]
name = "rail"
type = "prismatic"
axis = [1.0, 0.0, 0.0]
parent = "world"
child = "cart"
[[mechanism.forces]]
name = "push"
type = "thruster"
body = "cart"
direction = [1.0, 0.0, 0.0]
thrust = 0.0
[[mechanism.sensors]]
name = "encoder"
type = "encoder"
joint = "rail"
"""
LAG = """
[[mechanism.fmus]]
name = "box"
file = "lag.fmu"
period = 0.05
delay = 0.01
inputs = { u = "encoder[1]", stop = 0.0 }
outputs = { x = "push.thrust", count = [] }
parameters = { "plant.gain" = 2.0 }
"""
STUDY = """
[initial.rail]
v = [0.5]
[dispersions."box.plant_gain"]
distribution = "uniform"
low = 1.0
high = 3.0
[simulation]
t_end = 0.4
dt = 0.05
[outputs.reach]
type = "joint_position"
joint = "rail"
"""


@pytest.fixture
def file(tmp_path, lag):  # noqa: F811
    """Function (text) -> path of a file with that text beside the FMU of the lag."""
    shutil.copy(lag(), tmp_path / "lag.fmu")

    def write(text):
        (tmp_path / "cart.toml").write_text(text, encoding="utf-8")
        return tmp_path / "cart.toml"

    return write


def test_a_file_gives_the_model_of_python_and_so_does_what_save_writes(file, tmp_path):
    path = file(MECHANISM + LAG)
    own = mbs.from_fmu(
        tmp_path / "lag.fmu", 0.05, delay=0.01, inputs={"u": "encoder[1]", "stop": 0},
        outputs={"x": "push.thrust", "count": ()}, parameters={"plant.gain": 2.0},
    )  # fmt: skip
    with pytest.warns(mbs.ModelWarning, match="the FMU 'lag.fmu': it runs on the host"):
        model = mbs.load(path, trust=True)
    assert model == cart(own) and mbs.get(model, "box.plant_gain") == 2.0
    again = tmp_path / "again"
    again.mkdir()
    mbs.save(mbs.set(cart(own), {"box.plant_gain": 3.0}), again / "cart.toml")
    assert (again / "lag.fmu").read_bytes() == (tmp_path / "lag.fmu").read_bytes()
    back = mbs.load(again / "cart.toml", trust=True)
    assert back == mbs.set(model, {"box.plant_gain": 3.0}) != model
    other = mbs.from_fmu(tmp_path / "lag.fmu", 0.05, inputs={"u": "encoder[0]"}, outputs={"x": "push.thrust"})
    assert cart(other) != model


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            (),
            'fmus[0].file: the file needs to run the FMU "lag.fmu", which is machine code; if you trust it, pass --trust',
        ),
        (('"lag.fmu"', '"leg.fmu"'), 'fmus[0].file: "leg.fmu" cannot be read from the folder'),
        (('"lag.fmu"', '"text.fmu"'), 'fmus[0].file: "text.fmu" is not an FMU'),
        (('"lag.fmu"', '"text.zip"'), 'fmus[0].file: "text.zip" is not the name of an FMU, which ends with .fmu'),
        (('"lag.fmu"', '"../lag.fmu"'), "without a folder"),
        (('"lag.fmu"', "3"), "needs the name of a file, got 3"),
        (('"plant.gain"', '"plant.gian"'), 'fmus[0].parameters."plant.gian": there is no such variable; did you mean'),
        (("u = ", "w = "), "fmus[0].inputs.w: there is no such variable; inputs: u, stop"),
        (("stop = 0.0", "stop = true"), 'needs a number or a sensor, such as "imu" or "encoder[0]", got True'),
        (("count = []", "count = 1"), "needs the parameters that it sets"),
        (("push.thrust", "push.thurst"), "'push.thurst'; did you mean 'push.thrust'"),
        (('"encoder[1]"', '"encodr[1]"'), "'encodr'; did you mean 'encoder'"),
        (("period = 0.05", "period = 0.0"), "fmus[0].period"),
        (("delay = 0.01", "delay = 0.1"), "delay must be below the period"),
    ],
)
def test_faults_in_a_file_name_their_key(file, tmp_path, change, says):
    for name in ("text.fmu", "text.zip"):
        (tmp_path / name).write_text("text", encoding="utf-8")
    text = LAG.replace(*change) if change else LAG
    assert not change or text != LAG
    with pytest.raises(mbs.ModelError) as error:
        mbs.load(file(MECHANISM + text), trust=bool(change))
    assert says in str(error.value)


def test_one_number_of_a_reading():
    readings = {"encoder": np.array([3.0, 4.0])}
    whole, one = Reading.of("encoder"), Reading.of("encoder[1]")
    assert (str(whole), str(one)) == ("encoder", "encoder[1]")
    assert whole.value(readings, 2, "u").tolist() == [3.0, 4.0] and one.value(readings, 1, "u").tolist() == [4.0]
    for given, size, says in (
        (
            Reading.of("encoder[2]"),
            1,
            "u takes one number and is 'encoder[2]', but the reading of 'encoder' has 2 numbers",
        ),
        (one, 2, "u takes 2 numbers and is 'encoder[1]'"),
        (whole, 1, "pass one that fits, or one of them, such as 'encoder[0]'"),
    ):
        with pytest.raises(mbs.ModelError) as error:
            given.value(readings, size, "u")
        assert says in str(error.value)


def test_without_fmpy_the_file_says_what_to_install(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "fmpy", None)
    with pytest.raises(mbs.ModelError, match=r"fmus\[0\].file: FMUs need FMPy: pip install 'jaxmbs\[fmu\]'"):
        mbs.load(file(MECHANISM + LAG), trust=True)


def test_what_no_file_can_hold_is_said(file, tmp_path):
    given = {"inputs": {"u": lambda model, t, q, v, readings: q[0]}, "outputs": {"x": "push.thrust"}}
    model = cart(mbs.from_fmu(file("").parent / "lag.fmu", 0.05, **given))
    with pytest.raises(mbs.ModelError, match="an FMU whose input 'u' is a function; a file can name a sensor instead"):
        mbs.save(model, tmp_path / "not.toml")
    model = cart(mbs.from_fmu(tmp_path / "lag.fmu", 0.05, outputs={"x": "push.thrust"}))
    with pytest.raises(mbs.ModelError, match="has a state of an FMU that has begun"):
        mbs.save(mbs.set(model, {"box.state": [1.0, 2.0, 3.0, 4.0, 0.5]}), tmp_path / "not.toml")
    shutil.copy(tmp_path / "lag.fmu", tmp_path / "lag.zip")
    model = cart(mbs.from_fmu(tmp_path / "lag.zip", 0.05, outputs={"x": "push.thrust"}))
    with pytest.raises(mbs.ModelError, match=r"is the FMU lag\.zip, whose name must end with \.fmu; rename its file"):
        mbs.save(model, tmp_path / "not.toml")
    assert not (tmp_path / "not.toml").exists()


def test_the_fmu_is_part_of_the_study(file, tmp_path, lag):  # noqa: F811
    """Another FMU of the same name gives another record and other checksums of samples."""
    path = file(MECHANISM + LAG + STUDY)
    study = read(path, trust=True).of_size(4)
    first = provenance(study, 4, 64)
    assert study.files == {"lag.fmu": (tmp_path / "lag.fmu").read_bytes()}
    assert content(study) == (
        None,
        "they call an FMU on the host, which another process cannot find in a stored program",
    )
    parts = {"simulation": study.simulation, "dispersions": study.dispersions, "outputs": study.outputs}
    assert mbs.study.Study(model=study.model, initial=study.initial, **parts).files == study.files
    kept = tmp_path / "kept"
    kept.mkdir()
    assert mbs.study.save(study, kept / "cart.toml") == study
    assert (kept / "lag.fmu").read_bytes() == study.files["lag.fmu"]
    shutil.copy(lag("other", able="false"), tmp_path / "lag.fmu")
    changed = read(path, trust=True).of_size(4)
    second = provenance(changed, 4, 64)
    assert needs_trust(first) and changed != study and changed.content == study.content
    assert first["modules"] != second["modules"] and salt(first) != salt(second)


def test_commands_ask_for_trust(file, command):  # noqa: F811
    path = file(MECHANISM + LAG + STUDY)
    refused = command("info", path)
    assert refused.returncode == 1 and "needs to run the FMU" in refused.stderr and "--trust" in refused.stderr
    assert command("info", path, "--trust").returncode == 0


def test_an_fmu_computes_what_was_read_even_if_its_file_is_gone(file, tmp_path):
    model = mbs.load(file(MECHANISM + LAG), trust=True)
    (tmp_path / "lag.fmu").unlink()
    (controller,) = model.structure.controllers
    law = controller.fixed.fn
    assert isinstance(law, Law)
    unit = law.host
    name, y = unit(np.zeros(1), np.zeros((1, 4)), np.array([[1.0, 0.0]]), np.array([[2.0]]))
    assert y[0].tolist() == [0.25, 0.0]
    _, y = unit(np.full(1, 0.05), name, np.zeros((1, 2)), np.zeros((1, 1)))
    x = 0.25
    for _ in range(5):
        x += 0.01 * (2.0 - x) / 0.5
    assert y[0, 0] == pytest.approx(x, rel=1e-14)


WEIGHT = LAG.replace("lag.fmu", "weight.fmu").replace("delay = 0.01\n", "")
WEIGHT = WEIGHT.replace("u =", '"tau.rail.displacement_rate" =').replace(", stop = 0.0", "").replace(", count = []", "")
WEIGHT = WEIGHT.replace("x =", '"rail.displacement" =').replace("plant.gain", "spring.stiffness")


def held(matrix, column, period):
    """(A, B) of a linear system whose input is held for a period: x -> A x + B u."""
    n = len(matrix)
    whole = scipy.linalg.expm(np.block([[matrix, column], [np.zeros((1, n + 1))]]) * period)
    return whole[:n, :n], whole[:n, n]


@pytest.mark.slow
@needs_compiler
@pytest.mark.cpu
def test_a_run_with_an_fmu_of_our_own(tmp_path):
    """A weight on a spring in an FMU, pulled by the rate of a cart that it pushes, with a stiffness for each sample, beside
    the exact motion of both with held inputs; its run, its bundle, and what happens to a changed FMU."""
    mech = mbs.Mechanism("weight", gravity=(0.0, 0.0, 0.0))
    mech.add_body("weight", mass=1.0, inertia=(1, 1, 1))
    mech.add_joint("rail", mbs.Prismatic((1, 0, 0)), "world", "weight")
    mech.add_force("spring", mbs.JointSpring("rail", stiffness=4.0, damping=0.5))
    start = np.array([0.2]), np.zeros(1)
    mbs.export(mech.build(), start, tmp_path / "weight.fmu", kind="fmu", dt=0.01, parameters=["spring.stiffness"])
    (tmp_path / "cart.toml").write_text(
        MECHANISM + WEIGHT + STUDY.replace("plant_gain", "spring_stiffness"), encoding="utf-8"
    )
    folder = tmp_path / "run"
    run(read(tmp_path / "cart.toml", trust=True), 5, folder, trust=True)
    found = xr.open_zarr(folder / "results.zarr").load()
    assert not found["status"].any()
    push = held(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [0.5]]), 0.05)
    for k, stiffness in enumerate(found["box.spring_stiffness"].values):
        pull = held(np.array([[0.0, 1.0], [-stiffness, -0.5]]), np.array([[0.0], [1.0]]), 0.05)
        x, y, before = np.array([0.0, 0.5]), np.array([0.2, 0.0]), None
        for _ in range(8):
            y = y if before is None else pull[0] @ y + pull[1] * before
            before, x = x[1], push[0] @ x + push[1] * y[0]
        assert found["reach"].values[k] == pytest.approx(x[0], rel=1e-8)
    assert examined(folder, trust=True).sound
    (tmp_path / "weight.fmu").unlink()
    assert report(folder, trust=True).document["done"] == 5 and resume(folder, trust=True).n == 5
    packed = bundle(folder, tmp_path / "run.zip", trust=True)
    assert examined_bundle(packed, trust=True).sound
    assert "files/weight.fmu" in json.loads(zipfile.ZipFile(packed).read("bundle.json"))["files"]
    with pytest.raises(mbs.ModelError, match="needs to run the FMU"):
        examined(folder)
    changed = (folder / "files" / "weight.fmu").read_bytes()
    (folder / "files" / "weight.fmu").write_bytes(changed + b" ")
    assert [d.file for d in examined(folder, trust=True).damage] == ["files/weight.fmu"]
