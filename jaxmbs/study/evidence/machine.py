"""Compares a run with the same samples computed here: what another processor, device or version changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.reports import printed
from jaxmbs.study.folder.checksums import CHECKSUM, checksums
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import sound_study
from jaxmbs.study.results.provenance import differences, machine, salt
from jaxmbs.study.results.store import NOT_RUN, fingerprint
from jaxmbs.study.statistics.equivalence import ROUNDING

if TYPE_CHECKING:
    from rich.console import RenderableType


def compare_machine(folder: str | Path, blocks: int = 1, trust: bool = False) -> dict[str, Any]:
    """Compute the first samples of a run again on this machine, by the program of the run, and compare every number with
    the one that is stored. Returns plain data.

    On the same kind of processor, with the same versions, every bit is the same, and so is the fingerprint of these
    samples. Elsewhere last digits differ, because processors have different vector units and libraries different sines;
    then the largest difference of every output is compared with what rounding may cause: 1e-8 of its largest value in
    float64, 1e-4 in float32. verdict: "the same bits", "rounding" or "differs".

    folder: that of a run; blocks: number of blocks of samples (64 each, unless the run says otherwise); trust: run the
    Python modules of the study. The precision of this process must be that of the run. Raises InputError if it is not, if
    the run is damaged, or if none of its blocks is complete.
    """
    from jaxmbs.study.samples.batch import compiled, precision

    store = stores.open_folder(folder)
    study = sound_study(store, trust)
    record = store.provenance
    if str(precision()) != record["precision"]:
        message = f"was computed in {record['precision']}, but this process computes in {precision()}"
        raise InputError(
            Problem(str(store.folder), f"{message}: set jax_enable_x64 accordingly before any array exists")
        )
    rows = record["block_rows"]
    many = min(store.n, rows * max(1, blocks))
    if not many or np.any(store.read(("status",), slice(many))["status"] == NOT_RUN):
        raise InputError(Problem(str(store.folder), f"its first {many} samples are not all computed; resume it first"))
    program = compiled(study, rows)
    whole = -(-many // rows)
    if whole > program.most:
        raise InputError(Problem("blocks", f"{blocks}; one call computes {program.most} at most"))
    here = {name: x[:many] for name, x in store.columns(study, program(0, whole)).items()}
    here[CHECKSUM] = checksums(here, 0, salt(record))
    there = store.read(here, slice(many))
    labels = store.labels(study).outputs
    outputs = [
        _output(name, there[label], here[label], study.shown[name], ROUNDING[record["precision"]])
        for name, label in labels.items()
    ]
    ended = int(np.sum(there["status"] != here["status"]))
    marks = {"there": fingerprint([there[CHECKSUM]]), "here": fingerprint([here[CHECKSUM]])}
    same = all(np.array_equal(there[n].view(np.uint8), here[n].astype(there[n].dtype).view(np.uint8)) for n in here)
    differs = ended or any(row["verdict"] == "differs" for row in outputs)
    now = {"precision": record["precision"], **machine()}
    return {
        "folder": str(store.folder), "samples": many,
        "verdict": "differs" if differs else "the same bits" if same else "rounding",
        "fingerprints": marks, "machine": differences(record, now), "ended_differently": ended, "outputs": outputs,
    }  # fmt: skip


def _output(name: str, there: np.ndarray, here: np.ndarray, unit: Any, rounding: float) -> dict[str, Any]:
    """The difference of an output, in its unit."""
    a, b = there.astype(float) / unit.factor, here.astype(float) / unit.factor
    both = np.isfinite(a) & np.isfinite(b)
    lost = int(np.sum(np.isfinite(a) != np.isfinite(b)))
    largest = float(np.abs(b - a)[both].max(initial=0.0))
    allowed = rounding * float(np.abs(a[both]).max(initial=0.0))
    said = "differs" if lost or largest > allowed else "the same" if largest == 0 else "rounding"
    return {"output": name, "unit": unit.name, "largest": largest, "allowed": allowed, "lost": lost, "verdict": said}


def table(found: Mapping[str, Any]) -> RenderableType:
    """What `compare_machine` found, for the terminal."""
    from rich.console import Group
    from rich.text import Text

    style = {"the same bits": "green", "rounding": "green", "differs": "red"}[found["verdict"]]
    head = f"{found['samples']:,} samples computed again on this machine: {found['verdict']}"
    parts: list[RenderableType] = [Text(head, style=style)]
    parts += [Text(line, style="dim") for line in found["machine"]]
    if found["ended_differently"]:
        parts.append(Text(f"{found['ended_differently']:,} samples ended differently", style="red"))
    if found["verdict"] != "the same bits":
        parts.append(Text("fingerprint of these samples: {there} there, {here} here".format(**found["fingerprints"])))
        rows = [
            (f"{r['output']} [{r['unit']}]" if r["unit"] else r["output"], f"{r['largest']:.2g}", f"{r['allowed']:.2g}",
             r["verdict"] + (f", undefined in one of them: {r['lost']}" if r["lost"] else ""))
            for r in found["outputs"]
        ]  # fmt: skip
        parts.append(
            printed(
                "", ("output", "largest difference", "by rounding", ""), rows, ("largest difference", "by rounding")
            )
        )
    return Group(*parts)
