"""Runs: a sample is a function of key and index, whatever the number of samples, the devices, an interruption."""

import json
import signal
import subprocess
import time
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import xarray as xr

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study import read, repeat, resume, run
from jaxmbs.study.results.provenance import intact, provenance, signed
from jaxmbs.study.results.store import NOT_RUN, Store
from jaxmbs.study.runs.run import _Pace
from tests.study.conftest import cli, environment

ROWS = 64


def results(folder) -> xr.Dataset:
    return xr.open_zarr(folder / "results.zarr").load()


def same(a: xr.Dataset, b: xr.Dataset) -> bool:
    assert set(a.data_vars) == set(b.data_vars)
    return all(np.array_equal(a[v], b[v], equal_nan=a[v].dtype.kind == "f") for v in a.data_vars)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run of 300 samples: the last block is padded."""
    from tests.study.conftest import CART

    folder = tmp_path_factory.mktemp("whole")
    (folder / "cart.toml").write_text(CART, encoding="utf-8")
    run(read(folder / "cart.toml"), 300, folder / "run", ROWS)
    return folder


@pytest.mark.slow
def test_store(whole):
    data = results(whole / "run")
    assert dict(data.sizes) == {"sample": 300}
    expected = {"reach", "speed", "energy_error", "constraint_error", "at_start", "status", "checksum"}
    assert set(data.data_vars) == expected | {"cart.mass", "spring.stiffness", "initial.rail.v"}
    assert np.all(data["status"] == int(mbs.Status.OK)) and data["status"].attrs["flag_meanings"].split()[0] == "ok"
    assert data["reach"].attrs["units"] == "m" and data["initial.rail.v"].attrs["units"] == "m/s"
    assert np.all(np.isfinite(data["reach"])) and np.ptp(data["reach"].values) > 0
    assert float(abs(data["energy_error"]).max()) < 1e-9
    record = json.loads((whole / "run" / "provenance.json").read_text(encoding="utf-8"))
    assert record["block_rows"] == ROWS and record["precision"] == "float64"
    assert (whole / "run" / "study.toml").read_bytes() == (whole / "cart.toml").read_bytes()
    assert [p.name for p in (whole / "run").glob("*.zarr")] == ["results.zarr"]


def test_outputs_against_the_closed_form(whole):
    """x" = -(k x + c x')/m about the rest position 0.2 m: every sample with its own mass, stiffness and start."""
    data = results(whole / "run")
    m, k, c, t = 2.0 * data["cart.mass"].values, 50.0 * data["spring.stiffness"].values, 0.5, 0.2
    x0, v0 = -0.2, data["initial.rail.v"].values
    decay, omega = c / (2 * m), np.sqrt(k / m - (c / (2 * m)) ** 2)
    b = (v0 + decay * x0) / omega
    wave, slope = x0 * np.cos(omega * t) + b * np.sin(omega * t), b * np.cos(omega * t) - x0 * np.sin(omega * t)
    assert np.allclose(data["speed"], np.exp(-decay * t) * (omega * slope - decay * wave), rtol=1e-9)
    assert np.allclose(data["reach"], 0.2 + np.exp(-decay * t) * wave, rtol=1e-9)


@pytest.mark.slow
def test_pure_in_the_number_of_samples(whole, tmp_path):
    run(read(whole / "cart.toml"), 70, tmp_path / "run", ROWS)
    assert same(results(tmp_path / "run"), results(whole / "run").isel(sample=slice(0, 70)))


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 3])
def test_pure_in_the_size_of_chunks(whole, tmp_path, monkeypatch, blocks):
    monkeypatch.setattr(_Pace, "__exit__", lambda self, *_: setattr(self, "blocks", blocks))
    run(read(whole / "cart.toml"), 300, tmp_path / "run", ROWS)
    assert same(results(tmp_path / "run"), results(whole / "run"))


