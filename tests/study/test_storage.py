"""Runs that lie in a bucket: the bits and the words of those in a folder, through kills, damage and lost rights."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from jaxmbs.io import InputError
from jaxmbs.study import read, resume, run
from jaxmbs.study.folder import lock, storage
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.examination import examined
from jaxmbs.study.statistics.comparison import compared
from tests.study.conftest import CART, cli, environment

upath = pytest.importorskip("upath")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
N = 300
MODULE = "import jaxmbs as mbs\n"


@pytest.fixture(scope="module", autouse=True)
def one_date():
    """All runs were begun at one instant, which their records tell."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxmbs.study.results.provenance.origin", lambda study: {"date": "2000-01-01T00:00:00+00:00"})
        yield


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("storage") / "cart.toml"
    path.write_text('modules = ["own.py"]\n' + CART, encoding="utf-8")
    path.with_name("own.py").write_text(MODULE, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def alone(file):
    """The run in a folder."""
    return run(read(file, trust=True), N, file.parent / "alone", 64)


@pytest.fixture
def address(alone):
    """The same at an address that this process alone sees, and its place."""
    place = storage.place("memory://bucket/run")
    storage.remove(place)
    for path in alone.folder.rglob("*"):
        if path.is_file() and path.name != lock.LOCK:
            storage.write_whole(place / path.relative_to(alone.folder).as_posix(), path.read_bytes())
    return place


def files(place: Path) -> dict[str, bytes]:
    """Content of all files of a run by name."""
    if not storage.is_address(place):
        return {p.relative_to(place).as_posix(): p.read_bytes() for p in place.rglob("*") if p.is_file()}
    there = storage._of(place)
    return {name.removeprefix(there.path).lstrip("/"): there.fs.cat_file(name) for name in there.fs.find(there.path)}


def test_places():
    assert storage.place("runs/a") == Path("runs/a") == storage.place(Path("runs/a"))
    assert storage.place("file:///tmp/a") == storage.place(Path("file:///tmp/a")) == Path("/tmp/a")
    assert storage.place("C:/runs") == Path("C:/runs") and storage.place("results:of/today") == Path("results:of/today")
    place = storage.place("memory://bucket/run/")
    assert (
        str(place)
        == str(storage.place(Path("memory://bucket/run")))
        == str(storage.place(place))
        == "memory://bucket/run"
    )
    with pytest.raises(InputError, match=r"nowhere.*jaxmbs\[cloud\]"):
        storage.place("nowhere://bucket/run")


def test_a_run_writes_the_same_files_to_an_address(file, alone):
    """Whole, in order, and nothing beside them: no owner, no half of a file."""
    study = read(file, trust=True)
    place = storage.place("memory://bucket/whole")
    written = []
    pipe = type(storage._of(place).fs).pipe_file
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            type(storage._of(place).fs),
            "pipe_file",
            lambda fs, path, *x, **y: (written.append(path), pipe(fs, path, *x, **y)),
        )
        store = run(study, N, "memory://bucket/whole", 64)
    metadata = [x for x in written if x.endswith("zarr.json")]
    assert metadata[-1] == "/bucket/whole/results.zarr/zarr.json" and len(metadata) > 5
    assert files(place) == {name: x for name, x in files(alone.folder).items() if name != lock.LOCK}
    assert not any(name.endswith((lock.OWNER, ".partial")) for name in files(place))
    assert store.dataset()["reach"].values.tobytes() == alone.dataset()["reach"].values.tobytes()
    with pytest.raises(InputError, match=r"jaxmbs resume memory://bucket/whole"):
        run(study, N, place, 64)
    with pytest.raises(InputError, match="seen by this process only"):
        run(study, N, "memory://bucket/other", 64, cluster="local:2")


def test_what_is_lost_or_damaged_at_an_address_is_computed_anew(address, alone):
    """Chunks of a status and of draws, a bit of a result, metadata, the study file; another file there is left alone."""
    chunk = address / "results.zarr" / "reach" / "c" / "2"
    for lost in ("status/c/1", "cart.mass/c/0", "speed/zarr.json"):
        storage.remove(address / "results.zarr" / lost)
    storage.write_whole(chunk, bytes([chunk.read_bytes()[0] ^ 1]) + chunk.read_bytes()[1:])
    storage.write_whole(address / "notes.txt", b"mine")
    found = examined("memory://bucket/run", trust=True)
    assert [d.file for d in found.damage] == ["results.zarr/speed/zarr.json"] and found.size > 10_000
    resume("memory://bucket/run", trust=True)
    assert files(address) == {**{k: x for k, x in files(alone.folder).items() if k != lock.LOCK}, "notes.txt": b"mine"}
    storage.write_whole(address / "study.toml", b"another")
    with pytest.raises(InputError, match="jaxmbs verify memory://bucket/run --repair"):
        resume("memory://bucket/run", trust=True)
    assert examined("memory://bucket/run", repair=True, trust=True).repaired == ("study.toml",)
    assert (address / "study.toml.found").read_bytes() == b"another"


