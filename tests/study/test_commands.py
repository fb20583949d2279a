"""What programs read of the commands, their exit codes, files that are not overwritten; kills and malformed files."""

import json
import random
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter

import jsonschema
import numpy as np
import pandas
import pytest
import xarray as xr
from scipy.io import loadmat
from scipy.stats import beta

from jaxmbs.batching import disk_cache
from jaxmbs.io import InputError
from jaxmbs.study import read, resume, run
from jaxmbs.study.problem.templates import about
from jaxmbs.study.results.examination import examined
from tests.study.conftest import CART, EXAMPLE, ROOT, environment
from tests.study.killing import killed

LEVELS = CART.replace('"reach > 90 mm"', '"reach > 90 mm in 10 %"').replace('m/s"]', 'm/s in 10 %"]')


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    for name, text in (("cart", CART), ("easy", LEVELS)):
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        run(read(folder / f"{name}.toml"), 120, folder / name, 64)
    return folder


def document(done, code=0):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_every_command_has_a_document(command, folder):
    found = document(command("info", "cart.toml", "--json", cwd=folder))
    assert found["bodies"][0]["mass"] == 2.0 and found["gravity"] == [0, 0, 0] and found["simulation"]["dt"] == 1e-3
    assert found["forces"][0]["stiffness"] == 50.0 and found["joints"][0]["v"] == [0.05]
    found = document(command("report", "cart", "--json", cwd=folder))
    data = xr.open_zarr(folder / "cart" / "results.zarr").load()
    met = int((data["reach"] > 0.09).sum())
    assert (found["samples"], found["done"], found["criteria"][0]["met"]) == (120, 120, met)
    assert found["criteria"][0]["low"] == pytest.approx(beta.ppf(0.025, met, 121 - met))
    assert found["outputs"]["reach"]["quantiles"]["0.5"] == pytest.approx(1e3 * float(data["reach"].median()))
    assert found["passed"] is False and found["page"] == "cart/report.html"
    again = document(command("resume", "cart", "--json", cwd=folder))
    assert again["criteria"] == found["criteria"]
    found = document(command("verify", "cart", "--json", cwd=folder))
    assert found["sound"] and found["done"] == 120 and found["damage"] == []
    found = document(command("simulate", "cart.toml", "--sample", 3, "--of", "cart", "--json", cwd=folder))
    assert found["outputs"]["reach"]["value"] == pytest.approx(1e3 * float(data["reach"][3]))
    assert (folder / found["history"]).exists() and found["status"] == "ok"
    keys = document(command("keys", "pusher", "--json", cwd=folder))
    assert {"path", "kind", "unit", "default", "doc"} <= set(keys[0])
    assert "separation" in document(command("new", "--json", cwd=folder))
    schema = document(command("schema", cwd=folder))
    assert schema["properties"]["mechanism"] and "(number > 0, kg)" not in json.dumps(schema["properties"])
    same = document(command("compare", "cart", "cart", "--json", cwd=folder))
    assert same["identical"] and same["file"] == []
    error = document(command("info", "nothing.toml", "--json", cwd=folder), 1)
    assert "cannot be read" in error["errors"][0]["message"]


def test_exit_codes(command, folder):
    assert command("report", "cart", "-q", cwd=folder).returncode == 0
    assert command("report", "cart", "--check", "-q", cwd=folder).returncode == 3
    done = command("report", "easy", "--check", "-q", cwd=folder)
    assert done.returncode == 0 and done.stdout == ""
    for wrong in (("reprot",), ("report",), ("study", "cart.toml"), ("simulate", "--nonsense")):
        assert command(*wrong, cwd=folder).returncode == 1
    done = command("--version")
    assert done.returncode == 0 and re.fullmatch(r"jaxmbs \d+\.\d+\.\d+\n", done.stdout)


def test_damage_is_told_by_the_commands(command, folder, tmp_path):
    broken = shutil.copytree(folder / "cart", tmp_path / "broken")
    (broken / "results.zarr" / "reach" / "c" / "1").unlink()
    for arguments in (("report", broken), ("verify", broken), ("export", broken), ("compare", broken, broken)):
        done = command(*arguments)
        assert done.returncode == 1 and "reach/c/1" in done.stdout + done.stderr, arguments
    assert document(command("verify", broken, "--json"), 1)["damage"][0]["file"] == "results.zarr/reach/c/1"
    assert command("resume", broken, "-q").returncode == 0 and command("verify", broken, "-q").returncode == 0


