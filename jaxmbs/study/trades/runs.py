"""Finished runs side by side, each compared with the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.folder import storage
from jaxmbs.study.folder.shell import command
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import sound_study
from jaxmbs.study.statistics.comparison import changed_lines
from jaxmbs.study.trades.differences import found_in

REMEDY = "compare runs with other draws two at a time"


def compared_runs(folders: Sequence[str], trust: bool = False) -> dict[str, Any]:
    """What several finished runs show and how each differs from the first, as plain data of the same form as a trade
    study's. What is a design there is called a run here, and each run has the lines in which its study file differs from
    the first one's ("file"). Criteria and outputs that not every run has are left out, and listed ("left_out").
    folders: those of the runs; trust: run the Python modules of the studies.

    Raises InputError if a run is damaged, not finished or named twice, or has other draws than the first, sample by sample.
    """
    found = {}
    for name in map(str, folders):
        if name in found:
            raise InputError(Problem(name, "is named twice; name each run once"))
        found[name] = stores.open_folder(name)
        with storage.reached(found[name].folder):
            if not (found[name].folder / stores.FINISHED).exists():
                again = command("resume", found[name].folder)
                raise InputError(Problem(name, f"is not finished; `{again}` computes what is missing"))
    studies = {name: sound_study(store, trust) for name, store in found.items()}
    first = next(iter(studies))
    document = found_in(first, studies, found, REMEDY, "run")
    document["runs"] = [row | {"file": changed_lines(studies[first], studies[row["run"]])} for row in document["runs"]]
    shown = {x["text"] for x in document["criteria"]} | {x["output"] for x in document["outputs"]}
    every = {x for study in studies.values() for x in (*study.outputs, *(c.text for c in study.criteria))}
    return document | {"left_out": sorted(every - shown)}
