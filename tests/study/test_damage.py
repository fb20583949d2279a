"""Results that cannot lie: damage of every kind to every file of a run's folder is found, named and mended."""

import errno
import json
import shutil
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from jaxmbs.io import InputError
from jaxmbs.study import read, report, resume, run
from jaxmbs.study.folder import storage
from jaxmbs.study.folder.checksums import checksums
from jaxmbs.study.results import damage as checking
from jaxmbs.study.results import examination
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import damage
from jaxmbs.study.results.examination import examined
from jaxmbs.study.results.provenance import signed
from jaxmbs.study.runs.estimate import check, estimate
from tests.study.conftest import CART, environment

N, ROWS = 150, 64  # the last chunk is not full


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage")
    (folder / "cart.toml").write_text(CART, encoding="utf-8")
    run(read(folder / "cart.toml"), N, folder / "run", ROWS)
    return folder / "run"


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


def content(folder):
    """Every number of a run, as bits."""
    data = xr.open_zarr(folder / "results.zarr").load()
    return {name: x.values.tobytes() for name, x in data.data_vars.items()}


def delete(path):
    path.unlink()


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
    path.write_bytes(b"")


def flip(path):
    x = bytearray(path.read_bytes())
    x[len(x) // 2] ^= 4
    path.write_bytes(x)


def lengthen(path):
    path.write_bytes(path.read_bytes() + b"\0" * 7)


def forget(path):
    """Zeros of the same length."""
    path.write_bytes(bytes(path.stat().st_size))


def neighbour(path):
    """The content of another chunk, sound in itself."""
    other = path.with_name("1" if path.name == "0" else "0")
    path.write_bytes(other.read_bytes())


KINDS = (delete, truncate, empty, flip, lengthen, forget)
CHUNKS = [f"results.zarr/{name}/c/{k}" for name in ("reach", "status", "checksum", "cart.mass") for k in (0, 2)]


@pytest.mark.parametrize("file", CHUNKS)
@pytest.mark.parametrize("kind", (*KINDS, neighbour), ids=lambda kind: kind.__name__)
def test_a_damaged_chunk_is_named_and_found_before_anything_is_said(folder, file, kind):
    if kind is neighbour and "status" in file:
        pytest.skip("both chunks hold the same")
    kind(folder / file)
    study, store = read(folder / "study.toml"), stores.open_folder(folder)
    found = damage(study, store)
    number = int(file.rpartition("/")[2])
    samples = (number * ROWS, min(number * ROWS + ROWS, N))
    assert found and all((d.first, d.stop) == samples for d in found)
    if kind is not neighbour and not (kind is flip and "status" in file):
        assert file in [d.file for d in found]
    with pytest.raises(InputError, match=rf"samples {samples[0]} to {samples[1] - 1}.*[\s\S]*jaxmbs resume"):
        report(folder)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_all_that_is_damaged_is_mended_to_the_same_bits(whole, folder, kind):
    """A chunk of every variable, in one folder or another, and the note that the run was finished."""
    files = sorted((folder / "results.zarr").glob("*/c/*"))
    for file in (*files[::5], folder / "finished.json"):
        kind(file)
    resume(folder)
    assert content(folder) == content(whole)
    assert examined(folder).sound


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("file", ["zarr.json", "reach/zarr.json", "status/zarr.json"])
@pytest.mark.usually("zarr.json-*", "status/zarr.json-truncate", "reach/zarr.json-forget")
def test_damaged_metadata_is_named_and_written_again(whole, folder, file, kind):
    path = folder / "results.zarr" / file
    kind(path)
    if kind in (flip, lengthen) and _same(path, whole / "results.zarr" / file):
        pytest.skip("white space")
    with pytest.raises(InputError, match=f"results.zarr/{file}: the metadata"):
        report(folder)
    resume(folder)
    assert content(folder) == content(whole)


def _same(a, b):
    try:
        return json.loads(a.read_bytes()) == json.loads(b.read_bytes())
    except ValueError:
        return False


@pytest.mark.parametrize("file", ["provenance.json", "study.toml"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.usually("flip-*", "delete-*", "lengthen-*")
def test_record_and_study_file_are_put_back_from_their_copies(whole, folder, file, kind):
    if kind is lengthen and file == "provenance.json":
        (folder / file).write_bytes((folder / file).read_bytes().replace(b'"seed": 7', b'"seed": 8'))
    else:
        kind(folder / file)
    with pytest.raises(InputError, match=r"jaxmbs verify .* --repair"):
        report(folder)
    assert not examined(folder).sound
    assert examined(folder, repair=True).repaired == (file,)
    assert (folder / file).read_bytes() == (whole / file).read_bytes()
    assert examined(folder).sound


def test_a_record_that_was_forged_is_not_believed(whole, folder):
    """Its checksum is right, and its copy in the results tells of another run."""
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    (folder / "provenance.json").write_text(json.dumps(signed(record | {"n": N + 1})), encoding="utf-8")
    before = content(folder)
    with pytest.raises(InputError, match=rf"different runs .*n: {N + 1} and {N}.*restore the right one"):
        examined(folder, repair=True)
    assert content(folder) == before == content(whole)


def test_a_changed_study_file_is_kept(folder):
    mine = (folder / "study.toml").read_bytes() + b"# mine\n"
    (folder / "study.toml").write_bytes(mine)
    examined(folder, repair=True)
    assert (folder / "study.toml.found").read_bytes() == mine


def test_lost_results_of_a_finished_run_are_no_empty_run(whole, folder):
    shutil.rmtree(folder / "results.zarr")
    assert not examined(folder).sound
    with pytest.raises(InputError, match="is missing although the run was finished"):
        report(folder)
    resume(folder)
    assert content(folder) == content(whole)


@pytest.mark.slow
def test_chunks_of_another_run_are_not_taken_for_this_one(whole, folder, tmp_path):
    """The same mechanism with another seed: every chunk is sound in itself."""
    (tmp_path / "other.toml").write_text(CART.replace("seed = 7", "seed = 8"), encoding="utf-8")
    run(read(tmp_path / "other.toml"), N, tmp_path / "other", ROWS)
    for file in (tmp_path / "other" / "results.zarr").glob("*/c/*"):
        shutil.copy(file, folder / file.relative_to(tmp_path / "other"))
    with pytest.raises(InputError, match="were changed since they were computed"):
        report(folder)
    resume(folder)
    assert content(folder) == content(whole)


def test_a_checksum_depends_on_every_bit_name_place_and_study():
    values = {"a": np.arange(6.0), "b": np.arange(12.0).reshape(6, 2), "c": np.arange(6, dtype=np.int32)}
    first = checksums(values, 10, 1)
    assert first.dtype == np.uint32 and len(set(first.tolist())) == 6
    assert np.array_equal(checksums({k: x[2:] for k, x in values.items()}, 12, 1), first[2:])
    for other in (
        values | {"a": np.nextafter(values["a"], np.inf)},
        values | {"b": values["b"][:, ::-1]},
        {"a": values["a"], "d": values["b"], "c": values["c"]},
        values | {"c": values["c"] ^ 1},
    ):
        assert not np.any(checksums(other, 10, 1) == first)
    assert not np.any(checksums(values, 11, 1) == first) and not np.any(checksums(values, 10, 2) == first)


HOLD = """
import sys
from pathlib import Path
from jaxmbs.study.folder.lock import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""

# --- while another process computes ---------------------------------------------------------------------------------


@pytest.fixture
def half(whole, folder):
    """A run of which the first chunk is there, its store, and a function that writes the others as its process does."""
    store, study = stores.open_folder(folder), read(folder / "study.toml")
    values = {name: x[:] for name, x in store.arrays().items() if name != "checksum"}
    store.clear(ROWS, N)

    def write(first=ROWS):
        store.write(store.arrays(), first, {name: x[first : first + ROWS] for name, x in values.items()})

    return study, store, write


@pytest.mark.parametrize("moment", ["after the list of chunks", "after the status", "after the last"])
def test_what_is_written_during_a_look_is_not_damaged(half, monkeypatch, moment):
    """A chunk becomes whole between one reading and the next: it was not there, or it is sound."""
    study, store, write = half
    chunks, read_span, names = stores.Store.chunks, checking.read_span, []

    def listed(self, name):
        found = chunks(self, name)
        names.append(name)
        if len(names) == (1 if moment == "after the list of chunks" else -1):
            write()
        return found

    def spanned(array, name, *x):
        found = read_span(array, name, *x)
        names.append(name)
        if moment == ("after the status" if name == "status" else "after the last" if name == "reach" else ""):
            write()
        return found

    monkeypatch.setattr(stores.Store, "chunks", listed)
    monkeypatch.setattr(checking, "read_span", spanned)
    assert damage(study, store) == []
    monkeypatch.undo()
    assert damage(study, store) == [] and np.count_nonzero(store.status() == 0) == 128, "it was written"


@pytest.mark.slow
def test_a_run_that_is_being_computed_is_never_called_damaged(half):
    """One thread writes, this one looks, again and again."""
    study, store, write = half
    looks = []

    def compute():
        for first in (ROWS, 2 * ROWS):
            write(first)
        store.finish()

    for _ in range(6):
        store.clear(ROWS, N)
        writer = threading.Thread(target=compute)
        writer.start()
        while writer.is_alive():
            looks.append(damage(study, store))
        writer.join()
    assert len(looks) > 6 and not any(looks) and not damage(study, store)


def test_who_computes_is_said(half, command):
    """By `verify`, the table and the page; metadata that is just being written is not damage either."""
    _, store, _ = half
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    try:
        assert process.stdout.readline() == b"held\n"
        found = examined(store.folder)
        assert found.sound and found.done == ROWS and f"process {process.pid} on" in found.computing
        done = command("verify", store.folder)
        assert f"being computed by process {process.pid}" in done.stdout and "jaxmbs resume" not in done.stdout
        assert json.loads(command("verify", store.folder, "--json").stdout)["computing"] == found.computing
        written = report(store.folder)
        said = f"process {process.pid} on"
        assert said in written.path.read_text(encoding="utf-8") and said in str(written.table.renderables[0])
        (store.folder / "results.zarr" / "reach" / "zarr.json").unlink()
        with pytest.raises(InputError, match=rf"is being computed by process {process.pid}.*wait"):
            report(store.folder)
        with pytest.raises(InputError, match="in use by"):
            examined(store.folder, repair=True)
    finally:
        process.kill()
        process.communicate()
    assert not examined(store.folder).sound and not examined(store.folder).computing


def test_metadata_that_appears_in_time_is_no_damage(half, monkeypatch):
    """As at the end of a run that stops early, whose metadata are written anew."""
    _, store, _ = half
    path = store.folder / "results.zarr" / "reach" / "zarr.json"
    content = path.read_bytes()
    path.write_bytes(b"{}")
    for module in (checking, examination):
        monkeypatch.setattr(module, "PAUSE", 0)
        monkeypatch.setattr(module, "holder", lambda _: "somebody")
    monkeypatch.setattr(examination.time, "sleep", lambda _: path.write_bytes(content))
    found = examined(store.folder)
    assert found.sound and found.computing == "somebody"


@pytest.mark.slow
def test_a_run_that_is_being_started_is_said_to_be(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    )
    try:
        assert process.stdout.readline() == b"held\n"
        for look in (examined, stores.open_folder):
            with pytest.raises(InputError, match=f"is being started by process {process.pid}"):
                look(tmp_path)
    finally:
        process.kill()
        process.communicate()
    with pytest.raises(InputError, match="there is no study here"):
        examined(tmp_path)


# --- one process at a time, full disks, sizes -----------------------------------------------------------------------


@pytest.mark.slow
def test_one_process_at_a_time_writes_and_the_second_hears_who_it_is(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    )
    try:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match=rf"in use by process {process.pid} on .*--wait"):
            resume(folder)
    finally:
        process.kill()  # the lock ends with its process
        process.communicate()
    resume(folder)


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_nothing_is_lost(whole, folder, monkeypatch):
    stores.open_folder(folder).clear(64, N)
    write, count = stores.Store.write, []

    def full(self, *x):
        if count:
            raise OSError(errno.ENOSPC, "No space left on device")
        count.append(1)
        write(self, *x)

    monkeypatch.setattr(stores.Store, "write", full)
    with pytest.raises(InputError, match=r"the disk is full; nothing that was computed is lost.*jaxmbs resume"):
        resume(folder)
    monkeypatch.undo()
    assert np.count_nonzero(stores.open_folder(folder).status() == 0) == 128
    resume(folder)
    assert content(folder) == content(whole)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_has_its_remedy_wherever_it_is_met(whole, folder, tmp_path, monkeypatch, number):
    def full(path, content):
        raise OSError(number, "No space left on device")

    study = read(whole / "study.toml")
    for module in (stores, storage, sys.modules["jaxmbs.study.reports.report"]):
        monkeypatch.setattr(module, "write_whole", full)
    for use in (lambda: run(study, N, tmp_path / "new", ROWS), lambda: report(folder)):
        with pytest.raises(InputError, match=r"the disk is full.*make room"):
            use()


def test_names_that_no_file_system_takes(tmp_path, command):
    (tmp_path / "cart.toml").write_text(CART, encoding="utf-8")
    study, long = read(tmp_path / "cart.toml"), tmp_path / ("x" * 300)
    for use in (lambda: run(study, N, long, ROWS), lambda: report(long), lambda: examined(long), lambda: resume(long)):
        with pytest.raises(InputError, match=r"is longer than 255 bytes.*choose another"):
            use()
    with pytest.raises(InputError, match="zero in the name"):
        run(study, N, tmp_path / "a\0b", ROWS)
    name = "y" * 300
    (tmp_path / "long.toml").write_text(
        CART.replace("outputs.speed", f"outputs.{name}").replace('"speed <', f'"{name} <'), encoding="utf-8"
    )
    with pytest.raises(InputError, match=r'outputs\."y+\.\.\.": .*longer than 200 characters; shorten it'):
        read(tmp_path / "long.toml")
    for arguments in (("info", long), ("simulate", tmp_path / "cart.toml", "--out", f"{long}.csv")):
        done = command(*arguments)
        assert done.returncode == 1 and "shorten it" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("n", "edit", "said"),
    [
        (10**12, ("", ""), r"1,000,000,000,000 samples need .* TB of disk, and .* are free"),
        (100, ("t_end = 0.2", "t_end = 1e9"), r"makes 1,000,000,000,000 steps"),
        (100, ("dt = 1e-3", "dt = 1e-300"), r"makes 2e\+299 steps(?s:.){,400}$"),
        (100, ("t_end = 0.2", "t_end = 1e9"), r"TB of memory, and .* are free"),
    ],
)
def test_what_cannot_be_done_is_refused_with_figures(tmp_path, n, edit, said):
    (tmp_path / "big.toml").write_text(CART.replace(*edit) if edit[0] else CART, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        run(read(tmp_path / "big.toml"), n, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_would_take_years_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1 << 60))
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1 << 60))
    (tmp_path / "long.toml").write_text(CART.replace("t_end = 0.2", "t_end = 1e6"), encoding="utf-8")
    with pytest.raises(InputError, match=r"1,000,000,000 steps take .* years at the very least"):
        check(read(tmp_path / "long.toml"), 4 * 10**9)


def test_the_estimate_is_what_is_written(whole):
    study = read(whole / "study.toml")
    data = xr.open_zarr(whole / "results.zarr")
    assert estimate(study, N).disk == pytest.approx(sum(x.nbytes for x in data.data_vars.values()), rel=0.1)
    check(study, 1000)
