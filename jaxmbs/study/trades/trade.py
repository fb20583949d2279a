"""Runs a trade study: one study per design, each in a folder of its own, with the same draws in all of them.

JAX and the modules that compute or draw are imported when they are needed, so a trade study that is refused does not
start them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxmbs.io.errors import InputError, Problem, dotted
from jaxmbs.io.reports import plain
from jaxmbs.study.folder import storage
from jaxmbs.study.folder.storage import write_whole
from jaxmbs.study.problem.study import Study
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import sound_study
from jaxmbs.study.results.described import read_study
from jaxmbs.study.results.provenance import provenance
from jaxmbs.study.results.store import Store
from jaxmbs.study.runs.estimate import check, check_disk
from jaxmbs.study.runs.run import require_resumable, resume, run
from jaxmbs.study.trades.designs import Designs
from jaxmbs.study.trades.differences import found_in
from jaxmbs.study.trades.terminal import table

if TYPE_CHECKING:
    from rich.console import RenderableType

DATA, PAGE = "trade.json", "trade.html"

# called with (name of the design, "compile", "run" or "done", number of its samples done, number of its samples)
Progress = Callable[[str, str, int, int], None]


def _silent(design: str, stage: str, done: int, n: int) -> None:
    return None


@dataclass(frozen=True)
class Trade:
    """A computed trade study. folder: where it is; stores: the results of each design, by name; document: what was found
    as plain data, as in trade.json; path: of the page, trade.html; table: for the terminal."""

    folder: Path
    stores: Mapping[str, Store]
    document: dict[str, Any]
    path: Path

    @property
    def table(self) -> RenderableType:
        return table(self.document)

    def _repr_html_(self) -> str:
        from jaxmbs.study.reports.notebook import table_html

        return table_html(self.table)


def trade(
    designs: Designs | str | Path,
    n: int | None,
    out: str | Path,
    block_rows: int | None = None,
    progress: Progress = _silent,
    trust: bool = False,
    cluster: Any = None,
) -> Trade:
    """Run the study of every design into a folder of its own in `out`, and compare the designs with their baseline.

    designs: `Designs`, or the file of designs; n: samples of each design, None if the sampling plan fixes the number;
    block_rows, cluster: as for `run`; progress: called with (name of the design, "compile", "run" or "done", number of
    its samples done, number of its samples); trust: run the Python modules of the study. All designs have the same seed
    and dispersions, and therefore the same draws sample by sample: differences are those of pairs of samples, which show
    effects far smaller than the scatter. The folder of each design is that of an ordinary run. A design that is already
    computed is kept, an interrupted one is continued: the same call goes on where it was stopped. Writes trade.json and
    trade.html into `out`.

    Raises InputError, before anything is computed, as `Designs` and `run` do, if there is no disk space for all designs
    together, and if a design's folder contains another study, another number of samples, or an unfinished run that cannot
    go on here, for instance of another version.

    >>> trade("springs.toml", 10_000, "springs").document["criteria"][0]["text"]  # doctest: +SKIP
    'clearance > 0.02 m'
    """
    found = designs if isinstance(designs, Designs) else Designs.read(designs, trust)
    folder = storage.place(out)
    sized = {name: study.of_size(n) for name, study in found.studies.items()}
    missing = {
        name: _missing(name, study, folder / name, block_rows, trust, cluster is None) for name, study in sized.items()
    }
    check_disk([(sized[name], k) for name, k in missing.items()], folder)
    computed = {}
    for name, study in sized.items():

        def told(stage: str, done: int, n: int, name: str = name) -> None:
            progress(name, stage, done, n)

        computed[name] = _computed(study, folder / name, block_rows, told, trust, cluster)
    document = found_in(found.baseline, sized, computed, "remove the folder, and give the command again")
    document["designs"] = [row | {"values": found.values[row["design"]]} for row in document["designs"]]
    from jaxmbs.study.trades.page import page

    write_whole(folder / DATA, json.dumps(plain(document), indent=1).encode())
    write_whole(folder / PAGE, page(document, found.axis).encode())
    return Trade(folder, computed, document, folder / PAGE)


def _missing(name: str, study: Study, folder: Path, block_rows: int | None, trust: bool, here: bool) -> int:
    """Number of samples of a design that are to be computed.

    Raises InputError unless its folder is empty or contains the run of this very study, if the study cannot be computed on
    this machine, and if an unfinished run cannot go on (here: in this process).
    """
    n = study.n or 0
    with storage.reached(folder):
        new = not (folder / stores.PROVENANCE).exists()
        if new:
            check(study, n, block_rows or 0, folder=folder)
            stores.require_empty(folder)
            return n
    store = stores.open_folder(folder)
    record = store.provenance
    now = provenance(study, study.n or 0, block_rows or record["block_rows"])
    wanted = {key: now[key] for key in ("file_sha256", "modules", "n", "precision", "block_rows")}
    other = [key for key, x in wanted.items() if record[key] != x]
    if other:
        said = {
            "n": f"{record['n']:,} samples, not {study.n:,}",
            "precision": f"precision {record['precision']}, not {now['precision']}",
            "block_rows": f"blocks of {record['block_rows']} samples, not {block_rows}",
        }.get(other[0], "another study: the design or its study has changed since")
        message = f"{folder} contains a run of {said}; remove it, or choose another folder"
        raise InputError(Problem(dotted(("designs", name)), message))
    if (folder / stores.FINISHED).exists():
        return 0
    require_resumable(read_study(store, trust), store, here=here)
    if not (folder / stores.RESULTS).exists():
        return n
    return sum(stop - first for first, stop in store.missing())


def _computed(
    study: Study,
    folder: Path,
    block_rows: int | None,
    progress: Callable[[str, int, int], None],
    trust: bool,
    cluster: Any,
) -> Store:
    """The complete results of a design: computed now, continued, or kept."""
    if not (folder / stores.PROVENANCE).exists():
        return run(study, study.n, folder, block_rows, progress, cluster=cluster, trust=trust)
    if not (folder / stores.FINISHED).exists():
        return resume(folder, progress=progress, trust=trust, cluster=cluster)
    store = stores.open_folder(folder)
    sound_study(store, trust)
    progress("done", store.n, store.n)
    return store
