"""Implements `jaxmbs verify`: examines a run's folder, and restores what can be restored."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.study.folder import storage
from jaxmbs.study.folder.checksums import CHECKSUM
from jaxmbs.study.folder.lock import held, holder
from jaxmbs.study.folder.seal import key_of
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.columns import Column, column_of
from jaxmbs.study.results.damage import LOOKS, PAUSE, Damage, damage, damaged_copies, read_span
from jaxmbs.study.results.described import changed_files, read_study
from jaxmbs.study.results.provenance import unsealed
from jaxmbs.study.results.repair import discard, put_back, repair_metadata
from jaxmbs.study.results.store import FINISHED, NOT_RUN, PROVENANCE, RESULTS


@dataclass(frozen=True)
class Examination:
    """Findings of `jaxmbs verify`. samples, done: number of all samples and of those computed; repaired: names of what
    was restored; size: of all files together [byte]; computing: the process that computes there now, "" if there is
    none; sealed: whether everything there carries the seal of the key, None if no key was given. If the provenance, the
    study file or a module is damaged, nothing else is examined: samples and done are 0."""

    folder: Path
    samples: int
    done: int
    fingerprint: str | None
    damage: tuple[Damage, ...]
    repaired: tuple[str, ...]
    size: int
    computing: str = ""
    sealed: bool | None = None

    @property
    def sound(self) -> bool:
        return not self.damage

    @property
    def document(self) -> dict[str, Any]:
        earlier = {"mended": self.repaired}  # the name of this entry in earlier versions
        return asdict(self) | {"folder": str(self.folder), "sound": self.sound, **earlier}


def examined(
    folder: str | Path, repair: bool = False, trust: bool = False, seal: str | Path | None = None
) -> Examination:
    """Examines a run's folder: what it contains and what is damaged.

    repair: restore the study file, modules, provenance and metadata, and save a changed file as NAME.found; damaged
    samples are left to `resume`. trust: run the Python modules of the study. seal: file of the key with which the run
    was started; anything that was not written with it counts as damage. Raises InputError if there is no run, or if it
    cannot be identified.
    """
    folder, key = storage.place(folder), key_of(seal)
    with storage.reached(folder):
        storage.require_own(folder)
        if repair:
            stores.require_run(folder)
            with held(folder):
                return _examined(folder, True, trust, key)
        for look in range(LOOKS):
            who = holder(folder)
            found = _examined(folder, False, trust, key)
            who = who or holder(folder)
            if found.sound or not who or look == LOOKS - 1:
                return replace(found, computing=who)
            time.sleep(PAUSE)  # the process that computes there may be about to write what is missing
        raise AssertionError


def _examined(folder: Path, repair: bool, trust: bool, key: bytes | None) -> Examination:
    repaired: list[str] = []
    texts = [] if repair else list(_texts(folder, key))
    if repair:
        repaired += put_back(folder)
    if texts:
        return Examination(folder, 0, 0, None, tuple(texts), (), storage.size(folder), sealed=_sealed(key, texts))
    store = stores.open_folder(folder, key)
    study = read_study(store, trust)
    if not (folder / RESULTS).exists():
        lost = (Damage(RESULTS, "is missing although the run was finished"),) if (folder / FINISHED).exists() else ()
        size, sealed = storage.size(folder), _sealed(key, lost)
        return Examination(folder, store.n, 0, None, lost, tuple(repaired), size, sealed=sealed)
    if repair:
        repaired += [d.file for d in repair_metadata(study, store)]
        repaired += [d.file for d in discard(store)]
    found = [*damage(study, store), *damaged_copies(store)]
    done, mark = 0, None
    if not any("metadata" in d.what for d in found):
        arrays, all_of = store.arrays(), ((0, store.n),)
        status = Column(lambda a, b: read_span(arrays["status"], "status", a, b, store.chunk_rows, {}), all_of)
        done = sum(int(np.count_nonzero(part != NOT_RUN)) for part in status.parts())
        if not found and done == store.n:
            mark = stores.fingerprint(column_of(arrays[CHECKSUM], all_of).parts())
    size, sealed = storage.size(folder), _sealed(key, found)
    return Examination(folder, store.n, done, mark, tuple(found), tuple(repaired), size, sealed=sealed)


def _sealed(key: bytes | None, damage: Sequence[Damage]) -> bool | None:
    return None if key is None else not damage


def _texts(folder: Path, key: bytes | None) -> Iterator[Damage]:
    """Damage to the provenance, the study file and the modules."""
    record, wrong = stores.record_in(folder / PROVENANCE)
    if wrong:
        stores.require_run(folder)
        yield Damage(PROVENANCE, f"{wrong}; {stores.repairing(folder, record)}")
        return
    if key is not None and (wrong := unsealed(record, key)):
        yield Damage(PROVENANCE, wrong)
    for name, _ in changed_files(folder, record):
        yield Damage(name, f"is missing or was changed; {stores.repairing(folder, record)}")