@pytest.mark.slow
def test_pure_in_devices_and_through_a_kill(tmp_path, command, process):
    """The command line uses all cores, is killed while it writes, goes on, and reaches the bits of one device."""
    from tests.study.conftest import CART

    file = tmp_path / "cart.toml"
    file.write_text(CART.replace("t_end = 0.2", "t_end = 1.0"), encoding="utf-8")
    n, killed, folder = 10_000, tmp_path / "killed", tmp_path / "one"
    running = subprocess.Popen(
        [*cli(), "study", str(file), "-n", str(n), "--out", str(killed), "--block-rows", "64"],
        env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 600  # of a process that hangs
    while not list((killed / "results.zarr" / "status").glob("c/*")):
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    status = results(killed)["status"].values
    assert 0 < np.count_nonzero(status == NOT_RUN) < n, "killed in the middle"

    done = process("resume", killed)
    assert done.returncode == 0, done.stderr
    run(read(file), n, folder, 64)
    assert same(results(killed), results(folder))
    again = command("resume", killed)
    assert again.returncode == 0, "a finished run is no error"


@pytest.mark.slow
@pytest.mark.parametrize("left", ["half", "nothing", "not even a store"])
def test_resume_of_what_a_kill_leaves(whole, tmp_path, left):
    """The states between two writes, made by hand: values without their status, no store, a half-made store."""
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(whole / "run", folder)
    if left == "half":
        arrays = Store(folder, json.loads((folder / "provenance.json").read_text(encoding="utf-8"))).arrays()
        arrays["status"][64:192] = NOT_RUN
        arrays["reach"][64:128] = -1.0
        arrays["cart.mass"][128:192] = np.nan
    else:
        shutil.rmtree(folder / "results.zarr")
        if left == "nothing":
            (folder / ".results.partial" / "reach").mkdir(parents=True)
    resume(folder)
    assert same(results(folder), results(whole / "run"))


@pytest.mark.parametrize(("free", "blocks"), [(1 << 40, 256), (8 * 10 * 4 * 1000, 8), (1, 4)])
def test_results_of_a_chunk_fit_an_eighth_of_the_free_memory(monkeypatch, free, blocks):
    """Whole zarr chunks (4 blocks here), one at least, and no more than a call of the program computes."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free))
    results = SimpleNamespace(size=256 * 500, dtype=np.dtype(np.float64))  # 4000 bytes a block
    program = SimpleNamespace(program=SimpleNamespace(out_info=[results]), most=256, devices=2)
    pace = _Pace(program, 4)
    assert pace.most == blocks and pace.blocks == 4
    with pace:
        pass
    assert pace.blocks == blocks  # it took no time: as many as may be


def test_chunks_that_are_not_complete_are_missing(monkeypatch):
    """In runs of whole chunks, the last one as long as the samples go."""
    store = Store(None, {"n": 300, "chunk_rows": 64})
    status = np.zeros(300, int)
    monkeypatch.setattr(Store, "arrays", lambda self: {"status": status})
    assert list(store.missing()) == []
    status[[70, 130, 299]] = NOT_RUN
    assert list(store.missing()) == [(64, 192), (256, 300)]


def test_the_status_is_written_last():
    """It says that the other values of its samples are there."""
    written = []

    class Array:
        def __init__(self, name):
            self.name = name

        def __setitem__(self, rows, values):
            written.append((self.name, rows, len(values)))

    names = ("status", "reach", "a", "z")
    record = {"n": 100, "chunk_rows": 64, "file_sha256": "", "seed": 0, "precision": "float64"}
    store = Store(None, record)
    store.write({x: Array(x) for x in (*names, "checksum")}, 64, {x: np.zeros(64) for x in names})
    assert written[-1] == ("status", slice(64, 100), 36) and len(written) == 5


def test_results_are_not_overwritten(whole):
    with pytest.raises(InputError, match="jaxmbs resume"):
        run(read(whole / "cart.toml"), 10, whole / "run", ROWS)


def test_resume_refuses_what_would_not_be_the_same_run(whole, tmp_path):
    import shutil

    with pytest.raises(InputError, match="there is no study here"):
        resume(tmp_path / "nothing")
    folder = tmp_path / "run"
    shutil.copytree(whole / "run", folder)
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))

    def changed(**values):
        (folder / "provenance.json").write_text(json.dumps(signed(record | values)), encoding="utf-8")

    changed(versions=record["versions"] | {"jax": "0.0.1"})
    with pytest.raises(InputError, match=r"jax: then 0\.0\.1, now .*--other-versions"):
        resume(folder)
    resume(folder, other_versions=True)
    changed(device="tpu: large")
    with pytest.raises(InputError, match="device: then tpu: large"):
        resume(folder)
    changed(precision="float32")
    with pytest.raises(InputError, match="precision: then float32"):
        resume(folder, other_versions=True)
    changed()
    (folder / "study.toml").write_text((folder / "study.toml").read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="was changed since the run began"):
        resume(folder)


def test_bad_numbers(whole, tmp_path):
    study = read(whole / "cart.toml")
    with pytest.raises(InputError, match="0 samples"):
        run(study, 0, tmp_path / "a")
    with pytest.raises(InputError, match="use 64 or more"):
        run(study, 10, tmp_path / "a", block_rows=10)
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
def test_a_failed_sample_does_not_touch_the_others(cart, tmp_path):
    """Stiffnesses up to where Runge-Kutta 4 is unstable at this step: some samples run to infinity."""
    edits = ("sigma = 0.05", "sigma = 5.0", "t_end = 0.2\ndt = 1e-3", "t_end = 20.0\ndt = 1e-2")
    study = read(cart(*edits))
    run(study, 200, tmp_path / "run", ROWS)
    data = results(tmp_path / "run")
    failed = data["status"].values == int(mbs.Status.NOT_FINITE)
    assert 5 < np.count_nonzero(failed) < 100
    assert np.isin(data["status"].values[~failed], [mbs.Status.OK, mbs.Status.COARSE]).all()  # the stiffest lose energy
    assert np.all(np.isfinite(data["speed"].values[~failed]))
    # the same samples without unstable neighbours
    alone = repeat(study, [int(np.flatnonzero(~failed)[0])])
    assert data["speed"].values[~failed][0] == pytest.approx(alone.outputs["speed"][0], rel=1e-9)
    # a stable one has the bits it has in a run in which nobody fails: its block is elsewhere, its neighbours differ
    assert np.all(data["spring.stiffness"].values[failed].min() > data["spring.stiffness"].values[~failed].max() / 10)


@pytest.mark.slow
def test_repeated_sample_equals_the_run_to_rounding(whole):
    study, data = read(whole / "cart.toml"), results(whole / "run")
    h = repeat(study, [19, 250])
    assert h.outputs["reach"] == pytest.approx(data["reach"].values[[19, 250]], rel=1e-12)
    assert h.q.shape == (2, 201, 1)
    thinned = repeat(study, [19], save_every=50)
    assert thinned.t == pytest.approx([0, 0.05, 0.1, 0.15, 0.2])
    assert thinned.q[0, :, 0] == pytest.approx(h.q[0, ::50, 0], rel=1e-12)


@pytest.mark.slow
def test_samples_with_angles_beyond_what_polynomials_serve(cart, tmp_path):
    edits = [
        'type = "prismatic"',
        'type = "revolute"',
        "q = [0.0]",
        "q = [1e8]",
        "90 mm",
        "90 rad",
        "0.9 m/s",
        "0.9 rad/s",
    ]
    edits += ['[dispersions."spring.stiffness"]', '[dispersions."initial.rail.q"]', "sigma = 0.05", "sigma = 2.0"]
    edits += [
        "axis = [1.0, 0.0, 0.0]",
        "axis = [0.0, 0.0, 1.0]",
        "rest_length",
        "point_b = [0.0, 0.5, 0.0]\nrest_length",
    ]
    study = read(cart(*edits))
    run(study, 64, tmp_path / "run", ROWS)
    data = results(tmp_path / "run")
    assert 10 < np.count_nonzero(data["reach"].values > 1e8) < 54
    alone = repeat(study, list(range(64)))
    # of an angle of 1e10 a history, whose program adds in another order, knows six digits behind the point
    assert data["speed"].values == pytest.approx(alone.outputs["speed"], rel=1e-4)


@pytest.mark.slow
def test_progress_counts_every_sample(whole, tmp_path):
    calls = []
    run(read(whole / "cart.toml"), 100, tmp_path / "run", ROWS, lambda *state: calls.append(state))
    assert calls[0] == ("compile", 0, 100) and calls[-1] == ("done", 100, 100)
    assert [c[1] for c in calls] == sorted(c[1] for c in calls)


@pytest.mark.parametrize("rows", [64, 100, 1000, 1040, 3000, 100_000])
@pytest.mark.parametrize("n", [1, 2000, 10**5, 10**6, 2**32])
def test_records_of_any_size_are_those_of_a_run(whole, n, rows):
    """Chunks are whole blocks, whatever these are, and what writes a record also reads it."""
    record = provenance(read(whole / "cart.toml"), n, rows)
    assert record["chunk_rows"] % rows == 0 and intact(record)
    assert record["chunk_rows"] == rows or record["chunk_rows"] < 2**14 + rows
    if n > 2**15 and rows < 1024:  # chunks enough for many workers, and little is lost when a run is cut short
        assert n / record["chunk_rows"] > 20
