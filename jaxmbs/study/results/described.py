"""The study that a run's folder describes, read again from its copies of the files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jaxmbs.io.errors import InputError
from jaxmbs.io.names import file_in
from jaxmbs.study.folder import storage
from jaxmbs.study.folder.layout import STUDY
from jaxmbs.study.folder.layout import files as files_in
from jaxmbs.study.results.provenance import Provenance

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.results.store import Store


def read_study(store: Store, trust: bool = False) -> Study:
    """The study of a run, with its number of samples."""
    from jaxmbs.study.problem.study import read

    files = tuple(store.provenance.get("modules", {}))
    with storage.at_hand(store.folder, (STUDY,)) as here, storage.at_hand(store.files, files) as beside_it:
        try:
            return read(here / STUDY, trust=trust, files=beside_it).of_size(store.n)
        except InputError as error:
            raise InputError(error.problems, store.folder / STUDY) from None


def described_by(folder: Path, record: Provenance) -> dict[Path, str]:
    """SHA-256 of the study file, modules and data of a run, by path."""
    own = files_in(folder, record)
    files = {file_in(own, name, str(folder)): wanted for name, wanted in record.get("modules", {}).items()}
    return {folder / STUDY: record["file_sha256"], **files}


def changed_files(folder: Path, record: Provenance) -> Iterator[tuple[str, Path]]:
    """The study file, modules and data that are missing or have changed since the run started: (name in the folder,
    path)."""
    for path, wanted in described_by(folder, record).items():
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != wanted:
            yield path.relative_to(folder).as_posix(), path
