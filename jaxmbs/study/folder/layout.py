"""Where a run stores its files, by the format version ("kind") of its folder, which its record states.

Names given by users never clash with those of the run itself: the users' files lie in a folder of their own, and a
variable whose name is already taken in the results has "(output)" or "(draw)" added to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.names import within
from jaxmbs.study.folder.checksums import CHECKSUM
from jaxmbs.study.outputs.folding import AT_START, EVENT_COUNTS, EVENT_TIMES, at_their_start

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study

RESULTS, STUDY, PROVENANCE, FINISHED = "results.zarr", "study.toml", "provenance.json", "finished.json"
PAGE, HISTORIES = "report.html", "histories.npz"  # files that a report can write again
STEPS = "steps.json"  # what `jaxmbs check-steps` found
FILES = "files"  # folder of the modules and data of the study
# format version of a run's folder; 1: events of samples are not recorded; 2: modules and data lie next to the study and
# are not part of checksums, and it is not recorded which outputs stay at their first value
KIND = 3
OWN = ("status", "energy_error", "constraint_error", CHECKSUM, EVENT_COUNTS, EVENT_TIMES, AT_START)
DRAWS = "draws of a sample"  # in a batch's results; users' names contain no spaces


def kind(record: Mapping[str, Any]) -> int:
    """Format version of the folder that a record describes."""
    return record.get("format", 1)


def files(folder: Path, record: Mapping[str, Any]) -> Path:
    """The folder of a run's modules and data."""
    return folder / FILES if kind(record) > 2 else folder


def files_of(path: Path) -> Path:
    """Folder of the files that the study at `path` names: its own folder, or for the study of a run the folder where
    the run stores them.

    Raises InputError if a symbolic link puts that folder outside the run's folder.
    """
    folder, record = path.absolute().parent, None
    if path.name == STUDY:
        with suppress(OSError, ValueError, RecursionError):
            record = json.loads((folder / PROVENANCE).read_bytes())
    if not isinstance(record, dict) or not isinstance(kind(record), int):
        return folder
    found = files(folder, record)
    if not within(folder, found):
        raise InputError(Problem(str(found), "is a symbolic link that leads out of the run's folder, and is not read"))
    return found


def starting(study: Study, of_kind: int) -> tuple[str, ...]:
    """The outputs for which a run of this format version records whether they stay at their first value."""
    return at_their_start(study.outputs) if of_kind > 2 else ()


@dataclass(frozen=True)
class Labels:
    """Names of the variables in the results, by output and by dispersion."""

    outputs: Mapping[str, str]
    draws: Mapping[str, str]


def labels(study: Study, of_kind: int = KIND) -> Labels:
    """Names of a study's variables in the results: those in its file, or, where a name is already taken, for instance
    "status (output)". Names that differ only in case count as equal, since some file systems ignore case."""
    names = list(study.outputs), [d.name for d in study.dispersions.items] if study.dispersions else []
    if of_kind < 3:
        return Labels(*({name: name for name in some} for some in names))
    sizes = {len(study.model.event_names), *(d.k for d in study.dispersions.items)} if study.dispersions else set()
    sizes |= {len(starting(study, of_kind))}
    taken = {*OWN, "sample", "zarr.json", *(f"component_{k}" for k in sizes)}
    found: list[dict[str, str]] = []
    for what, some in zip(("output", "draw"), names, strict=True):
        found.append({})
        for name in some:
            label, again = name, 1
            while label.casefold() in taken:
                label, again = f"{name} ({what})" if again == 1 else f"{name} ({what} {again})", again + 1
            taken.add(label.casefold())
            found[-1][name] = label
    return Labels(*found)
