"""Computes samples on other processes and machines: the chunks of a run are tasks of Dask, and the worker that computes
a chunk also writes it.

Workers need jaxmbs, and either the run's folder under the same path or the right to write to its address. A worker
computes on the JAX devices that it sees and on all cores of its machine, so a few workers, or one per GPU, are enough.

Dask, an optional dependency, and JAX, which must start with the run's precision, are imported where they are used.
"""

from __future__ import annotations

import functools
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.folder import storage
from jaxmbs.study.folder.shell import command
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.described import read_study
from jaxmbs.study.results.provenance import Provenance, differences, machine, provenance, signed

if TYPE_CHECKING:
    from distributed import Client

    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.results.store import Store

DEVICES = "devices.json"  # records on which device samples were computed
_WAIT = 60.0  # time to wait for the scheduler and for the first worker [s]
_TRIES = 4  # number of attempts at a chunk whose workers die
_ONE = threading.Lock()  # a process computes one chunk at a time


@contextmanager
def connected(cluster: Any) -> Iterator[Client]:
    """A client of a cluster: "tcp://HOST:PORT", "local:N" for N processes on this machine, or a cluster object of Dask.

    Raises InputError if there is no such cluster, or if no worker joins.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(Problem("--cluster", "needs Dask: pip install 'jaxmbs[cluster]'")) from None
    own = None
    try:
        if isinstance(cluster, str) and cluster.startswith("local:"):
            count = cluster.removeprefix("local:")
            if not count.isdecimal() or int(count) < 1:
                raise InputError(
                    Problem(
                        "--cluster", (f'"{cluster}" does not give a number of processes; write local:4, for example')
                    )
                )
            own = LocalCluster(n_workers=int(count), threads_per_worker=1, dashboard_address=":0")
        client = Client(own or cluster, timeout=_WAIT)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            Problem("--cluster", f"no scheduler at {cluster}: {error}; start one with `dask scheduler`")
        ) from None
    try:
        with client:
            try:
                client.wait_for_workers(1, timeout=_WAIT)
            except TimeoutError:
                message = f"no worker joined within {_WAIT:g} s; start some with `dask worker {cluster} --nthreads 1`"
                raise InputError(Problem("--cluster", message)) from None
            yield client
    finally:
        if own is not None:
            own.close()


def provenance_there(
    client: Client, study: Study, n: int, rows: int, until: Any, key: bytes | None = None
) -> Provenance:
    """The provenance of a run on a cluster; device and versions are those of a worker."""
    record = provenance(study, n, rows, until)
    there = client.submit(_here, record["precision"], pure=False).result()
    return signed(record | there, key)


def fill(
    client: Client, store: Store, missing: Sequence[tuple[int, int]], done: Callable[[int], bool],
    trust: bool = False, other_devices: bool = False,
) -> None:  # fmt: skip
    """Compute the missing samples on the workers. A chunk whose worker dies is given to another one.

    done: called with the number of samples of each chunk that was written; returns whether the run may end.
    other_devices: also accept workers whose device or versions differ from the run's; their samples may differ in their
    last bits. Raises InputError if a chunk cannot be computed.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    rows, folder = store.chunk_rows, storage.for_workers(store.folder)
    cache = _cache() if "LocalCluster" in type(client.cluster).__name__ else None

    def submit(first: int, tries: int) -> Any:
        key = f"samples-{store.provenance['digest'][:16]}-{first}-{tries}"
        task = client.submit(_chunk, folder, first, trust, other_devices, cache, key=key, pure=False, retries=1)
        chunks[task.key] = (first, tries)
        return task

    chunks: dict[Any, tuple[int, int]] = {}
    firsts = (first for begin, stop in missing for first in range(begin, stop, rows))
    running = as_completed([submit(first, 0) for first in itertools.islice(firsts, _ahead(client))])
    for task in running:
        first, tries = chunks.pop(task.key)
        try:
            device, said = task.result()
        except KilledWorker as error:
            if tries + 1 == _TRIES:
                message = (
                    f"the workers for samples from {first:,} on died {_TRIES} times ({error}); do they have enough "
                    "memory?"
                )
                raise InputError(Problem("--cluster", message)) from None
            running.add(submit(first, tries + 1))
            continue
        if said:
            raise InputError(Problem("--cluster", said))
        note(store, device, first, min(first + rows, store.n))
        if done(min(first + rows, store.n) - first):
            return
        for following in itertools.islice(firsts, 1):
            running.add(submit(following, 0))


