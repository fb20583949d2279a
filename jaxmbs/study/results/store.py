"""A run: results.zarr, the study file and the provenance, in a folder or at an address.

Modules that are slow to import, or that show a run in a notebook, are imported where they are used, so that a command
that refuses its input does so at once.
"""

from __future__ import annotations

import functools
import itertools
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.names import file_in
from jaxmbs.study.folder import storage
from jaxmbs.study.folder.checksums import CHECKSUM, checksums
from jaxmbs.study.folder.layout import DRAWS, FILES, KIND, Labels, kind
from jaxmbs.study.folder.layout import FINISHED as FINISHED
from jaxmbs.study.folder.layout import PROVENANCE as PROVENANCE
from jaxmbs.study.folder.layout import RESULTS as RESULTS
from jaxmbs.study.folder.layout import STUDY as STUDY
from jaxmbs.study.folder.layout import files as files_in
from jaxmbs.study.folder.layout import labels as labels_of
from jaxmbs.study.folder.layout import starting as starting_in
from jaxmbs.study.folder.lock import held, holder
from jaxmbs.study.folder.seal import SEAL, contents, same, sealed_with
from jaxmbs.study.folder.shell import command
from jaxmbs.study.folder.storage import write_whole
from jaxmbs.study.outputs.folding import AT_START
from jaxmbs.study.results.arrays import NOT_RUN as NOT_RUN
from jaxmbs.study.results.arrays import metadata as metadata
from jaxmbs.study.results.arrays import require_codecs
from jaxmbs.study.results.columns import column_of
from jaxmbs.study.results.described import changed_files
from jaxmbs.study.results.provenance import DIGEST, Provenance, fault, intact, salt, unsealed

if TYPE_CHECKING:
    import pandas
    import xarray

    from jaxmbs.study.problem.study import Study

_TOGETHER = 64  # at most this many chunks are read at once


