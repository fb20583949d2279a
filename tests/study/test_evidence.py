"""Steps that are checked, other machines, bundles, requirements, motorization."""

import json
import shutil
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study import bundle, check_steps, compare_machine, read, report, run
from jaxmbs.study.evidence import machine
from jaxmbs.study.evidence.bundle import CONTENTS, examined_bundle
from jaxmbs.study.results.examination import examined
from jaxmbs.study.results.store import open_folder
from tests.study.conftest import CART

N = 120
COARSE = CART.replace("dt = 1e-3", "dt = 0.05").replace("reach > 90 mm", "reach > 90 mm in 10 %")
SPECIFIED = (
    CART.replace('"speed < 0.9 m/s"]', '"speed < 0.9 m/s in 10 %"]')
    + """
[evidence]
validation = "Compared with a drop test, report 17."
[evidence.requirements."SEP-012"]
criterion = "speed <  0.9 m/s in 10 %"
text = "The cart shall be slow."
method = "test"
margin = "1 mm/s"
"""
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evidence")
    for name, text in (("cart", CART), ("coarse", COARSE), ("specified", SPECIFIED)):
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        run(read(folder / f"{name}.toml"), N, folder / name, 64)
    return folder


def rows(found, key="outputs"):
    return {row[key[:-1] if key == "outputs" else "criterion"]: row for row in found[key]}


def test_the_error_of_steps_is_that_to_the_exact_motion(runs):
    """Of the coarse run to the fine one, whose steps are fifty times shorter: the same draws."""
    found = check_steps(runs / "coarse")
    exact = open_folder(runs / "cart").outputs(read(runs / "cart.toml").of_size(N))
    there = open_folder(runs / "coarse").outputs(read(runs / "coarse.toml").of_size(N))
    some = [i for kind in found["samples"].values() for i in kind]
    assert (
        len(set(some)) == len(some) and len(found["samples"]["worst"]) == 16 and len(found["samples"]["random"]) == 40
    )
    row, true = rows(found)["speed"], np.abs(there["speed"] - exact["speed"])[some].max()
    assert 0.9 * true < row["error"] < 3 * true and row["changes"]["the same steps"] < 1e-12
    assert row["changes"]["finer steps"] > 1e-9
    assert [v["what"] for v in found["variants"]] == ["the same steps", "finer steps", "another method"]
    assert (found["variants"][1]["dt"], found["variants"][2]["method"]) == (0.025, "dopri5")


def test_a_verdict_that_depends_on_the_steps_is_open(runs, tmp_path, command):
    """With a bound just beyond the value of a sample on which the share depends."""
    coarse = read(runs / "coarse.toml").of_size(N)
    bound = float(np.sort(open_folder(runs / "coarse").outputs(coarse)["speed"])[N // 2 - 1]) + 1e-6
    text = COARSE.replace("speed < 0.9 m/s", f"speed < {bound!r} m/s in 50 %")
    (tmp_path / "open.toml").write_text(text, encoding="utf-8")
    run(read(tmp_path / "open.toml"), N, tmp_path / "open", 64)
    row = check_steps(tmp_path / "open")["criteria"][1]
    assert row["near"] >= 1 and row["passed"] and not row["settled"]
    done = command("check-steps", "open", "--check", cwd=tmp_path)
    assert done.returncode == 3 and "the steps leave it open" in done.stdout
    done = command("check-steps", "cart", "--json", "--check", cwd=runs)
    assert done.returncode == 0 and json.loads(done.stdout)["settled"]
    page = report(runs / "cart").path.read_text(encoding="utf-8")
    assert "no verdict depends on the steps" in page and "was not measured" not in page
    kept = runs / "cart" / "steps.json"
    kept.write_bytes(kept.read_bytes().replace(b'"settled": true', b'"settled": None', 1))
    assert [d.file for d in examined(runs / "cart").damage] == ["steps.json"]
    check_steps(runs / "cart")
    assert examined(runs / "cart").sound


def test_a_study_without_criteria_has_no_verdict(tmp_path, command):
    (tmp_path / "plain.toml").write_text(
        CART.replace('criteria = ["reach > 90 mm", "speed < 0.9 m/s"]', ""), encoding="utf-8"
    )
    run(read(tmp_path / "plain.toml"), 64, tmp_path / "plain", 64)
    found = check_steps(tmp_path / "plain")
    assert found["settled"] is None and len(found["samples"]["random"]) == 40
    page = report(tmp_path / "plain").path.read_text(encoding="utf-8")
    assert "the study has no criteria" in page and "nan%" not in page
    assert command("check-steps", "plain", "--check", "-q", cwd=tmp_path).returncode == 0


def test_this_machine_computes_the_same_bits(runs, monkeypatch):
    found = compare_machine(runs / "cart")
    assert (found["verdict"], found["samples"], found["machine"]) == ("the same bits", 64, [])
    assert found["fingerprints"]["here"] == found["fingerprints"]["there"]
    assert all(row["verdict"] == "the same" for row in found["outputs"])

    from jaxmbs.study.samples import batch

    program = batch.compiled

    def elsewhere(by):
        def compiled(study, rows):
            of = program(study, rows)

            def found(first, count):
                return {k: x * (1 + by) if k == "reach" else x for k, x in of(first, count).items()}

            found.most = of.most
            return found

        return compiled

    monkeypatch.setattr(batch, "compiled", elsewhere(1e-12))
    found = compare_machine(runs / "cart")
    assert found["verdict"] == "rounding" and found["fingerprints"]["here"] != found["fingerprints"]["there"]
    monkeypatch.setattr(batch, "compiled", elsewhere(1e-6))
    found = compare_machine(runs / "cart")
    assert (
        found["verdict"] == rows(found)["reach"]["verdict"] == "differs"
        and rows(found)["speed"]["verdict"] == "the same"
    )
    assert "differs" in str(machine.table(found).renderables[0])
    monkeypatch.setattr(batch, "precision", lambda: np.dtype("float32"))
    with pytest.raises(InputError, match="was computed in float64"):
        compare_machine(runs / "cart")


def test_a_bundle_is_the_run_again(runs, tmp_path, command):
    folder = shutil.copytree(runs / "cart", tmp_path / "cart")
    done = command("bundle", "cart", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    packed = tmp_path / "cart.zip"
    content = json.loads(zipfile.ZipFile(packed).read(CONTENTS))
    assert {"study.toml", "provenance.json", "finished.json", "report.html"} <= set(content["files"])
    assert content["packages"]["jax"] and content["fingerprint"] == examined(folder).fingerprint
    again = bundle(folder, tmp_path / "again.zip")
    assert bundle(folder, tmp_path / "third.zip").read_bytes() == again.read_bytes()
    done = command("verify", "cart.zip", "--compare-machine", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (
        done.returncode == 0
        and found["sound"]
        and found["done"] == N
        and found["machine"]["verdict"] == "the same bits"
    )
    zipfile.ZipFile(packed).extractall(tmp_path / "unpacked")
    assert examined(tmp_path / "unpacked").sound
    for wrong, said in (
        (("bundle", "cart"), "exists already"),
        (("bundle", "cart", "--out", "cart/x.zip"), "lies in the run's folder"),
        (("verify", "cart.zip", "--repair"), "never changed"),
        (("verify", "../evidence0/cart.toml"), ""),
    ):
        done = command(*wrong, cwd=tmp_path)
        assert done.returncode == 1 and said in done.stderr


def rewritten(source, target, change):
    """A copy of an archive with its files changed: name -> content, or None to leave it out."""
    files = {x.filename: zipfile.ZipFile(source).read(x) for x in zipfile.ZipFile(source).infolist()}
    with zipfile.ZipFile(target, "w") as to:
        for name, content in change(files).items():
            to.writestr(name, content)
    return target


def test_what_was_changed_in_a_bundle_is_named(runs, tmp_path):
    packed = bundle(runs / "specified", tmp_path / "good.zip")
    assert examined_bundle(packed).sound
    bad = tmp_path / "bad.zip"

    def faults(change):
        found = examined_bundle(rewritten(packed, bad, change)).damage
        return {name: " ".join(d.what for d in found if d.file == name) for name in {d.file for d in found}}

    def edited(files):
        return files | {"report.html": files["report.html"].replace(b"cart", b"tram", 1)}

    assert "SHA-256" in faults(edited)["report.html"]
    assert "not in the list" in faults(lambda files: files | {"more.txt": b"x"})["more.txt"]
    gone = "results.zarr/reach/c/0"
    assert faults(lambda files: {k: x for k, x in files.items() if k != gone})[gone].startswith("is missing")

    def escaping(files):
        content = json.loads(files[CONTENTS])
        content["files"]["../evil.txt"] = "0" * 64
        return files | {CONTENTS: json.dumps(content).encode(), "../evil.txt": b"x"}

    assert "not the name" in faults(escaping)["../evil.txt"]
    for name, content in (("text.zip", b"no archive"), ("half.zip", packed.read_bytes()[:2000])):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="is not a bundle"):
            examined_bundle(tmp_path / name)
    with pytest.raises(InputError, match=r"without bundle\.json"):
        examined_bundle(rewritten(packed, bad, lambda files: {"a": b""}))


def test_an_unpacked_bundle_is_bundled_again(runs, tmp_path):
    zipfile.ZipFile(bundle(runs / "cart", tmp_path / "one.zip")).extractall(tmp_path / "again")
    assert examined_bundle(bundle(tmp_path / "again")).sound


def test_a_sealed_bundle(tmp_path):
    for name, text in (("cart.toml", CART), ("key", "0123456789abcdef" * 2), ("other", "f" * 32)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    run(read(tmp_path / "cart.toml"), 64, tmp_path / "run", 64, seal=tmp_path / "key")
    for unsealed in (bundle, check_steps):
        with pytest.raises(InputError, match="begun with a key"):
            unsealed(tmp_path / "run")
    packed = bundle(tmp_path / "run", seal=tmp_path / "key")
    assert examined_bundle(packed, seal=tmp_path / "key").sound
    assert CONTENTS in {d.file for d in examined_bundle(packed, seal=tmp_path / "other").damage}


def test_only_finished_runs_are_bundled(runs, tmp_path):
    folder = shutil.copytree(runs / "cart", tmp_path / "cart")
    open_folder(folder).clear(0, 64)
    with pytest.raises(InputError, match=r"damaged|resume it first"):
        bundle(folder)


def test_requirements_are_shown_with_their_margins(runs, command):
    found = report(runs / "specified")
    (required,) = found.document["requirements"]
    speeds = np.sort(open_folder(runs / "specified").outputs(read(runs / "specified.toml").of_size(N))["speed"])
    assert required["shown"] == pytest.approx(0.9 - speeds[N - 1 - int(0.9 * N)], rel=1e-12)
    assert required["margin"] == pytest.approx(1e-3) and required["met"] and required["method"] == "test"
    page = found.path.read_text(encoding="utf-8")
    assert "SEP-012" in page and "The cart shall be slow." in page and "report 17" in page
    assert "to state it, write history in [evidence]" in page


def test_a_margin_that_is_not_there_is_not_met(runs, tmp_path, command):
    (tmp_path / "far.toml").write_text(SPECIFIED.replace("1 mm/s", "5 m/s"), encoding="utf-8")
    run(read(tmp_path / "far.toml"), 64, tmp_path / "far", 64)
    done = command("report", "far", "--check", cwd=tmp_path)
    assert done.returncode == 3 and "SEP-012" in done.stdout
    assert "Requirement SEP-012 not met" in (tmp_path / "far" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (('criterion = "speed', 'criterion = "sped'), "did you mean"),
        (('margin = "1 mm/s"', 'margin = "1 mm"'), "mm"),
        (('margin = "1 mm/s"', 'margin = "-1 mm/s"'), "at least zero"),
        (('method = "test"', 'method = "guess"'), "analysis"),
        (("validation =", "validaton ="), "validation"),
    ],
)
def test_requirements_that_do_not_fit(tmp_path, edit, said):
    (tmp_path / "bad.toml").write_text(SPECIFIED.replace(*edit), encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read(tmp_path / "bad.toml")


def test_evidence_is_part_of_a_study(runs, tmp_path):
    study = read(runs / "specified.toml")
    again = mbs.study.save(replace(study, file=None), tmp_path / "again.toml")
    assert (
        again == study
        and again != replace(study, evidence={})
        and again.evidence.validation == study.evidence.validation
    )


def test_motorization_factor():
    """A coil of 2 N m/rad that opens against a line of 0.3 N m/rad, both from the same end: as an actuator, and as a spring,
    which counts with 0.8 (ECSS-E-ST-33-01C, 4.7.5.3.2e) and, beyond its rest, as a spring that resists."""
    mech = mbs.Mechanism("hinge", gravity=(0, 0, 0))
    mech.add_body("panel", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    mech.add_joint("hinge", mbs.Revolute((0, 0, 1)), "world", "panel")
    mech.add_force("coil", mbs.JointSpring("hinge", stiffness=2.0, rest_coordinate=1.6))
    mech.add_force("line", mbs.JointSpring("hinge", stiffness=0.3, rest_coordinate=0.0))
    mech.add_force("push", mbs.LinearSpring("panel", "world", stiffness=1.0, rest_length=1.0))
    output = mbs.study.outputs.MotorizationFactor("hinge", ["coil"], harness=["line"])
    given = {
        "model": mech.build(), "simulation": {"t_end": 0.5, "dt": 0.01}, "outputs": {"factor": output},
        "dispersions": {"coil.stiffness": mbs.study.Normal(apply="multiply", std=0.01)}, "initial": {"hinge": {"q": [0.2]}},
    }  # fmt: skip
    spring = replace(output, actuators=(), spring_actuators=["coil"], harness=(), adhesion=["line"])
    given["outputs"]["spring"] = spring
    history = mbs.study.repeat(mbs.study.Study(**given))
    angle = history.q[0, :, 0]
    expected = 2.0 * (1.6 - angle) / (3.0 * 0.3 * angle)
    assert np.allclose(history.values["factor"][0], expected, rtol=1e-12)
    assert history.outputs["factor"][0] == pytest.approx(expected.min()) and np.ptp(angle) > 0.3
    assert angle.max() < 1.6 and np.allclose(history.values["spring"][0], 0.8 * expected, rtol=1e-12)
    beyond = mbs.study.repeat(
        mbs.study.Study(**given | {"initial": {"hinge": {"q": [2.0]}}, "simulation": {"t_end": 0.02}})
    )
    assert np.all(beyond.q[0, :, 0] > 1.6) and np.all(beyond.values["spring"][0] == 0.0)
    for wrong, said in (
        ({"actuators": ["coyl"]}, 'did you mean "coil"'),
        ({"harness": ["push"]}, "does not act on the joint"),
        ({"harness": []}, "nothing resists"),
        ({"friction": ["line"]}, "named twice"),
        ({"actuators": []}, "nothing drives"),
    ):
        with pytest.raises(InputError, match=said):
            mbs.study.Study(**{**given, "outputs": {"factor": replace(output, **wrong)}})