def _ahead(client: Client) -> int:
    """Number of chunks that are submitted at a time; it is limited, so that memory does not grow with the number of
    chunks."""
    return 4 + 4 * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))


def note(store: Store, device: str, first: int, stop: int) -> None:
    """Record on which device the samples first ... stop - 1 were computed."""
    found = devices(store.folder)
    spans = sorted([*found.get(device, []), [first, stop]])
    joined: list[list[int]] = []
    for a, b in spans:
        if joined and a <= joined[-1][1]:
            joined[-1][1] = max(b, joined[-1][1])
        else:
            joined.append([a, b])
    storage.write_whole(store.folder / DEVICES, json.dumps(found | {device: joined}, indent=1).encode())


def devices(folder: Path) -> dict[str, list[list[int]]]:
    """{device: [[first, stop], ...]} of a run that was computed on a cluster."""
    try:
        found = json.loads((folder / DEVICES).read_bytes())
        return {str(name): [[int(first), int(stop)] for first, stop in spans] for name, spans in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _cache() -> str | None:
    return jax.config.values.get("jax_compilation_cache_dir")


# --- in a worker ------------------------------------------------------------------------------------------------------


def _here(precision: str) -> Provenance:
    """Device and versions of this worker."""
    _begin(precision, None)

    return machine()


def _chunk(folder: Any, first: int, trust: bool, other_devices: bool, cache: str | None) -> tuple[str, str]:
    """Compute and write the chunk that begins with sample `first`. Returns (this device, why the chunk was not
    computed: "" if it was)."""
    try:
        with _ONE:
            store = stores.open_folder(folder)
            _begin(store.provenance["precision"], cache)
            here = _here(store.provenance["precision"])
            found = differences(store.provenance, store.provenance | here)
            if found and not other_devices:
                said = f"a worker differs from the run ({'; '.join(found)}); use workers of one kind"
                again = command("resume", folder, "--other-versions", record=store.provenance)
                return here["device"], f"{said}, or accept that in `{again}`"
            study, arrays, program = _prepared(folder, store.provenance["digest"], trust)
            stop = min(first + store.chunk_rows, store.n)
            blocks = -(-(stop - first) // program.rows)
            store.write(arrays, first, store.columns(study, _computed(program, first, blocks)))
            return here["device"], ""
    except InputError as error:  # the error itself cannot be sent to another process unchanged
        return "", str(error)


def _computed(program: Any, first: int, blocks: int) -> dict[str, Any]:
    """Results of consecutive blocks; each call computes as many blocks as the program takes."""
    begin = first // program.rows
    parts = [program(begin + k, min(program.most, blocks - k)) for k in range(0, blocks, program.most)]
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


@functools.lru_cache(maxsize=2)
def _prepared(folder: Any, digest: str, trust: bool) -> tuple[Study, Any, Any]:
    """Study, arrays and compiled program of a run, prepared once per process."""
    from jaxmbs.study.samples.batch import compiled

    store = stores.open_folder(folder)
    study = read_study(store, trust)
    return study, store.arrays(), compiled(study, store.provenance["block_rows"])


def _begin(precision: str, cache: str | None) -> None:
    jax.config.update("jax_enable_x64", precision == "float64")
    if cache and not jax.config.values.get("jax_compilation_cache_dir"):
        jax.config.update("jax_compilation_cache_dir", cache)
