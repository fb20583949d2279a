"""Names of users never meet those of a run; runs of earlier versions are read, and go on as they were."""

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from jaxmbs.io import InputError
from jaxmbs.study import read, report, resume, run, sensitivity
from jaxmbs.study.folder.layout import OWN, labels
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import damage
from jaxmbs.study.results.described import read_study
from jaxmbs.study.results.examination import examined
from jaxmbs.study.results.provenance import salt
from jaxmbs.study.statistics.comparison import compared
from jaxmbs.study.statistics.summary import document
from tests.study.conftest import CART

N, ROWS = 100, 64
OUTPUTS = (*OWN, "draws", "anew", "sample", "component_3", "component_14", "cart_mass")
SAME = '[outputs.{}]\ntype = "joint_position"\njoint = "rail"\nreduce = "max"\n'
# draws by names of their own: one that the run has, one of an output, one that differs by its case alone, one of a file
DRAWS = {'"cart.mass"': "status", '"spring.stiffness"': "reach", '"initial.rail.v"': '"zarr.json"'}


def renamed():
    text = CART.replace("[simulation]", "[dispersions.Reach]\ntarget = 'spring.damping'\ndistribution = 'normal'\n"
                        "apply = 'multiply'\nstd = 0.1\n[simulation]")  # fmt: skip
    for target, name in DRAWS.items():
        text = text.replace(f"[dispersions.{target}]", f"[dispersions.{name}]\ntarget = {target}")
    return text + "".join(map(SAME.format, OUTPUTS))


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """A run whose outputs and draws have the names of the run's own variables."""
    folder = tmp_path_factory.mktemp("names")
    (folder / "cart.toml").write_text(renamed(), encoding="utf-8")
    study = read(folder / "cart.toml")
    return study, run(study, N, folder / "run", ROWS)


def test_every_name_can_be_an_output_or_a_draw(taken):
    """The same number under every name; what the run says of itself stays."""
    study, store = taken
    found, draws = store.outputs(study), store.draws(study)
    assert set(found) == {*OUTPUTS, "reach", "speed"} and len(np.unique(found["reach"])) == N
    for name in OUTPUTS:
        assert np.array_equal(found[name], found["reach"]), name
    data = xr.open_zarr(store.folder / "results.zarr").load()
    assert {"reach", "draws", "anew", "cart_mass", "status", "status (output)", "status (draw)", "reach (draw)"} <= set(
        data
    )
    assert {"Reach (draw 2)", "zarr.json (draw)", "sample (output)", "component_3"} <= {*data, "component_3"}
    assert data["status"].dtype == np.int32 and not data["status"].any() and data["checksum"].dtype == np.uint32
    dimensions = {"sample", "component_3", f"component_{len(store.starting(study))}"}
    assert "component_14 (output)" in data and {d for x in data.data_vars.values() for d in x.dims} <= dimensions
    assert data["at_start"].dims == ("sample", "component_14") and set(data["at_start"].values.flat) <= {0, 1}
    assert np.abs(draws["status"] - 1).max() < 0.2 and np.abs(draws["zarr.json"]).max() <= 0.1
    assert not np.array_equal(draws["reach"], draws["Reach"])
    assert examined(store.folder).sound


@pytest.mark.slow
def test_what_reads_a_run_tells_the_names_apart(taken, command, tmp_path):
    study, store = taken
    told = document(study, store)["outputs"]
    assert {json.dumps(told[name]) for name in OUTPUTS} == {json.dumps(told["draws"])} != {json.dumps(told["speed"])}
    found = sensitivity(store.folder)["outputs"]["status"]["inputs"]
    assert set(found) == {"status", "reach", "zarr.json", "Reach"}
    assert compared(store.folder, store.folder)["identical"]
    done = command("simulate", store.folder / "study.toml", "--sample", 3, "--of", store.folder, "--json", cwd=tmp_path)
    outputs = json.loads(done.stdout)["outputs"]
    assert (
        outputs["status"]["in_the_run"] == outputs["draws"]["in_the_run"] == pytest.approx(outputs["status"]["value"])
    )
    table = store.to_dataframe()
    assert np.array_equal(table["status (output)"], table["reach"])


def test_labels_do_not_depend_on_what_a_file_system_tells_apart(tmp_path):
    twins = "".join(
        f"[dispersions.{name}]\ntarget = 'spring.damping'\ndistribution = 'normal'\napply = 'multiply'\nstd = 0.1\n"
        for name in ("TWIN", "Twin", "twin")
    )
    (tmp_path / "cart.toml").write_text(renamed() + twins, encoding="utf-8")
    study = read(tmp_path / "cart.toml")
    found = labels(study)
    assert [found.draws[x] for x in ("TWIN", "Twin", "twin")] == ["TWIN", "Twin (draw)", "twin (draw 2)"]
    every = [*OWN, *found.outputs.values(), *found.draws.values()]
    assert len({x.casefold() for x in every}) == len(every)
    assert labels(study, 2).outputs["status"] == "status"


FILES = ("study.toml", "provenance.json", "finished.json", "report.html", "results.zarr", ".lock", "files")


