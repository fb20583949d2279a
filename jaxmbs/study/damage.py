"""Whether a run's folder has what was computed: every file, every chunk, every number; and how it is mended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study import storage
from jaxmbs.study import store as stores
from jaxmbs.study.checksums import CHECKSUM, checksums
from jaxmbs.study.columns import Column, column_of
from jaxmbs.study.provenance import FORMAT, intact, salt, sealed
from jaxmbs.study.shell import command
from jaxmbs.study.store import FINISHED, NOT_RUN, PROVENANCE, RESULTS, STUDY, Store

if TYPE_CHECKING:
    from jaxmbs.study.problem import Study

_SPAN = 100_000  # samples that are read at once
_TOLD = 12


@dataclass(frozen=True)
class Damage:
    """One thing that is not as it was written: file, what is wrong with it, and the samples first ... stop - 1 that it
    concerns (none: first = stop)."""

    file: str
    what: str
    first: int = 0
    stop: int = 0

    def __str__(self) -> str:
        samples = f" (samples {self.first} to {self.stop - 1})" if self.stop > self.first else ""
        return f"{self.file}: {self.what}{samples}"


def damage(study: Study, store: Store) -> list[Damage]:
    """Everything that is damaged in the results of a run."""
    broken = _broken(study, store)
    if broken:  # nothing can be read by it
        return broken
    return list(_chunks(store))


def require_sound(study: Study, store: Store) -> None:
    """Raises InputError that names what is damaged."""
    found = damage(study, store)
    if found:
        problems = [Problem(str(store.folder / d.file), str(d).partition(": ")[2]) for d in found[:_TOLD]]
        more = f"and {len(found) - _TOLD} more; " if len(found) > _TOLD else ""
        again = command("resume", store.folder, record=store.provenance)
        remedy = f"{more}the results are damaged; `{again}` computes anew what is"
        raise InputError([*problems, Problem(str(store.folder), remedy)])


def mend_results(study: Study, store: Store) -> list[Damage]:
    """Put metadata back and forget what is damaged, so that it is computed anew. Returns what was found."""
    found = mend_metadata(study, store)
    lost = list(_chunks(store))
    for d in lost:
        store.clear(d.first, d.stop)
    if any(d.file == FINISHED for d in lost):
        (store.folder / FINISHED).unlink(missing_ok=True)
    return found + lost


def mend_metadata(study: Study, store: Store) -> list[Damage]:
    """Put back what tells of the arrays. Returns what was found."""
    found = _broken(study, store)
    for path, content in stores.metadata(study, store).items() if found else ():
        target = store.folder / RESULTS / path
        storage.make(target.parent)
        storage.write_whole(target, content)
    return found


def cut(study: Study, store: Store, n: int) -> Store:
    """End a run after n samples, whole chunks of them: what was computed beyond is forgotten."""
    if n < store.n:
        store.clear(n, store.n)
        shorter = Store(store.folder, sealed(store.provenance | {"n": n, "most": store.n}))
        storage.write_whole(store.folder / PROVENANCE, json.dumps(shorter.provenance, indent=2).encode())
        mend_metadata(study.of_size(n), shorter)  # which `resume` does, should this be interrupted
        store = shorter
    return store


# --- metadata -------------------------------------------------------------------------------------------------------


def _broken(study: Study, store: Store) -> list[Damage]:
    """What is wrong with the metadata. Raises InputError where it is that of another version."""
    found = list(_metadata(study, store))
    if found and store.provenance.get("format", 1) != FORMAT:
        raise stores.other_version(store.folder, store.provenance)
    return found


def _metadata(study: Study, store: Store) -> Iterator[Damage]:
    for path, content in stores.metadata(study, store).items():
        file = store.folder / RESULTS / path
        try:
            if json.loads(file.read_bytes()) != json.loads(content):
                yield Damage(f"{RESULTS}/{path}", "the metadata is not what was written")
        except OSError:
            yield Damage(f"{RESULTS}/{path}", "the metadata is missing")
        except ValueError:
            yield Damage(f"{RESULTS}/{path}", "the metadata cannot be read")


# --- chunks ---------------------------------------------------------------------------------------------------------


def _chunks(store: Store) -> Iterator[Damage]:
    arrays, rows = store.arrays(), store.chunk_rows
    there = {name: store.chunks(name) for name in arrays}
    try:
        finished = store.finished()
    except (ValueError, OSError):
        finished = None
        yield Damage(FINISHED, "cannot be read")
    per_span = max(1, _SPAN // rows) * rows
    mark, sound = 0, True
    for first in range(0, store.n, per_span):
        stop = min(first + per_span, store.n)
        of_all = np.zeros(stop - first, np.uint32)
        for d in _span(store, arrays, there, first, stop, finished is not None, of_all):
            sound = False
            yield d
        mark = stores.marked(mark, of_all)
    if finished and sound and finished != {"samples": store.n, "fingerprint": f"{mark:08x}"}:
        yield Damage(FINISHED, "is not of these results")


def _span(
    store: Store, arrays: Mapping[str, Any], there: Mapping[str, set[int]], first: int, stop: int, all_run: bool,
    of_all: np.ndarray,
) -> Iterator[Damage]:  # fmt: skip
    """What is damaged in the samples first ... stop - 1, whole chunks; their checksums go into of_all."""
    rows = store.chunk_rows
    unread: dict[tuple[str, int], str] = {}
    values = {name: _read(x, name, first, stop, rows, unread) for name, x in arrays.items()}
    status = values["status"]
    for begin in range(first, stop, rows):
        end, number = min(begin + rows, stop), begin // rows
        own = slice(begin - first, end - first)
        run = status[own] != NOT_RUN
        expected = bool(run.any()) or all_run
        found = []
        for name in arrays:
            file = _file(name, number, arrays[name].ndim)
            if (name, number) in unread:
                found.append(Damage(file, unread[name, number], begin, end))
            elif expected and number not in there[name]:
                found.append(Damage(file, "the chunk is missing", begin, end))
        if not found and all_run and not run.all():
            found.append(Damage(_file("status", number, 1), "samples of a finished run are not there", begin, end))
        if not found and run.any():
            content = {name: x[own] for name, x in values.items() if name != CHECKSUM}
            right = checksums(content, begin, salt(store.provenance)) == values[CHECKSUM][own]
            of_all[own] = values[CHECKSUM][own]
            wrong = np.flatnonzero(run & ~right)
            if len(wrong):
                what = f"numbers of {len(wrong)} samples are not those that were computed, the first of sample"
                found.append(Damage(RESULTS, f"{what} {begin + int(wrong[0])}", begin, end))
        yield from found


def _file(name: str, number: int, dimensions: int) -> str:
    return "/".join((RESULTS, name, "c", str(number), *["0"] * (dimensions - 1)))


def _read(array: Any, name: str, first: int, stop: int, rows: int, unread: dict[tuple[str, int], str]) -> np.ndarray:
    """Values of a span; chunks that cannot be read are noted and filled up."""
    try:
        return array[first:stop]
    except Exception:  # codecs raise what they like; which chunk it is, is found one by one
        out = np.full((stop - first, *array.shape[1:]), array.fill_value, array.dtype)
        for begin in range(first, stop, rows):
            end = min(begin + rows, stop)
            try:
                out[begin - first : end - first] = array[begin:end]
            except Exception as error:
                checksum = "checksum" in str(error).lower()
                unread[name, begin // rows] = "the checksum is wrong" if checksum else "the chunk cannot be read"
        return out


# --- the whole folder -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Examination:
    """What `jaxmbs verify` finds: samples in all and done, damage, what was put back, size of the files [byte]."""

    folder: Path
    samples: int
    done: int
    fingerprint: str | None
    damage: tuple[Damage, ...]
    mended: tuple[str, ...]
    size: int

    @property
    def sound(self) -> bool:
        return not self.damage

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self) | {"folder": str(self.folder), "sound": self.sound}


def examined(folder: str | Path, mend: bool = False, trust: bool = False) -> Examination:
    """What a run's folder has and what is damaged in it.

    mend: put back study file, modules, provenance and metadata; a study file that was changed is kept as NAME.found.
    Damaged samples are for `resume`. Raises InputError where there is no run, or nothing that it can be known by.
    """
    folder = storage.place(folder)
    with storage.reached(folder):
        return _examined(folder, mend, trust)


def _examined(folder: Path, mend: bool, trust: bool) -> Examination:
    mended: list[str] = []
    texts = [] if mend else list(_texts(folder))
    if mend:
        mended += _put_back(folder)
    if texts:
        return Examination(folder, 0, 0, None, tuple(texts), (), storage.size(folder))
    store = stores.open_folder(folder)
    study = stores.read_study(store, trust)
    if not (folder / RESULTS).exists():
        lost = (Damage(RESULTS, "is missing, and the run was finished"),) if (folder / FINISHED).exists() else ()
        return Examination(folder, store.n, 0, None, lost, tuple(mended), storage.size(folder))
    if mend:
        mended += [d.file for d in mend_metadata(study, store)]
    found = damage(study, store)
    done, mark = 0, None
    if not any("metadata" in d.what for d in found):
        arrays, all_of = store.arrays(), ((0, store.n),)
        status = Column(lambda a, b: _read(arrays["status"], "status", a, b, store.chunk_rows, {}), all_of)
        done = sum(int(np.count_nonzero(part != NOT_RUN)) for part in status.parts())
        if not found and done == store.n:
            mark = stores.fingerprint(column_of(arrays[CHECKSUM], all_of).parts())
    return Examination(folder, store.n, done, mark, tuple(found), tuple(mended), storage.size(folder))


def _texts(folder: Path) -> Iterator[Damage]:
    """What is wrong with provenance, study file and modules."""
    record = _json(folder / PROVENANCE)
    stores.require_digest(folder, record)
    if not intact(record):
        if record is None and not (folder / RESULTS).exists() and not (folder / PROVENANCE).exists():
            stores.open_folder(folder)  # says that there is no run
        yield Damage(PROVENANCE, f"is missing or damaged; {stores.mending(folder, record)}")
        return
    for name in stores.changed_files(folder, record):
        yield Damage(name, f"is missing or was changed; {stores.mending(folder, record)}")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def _put_back(folder: Path) -> Iterator[str]:
    """Write provenance, study file and modules from their copies in the results, where they are not as they were."""
    root = _json(folder / RESULTS / "zarr.json")
    attributes = root.get("attributes", {}) if isinstance(root, dict) else {}
    record = _json(folder / PROVENANCE)
    if not intact(record):
        record = _parsed(attributes.get("provenance"))
        if not intact(record):
            if not (folder / RESULTS).exists():
                stores.open_folder(folder)
            message = "is damaged, and so is its copy in the results; what was run cannot be known from this folder"
            raise InputError(Problem(str(folder / PROVENANCE), message))
        storage.write_whole(folder / PROVENANCE, json.dumps(record, indent=2).encode())
        yield PROVENANCE
    copies, hashes = _parsed(attributes.get("files")) or {}, {STUDY: record["file_sha256"]} | record.get("modules", {})
    for name in list(stores.changed_files(folder, record)):
        content = str(copies.get(name, "")).encode()
        if hashlib.sha256(content).hexdigest() != hashes[name]:
            message = "is damaged, and so is its copy in the results; put the file back with which the run began"
            raise InputError(Problem(str(folder / name), message))
        if (folder / name).exists():
            storage.write_whole(folder / f"{name}.found", (folder / name).read_bytes())
        storage.write_whole(folder / name, content)
        yield name


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None
