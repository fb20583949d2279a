"""Checks whether a run's folder still contains everything that was computed: every file, every chunk, every number.

While another process computes there, only what it has finished is checked. The status of a chunk is written last and
read first here, so the other numbers of a sample must exist if its status shows that it was computed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.folder.checksums import CHECKSUM, checksums
from jaxmbs.study.folder.layout import HISTORIES, PAGE, STEPS, kind
from jaxmbs.study.folder.lock import holder
from jaxmbs.study.folder.seal import fault_of_marked
from jaxmbs.study.folder.shell import command
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.described import read_study
from jaxmbs.study.results.provenance import salt
from jaxmbs.study.results.store import FINISHED, NOT_RUN, RESULTS, Store

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study

_SPAN = 100_000  # at most this many samples are read at once
_TOLD = 12
LOOKS, PAUSE = 4, 0.25  # number of checks of a run that is being computed, and the pause between them [s]


@dataclass(frozen=True)
class Damage:
    """One part of a run's folder that is not as it was written. file: its path in the folder; what: what is wrong with
    it; first, stop: the samples first ... stop - 1 are affected (none if first = stop)."""

    file: str
    what: str
    first: int = 0
    stop: int = 0

    def __str__(self) -> str:
        samples = f" (samples {self.first} to {self.stop - 1})" if self.stop > self.first else ""
        return f"{self.file}: {self.what}{samples}"


def damage(study: Study, store: Store) -> list[Damage]:
    """Everything that is damaged in the results of a run."""
    broken = broken_metadata(study, store)
    if broken:  # nothing can be read with broken metadata
        return broken
    return list(damaged_chunks(store))


def sound_study(store: Store, trust: bool = False) -> Study:
    """The study of a run without damage; trust: run its Python modules. Raises InputError as `require_sound`."""
    study = read_study(store, trust)
    require_sound(study, store)
    return study


def require_sound(study: Study, store: Store) -> None:
    """Raises InputError that names the damage, if there is any, or if the results are lost; if nothing has been run yet,
    they are laid out. A run that is being computed is checked several times, since the process may be about to write
    what is missing."""
    stores.require_results(study, store)
    found, who = [], ""
    for look in range(LOOKS):
        time.sleep(PAUSE * bool(look))
        who = holder(store.folder)
        found = damage(study, store)
        who = who or holder(store.folder)
        if not (found and who):
            break
    if found and who and any("metadata" in d.what for d in found):
        raise InputError(Problem(str(store.folder), f"is being computed by {who}; wait until it ends"))
    if found:
        problems = [Problem(str(store.folder / d.file), str(d).partition(": ")[2]) for d in found[:_TOLD]]
        more = f"and {len(found) - _TOLD} more; " if len(found) > _TOLD else ""
        again = command("resume", store.folder, record=store.provenance)
        remedy = f"{more}the results are damaged; `{again}` computes the damaged samples again"
        raise InputError([*problems, Problem(str(store.folder), remedy)])


# --- metadata -------------------------------------------------------------------------------------------------------


def broken_metadata(study: Study, store: Store) -> list[Damage]:
    """Damage to the metadata. Raises InputError instead if a version with another layout wrote them."""
    found = list(_metadata(study, store))
    if found and kind(store.provenance) < 2:
        raise stores.other_version(store.folder, store.provenance)
    return found


def _metadata(study: Study, store: Store) -> Iterator[Damage]:
    for path, content in stores.metadata(study, store).items():
        file = store.folder / RESULTS / path
        try:
            if json.loads(file.read_bytes()) != json.loads(content):
                yield Damage(f"{RESULTS}/{path}", "the metadata was changed since it was written")
        except OSError:
            yield Damage(f"{RESULTS}/{path}", "the metadata is missing")
        except (ValueError, RecursionError):
            yield Damage(f"{RESULTS}/{path}", "the metadata cannot be read")


# --- chunks ---------------------------------------------------------------------------------------------------------


def damaged_chunks(store: Store) -> Iterator[Damage]:
    """Damage to the numbers."""
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
    if finished and sound:
        if (finished["samples"], finished["fingerprint"]) != (store.n, f"{mark:08x}"):
            yield Damage(FINISHED, "does not belong to these results")
        elif wrong := store.note_fault():
            yield Damage(FINISHED, wrong)


def _span(
    store: Store, arrays: Mapping[str, Any], there: Mapping[str, set[int]], first: int, stop: int, all_run: bool,
    of_all: np.ndarray,
) -> Iterator[Damage]:  # fmt: skip
    """Damage in the samples first ... stop - 1, which fill whole chunks. there: numbers of the chunks that exist, by
    variable; all_run: whether the run is finished; of_all (stop - first,): receives the samples' checksums."""
    rows = store.chunk_rows
    unread: dict[tuple[str, int], str] = {}
    status = read_span(arrays["status"], "status", first, stop, rows, unread)  # read first, since it is written last
    others = {name: x for name, x in arrays.items() if name != "status"}
    values = {name: read_span(x, name, first, stop, rows, unread) for name, x in others.items()}
    values["status"] = status
    for begin in range(first, stop, rows):
        end, number = min(begin + rows, stop), begin // rows
        own = slice(begin - first, end - first)
        run = status[own] != NOT_RUN
        expected = bool(run.any()) or all_run
        found = []
        for name in arrays:
            file = _file(name, number, arrays[name].ndim)
            if (name, number) in unread and (expected or name == "status"):
                found.append(Damage(file, unread[name, number], begin, end))
            elif expected and number not in there[name] and not (store.folder / file).exists():
                found.append(Damage(file, "the chunk is missing", begin, end))
        if not found and all_run and not run.all():
            found.append(Damage(_file("status", number, 1), "samples of a finished run are missing", begin, end))
        if not found and run.any():
            content = {name: x[own] for name, x in values.items() if name != CHECKSUM}
            right = checksums(content, begin, salt(store.provenance)) == values[CHECKSUM][own]
            of_all[own] = values[CHECKSUM][own]
            wrong = np.flatnonzero(run & ~right)
            if len(wrong):
                what = f"numbers of {len(wrong)} samples were changed since they were computed, the first in sample"
                found.append(Damage(RESULTS, f"{what} {begin + int(wrong[0])}", begin, end))
        yield from found