@pytest.mark.slow
def test_commands_take_an_address(address, alone, command, tmp_path):
    where = "memory://bucket/run"
    found = json.loads(command("verify", where, "--json", "--trust").stdout)
    assert found["sound"] and found["done"] == N and found["folder"] == where
    both = json.loads(command("compare", where, alone.folder, "--json", "--trust").stdout)
    assert both["identical"] and both["paired"] == N
    done = command("export", where, "--csv", "--trust")
    assert f"{where}/samples.csv" in done.stdout, done.stderr
    command("export", alone.folder, "--csv", "--out", tmp_path / "samples.csv", "--trust")
    assert (address / "samples.csv").read_bytes() == (tmp_path / "samples.csv").read_bytes()
    assert command("export", where, "--trust").returncode == 1, "it is not overwritten"
    done = command("verify", "memory://bucket/nothing")
    assert done.returncode == 1 and "memory://bucket/nothing: there is no study here" in done.stderr


def test_an_owner_elsewhere_keeps_others_out(address, monkeypatch):
    """What a process of another machine has left is named and waited for; what one of this machine has left is taken."""
    storage.remove(address / "results.zarr" / "status" / "c" / "0")
    owner, said = address / lock.OWNER, {"process": 7, "host": "far away", "since": "today"}
    storage.write_whole(owner, json.dumps(said).encode())
    with pytest.raises(InputError, match=r"process 7 on far away since today.*remove memory://bucket/run/.owner.json"):
        resume(address, trust=True)
    assert json.loads(owner.read_bytes()) == said
    monkeypatch.setattr(lock, "time", SimpleNamespace(sleep=lambda _: storage.remove(owner)))
    with lock.held(address, wait=True):
        assert json.loads(owner.read_bytes())["process"] == os.getpid()
        with pytest.raises(InputError, match=f"in use by process {os.getpid()} on"), lock.held(address):
            pass
    assert not owner.exists()
    assert storage.write_new(owner, b"{}")
    with monkeypatch.context() as patch:
        patch.setattr(type(owner), "exists", lambda _: False)
        assert not storage.write_new(owner, b"in the same instant")
    storage.write_whole(owner, json.dumps(said | {"host": lock.platform.node()}).encode())
    resume(address, trust=True)
    assert not owner.exists()


# --- S3, as a server of this machine imitates it ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def bucket():
    """The address of a bucket, in the environment of a user who has its rights."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    own = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in own.items():
            patch.setenv(name, value)
        storage._of(storage.place("s3://bucket")).fs.mkdir("bucket")
        yield "s3://bucket"
    server.stop()


def started(*arguments):
    return subprocess.Popen(
        [*cli(), *map(str, arguments)], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip


def killed(running, where):
    """The process and all of its own end as soon as there is a chunk."""
    deadline = time.monotonic() + 300
    while not storage.names(storage.place(where) / "results.zarr" / "status" / "c"):
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [(), ("--cluster", "local:2")], ids=["one process", "two workers"])
def test_a_killed_run_in_a_bucket_goes_on_to_the_same_bits(file, bucket, process, command, tmp_path, cluster):
    where, n = f"{bucket}/run{len(cluster)}", 2000
    killed(started("study", file, "-n", n, "--out", where, "--block-rows", 64, "--trust", *cluster), where)
    status = stores.open_folder(where).status()
    assert 0 < (status == stores.NOT_RUN).sum() < n, "killed in the middle"
    assert (storage.place(where) / lock.OWNER).exists()
    done = process("resume", where, "--trust", *cluster)
    assert done.returncode == 0, done.stderr
    assert not (storage.place(where) / lock.OWNER).exists()
    one = run(read(file, trust=True), n, tmp_path / "one", 64)
    assert compared(where, one.folder, trust=True)["identical"]
    (storage.place(where) / "results.zarr" / "reach" / "c" / "3").unlink()
    assert command("verify", where, "--trust").returncode == 1
    for arguments in (("resume",), ("verify",), ("report",), ("export",)):
        done = command(*arguments, where, "--trust")
        assert done.returncode == 0, done.stderr
    assert b"<html" in (storage.place(where) / "report.html").read_bytes()
    done = command("simulate", f"{where}/study.toml", "--sample", 3, "--of", where, "--trust", cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "study_sample_3.csv").exists(), done.stderr


@pytest.mark.slow
def test_a_bucket_keeps_two_machines_apart(file, bucket, monkeypatch):
    """The owner's file is made only where none is, by the server itself."""
    place = storage.place(f"{bucket}/owned")
    assert storage.write_new(place / lock.OWNER, b"first") and not storage.write_new(place / lock.OWNER, b"second")
    monkeypatch.setattr(type(place), "exists", lambda _: False)
    assert not storage.write_new(place / lock.OWNER, b"in the same instant")
    assert (place / lock.OWNER).read_bytes() == b"first"
    with pytest.raises(InputError, match=r"s3://no-such-bucket/run.*(cannot be reached|cannot be written)"):
        run(read(file, trust=True), 64, "s3://no-such-bucket/run", 64)


def test_a_bucket_that_is_out_of_reach(file):
    pytest.importorskip("s3fs")
    own = {"endpoint_url": "http://127.0.0.1:1", "key": "user", "secret": "secret"}
    own["config_kwargs"] = {"retries": {"total_max_attempts": 1}}
    with pytest.raises(InputError, match=r"s3://bucket/run.*cannot be reached.*credentials"):
        run(read(file, trust=True), 64, upath.UPath("s3://bucket/run", **own), 64)
