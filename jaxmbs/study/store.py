"""A run: results.zarr, the study file and where it all comes from, in a folder or at an address."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.simulate.status import Status
from jaxmbs.study import storage
from jaxmbs.study.checksums import CHECKSUM, checksums
from jaxmbs.study.columns import column_of
from jaxmbs.study.outputs.folding import AT_START, EVENT_COUNTS, EVENT_TIMES, at_their_start
from jaxmbs.study.provenance import DIGEST, FORMAT, Provenance, intact, salt
from jaxmbs.study.shell import command
from jaxmbs.study.storage import write_whole
from jaxmbs.study.units import si

if TYPE_CHECKING:
    import pandas
    import xarray

    from jaxmbs.study.problem import Study

RESULTS, STUDY, PROVENANCE, FINISHED = "results.zarr", "study.toml", "provenance.json", "finished.json"
NOT_RUN = int(Status.NOT_RUN)
DRAWS = "draws"  # (rows, k), all dispersions side by side
_TOGETHER = 64  # chunks that are read at once


@dataclass(frozen=True)
class Store:
    """Access to a run's folder, or to what lies at its address (see `jaxmbs.study.storage`)."""

    folder: Path
    provenance: Provenance

    @property
    def n(self) -> int:
        return self.provenance["n"]

    @property
    def chunk_rows(self) -> int:
        return self.provenance["chunk_rows"]

    def arrays(self) -> dict[str, Any]:
        import zarr

        # a chunk that is not there is lost, not empty
        zarr.config.set({"array.write_empty_chunks": True})
        group = zarr.open_group(storage.for_zarr(self.folder / RESULTS), mode="r+")
        return dict(group.arrays())

    def read(self, names: Iterable[str], samples: slice | Sequence[int] = slice(None)) -> dict[str, np.ndarray]:
        """Values of some variables, by name. It takes a tenth of the time in which `dataset` opens and does so."""
        arrays = self.arrays()
        return {name: arrays[name].oindex[samples] for name in names}

    def dataset(self) -> xarray.Dataset:
        """The results, each read when it is asked for."""
        import xarray

        # not arrays of Dask, where that is installed
        return xarray.open_zarr(storage.for_zarr(self.folder / RESULTS), chunks=None)

    def to_dataframe(self) -> pandas.DataFrame:
        """The results as a table, one row per sample; components of a draw are columns NAME[0], NAME[1], ..."""
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
        from jaxmbs.study.notebook import run_html

        return run_html(self)

    def status(self) -> np.ndarray:
        """(n,) status of every sample, NOT_RUN where it has not been computed."""
        return self.arrays()["status"][:]

    def missing(self) -> Iterator[tuple[int, int]]:
        """(first, last + 1) of every run of zarr chunks that are not complete, in samples."""
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
        """Write whole zarr chunks from sample `first` on. status comes last: it says that the others are there."""
        stop = min(first + len(results["status"]), self.n)
        own = {name: x[: stop - first] for name, x in results.items()}
        own[CHECKSUM] = checksums(own, first, salt(self.provenance))
        for name in sorted(own, key=lambda name: name == "status"):
            arrays[name][first:stop] = own[name]

    def chunks(self, name: str) -> set[int]:
        """Numbers of the chunks of a variable that are there."""
        return {int(x) for x in storage.names(self.folder / RESULTS / name / "c") if x.isdecimal()}

    def clear(self, first: int, stop: int) -> None:
        """Forget the chunks of samples first ... stop - 1, their status before all else."""
        (self.folder / FINISHED).unlink(missing_ok=True)
        wanted = range(first // self.chunk_rows, -(-stop // self.chunk_rows))
        for name in sorted(storage.names(self.folder / RESULTS), key=lambda name: name != "status"):
            for number in sorted(self.chunks(name).intersection(wanted)):
                storage.remove(self.folder / RESULTS / name / "c" / str(number))

    def finish(self) -> None:
        """Note that every sample is there, with one number for all of them."""
        found = {
            "samples": self.n,
            "fingerprint": fingerprint(column_of(self.arrays()[CHECKSUM], ((0, self.n),)).parts()),
        }
        write_whole(self.folder / FINISHED, json.dumps(found).encode())

    def finished(self) -> dict[str, Any] | None:
        """What `finish` noted; None where it did not. Raises ValueError where it cannot be read."""
        path = self.folder / FINISHED
        if not path.exists():
            return None
        found = json.loads(path.read_bytes())
        if not isinstance(found, dict) or set(found) != {"samples", "fingerprint"}:
            raise ValueError(f"{FINISHED} is damaged")
        return found


def fingerprint(checksums_of_all: Iterable[np.ndarray]) -> str:
    """One number for all samples of a run, whose checksums come part by part; another bit anywhere gives another one."""
    return f"{functools.reduce(marked, checksums_of_all, 0):08x}"


def marked(mark: int, part: np.ndarray) -> int:
    """The mark of all samples so far."""
    return zlib.crc32(np.ascontiguousarray(part).tobytes(), mark)


def columns(study: Study, results: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Results of a batch as the variables of the store."""
    draws = study.dispersions.split(results[DRAWS])
    flat = {**{name: x for name, x in results.items() if name != DRAWS}, **draws}
    return {name: x[:, 0] if x.shape[1:] == (1,) else x for name, x in flat.items()}


def create(study: Study, folder: Path, record: Provenance) -> Store:
    """A new run's folder. Raises InputError where one is there already: results are never overwritten."""
    require_empty(folder)
    try:
        storage.make(folder)
        write_whole(folder / STUDY, study.content)
        for name, content in study.files.items():
            write_whole(folder / name, content)
        write_whole(folder / PROVENANCE, json.dumps(record, indent=2).encode())
        store = Store(folder, record)
        allocate(study, store)
    except OSError as error:
        raise InputError(Problem(str(folder), f"cannot be written: {error.strerror}; choose another folder")) from None
    return store


def require_empty(folder: Path) -> None:
    """Raises InputError where the folder has what a run would write."""
    for name in (RESULTS, PROVENANCE):
        if (folder / name).exists():
            message = f"has results already; continue them with `{command('resume', folder)}`, or choose another folder"
            raise InputError(Problem(str(folder), message))
    if (folder / STUDY).exists():
        message = "is not of a run, and would be overwritten; choose another folder"
        raise InputError(Problem(str(folder / STUDY), message))


def require_results(study: Study, store: Store) -> None:
    """Lay the results out where nothing was run yet. Raises InputError where they are lost."""
    if (store.folder / RESULTS).exists():
        return
    if (store.folder / FINISHED).exists():
        again = command("resume", store.folder, record=store.provenance)
        message = f"is missing, and the run was finished; `{again}` computes it anew"
        raise InputError(Problem(str(store.folder / RESULTS), message))
    allocate(study, store)


def allocate(study: Study, store: Store) -> None:
    """Lay out results.zarr in full, every status "not run". It appears at once, or not at all."""
    (store.folder / FINISHED).unlink(missing_ok=True)
    with storage.appearing(store.folder / RESULTS) as there:
        for path, content in metadata(study, store).items():
            storage.make((there / path).parent)
            write_whole(there / path, content)


def metadata(study: Study, store: Store) -> dict[str, bytes]:
    """The metadata files of results.zarr by path; the one that tells of all others is the last."""
    from zarr.storage import MemoryStore

    files: dict[str, Any] = {}
    lay_out(study, store, MemoryStore(files))
    return {path: files[path].to_bytes() for path in sorted(files, key=lambda path: (path.count("/") == 0, path))}


def lay_out(study: Study, store: Store, where: Any) -> None:
    """Write the metadata of results.zarr: a group that tells of itself, and its arrays."""
    import zarr
    from zarr.codecs import Crc32cCodec, ZstdCodec

    files = {STUDY: study.content, **study.files}
    record = {
        "study": study.model.name,
        "seed": study.seed,
        "file_sha256": study.sha256,
        "provenance": json.dumps(store.provenance),
        "files": json.dumps({name: content.decode(errors="replace") for name, content in files.items()}),
    }
    group = zarr.create_group(where, zarr_format=3, attributes=record)
    n, rows, dtype = store.n, store.chunk_rows, np.dtype(store.provenance["precision"])

    def add(name: str, attributes: Mapping[str, Any], size: int = 1, kind: Any = dtype, fill: Any = np.nan) -> None:
        tail, dims = ((size,), [f"component_{size}"]) if size > 1 else ((), [])
        group.create_array(
            name, shape=(n, *tail), chunks=(rows, *tail), dtype=kind, fill_value=fill,
            compressors=[ZstdCodec(level=0), Crc32cCodec()], dimension_names=["sample", *dims],
            attributes=dict(attributes),
        )  # fmt: skip

    for name, quantity in study.quantities.items():
        add(name, {"units": si(quantity).name, "long_name": name.replace("_", " ")})
    add("energy_error", {"units": "J", "long_name": "error of the energy balance"})
    add("constraint_error", {"long_name": "violation of the constraints"})
    for d in study.dispersions.items:
        unit = si(d.quantity).name if d.quantity else "SI"
        add(d.name, {"units": unit, "applied": d.apply, "target": d.target.name}, size=d.k)
    if study.model.event_names:
        told = {"events": list(study.model.event_names)}
        count = len(study.model.event_names)
        add(EVENT_COUNTS, {"long_name": "how often each event happened", **told}, count, np.int32, -1)
        add(EVENT_TIMES, {"units": "s", "long_name": "when each event happened first", **told}, count)
    if names := at_their_start(study.outputs):
        told = {"long_name": "whether each output is its value at the start", "outputs": list(names)}
        add(AT_START, told, len(names), np.int32, -1)
    add("status", {"long_name": "status", **flags()}, kind=np.int32, fill=NOT_RUN)
    add(CHECKSUM, {"long_name": "checksum of the sample's numbers"}, kind=np.uint32, fill=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # consolidated metadata is not in zarr's specification yet; xarray wants it
        zarr.consolidate_metadata(where)


def flags() -> dict[str, Any]:
    """What the numbers in `status` mean, as CF attributes."""
    return {"flag_values": [int(s) for s in Status], "flag_meanings": " ".join(s.name.lower() for s in Status)}


def open_folder(folder: str | Path) -> Store:
    """An existing run. Raises InputError where there is none, or where its record or study file are not as they were."""
    folder = storage.place(folder)
    with storage.reached(folder):
        return _opened(folder)


def _opened(folder: Path) -> Store:
    path = folder / PROVENANCE
    try:
        record = json.loads(path.read_bytes())
    except OSError:
        record = None
        if not (folder / RESULTS).exists():
            message = "there is no study here; start one with `jaxmbs study FILE -n N --out DIR`"
            raise InputError(Problem(str(folder), message)) from None
    except ValueError:
        record = None
    require_digest(folder, record)
    if record is None or not intact(record):
        what = "is damaged" if path.exists() else "is missing"
        raise InputError(Problem(str(path), f"{what}; {mending(folder, record)}"))
    changed = list(changed_files(folder, record))
    if changed:
        message = f"was changed since the run began and does not describe the results; {mending(folder, record)}"
        raise InputError([Problem(str(folder / name), message) for name in changed])
    return Store(folder, record)


def mending(folder: Path, record: Any) -> str:
    """How to put back what a run's folder has a copy of."""
    return f"`{command('verify', folder, '--mend', record=record)}` puts it back from its copy in the results"


def require_digest(folder: Path, record: Any) -> None:
    """Raises InputError for a record of the versions that had no digest yet."""
    if isinstance(record, dict) and DIGEST not in record and "versions" in record:
        raise other_version(folder, record)


def other_version(folder: Path, record: Provenance) -> InputError:
    """Of a run that is laid out as this version does not."""
    then, now = record["versions"].get("jaxmbs", "unknown"), version("jaxmbs")
    message = (
        f"is a run of jaxmbs {then}, whose results are laid out otherwise (kind {record.get('format', 1)}, here {FORMAT}): "
        f"nothing is damaged; read it with that version, or compute it anew with {now}: "
        + command("study", folder / STUDY, "-n", record.get("n", "N"), "--out", "NEW", record=record)
    )
    return InputError(Problem(str(folder), message))


def read_study(store: Store, trust: bool = False) -> Study:
    """The study of a run, with its number of samples."""
    from jaxmbs.study.problem import read

    with storage.at_hand(store.folder, (STUDY, *store.provenance.get("modules", {}))) as here:
        try:
            return read(here / STUDY, trust=trust).of_size(store.n)
        except InputError as error:
            raise InputError(error.problems, store.folder / STUDY) from None


def changed_files(folder: Path, record: Provenance) -> Iterator[str]:
    """The study file, modules and data that are missing or not as the run found them."""
    for name, wanted in ({STUDY: record["file_sha256"]} | record.get("modules", {})).items():
        path = folder / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != wanted:
            yield name
