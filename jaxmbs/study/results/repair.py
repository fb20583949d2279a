"""Repairs a run's folder: restores the files that describe the numbers, and removes damaged numbers, so that they are
computed again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.folder import storage
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import Damage, broken_metadata, damaged_chunks, damaged_copies
from jaxmbs.study.results.described import changed_files, described_by
from jaxmbs.study.results.provenance import Provenance, intact, signed
from jaxmbs.study.results.store import FINISHED, PROVENANCE, RESULTS, Store

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study


def repair_results(study: Study, store: Store) -> list[Damage]:
    """Restore the metadata and remove damaged chunks, so that they are computed again. Returns the damage that was
    found."""
    found = repair_metadata(study, store)
    lost = list(damaged_chunks(store))
    for d in lost:
        store.clear(d.first, d.stop)
    if any(d.file == FINISHED for d in lost):
        (store.folder / FINISHED).unlink(missing_ok=True)
    return found + lost + discard(store)


def repair_metadata(study: Study, store: Store) -> list[Damage]:
    """Restore the metadata of the arrays. Returns the damage that was found."""
    found = broken_metadata(study, store)
    for path, content in stores.metadata(study, store).items() if found else ():
        target = store.folder / RESULTS / path
        storage.make(target.parent)
        storage.write_whole(target, content)
    return found


def discard(store: Store) -> list[Damage]:
    """Remove the files that a report wrote and that are damaged (`damaged_copies`). Returns the damage that was
    found."""
    found = list(damaged_copies(store))
    for d in found:
        storage.remove(store.folder / d.file)
    return found


def cut(study: Study, store: Store, n: int) -> Store:
    """End a run after n samples, which fill whole chunks; samples that were computed beyond them are removed."""
    if n < store.n:
        store.clear(n, store.n)
        record = signed(store.provenance | {"n": n, "most": store.n}, store.key)
        storage.write_whole(store.folder / PROVENANCE, json.dumps(record, indent=2).encode())
        store = Store(store.folder, record, store.key)
        repair_metadata(study.of_size(n), store)  # if this is interrupted, `resume` repairs them
    return store


def put_back(folder: Path) -> Iterator[str]:
    """Restore provenance, study file and modules from their copies in the results, if they have changed; yields their
    names."""
    root = _parsed(_read(folder / RESULTS / "zarr.json"))
    attributes = root.get("attributes") if isinstance(root, dict) else None
    attributes = attributes if isinstance(attributes, dict) else {}
    record, wrong = stores.record_in(folder / PROVENANCE)
    copy = _parsed(attributes.get("provenance"))
    if not wrong and intact(copy) and not _of_one_run(record, copy):
        told = [f"{key}: {record.get(key)} and {copy.get(key)}" for key in record if record.get(key) != copy.get(key)]
        message = f"and its copy in the results describe different runs ({'; '.join(told[:3])}); restore the right one"
        raise InputError(Problem(str(folder / PROVENANCE), message))
    if wrong:
        stores.require_run(folder)
        record = copy
        stores.require_version(folder, record)
        if not intact(record):
            message = f"{wrong}, and its copy in the results is damaged too; this folder does not show what was run"
            raise InputError(Problem(str(folder / PROVENANCE), message))
        storage.write_whole(folder / PROVENANCE, json.dumps(record, indent=2).encode())
        yield PROVENANCE
    copies, hashes = _parsed(attributes.get("files")), described_by(folder, record)
    for name, path in list(changed_files(folder, record)):
        content = str(copies.get(name, "") if isinstance(copies, dict) else "").encode()
        if hashlib.sha256(content).hexdigest() != hashes[path]:
            message = "is damaged, and so is its copy in the results; restore the file with which the run began"
            raise InputError(Problem(str(path), message))
        if path.exists():
            storage.write_whole(path.with_name(f"{path.name}.found"), path.read_bytes())
        storage.make(path.parent)
        storage.write_whole(path, content)
        yield name


def _of_one_run(record: Provenance, copy: Provenance) -> bool:
    """Whether a record equals its copy, or belongs to the same run after a `cut` that was interrupted before it wrote
    the copy."""
    return record == copy or record.get("most") == copy["n"]


def _read(path: Path) -> Any:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
