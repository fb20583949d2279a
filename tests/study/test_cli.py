"""The commands: most of them in this process, those that set the precision or the devices in one of their own."""

import hashlib
import io
import json
import subprocess
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from typer import BadParameter
from typer.testing import CliRunner

from jaxmbs import ModelWarning, batching, cli
from jaxmbs.cli import app, common
from jaxmbs.cli.commands import results, runs, simulate
from jaxmbs.cli.show import one_run, one_run_document
from jaxmbs.simulate import Status
from jaxmbs.study import read, repeat
from jaxmbs.study.results import store
from jaxmbs.study.results.provenance import signed
from jaxmbs.study.samples.repeat import write
from jaxmbs.study.units import unit
from tests.study.conftest import CART, EXAMPLE, environment


@pytest.fixture(scope="module")
def folder(tmp_path_factory, process):
    """A study of the cart, run by the command line."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "cart.toml").write_text(CART, encoding="utf-8")
    done = process("study", "cart.toml", "-n", 100, "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "reach > 90 mm" in done.stdout and "jaxmbs report run" in done.stdout
    return folder


def test_info(command):
    done = command("info", EXAMPLE)
    assert done.returncode == 0, done.stderr
    for word in (
        "2 bodies, 12 degrees of freedom",
        "pusher_4",
        "thruster",
        "residual.thrust",
        "clearance > 0.02 m",
        "3,500 kg",
    ):
        assert word in done.stdout
    mechanism_only = command("info", EXAMPLE.parent / "nothing.toml")
    assert mechanism_only.returncode == 1 and "cannot be read" in mechanism_only.stderr


def test_info_of_a_mechanism_alone(command, tmp_path):
    (tmp_path / "m.toml").write_text(CART[CART.index("[mechanism]") : CART.index("[initial.rail]")], encoding="utf-8")
    done = command("info", tmp_path / "m.toml")
    assert done.returncode == 0, done.stderr
    assert "1 body, 1 degree of freedom" in done.stdout


def test_study_refuses_a_bad_file_and_a_used_folder(command, folder):
    (folder / "bad.toml").write_text("nonsense = 1\n" + CART.replace("mass = 2.0", "mas = 2.0"), encoding="utf-8")
    done = command("study", "bad.toml", "-n", 10, "--out", "x", cwd=folder)
    assert done.returncode == 1 and not (folder / "x").exists()
    assert "error: bad.toml: nonsense: unknown key (value 1)" in done.stderr
    assert 'mechanism.bodies[0].mas: unknown key (value 2.0); did you mean "mass"?' in done.stderr
    used = command("study", "cart.toml", "-n", 10, "--out", "run", cwd=folder)
    assert used.returncode == 1 and "jaxmbs resume run" in used.stderr
    for text in (done, used):
        assert "Traceback" not in text.stdout + text.stderr


def test_resume_of_a_finished_run_and_of_nothing(command, folder):
    done = command("resume", "run", cwd=folder)
    assert done.returncode == 0 and "criteria, 100 samples" in done.stdout
    done = command("resume", "nothing", cwd=folder)
    assert done.returncode == 1 and "jaxmbs study FILE" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_simulate_repeats_a_sample(command, folder):
    done = command("simulate", "cart.toml", "--sample", 19, "--of", "run", "--out", "h.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    reach = float(xr.open_zarr(folder / "run" / "results.zarr")["reach"][19])
    assert done.stdout.count(f"{1e3 * reach:.8g}") == 2, "repeated beside stored"
    table = np.genfromtxt(folder / "h.csv", delimiter=",", names=True)
    assert table["reach_mm"].max() == pytest.approx(1e3 * reach, rel=1e-12)
    assert len(table) == 201 and table["t_s"][-1] == 0.2


@pytest.mark.slow
def test_histories_in_three_formats(cart, tmp_path):
    study = read(cart())
    h = repeat(study)
    for name in ("h.csv", "h.npz", "h.zarr"):
        write(study, h, tmp_path / name)
    table = np.loadtxt(tmp_path / "h.csv", delimiter=",", skiprows=1).T
    heads = (tmp_path / "h.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    arrays, dataset = np.load(tmp_path / "h.npz"), xr.open_zarr(tmp_path / "h.zarr", consolidated=False)
    columns = {"t", "rail.q[0]", "rail.v[0]", "reach", "speed"}
    assert set(arrays) == {*dataset.variables} == columns
    for name in columns:
        assert np.array_equal(arrays[name], dataset[name])
    told = {"t": "s", "rail.q[0]": "m", "rail.v[0]": "m/s", "speed": "m/s"}
    for name, called in told.items():
        assert np.array_equal(arrays[name], table[heads.index(f"{name} [{called}]")]), name
        assert dataset[name].attrs["units"] == called
    assert np.allclose(table[heads.index("reach [mm]")], 1e3 * arrays["reach"], rtol=1e-15)
    assert dataset["reach"].attrs["units"] == "m", "SI but in text"


def test_simulate_nominal_and_refusals(command, folder):
    done = command("simulate", "cart.toml", "--save-every", 100, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert len((folder / "cart.csv").read_text(encoding="utf-8").splitlines()) == 4
    (folder / "other.toml").write_text(CART + "\n", encoding="utf-8")
    for arguments, remedy in (
        (("other.toml", "--sample", 1, "--of", "run"), "use run/study.toml"),
        (("cart.toml", "--sample", 100, "--of", "run"), "samples 0 to 99"),
        (("cart.toml", "--of", "run"), "needs --sample"),
        (("cart.toml", "--out", "h.txt"), "must end with .csv, .npz, .zarr or .mat"),
        (("cart.toml",), "cart.csv: exists already; choose another name with --out, or pass --overwrite"),
    ):
        done = command("simulate", *arguments, cwd=folder)
        assert done.returncode == 1 and remedy in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_report(command, folder):
    done = command("report", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "speed < 0.9 m/s" in done.stdout and "run/report.html" in done.stdout
    assert (folder / "run" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.slow
def test_single_precision_is_the_process_own(process, folder):
    done = process("study", "cart.toml", "-n", 100, "--out", "single", "--precision", "float32", cwd=folder)
    assert done.returncode == 0, done.stderr
    single, double = (xr.open_zarr(folder / name / "results.zarr").load() for name in ("single", "run"))
    assert single["reach"].dtype == np.float32 and double["reach"].dtype == np.float64
    assert json.loads((folder / "single" / "provenance.json").read_text(encoding="utf-8"))["precision"] == "float32"
    # other draws, the same law
    assert float(single["reach"].mean()) == pytest.approx(float(double["reach"].mean()), rel=0.05)


def test_without_the_extra_the_command_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from jaxmbs.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False, encoding="utf-8"
    )
    assert done.returncode == 1
    assert "pip install 'jaxmbs[study]'" in done.stderr and "Traceback" not in done.stderr


@pytest.fixture
def without_computing(monkeypatch):
    def refuse(precision):
        raise RuntimeError("it begins to compute")

    monkeypatch.setattr(simulate, "compute", refuse)


@pytest.mark.parametrize(
    ("file", "arguments", "refused"),
    [
        ("bad.toml", (), True),
        ("cart.toml", ("--sample", "100", "--of", "run"), True),
        ("cart.toml", ("--of", "run"), True),
        ("other.toml", ("--sample", "1", "--of", "run"), True),
        ("cart.toml", ("--sample", "99", "--of", "run"), False),
    ],
)
def test_commands_refuse_with_code_1(tmp_path, monkeypatch, without_computing, file, arguments, refused):
    """Before they compute anything; what is in order gets there."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("cart", CART), ("other", CART + "\n"), ("bad", CART.replace("mass", "mas"))):
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "study.toml").write_text(CART, encoding="utf-8")
    digest = hashlib.sha256(CART.encode()).hexdigest()
    record = {"n": 100, "chunk_rows": 64, "file_sha256": digest, "precision": "float64"}
    (tmp_path / "run" / "provenance.json").write_text(json.dumps(signed(record)), encoding="utf-8")
    done = CliRunner().invoke(app.app, ["simulate", file, *arguments])
    assert done.exit_code == 1
    assert refused is not ("begins to compute" in str(done.exception))


