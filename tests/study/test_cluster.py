"""Runs on processes of Dask: the bits of one process, through lost workers and a killed scheduler."""

import inspect
import os
import random
import signal
import subprocess
import time

import numpy as np
import psutil
import pytest

from jaxmbs.io import InputError
from jaxmbs.study import read, report, resume, run
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.provenance import signed
from jaxmbs.study.runs.cluster import connected, devices
from jaxmbs.study.statistics.comparison import compared
from tests.study.conftest import CART, ROOT, cli, environment

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
N = 1000


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes on the loopback address, in the environment of a user who has the library."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), before]))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as found:
        yield found
    os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cluster") / "cart.toml"
    path.write_text(CART, encoding="utf-8")
    return path


@pytest.mark.slow
def test_two_processes_write_the_bits_of_one_and_one_is_killed(cluster, file, tmp_path):
    """A worker is killed while it computes: its chunk goes to another one."""
    study = read(file)
    alone = run(study, N, tmp_path / "one", 64)
    killed = []

    def told(stage, done, n):
        if done >= 3 * 64 and not killed:
            pid = random.Random(done).choice([w.process.pid for w in cluster.workers.values() if w.process])
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    store = run(study, N, tmp_path / "two", 64, told, cluster=cluster)
    assert killed and compared(alone.folder, store.folder)["identical"]
    assert (store.finished() or {}) == alone.finished()
    (spans,) = devices(store.folder).values()
    assert spans == [[0, N]]
    report(store.folder)


def test_workers_of_another_kind_are_refused(tmp_path, file):
    """In this process, as a worker would: a run that began elsewhere is not mixed in silence."""
    from jaxmbs.study.results.provenance import provenance
    from jaxmbs.study.runs.cluster import _chunk, note

    study = read(file)
    record = signed(provenance(study, 128, 64) | {"device": "gpu: another"})
    store = stores.create(study, tmp_path / "run", record)
    device, said = _chunk(str(store.folder), 0, False, False, None)
    assert "device: then gpu: another" in said and np.all(store.status() == stores.NOT_RUN)
    for first in (64, 0):
        device, said = _chunk(str(store.folder), first, False, True, None)
        assert not said
        note(store, device, first, first + 64)
    assert devices(store.folder) == {device: [[0, 128]]} and not np.any(store.status() == stores.NOT_RUN)
    alone = run(study, 128, tmp_path / "one", 64)
    assert all(np.array_equal(x[:], store.arrays()[name][:]) for name, x in alone.arrays().items())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "said"), [("local:x", "does not give a number of processes"), ("tcp://127.0.0.1:1", "no scheduler")]
)
def test_no_cluster(file, tmp_path, monkeypatch, address, said):
    monkeypatch.setattr("jaxmbs.study.runs.cluster._WAIT", 0.5)
    with pytest.raises(InputError, match=said):
        run(read(file), 64, tmp_path / "run", 64, cluster=address)
    assert not (tmp_path / "run" / "results.zarr").exists()


def test_local_is_so_many_processes(monkeypatch):
    given = []
    taken = inspect.signature(distributed.LocalCluster)

    def started(*arguments, **named):
        given.append(taken.bind(*arguments, **named).arguments["n_workers"])
        raise OSError("enough seen")

    monkeypatch.setattr(distributed, "LocalCluster", started)
    with pytest.raises(InputError, match="enough seen"), connected("local:3"):
        pass
    assert given == [3]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 4])
def test_a_killed_scheduler_is_resumed_by_another(file, tmp_path, process, workers):
    """The command, its scheduler and its workers die; another cluster goes on to the same bits."""
    n, out = 4000, tmp_path / "run"
    running = subprocess.Popen(
        [*cli(), "study", str(file), "-n", str(n), "--out", str(out), "--block-rows", "64", "--cluster", f"local:{workers}"],
        env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not list((out / "results.zarr" / "status").glob("c/*")):
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    family = psutil.Process(running.pid).children(recursive=True)
    assert sum("--multiprocessing-fork" in child.cmdline() for child in family) == workers
    running.kill()
    running.wait()
    for child in family:
        if child.is_running():
            child.kill()
    done = process("resume", out, "--cluster", f"local:{workers}")
    assert done.returncode == 0, done.stderr
    alone = run(read(file), n, tmp_path / "one", 64)
    assert compared(alone.folder, out)["identical"]


def dying(*_):
    """What a worker does that has not memory enough."""
    os._exit(1)


@pytest.mark.slow
def test_workers_that_keep_dying(file, tmp_path, monkeypatch):
    """The run ends with a message, what is there stays, and another process goes on."""
    import dask

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    monkeypatch.setattr("jaxmbs.study.runs.cluster._chunk", dying)
    settings = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        settings,
        distributed.LocalCluster(n_workers=1, **options) as own,
        pytest.raises(InputError, match="died 4 times"),
    ):
        run(read(file), 128, tmp_path / "run", 64, cluster=own)
    assert not resume(tmp_path / "run").status().any()
