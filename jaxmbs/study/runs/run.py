"""Runs a study, or the remaining part of it.

JAX and the modules that compute or connect to a cluster are imported when they are needed, so a run that is refused
does not start them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import psutil

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.folder import lock, storage
from jaxmbs.study.folder.seal import key_of
from jaxmbs.study.folder.shell import command
from jaxmbs.study.problem.study import Study
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.described import read_study
from jaxmbs.study.results.provenance import Provenance, differences, provenance
from jaxmbs.study.results.repair import cut, repair_results
from jaxmbs.study.results.store import Store
from jaxmbs.study.runs.estimate import check
from jaxmbs.study.runs.stopping import Stopping, check_rule

if TYPE_CHECKING:
    from jaxmbs.study.samples.batch import Compiled

FEWEST_ROWS = 64  # with fewer, XLA's vector loops have remainders: a sample's bits could depend on its position
PACE = 1.0  # time between two reports of progress [s]

# called with ("compile", "run" or "done", number of samples done, number of all samples)
Progress = Callable[[str, int, int], None]


def _silent(stage: str, done: int, n: int) -> None:
    return None


def run(
    study: Study,
    n: int | None,
    out: str | Path,
    block_rows: int | None = None,
    progress: Progress = _silent,
    wait: bool = False,
    until: float | str | None = None,
    cluster: Any = None,
    trust: bool = False,
    seal: str | Path | None = None,
) -> Store:
    """Compute samples 0 ... n - 1 of a study, and write them to `out`, a folder or an address (s3://bucket/run).

    n: None if the sampling plan fixes the number; block_rows: samples that a core computes at once, by default 64
    (33,792 on a GPU), saved in the provenance; progress: called with ("compile", "run" or "done", number of samples done,
    number of all samples); the precision is that of this process (jax_enable_x64). A sample is a pure
    function of the study file and its index: its bits depend neither on n (unless the sampling plan places all samples
    together), nor on the number of devices, nor on interruptions. Memory does not grow with n. A sample that fails gets
    a status and has no effect on others. wait: if another process works there, wait until it ends. until: end before n
    as soon as, for every criterion, the interval of its probability lies on one side of the required share ("decided"),
    or is no wider than this number; the report's intervals allow for the early end. cluster: compute on "local:4" (four
    processes), "tcp://HOST:PORT" (a scheduler of Dask), or a cluster object of Dask; trust: the workers run the Python
    modules of the study; seal: a file with a user's key, which seals the record and, at the end, all numbers: nobody
    without the key can change any of them unnoticed (`jaxmbs verify --seal`).

    Raises InputError if `out` already has results, is in use, or cannot be written, and, with figures, if the machine
    does not have the disk space, memory or time.
    """
    study = study.of_size(n)
    n = study.n or 0
    if n < 1:
        raise InputError(Problem("n", f"{n} samples; a study needs at least 1"))
    from jaxmbs.study.samples.batch import usual_rows

    block_rows = usual_rows() if block_rows is None else block_rows
    if block_rows < FEWEST_ROWS:
        raise InputError(Problem("block_rows", f"{block_rows} is too few; use {FEWEST_ROWS} or more"))
    if until is not None:
        check_rule(study, until)
    folder, key = storage.place(out), key_of(seal)
    record = provenance(study, n, block_rows, until, key)
    check(study, n, block_rows, record["precision"], folder)
    with storage.reached(folder):
        stores.require_empty(folder)
    with _writing(folder, record, cluster, wait) as client:
        if client is not None:
            from jaxmbs.study.runs.cluster import provenance_there

            record = provenance_there(client, study, n, block_rows, until, key)
        return _fill(study, stores.create(study, folder, record, key), progress, client, trust)


def resume(
    folder: str | Path,
    other_versions: bool = False,
    progress: Progress = _silent,
    trust: bool = False,
    wait: bool = False,
    cluster: Any = None,
    seal: str | Path | None = None,
) -> Store:
    """Compute the samples that an interrupted run has not computed, and damaged ones again; nothing if all are sound.

    Raises InputError if there is no run, if the study file in the folder was changed, if another process works in the
    folder (unless `wait` is set), or if the precision, the device or a version differs from the run's. other_versions =
    True accepts another device or version, but not another precision. trust: run the Python modules of the study;
    progress, cluster: as for `run`; seal: the file with the key, if the run has one.
    """
    store = stores.open_folder(folder, key_of(seal))
    study = read_study(store, trust)
    require_resumable(study, store, other_versions, cluster is None)
    with _writing(store.folder, store.provenance, cluster, wait) as client:
        if not (store.folder / stores.RESULTS).exists():
            stores.allocate(study, store)
        repair_results(study, store)
        return _fill(study, store, progress, client, trust, other_versions)


def require_resumable(study: Study, store: Store, other_versions: bool = False, here: bool = True) -> None:
    """Raises InputError if a run was begun with a key that is not given, or, if it is to go on in this process (here), with
    another precision or, unless these are accepted, on another device or with other versions."""
    stores.require_key(store)
    record = store.provenance
    found = differences(record, provenance(study, store.n, record["block_rows"])) if here else []
    precision = any(d.startswith("precision") for d in found)
    if found and (precision or not other_versions):
        message = "the results would not be of one kind (" + "; ".join(found) + "); continue where the run began"
        if not precision:
            message += (
                f", or accept the difference: `{command('resume', store.folder, '--other-versions', record=record)}`"
            )
        raise InputError(Problem(str(store.folder), message))


@contextmanager
def _writing(folder: Path, record: Provenance, cluster: Any, wait: bool) -> Iterator[Any]:
    """Hold the lock of a run's folder, and yield a client of the cluster, None if no cluster is named. Raises
    InputError if the folder cannot be written."""
    try:
        storage.make(folder)
        with storage.reached(folder), _on(cluster, folder) as client, lock.held(folder, wait):
            yield client
    except OSError as error:
        raise storage.unwritten(folder, error, record) from None


def _on(cluster: Any, folder: Path) -> Any:
    """A context with a client of the cluster, or with None if no cluster is named."""
    if cluster is None:
        return nullcontext()
    if not storage.seen_by_others(folder):
        raise InputError(Problem(str(folder), "can be seen by this process only; use a folder or a bucket"))
    from jaxmbs.study.runs.cluster import connected

    return connected(cluster)


def _fill(
    study: Study, store: Store, progress: Progress, client: Any = None, trust: bool = False, other: bool = False
) -> Store:
    missing = list(store.missing())
    done = store.n - sum(stop - first for first, stop in missing)
    enough = Stopping(study, store, store.arrays()) if "until" in store.provenance else lambda: None
    ended = enough() if missing else None
    for first, stop in missing if ended is None else ():
        store.clear(first, stop)  # remove what an interrupted run left of these chunks
    if missing and ended is None and client is not None:
        from jaxmbs.study.runs.cluster import fill

        progress("compile", done, store.n)

        def told(more: int) -> bool:
            nonlocal done, ended
            done, ended = done + more, enough()
            progress("run", done, store.n)
            return ended is not None

        fill(client, store, missing, told, trust, other)
    elif missing and ended is None:
        from jaxmbs.study.samples.batch import compiled

        progress("compile", done, store.n)
        program = compiled(study, store.provenance["block_rows"])
        arrays = store.arrays()
        pace = _Pace(program, store.chunk_rows // program.rows)
        for first, stop in missing:
            while first < stop:
                progress("run", done, store.n)
                blocks = min(pace.blocks, -(-(stop - first) // program.rows))
                with pace:
                    results = program(first // program.rows, blocks)
                    store.write(arrays, first, store.columns(study, results))
                after = min(first + blocks * program.rows, stop)
                done, first = done + after - first, after
                ended = enough()
                if ended is not None:
                    break
            if ended is not None:
                break
    if ended is not None:
        store = cut(study, store, ended)
        done = store.n
    if missing or not (store.folder / stores.FINISHED).exists():
        store.finish()
    progress("done", done, store.n)
    return store


class _Pace:
    """Number of blocks to compute next: they fill whole zarr chunks, take about PACE seconds, and need only a part of
    the free memory."""

    def __init__(self, program: Compiled, per_chunk: int) -> None:
        self.step = math.lcm(per_chunk, program.devices)  # so no device idles, and no zarr chunk is split
        # every device computes one block at a time; only the results of a chunk stay in memory
        results = sum(x.size * x.dtype.itemsize for x in _leaves(program)) // program.most
        fitting = min(program.most, psutil.virtual_memory().available // (8 * results))
        self.most = max(1, fitting // self.step) * self.step
        self.blocks = self.step

    def __enter__(self) -> None:
        self.begin = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        took = time.perf_counter() - self.begin
        wanted = int(self.blocks * PACE / max(took, 1e-6))
        self.blocks = max(self.step, min(self.most, wanted // self.step * self.step))


def _leaves(program: Compiled) -> list:
    return jax.tree.leaves(program.program.out_info)
