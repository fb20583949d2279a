"""What reports and commands say of a run."""

import base64
import html
import io
import json
import re
import shlex
from dataclasses import replace

import pytest
from rich.console import Console

from jaxmbs.cli.describe import described
from jaxmbs.study import read, report, run
from jaxmbs.study.reports.terminal import notes
from jaxmbs.study.statistics.comparison import compared
from jaxmbs.study.statistics.comparison import table as compared_table
from jaxmbs.study.statistics.summary import summarize, verdict
from tests.study.conftest import CART


def printed(table):
    with Console(width=300, record=True, file=io.StringIO()) as console:
        console.print(table)
    return console.export_text()


def test_a_study_without_criteria_has_its_numbers(cart, tmp_path):
    store = run(read(cart('criteria = ["reach > 90 mm", "speed < 0.9 m/s"]', "")), 64, tmp_path / "run", 64)
    written = report(store.folder)
    said = printed(written.table)
    assert "quantiles" in said and "criteria" not in said and written.document["criteria"] == []
    assert written.passed and "Outputs" in written.path.read_text(encoding="utf-8")
    assert "the same bits" in printed(compared_table(compared(store.folder, store.folder)))


def test_a_share_that_no_number_of_samples_shows_ends_no_report(cart, tmp_path):
    study = read(cart('"speed < 0.9 m/s"', '"speed < 0.9 m/s in 95 %"'))
    summary = summarize(study, run(study, 64, tmp_path / "run", 64))
    close = verdict("speed < 0.9 m/s in 95 %", 95 * 10**7 + 1, 10**9, 0.95)
    said = notes(study, replace(summary, verdicts=(close,)))
    assert any("more than a trillion samples would show it" in line for line in said)


@pytest.fixture(scope="module")
def trusted(tmp_path_factory):
    """A run, not finished, whose study names a module, in a folder whose name a shell would split."""
    folder = tmp_path_factory.mktemp("my runs")
    (folder / "own.py").write_text("GAIN = 1.0\n", encoding="utf-8")
    (folder / "cart.toml").write_text('modules = ["own.py"]\n' + CART, encoding="utf-8")
    store = run(read(folder / "cart.toml", trust=True), 128, folder / "first run", 64, trust=True)
    store.clear(64, 128)
    return folder


def commands_in(text):
    """The commands that a text prints, as a shell takes them apart."""
    lines = re.findall(r"jaxmbs (?:resume|simulate|report|verify)\b[^<`\n]*", html.unescape(text))
    return [shlex.split(line.split(" computes")[0]) for line in lines]


def test_printed_commands_run_as_they_are(trusted, command):
    """Names with spaces are quoted, and what had to be trusted says so."""
    folder = "first run"
    written = command("report", folder, "--trust", cwd=trusted)
    page = (trusted / folder / "report.html").read_text(encoding="utf-8")
    verified = command("verify", folder, "--trust", cwd=trusted)
    found = [*commands_in(written.stdout), *commands_in(verified.stdout), *commands_in(page)]
    assert {words[1] for words in found} == {"resume", "simulate"} and len(found) > 10
    for words in found:
        assert words[-1] == "--trust" and folder in words, words
    again = command(*next(w for w in found if w[1] == "simulate")[1:], "--out", "h.csv", cwd=trusted)
    assert again.returncode == 0, again.stderr
    (trusted / folder / "study.toml").write_text("", encoding="utf-8")
    refused = command("report", folder, "--trust", cwd=trusted)
    assert commands_in(refused.stderr) == [["jaxmbs", "verify", folder, "--repair", "--trust"]]
    assert command(*commands_in(refused.stderr)[0][1:], cwd=trusted).returncode in (0, 1)


def test_runs_without_modules_ask_for_no_trust(cart, tmp_path, command):
    done = command("study", cart(), "-n", 64, "--out", tmp_path / "run")
    assert commands_in(done.stdout) == [["jaxmbs", "report", str(tmp_path / "run")]]


def test_commands_that_the_help_names_work(command, tmp_path):
    said = " ".join(command("--help").stdout.split())
    for line in re.findall(r"`jaxmbs ([^`\[]*)", said):
        done = command(*line.split(), cwd=tmp_path)
        assert done.returncode == 0, (line, done.stderr)
    assert "`jaxmbs new study`" in said and (tmp_path / "study.toml").is_file()
    known = json.loads(command("new", "--json").stdout)
    promised = " ".join(command("new", "--help").stdout.split())
    for name in re.findall(r"a (\w+)", promised.split("start from: ")[1].split(". ")[0]):
        assert name in known, f"jaxmbs new {name}"


