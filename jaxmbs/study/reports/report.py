"""Reports of a run: a table for the terminal, a page for people, plain data for programs.

The modules of pages and of pictures in notebooks are imported when they are needed, since matplotlib takes a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxmbs.study.folder import storage
from jaxmbs.study.folder.layout import PAGE
from jaxmbs.study.folder.seal import key_of, marked
from jaxmbs.study.folder.storage import write_whole
from jaxmbs.study.reports.repeated import repeated
from jaxmbs.study.reports.terminal import table
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import sound_study
from jaxmbs.study.results.provenance import salt
from jaxmbs.study.statistics.requirements import requirements
from jaxmbs.study.statistics.summary import document, summarize

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Written:
    """A report. path: of the page; table: for the terminal; document: the run as plain data; passed: whether every
    criterion and every requirement is met."""

    path: Path
    table: RenderableType
    document: dict[str, Any]
    passed: bool

    def _repr_html_(self) -> str:
        from jaxmbs.study.reports.notebook import table_html

        return table_html(self.table)


def report(folder: str | Path, trust: bool = False, seal: str | Path | None = None) -> Written:
    """Write the page of the run in a folder, finished or not.

    trust: run the Python modules of the study; seal: a file with the key of a sealed run, which also seals the page.
    Raises InputError if there is no run, and if results are damaged, naming what is damaged.
    """
    store = stores.open_folder(folder, key_of(seal))
    study = sound_study(store, trust)
    summary = summarize(study, store)
    from jaxmbs.study.reports.page import page, wanted

    picked = wanted(study, summary)
    text = page(study, store, summary, picked, repeated(study, store, summary, picked))
    path = store.folder / PAGE
    try:
        write_whole(path, marked(text.encode(), f"{salt(store.provenance):x}", store.key))
    except OSError as error:
        raise storage.unwritten(store.folder, error, store.provenance) from None
    shown = requirements(study, summary)
    passed = summary.passed and all(r.met for r in shown)
    said = document(study, store, summary) | {"passed": passed, "requirements": [r.document for r in shown]}
    return Written(path, table(study, store, summary), said, passed)