def test_numbers_of_samples():
    assert [common.count(1)(text) for text in ("10000", "10_000", "1e4", "1")] == [10_000, 10_000, 10_000, 1]
    for text in ("0", "-3", "1.5", "many", "inf", "nan"):
        with pytest.raises(BadParameter, match="whole number of at least 1"):
            common.count(1)(text)


def test_the_precision_is_set_before_anything_runs(monkeypatch):
    said = []
    monkeypatch.setattr(jax.config, "update", lambda *x: said.append(x))
    monkeypatch.setattr(common, "keep_programs", lambda: None)
    monkeypatch.setattr(batching, "use_all_cores", lambda: said.append("cores"))
    for precision in ("float32", "float64"):
        common.compute(precision)
    assert said == [("jax_enable_x64", False), "cores", ("jax_enable_x64", True), "cores"]


@pytest.mark.parametrize("command", [runs.resume, results.report, results.sensitivity])
def test_a_run_is_gone_on_with_in_its_precision(command, monkeypatch):
    class Asked(Exception):
        pass

    def ask(precision):
        raise Asked(precision)

    monkeypatch.setattr(store, "open_folder", lambda folder: SimpleNamespace(provenance={"precision": folder}))
    monkeypatch.setattr(f"{command.__module__}.compute", ask)
    with pytest.raises(Asked, match="float32"):
        command("float32")


def test_outputs_are_shown_in_their_units():
    study = SimpleNamespace(shown={"reach": unit("mm")})
    history = SimpleNamespace(outputs={"reach": [0.0123]}, energy_error=[0.0], t=[0.0, 0.5], status=[0])
    text = io.StringIO()
    Console(file=text, width=100).print(one_run(study, history, None, None))
    assert "12.3" in text.getvalue() and "mm" in text.getvalue() and "0.0123" not in text.getvalue()


def test_a_run_names_the_constraints_that_its_start_violates(cart):
    cut = '[[mechanism.constraints]]\nname = "stop"\ntype = "coupling"\njoint = "rail"\ncoefficients = [0.0]\n[initial.rail]'
    with pytest.warns(ModelWarning, match="cannot move"):
        study = read(cart("[initial.rail]", cut, "t_end = 0.2", "t_end = 0.002"))
    history = repeat(study)
    text = io.StringIO()
    Console(file=text, width=200).print(one_run(study, history, None, None))
    assert history.status[0] == Status.INCONSISTENT
    assert "the initial state violates 'stop'" in text.getvalue() and "assemble" in text.getvalue()
    assert one_run_document(study, history, None, None)["message"] in text.getvalue()


def test_a_missing_module_of_another_kind_is_no_matter_of_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxmbs.cli.app", None)
    with pytest.raises(ModuleNotFoundError, match=r"jaxmbs\.cli\.app"):
        cli.main()