def _file(name: str, number: int, dimensions: int) -> str:
    return "/".join((RESULTS, name, "c", str(number), *["0"] * (dimensions - 1)))


def read_span(
    array: Any, name: str, first: int, stop: int, rows: int, unread: dict[tuple[str, int], str]
) -> np.ndarray:
    """Values of the samples first ... stop - 1 of the variable `name`, in chunks of `rows` samples. Chunks that cannot
    be read get the fill value, and are noted in `unread`: (variable, number of the chunk) -> reason."""
    try:
        return array[first:stop]
    except Exception:  # codecs may raise any error; reading the chunks one by one finds the damaged ones
        out = np.full((stop - first, *array.shape[1:]), array.fill_value, array.dtype)
        for begin in range(first, stop, rows):
            end = min(begin + rows, stop)
            try:
                out[begin - first : end - first] = array[begin:end]
            except Exception as error:
                checksum = "checksum" in str(error).lower()
                unread[name, begin // rows] = "the checksum is wrong" if checksum else "the chunk cannot be read"
        return out


# --- files of reports -------------------------------------------------------------------------------------------------


def damaged_copies(store: Store) -> Iterator[Damage]:
    """The files that a report or `check-steps` wrote, where they were changed or belong to another run; the command
    writes them again."""
    for name in (PAGE, HISTORIES, STEPS) if kind(store.provenance) > 2 else ():
        with suppress(FileNotFoundError):
            if wrong := fault_of_marked((store.folder / name).read_bytes(), f"{salt(store.provenance):x}", store.key):
                again = command("check-steps" if name == STEPS else "report", store.folder, record=store.provenance)
                yield Damage(name, f"{wrong}; `{again}` writes it again")