@pytest.mark.parametrize("name", FILES)
def test_a_data_file_may_be_called_as_the_runs_own(tmp_path, name):
    measured = 'distribution = "empirical"\nfile = "' + name + '"\ncolumns = ["mass"]'
    text = CART.replace('distribution = "normal"\napply = "multiply"\nstd = 0.02', measured)
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    (tmp_path / name).write_text("mass\n1.9\n2.0\n2.1\n", encoding="utf-8")
    store = stores.create(*_new(tmp_path / "mine.toml", tmp_path / "run"))
    study = read_study(stores.open_folder(store.folder))
    assert study.content == text.encode() and study.files == {name: (tmp_path / name).read_bytes()}
    assert (store.folder / "files" / name).read_bytes() == (tmp_path / name).read_bytes()
    assert read(store.folder / "study.toml").files == study.files, "a run's study is a study"
    (store.folder / "files" / name).write_bytes(b"other")
    assert [d.file for d in examined(store.folder).damage] == [f"files/{name}"]
    assert examined(store.folder, repair=True).repaired == (f"files/{name}",)
    assert (store.folder / "files" / name).read_bytes() == (tmp_path / name).read_bytes()


def _new(file, folder):
    from jaxmbs.study.results.provenance import provenance

    study = read(file, trust=True).of_size(N)
    return study, folder, provenance(study, N, ROWS)


def test_all_that_decides_of_a_sample_is_in_its_checksum(tmp_path):
    """Study file, seed, precision, modules, data, generator; neither the device nor the number of samples."""
    (tmp_path / "cart.toml").write_text(CART, encoding="utf-8")
    _, _, record = _new(tmp_path / "cart.toml", tmp_path / "run")
    first = salt(record)
    for other in ({"file_sha256": "0" * 64}, {"seed": 8}, {"precision": "float32"}, {"modules": {"a.py": "0" * 64}},
                  {"generator": "another"}):  # fmt: skip
        assert salt(record | other) != first
    for same in ({"n": 200}, {"device": "gpu: another"}, {"block_rows": 128}):
        assert salt(record | same) == first
    assert salt(record | {"design": "sobol"}) != salt(record | {"design": "sobol", "n": 200})
    assert salt(record | {"format": 2, "modules": {"a.py": "0" * 64}}) == salt(record | {"format": 2}) != first


def test_chunks_computed_from_other_data_are_not_taken_for_these(tmp_path):
    """The same study file, the same seed: every chunk is sound in itself."""
    measured = 'distribution = "empirical"\nfile = "lot.csv"\ncolumns = ["mass"]'
    text = CART.replace('distribution = "normal"\napply = "multiply"\nstd = 0.02', measured)
    runs = []
    for name, mass in (("a", 1.9), ("b", 1.8)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cart.toml").write_text(text, encoding="utf-8")
        (tmp_path / name / "lot.csv").write_text(f"mass\n{mass}\n2.1\n", encoding="utf-8")
        runs.append(run(read(tmp_path / name / "cart.toml"), N, tmp_path / name / "run", ROWS))
    for file in (runs[1].folder / "results.zarr").glob("*/c/*"):
        shutil.copy(file, runs[0].folder / file.relative_to(runs[1].folder))
    shutil.copy(runs[1].folder / "finished.json", runs[0].folder)
    found = damage(read_study(runs[0]), runs[0])
    assert [(d.first, d.stop) for d in found] == [(0, ROWS), (ROWS, N)]
    with pytest.raises(InputError, match="were changed since they were computed"):
        report(runs[0].folder)


# --- runs of earlier versions -------------------------------------------------------------------------------------------


@pytest.fixture
def earlier(tmp_path):
    """A run of version 0.1.0, whose files lie beside its study."""
    with zipfile.ZipFile(Path(__file__).with_name("run_of_kind_2.zip")) as archive:
        archive.extractall(tmp_path / "run")
    return tmp_path / "run"


def test_a_run_of_an_earlier_version_is_read(earlier, command):
    found = examined(earlier, trust=True)
    assert found.sound and found.done == 100 and found.fingerprint
    assert report(earlier, trust=True).document["done"] == 100
    table = stores.open_folder(earlier).to_dataframe()
    assert len(table) == 100 and {"reach", "speed", "cart.mass", "status"} <= set(table)
    assert command("export", earlier, "--trust").returncode == 0


def test_a_run_of_an_earlier_version_goes_on_as_it_was(earlier):
    """What is lost is computed, what was changed is put back, and all of it stays where that version looks for it."""
    (earlier / "results.zarr" / "reach" / "c" / "1").unlink()
    (earlier / "own.py").write_text("print('changed')", encoding="utf-8")
    assert not examined(earlier, trust=True).sound
    assert examined(earlier, repair=True, trust=True).repaired == ("own.py",)
    store = resume(earlier, trust=True, other_versions=True)
    assert store.provenance["format"] == 2 and examined(earlier, trust=True).sound
    assert not (earlier / "files").exists() and (earlier / "own.py.found").exists()