LINKED = """
[[correlations]]
draws = ["cart.mass", "spring.stiffness"]
kind = "rank"
matrix = [[1.0, 0.7], [0.7, 1.0]]

[[mechanism.bodies]]
name = "arm"
mass = 1.0
inertia = [0.1, 0.1, 0.1]
[[mechanism.joints]]
name = "elbow"
type = "revolute"
axis = [0.0, 0.0, 1.0]
parent = "cart"
child = "arm"
parent_pose = {position = [0.0, 0.3, 0.0], rotation = [0.5, 0.5, 0.5, 0.5]}
[[mechanism.loops]]
name = "pin"
type = "spherical"
body_a = "arm"
body_b = "cart"
pose_b = {position = [0.0, 0.3, 0.0]}
[[mechanism.forces]]
name = "brake"
type = "torsion_spring"
joint = "elbow"
damping = 1.0
[[mechanism.events]]
name = "go"
when = {type = "time", t = 0.05}
then = [{type = "enable", name = "brake"}, {type = "disable", name = "pin"}]
[[mechanism.events]]
name = "latch"
after = "go"
when = {type = "joint_reaches", joint = "rail", value = 0.5}
then = [{type = "lock", joint = "rail"}]
"""


@pytest.mark.filterwarnings("ignore:mechanism:jaxmbs.errors.ModelWarning")  # the loop holds by itself
def test_info_and_report_say_what_events_switch_where_loops_are_and_what_goes_together(cart, tmp_path, command):
    path = cart()
    path.write_text(path.read_text(encoding="utf-8") + LINKED, encoding="utf-8")
    found = json.loads(command("info", path, "--json").stdout)
    assert found["loops"][0]["pose_b"] == {"position": [0.0, 0.3, 0.0], "rotation": [1.0, 0.0, 0.0, 0.0]}
    assert found["joints"][1]["parent_pose"]["rotation"] == pytest.approx([0.5, 0.5, 0.5, 0.5])
    go, latch = found["events"]
    assert go["then"] == [{"type": "enable", "name": "brake"}, {"type": "disable", "name": "pin"}]
    assert go["when"] == {"type": "time", "t": 0.05} and latch["after"] == "go" and latch["then"][0]["joint"] == "rail"
    assert found["correlations"][0] == {
        "draws": ["cart.mass", "spring.stiffness"], "kind": "rank", "matrix": [[1.0, 0.7], [0.7, 1.0]]
    }  # fmt: skip
    said = printed(described(read(path)))
    written = report(run(read(path), 64, tmp_path / "run", 64).folder)
    page = html.unescape(written.path.read_text(encoding="utf-8"))
    switched = "enable brake", "disable pin", "joint_reaches rail, value 0.5", "after go", "lock rail"
    for words in (*switched, "((1, 0.7), (0.7, 1))"):
        assert words in said and words in page, words
    assert "at (0, 0.3, 0) m, turned 120 deg about (0.57735, 0.57735, 0.57735)" in said
    assert "cart at (0, 0.3, 0) m" in page


def test_what_is_not_met_says_what_was_required_beside_what_was_shown(cart, tmp_path):
    study = read(cart('"reach > 90 mm"', '"reach > 90 mm in 97.5 %"'))
    store = run(study, 64, tmp_path / "run", 64)
    x = store.dataset()["reach"].values
    met = int((x > 0.09).sum())
    assert 0 < met < 62
    written = report(store.folder)
    page = html.unescape(written.path.read_text(encoding="utf-8"))
    said = f"required in 97.5 % of the samples, shown in {met / 64:.2%} ({met} of 64), with 95% confidence "
    for text in (printed(written.table), page):
        assert f"reach > 90 mm in 97.5 %: {said}" in text and f"; the worst is {1e3 * x.min():.5g} mm" in text
    assert "required in 97.5 %; 95% interval" in page and "required in 100 %; 95% interval" in page
    assert "[SI]" not in page


def test_pictures_show_the_outputs_of_the_study_first_in_its_units(cart, tmp_path, command):
    done = command(
        "simulate", cart(), "--out", tmp_path / "h.csv", "--animate", tmp_path / "cart.html", "--save-every", 7
    )
    assert done.returncode == 0, done.stderr
    plots = scene(tmp_path / "cart.html")["plots"]
    labels = [s["label"] for s in plots["series"]]
    assert labels == ["reach [mm]", "speed [m/s]", "rail.displacement [m]"]
    reach, place = (plots["series"][k]["lines"]["motion"] for k in (0, 2))
    assert reach == pytest.approx([1e3 * x for x in place], rel=1e-5, abs=1e-2)


def scene(page):
    """What the page says of its motion beside the bodies."""
    text = page.read_text(encoding="utf-8")
    glb = base64.b64decode(text.split('type="application/octet-stream">')[1].split("<")[0])
    return json.loads(glb[20 : 20 + int.from_bytes(glb[12:16], "little")])["scenes"][0]["extras"]