@dataclass(frozen=True)
class Store:
    """Access to a run's folder, or to a run at an address (`jaxmbs.study.folder.storage`). provenance: its record; key:
    the key of its seal, if given."""

    folder: Path
    provenance: Provenance
    key: bytes | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        return self.provenance["n"]

    @property
    def chunk_rows(self) -> int:
        return self.provenance["chunk_rows"]

    @property
    def files(self) -> Path:
        """The folder of the study's modules and data."""
        return files_in(self.folder, self.provenance)

    def labels(self, study: Study) -> Labels:
        """Names of outputs and draws in the results."""
        return labels_of(study, kind(self.provenance))

    def starting(self, study: Study) -> tuple[str, ...]:
        """The outputs that are extremes counted from the start; for these, AT_START records in each sample whether the
        extreme is the value at the start."""
        return starting_in(study, kind(self.provenance))

    def arrays(self) -> dict[str, Any]:
        """Variables of the results by their labels."""
        import zarr

        require_codecs(self.folder, self.provenance)
        # empty chunks are written too, so that a chunk that is missing must have been lost
        zarr.config.set({"array.write_empty_chunks": True})
        group = zarr.open_group(
            storage.for_zarr(self.folder / RESULTS), mode="r+", zarr_format=3, use_consolidated=True
        )
        return dict(group.arrays())

    def read(self, names: Iterable[str], samples: slice | Sequence[int] = slice(None)) -> dict[str, np.ndarray]:
        """Values of the variables `names`, by name, in all or some `samples`: in a tenth of the time that `dataset` takes to
        open and read them."""
        arrays = self.arrays()
        return {name: arrays[name].oindex[samples] for name in names}

    def outputs(self, study: Study, samples: slice | Sequence[int] = slice(None)) -> dict[str, np.ndarray]:
        """(m,) values of every output of the run's study, by its name, in all or some `samples`."""
        found = self.labels(study).outputs
        read = self.read(found.values(), samples)
        return {name: read[label] for name, label in found.items()}

    def draws(self, study: Study, samples: slice | Sequence[int] = slice(None)) -> dict[str, np.ndarray]:
        """(m, k) draws of every dispersion of the run's study, by its name, in all or some `samples`."""
        found, items = self.labels(study).draws, study.dispersions.items
        read = self.read(found.values(), samples)
        return {d.name: read[found[d.name]].reshape(-1, d.k) for d in items}

    def columns(self, study: Study, results: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The `results` of a batch of the run's study, as variables of the store."""
        own, there = labels_of(study), self.labels(study)
        again = {label: there.outputs[name] for name, label in own.outputs.items()}
        unknown = {DRAWS} if self.starting(study) else {DRAWS, AT_START}  # labels that are not variables of this run
        flat = {again.get(label, label): x for label, x in results.items() if label not in unknown}
        flat |= {there.draws[name]: x for name, x in study.dispersions.split(results[DRAWS]).items()}
        return {label: x[:, 0] if x.shape[1:] == (1,) else x for label, x in flat.items()}

    def dataset(self) -> xarray.Dataset:
        """The results; each variable is read when it is needed."""
        import xarray

        require_codecs(self.folder, self.provenance)
        # chunks=None avoids arrays of Dask, even if it is installed
        return xarray.open_zarr(storage.for_zarr(self.folder / RESULTS), chunks=None, zarr_format=3, consolidated=True)

    def to_dataframe(self) -> pandas.DataFrame:
        """The results as a table, one row per sample; components of a draw are columns NAME[0], NAME[1] and so on."""
        import pandas

        found = {}
        for name, x in self.dataset().data_vars.items():
            values = x.values
            if values.ndim == 1:
                found[name] = values
            else:
                found |= {f"{name}[{k}]": values[:, k] for k in range(values.shape[1])}
        return pandas.DataFrame(found, index=pandas.RangeIndex(self.n, name="sample"))

    def _repr_html_(self) -> str:
        from jaxmbs.study.reports.notebook import run_html

        return run_html(self)

    def status(self) -> np.ndarray:
        """(n,) status of every sample, NOT_RUN if it has not been computed."""
        return self.arrays()["status"][:]

    def missing(self) -> Iterator[tuple[int, int]]:
        """(first, stop) of every contiguous range of samples whose zarr chunks are not complete."""
        rows, status = self.chunk_rows, self.arrays()["status"]
        open_chunks = itertools.chain.from_iterable(
            np.logical_or.reduceat(part == NOT_RUN, range(0, len(part), rows))
            for part in (status[i : i + _TOGETHER * rows] for i in range(0, self.n, _TOGETHER * rows))
        )
        first = None
        for i, is_open in enumerate(itertools.chain(open_chunks, [False])):
            if is_open and first is None:
                first = i
            elif not is_open and first is not None:
                yield first * rows, min(i * rows, self.n)
                first = None

    def write(self, arrays: Mapping[str, Any], first: int, results: Mapping[str, np.ndarray]) -> None:
        """Write whole zarr chunks from sample `first` on. The status is written last: it shows that the other
        variables are there."""
        stop = min(first + len(results["status"]), self.n)
        own = {name: x[: stop - first] for name, x in results.items()}
        own[CHECKSUM] = checksums(own, first, salt(self.provenance))
        for name in sorted(own, key=lambda name: name == "status"):
            arrays[name][first:stop] = own[name]

    def chunks(self, name: str) -> set[int]:
        """Numbers of the chunks of a variable that exist."""
        return {int(x) for x in storage.names(self.folder / RESULTS / name / "c") if x.isdecimal()}

    def clear(self, first: int, stop: int) -> None:
        """Remove the chunks of the samples first ... stop - 1, their status first."""
        (self.folder / FINISHED).unlink(missing_ok=True)
        wanted = range(first // self.chunk_rows, -(-stop // self.chunk_rows))
        for name in sorted(storage.names(self.folder / RESULTS), key=lambda name: name != "status"):
            for number in sorted(self.chunks(name).intersection(wanted)):
                storage.remove(self.folder / RESULTS / name / "c" / str(number))

    def finish(self) -> None:
        """Write the note that the run is finished (finished.json): the number of samples, a fingerprint of all samples
        and, if there is a key, a seal."""
        found: dict[str, Any] = {
            "samples": self.n,
            "fingerprint": fingerprint(column_of(self.arrays()[CHECKSUM], ((0, self.n),)).parts()),
        }
        if self.key is not None:
            found["contents"] = self.contents()
            found[SEAL] = sealed_with(self.key, self._noted(found))
        write_whole(self.folder / FINISHED, json.dumps(found).encode())

    def contents(self) -> str:
        """SHA-256 of all numbers of the results."""
        parts = ((name, column_of(x, ((0, self.n),))) for name, x in sorted(self.arrays().items()))
        return contents(piece for name, x in parts for piece in (name.encode(), *(p.tobytes() for p in x.parts())))

    def note_fault(self) -> str:
        """Why the note that the run is finished, or the numbers that its seal covers, are not what was sealed; "" if
        they are, if there is no note, or without a key."""
        found = self.finished()
        if self.key is None or found is None:
            return ""
        if not same(found.get(SEAL), self.key, self._noted(found)):
            return "was not sealed with this key, or was changed since"
        changed = "does not belong to these results, which were changed since"
        return "" if found["contents"] == self.contents() else changed

    def _noted(self, found: Mapping[str, Any]) -> bytes:
        said = {k: x for k, x in found.items() if k != SEAL}
        return json.dumps([self.provenance[DIGEST], said], sort_keys=True).encode()

    def finished(self) -> dict[str, Any] | None:
        """The note that `finish` wrote; None if there is none. Raises ValueError if it cannot be read."""
        path = self.folder / FINISHED
        if not path.exists():
            return None
        found = json.loads(path.read_bytes())
        wanted = {"samples", "fingerprint"}
        if not isinstance(found, dict) or set(found) not in (wanted, {*wanted, "contents", SEAL}):
            raise ValueError(f"{FINISHED} is damaged")
        return found


def fingerprint(checksums_of_all: Iterable[np.ndarray]) -> str:
    """One number for all samples of a run, computed from their checksums, which are passed part by part; a change of a
    single bit changes it."""
    return f"{functools.reduce(marked, checksums_of_all, 0):08x}"


def marked(mark: int, part: np.ndarray) -> int:
    """Running checksum of all samples so far: `mark` extended by `part`."""
    return zlib.crc32(np.ascontiguousarray(part).tobytes(), mark)


def create(study: Study, folder: Path, record: Provenance, key: bytes | None = None) -> Store:
    """Create the folder of a new run. Raises InputError if there is a run already: results are never overwritten."""
    require_empty(folder)
    try:
        storage.make(folder)
        write_whole(folder / STUDY, study.content)
        store = Store(folder, record, key)
        if study.files:
            storage.make(store.files)
        for name, content in study.files.items():
            write_whole(file_in(store.files, name, str(folder)), content)
        write_whole(folder / PROVENANCE, json.dumps(record, indent=2).encode())
        allocate(study, store)
    except OSError as error:
        raise storage.unwritten(folder, error, record) from None
    return store


def require_empty(folder: Path) -> None:
    """Raises InputError if the folder contains what a run would write."""
    for name in (RESULTS, PROVENANCE):
        if (folder / name).exists():
            message = f"has results already; continue them with `{command('resume', folder)}`, or choose another folder"
            raise InputError(Problem(str(folder), message))
    for name in (STUDY, FILES):
        if (folder / name).exists():
            message = "does not belong to a run, and would be overwritten; choose another folder"
            raise InputError(Problem(str(folder / name), message))
    storage.require_own(folder)


def require_results(study: Study, store: Store) -> None:
    """Lay out the results if nothing has been run yet. Raises InputError if they are lost, or if another process holds
    the folder."""
    if (store.folder / RESULTS).exists():
        return
    if (store.folder / FINISHED).exists():
        again = command("resume", store.folder, record=store.provenance)
        message = f"is missing although the run was finished; `{again}` computes it again"
        raise InputError(Problem(str(store.folder / RESULTS), message))
    with held(store.folder):
        if not (store.folder / RESULTS).exists():
            allocate(study, store)


def require_key(store: Store) -> None:
    """Raises InputError if a run was started with a key, and would go on without one."""
    if SEAL in store.provenance and store.key is None:
        message = "was begun with a key, and can continue only with the same key; name its file with --seal KEYFILE"
        raise InputError(Problem(str(store.folder), message))


def allocate(study: Study, store: Store) -> None:
    """Lay out results.zarr, without any chunk yet, so every sample is "not run". In a local folder it appears as a
    whole or not at all."""
    (store.folder / FINISHED).unlink(missing_ok=True)
    with storage.appearing(store.folder / RESULTS) as there:
        for path, content in metadata(study, store).items():
            storage.make((there / path).parent)
            write_whole(there / path, content)


def open_folder(folder: str | Path, key: bytes | None = None) -> Store:
    """An existing run. Raises InputError if there is none, or if its record or study file have changed; with a key,
    also if the record is not what was sealed with it."""
    folder = storage.place(folder)
    with storage.reached(folder):
        storage.require_own(folder)
        return _opened(folder, key)


def record_in(path: Path) -> tuple[Any, str]:
    """A run's record, None if there is none that can be read; and what is wrong with it, "" if nothing is.

    Raises InputError for a record of another version.
    """
    try:
        record = json.loads(path.read_bytes())
    except OSError:
        return None, "is missing"
    except (ValueError, RecursionError):
        return None, "is damaged"
    require_version(path.parent, record)
    if not isinstance(record, dict):
        return None, "is damaged"
    wrong = fault(record)
    return record, f"is not the record of a run: {wrong}" if wrong else "" if intact(record) else "is damaged"


def _opened(folder: Path, key: bytes | None) -> Store:
    record, wrong = record_in(folder / PROVENANCE)
    if wrong:
        require_run(folder)
        raise InputError(Problem(str(folder / PROVENANCE), f"{wrong}; {repairing(folder, record)}"))
    if key is not None and (wrong := unsealed(record, key)):
        raise InputError(Problem(str(folder / PROVENANCE), wrong))
    changed = list(changed_files(folder, record))
    if changed:
        message = f"was changed since the run began and does not describe the results; {repairing(folder, record)}"
        raise InputError([Problem(str(path), message) for _, path in changed])
    return Store(folder, record, key)


def repairing(folder: Path, record: Any) -> str:
    """Text that explains how to restore a file of which the results have a copy."""
    return f"`{command('verify', folder, '--repair', record=record)}` restores it from its copy in the results"


def require_run(folder: Path) -> None:
    """Raises InputError if the folder contains no run."""
    if not (folder / PROVENANCE).exists() and not (folder / RESULTS).exists():
        who = holder(folder)
        message = (
            f"is being started by {who}"
            if who
            else "there is no study here; start one with `jaxmbs study FILE -n N --out DIR`"
        )
        raise InputError(Problem(str(folder), message))


def require_version(folder: Path, record: Any) -> None:
    """Raises InputError for a record that this version cannot read."""
    of_run = isinstance(record, dict) and isinstance(record.get("versions"), dict)
    if of_run and (DIGEST not in record or not isinstance(kind(record), int) or kind(record) > KIND):
        raise other_version(folder, record)


def other_version(folder: Path, record: Provenance) -> InputError:
    """Error for a run that is laid out differently from those of this version."""
    then, now = record["versions"].get("jaxmbs", "unknown"), version("jaxmbs")
    message = (
        f"is a run of jaxmbs {then}, whose results have a different layout (kind {kind(record)}, here up to {KIND}); "
        f"nothing is damaged: read it with that version, or compute it again with {now}: "
        + command("study", folder / STUDY, "-n", record.get("n", "N"), "--out", "NEW", record=record)
    )
    return InputError(Problem(str(folder), message))