def test_samples_as_tables(command, folder):
    done = command("export", "cart", "--csv", "--parquet", cwd=folder)
    assert done.returncode == 0, done.stderr
    data = xr.open_zarr(folder / "cart" / "results.zarr").load()
    for table in (
        pandas.read_csv(folder / "cart" / "samples.csv"),
        pandas.read_parquet(folder / "cart" / "samples.parquet"),
    ):
        assert len(table) == 120
        for head, name in (("speed [m/s]", "speed"), ("cart.mass", "cart.mass"), ("status", "status")):
            assert np.array_equal(table[head], data[name])
        assert np.allclose(table["reach [mm]"], 1e3 * data["reach"], rtol=1e-15), "as the file's criteria have it"
        assert {"energy_error [J]", "initial.rail.v [m/s]", "at_start.reach"} <= set(table.columns)
    again = command("export", "cart", cwd=folder)
    assert again.returncode == 1 and "exists already" in again.stderr


def test_samples_for_other_programs(command, folder):
    done = command("export", "cart", "--mat", "--xlsx", cwd=folder)
    assert done.returncode == 0, done.stderr
    data = xr.open_zarr(folder / "cart" / "results.zarr").load()
    found = loadmat(folder / "cart" / "samples.mat")
    assert np.array_equal(found["cart_mass"].ravel(), data["cart.mass"]) and found["sample"].ravel().tolist() == list(
        range(120)
    )
    heads = dict(
        zip((str(x[0]) for x in found["names"].ravel()), (str(x[0]) for x in found["heads"].ravel()), strict=True)
    )
    assert heads["reach"] == "reach [mm]" and set(heads) <= set(found)
    sheet = pandas.read_excel(folder / "cart" / "samples.xlsx")
    assert np.allclose(sheet["reach [mm]"], 1e3 * data["reach"], rtol=1e-15) and len(sheet) == 120
    done = command("export", "cart", "--out", "other.mat", cwd=folder)
    assert done.returncode == 0 and (folder / "other.mat").exists()
    done = command("export", "cart", "--mat", "--csv", "--out", "one.mat", cwd=folder)
    assert done.returncode == 1 and "one file" in done.stderr
    done = command("simulate", "cart.toml", "--out", "motion.mat", cwd=folder)
    assert done.returncode == 0 and loadmat(folder / "motion.mat")["rail_q_0"].shape == (201, 1)


def test_two_runs_side_by_side(command, folder):
    found = document(command("compare", "cart", "easy", "--json", cwd=folder))
    assert not found["identical"] and found["criteria"] == []
    assert len(found["file"]) == 2 and found["outputs"][0]["chance"] == 1.0
    assert "reach" in command("compare", "cart", "easy", cwd=folder).stdout


@pytest.mark.parametrize("name", sorted(about()))
def test_templates_are_files_that_work(command, tmp_path, name):
    assert command("new", name, cwd=tmp_path).returncode == 0
    study = read(tmp_path / f"{name}.toml", need="mechanism")
    assert study.warnings == []
    if study.outputs:
        assert read(tmp_path / f"{name}.toml").criteria
    again = command("new", name, cwd=tmp_path)
    assert again.returncode == 1 and "exists already" in again.stderr


@pytest.mark.slow
def test_the_schema_takes_the_examples_and_names_what_is_wrong(command):
    schema = document(command("schema"))
    for path in (EXAMPLE, ROOT / "examples" / "solar_array_deployment.toml"):
        jsonschema.validate(tomllib.loads(path.read_text(encoding="utf-8")), schema)
    wrong = tomllib.loads(CART.replace("mass = 2.0", "mas = 2.0"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


def test_start_up_imports_only_what_a_command_needs():
    def imported(*arguments):
        code = f"import sys; sys.argv = ['jaxmbs', *{arguments!r}]\ntry:\n    from jaxmbs.cli import main; main()\n"
        code += "except SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment(),
            check=True,
            cwd=ROOT,
            encoding="utf-8",
        )
        return set(done.stderr.split())

    assert not imported("--help") & {"jax", "numpy", "pydantic", "zarr", "rich.table"}
    computing = {"xarray", "lineax", "sympy", "jaxmbs.public", "jaxmbs.dynamics.trees", "jaxmbs.simulate.solution"}
    assert not imported("info", str(EXAMPLE)) & {"zarr", "matplotlib", "scipy", *computing}
    # what each report imports
    code = "import sys, jaxmbs.study.results.damage, jaxmbs.study.reports.page; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, encoding="utf-8"
    )
    assert not set(done.stdout.split()) & {"scipy.stats", *computing}


# --- mutations of good files ------------------------------------------------------------------------------------------


def mutated(text, rng):
    """A good file with one thing broken."""
    lines = text.splitlines()
    k = rng.choice([i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")])
    line = lines[k]
    kind = rng.randrange(8)
    if kind == 0:
        del lines[k]
    elif kind == 1:
        lines[k] = re.sub(r"[\d.]+", "-1e400", line, count=1)
    elif kind == 2:
        lines[k] = re.sub(r"=.*", "= true", line)
    elif kind == 3:
        lines[k] = re.sub(r"=.*", "= []", line)
    elif kind == 4:
        lines[k] = re.sub(r"[a-z]", lambda m: chr(rng.randrange(97, 123)), line, count=3)
    elif kind == 5:
        lines.insert(k, rng.choice(lines))
    elif kind == 6:
        lines[k] = line[: rng.randrange(len(line))]
    else:
        lines[k] = re.sub(r'"[^"]*"', f'"{rng.choice(["", "é", "world", "cart", "x" * 300])}"', line, count=1)
    return "\n".join(lines)


def check_mutations(tmp_path, count, seed):
    rng = random.Random(seed)
    good = [
        CART,
        *(
            p.read_text(encoding="utf-8")
            for p in sorted((ROOT / "examples").glob("*.toml"))
            if p.name not in ("ascent.toml", "magnets.toml", "stage_separation_designs.toml")
        ),
    ]
    refused = 0
    for _ in range(count):
        path = tmp_path / "mutated.toml"
        path.write_text(mutated(rng.choice(good), rng), encoding="utf-8")
        try:
            read(path)
        except InputError as error:
            refused += 1
            assert str(error).strip() and error.problems, path.read_text(encoding="utf-8")
        except Warning:
            pass
    assert refused > count / 4


def test_malformed_files_are_refused_with_a_message(tmp_path):
    check_mutations(tmp_path, 40, 1)


@pytest.mark.slow
def test_many_malformed_files(tmp_path):
    check_mutations(tmp_path, 500, 2)


# --- kills ------------------------------------------------------------------------------------------------------------


OTHERS = (["report"], ["verify", "--repair"], ["export", "--overwrite"], ["report", "--json"])


def check_kills(tmp_path, monkeypatch, count, seed):
    """Commands killed at random moments; then what is there is sound, and goes on to the same bits. Returns how often each
    was killed while it worked."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setattr(disk_cache, "FOLDER", programs)  # compiled once
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(programs))
    rng = random.Random(seed)
    file = tmp_path / "cart.toml"
    file.write_text(CART, encoding="utf-8")
    wanted = run(read(file), 3000, tmp_path / "whole", 64)
    bits = {name: x.values.tobytes() for name, x in wanted.dataset().load().data_vars.items()}
    folder, counts = tmp_path / "run", Counter()
    while counts.total() < count:
        begun = (folder / "provenance.json").exists()
        name, *options = ["study"] if not begun else ["resume"] if rng.random() < 0.6 else rng.choice(OTHERS)
        more = [] if begun else ["-n", "3000", "--block-rows", "64", "--out", str(folder)]
        where = str(folder) if begun else str(file)
        counts[name] += killed([name, where, *options, *more, "-q"], rng.uniform(0.02, 1.0), tmp_path / "said")
        assert "Traceback" not in (tmp_path / "said").read_text(encoding="utf-8")
        if (folder / "provenance.json").exists():
            assert examined(folder).sound
            if rng.random() < 0.2:
                resume(folder)
                assert same_bits(folder, bits)
                shutil.rmtree(folder)
        elif folder.exists():
            shutil.rmtree(folder)
    if not folder.exists():
        run(read(file), 3000, folder, 64)
    resume(folder)
    assert same_bits(folder, bits)
    return counts


def same_bits(folder, bits):
    data = xr.open_zarr(folder / "results.zarr", chunks=None).load().data_vars
    return {name: x.values.tobytes() for name, x in data.items()} == bits


@pytest.mark.slow
def test_some_kills_at_random_moments(tmp_path, monkeypatch):
    check_kills(tmp_path, monkeypatch, 3, 3)


@pytest.mark.slow
def test_many_kills_at_random_moments(tmp_path, monkeypatch):
    counts = check_kills(tmp_path, monkeypatch, 200, 4)
    assert all(counts[name] for name in ("study", "resume", "report", "verify", "export")), counts
