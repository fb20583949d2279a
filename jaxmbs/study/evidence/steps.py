"""How large the error of the integration is: some samples of a run, computed again with other steps.

JAX and the modules that compute are imported when samples are computed.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.batching import over_rows
from jaxmbs.errors import ModelError, ModelWarning
from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.reports import printed
from jaxmbs.simulate.steppers import stepper_for
from jaxmbs.study.folder.layout import labels
from jaxmbs.study.folder.seal import key_of
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.checked import CONCLUSIONS, keep
from jaxmbs.study.results.damage import sound_study
from jaxmbs.study.statistics.summary import summarize, worst

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jaxmbs.study.problem.criteria import Criterion
    from jaxmbs.study.problem.schema import SimulationTable
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.results.store import Store
    from jaxmbs.study.statistics.summary import Summary, Verdict

WORST, RANDOM, FAILED = 16, 40, 8  # how many samples of each kind are computed again
SAME, FINER, OTHER = "the same steps", "finer steps", "another method"
_TIGHTER = 100  # by which a tolerance is divided for finer steps
_OTHERS = ("dopri5", "rk4", "implicit")  # the first one of these that fits and is not the run's


def check_steps(folder: str | Path, trust: bool = False, seal: str | Path | None = None) -> dict[str, Any]:
    """Compute some samples of a run again with finer steps and with another method of integration, and estimate from
    the changes how far the outputs of the run are from those of the exact motion. Returns plain data, and keeps it in
    the run's folder, where the next report finds it.

    The samples are the 16 that are nearest to missing a criterion, 40 chosen at random, and up to 8 that failed. Each is
    computed in the precision of this process with the steps of the run, which shows rounding and what another machine
    changes; with half the step (with a tolerance: a hundredth of it); and by another method. The error of an output is
    its largest change among these samples. For each criterion, all samples of the run are counted whose output is nearer
    to a bound than this error; the verdict is settled if it would be the same whichever side these are on.

    folder: that of a run; trust: run the Python modules of the study; seal: the file with the key of a sealed run. Raises
    InputError if the run is damaged or no sample of it has succeeded.
    A variant that cannot be computed says why, in place of its changes.
    """
    store = stores.open_folder(folder, key_of(seal))
    stores.require_key(store)
    study = sound_study(store, trust)
    summary = summarize(study, store)
    chosen = _chosen(study, store, summary)
    every = [sample for kind in chosen.values() for sample in kind]
    good = np.array([sample not in chosen["failed"] for sample in every])
    draws = store.draws(study, every)
    there = {name: x.astype(float) for name, x in store.outputs(study, every).items()}
    variants, changes = [], []
    for what, simulation in _variants(study).items():
        entry: dict[str, Any] = {"what": what, **_said(simulation)}
        try:
            found, failed = _computed(study, simulation, draws, every)
        except ModelError as error:
            variants.append(entry | {"fault": str(error).removeprefix("simulate: ")})
            continue
        entry |= {"failed": int(np.sum(failed[good])), "rescued": int(np.sum(~failed[~good]))}
        variants.append(entry)
        changes.append((what, {n: np.where(failed, np.nan, found[n]) - there[n] for n in found}))
    outputs = [_output(study, name, there[name], changes, good) for name in study.outputs]
    errors = {row["output"]: row["error"] * study.shown[row["output"]].factor for row in outputs}
    criteria = [
        _criterion(c, v, summary, errors[c.output]) for c, v in zip(study.criteria, summary.verdicts, strict=True)
    ]
    lost = any(row["lost"] for row in outputs) or any(v.get("failed") or "fault" in v for v in variants)
    told = {
        "folder": str(store.folder), "samples": {kind: list(x) for kind, x in chosen.items()}, "variants": variants,
        "outputs": outputs, "criteria": criteria, "of": summary.done,
        "settled": not lost and all(c["settled"] for c in criteria) if criteria else None,
    }  # fmt: skip
    keep(store, told)
    return told


def _chosen(study: Study, store: Store, summary: Summary) -> dict[str, list[int]]:
    """The samples to compute again, by kind; no sample twice."""
    near = [sample for sample, _, _ in worst(study, summary, WORST)]
    rng = np.random.default_rng(study.seed)
    index, rank = np.zeros(0, int), np.zeros(0)
    for own, status in zip(summary.index.parts(), summary.status.parts(), strict=True):
        good = own[status == 0]
        good = good[~np.isin(good, near)]
        index, rank = np.concatenate([index, good]), np.concatenate([rank, rng.random(len(good))])
        first = np.argsort(rank, kind="stable")[:RANDOM]  # of all so far, those with the smallest numbers
        index, rank = index[first], rank[first]
    found = {
        "worst": near,
        "random": sorted(index.tolist()),
        "failed": sorted(i for f in summary.failed.values() for i in f.first)[:FAILED],
    }
    if not found["worst"] and not found["random"]:
        raise InputError(Problem(str(store.folder), "no sample has succeeded, so there is none to compute again"))
    return found


def _variants(study: Study) -> dict[str, SimulationTable]:
    """The simulations to compare with that of the run."""
    own = study.simulation
    fine = {"dt": own.dt / 2} if own.tolerance is None else {"tolerance": own.tolerance / _TIGHTER}
    if own.max_steps is not None:
        fine["max_steps"] = 10 * own.max_steps
    return {SAME: own, FINER: own.model_copy(update=fine), OTHER: _by_another(study)}


def _by_another(study: Study) -> SimulationTable:
    """The simulation by the first other method that is suitable for the mechanism, with the same steps; if the run has a
    tolerance, by a method that can control its error."""
    own = study.simulation
    for method in _OTHERS if own.tolerance is None else ("dop853", *_OTHERS):
        try:
            stepper_for(method, study.model, own.tolerance)
        except ModelError:
            continue
        if method != own.method:
            return own.model_copy(update={"method": method})
    raise AssertionError("rk4 and dopri5 are suitable for every mechanism")


def _said(simulation: SimulationTable) -> dict[str, Any]:
    return {"method": simulation.method, "dt": simulation.dt, "tolerance": simulation.tolerance}


def _computed(
    study: Study, simulation: SimulationTable, draws: Mapping[str, np.ndarray], samples: Sequence[int]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """(values of every output in SI, (S,) whether the sample failed) of some samples from their draws."""
    from jaxmbs.study.samples.batch import cached_result, filled, instances, noise_of, precision, sample_of, status_of

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the study of the run has given them already
        asked = study if simulation is study.simulation else replace(study, simulation=simulation)
    dtype = precision()
    one = sample_of(asked, dtype)

    def all_of(draws: Any, keys: Any) -> Any:
        own = () if keys is None else (keys,)
        model, axes, q, v = instances(asked, draws, dtype)
        found = over_rows(one, (axes, 0, 0, *(0 for _ in own)))(model, q, v, *own)
        return found | {"status": status_of(asked, model, found["status"])}

    together = np.concatenate([draws[d.name] for d in asked.dispersions.items], axis=1).astype(dtype)
    rows = WORST + RANDOM + FAILED
    keys = noise_of(asked, filled(np.asarray(samples), rows).tolist())
    found = cached_result(asked, "checked steps", all_of, filled(together, rows), keys)
    many = len(samples)
    label = labels(asked).outputs
    values = {name: np.asarray(found[label[name]], float)[:many].reshape(many) for name in asked.outputs}
    return values, np.asarray(found["status"])[:many] != 0


def _output(
    study: Study,
    name: str,
    there: np.ndarray,
    changes: Sequence[tuple[str, Mapping[str, np.ndarray]]],
    good: np.ndarray,
) -> dict[str, Any]:
    """How an output changes with the steps, in its unit. lost: number of samples in which it is defined in the run but
    not in a variant, or the other way round."""
    factor = study.shown[name].factor
    defined = good & np.isfinite(there)
    row: dict[str, Any] = {"output": name, "unit": study.shown[name].name, "changes": {}, "lost": 0}
    row["size"] = float(np.median(np.abs(there[defined])) / factor) if defined.any() else None
    for what, change in changes:
        known = defined & np.isfinite(change[name])
        row["changes"][what] = float(np.abs(change[name][known]).max() / factor) if known.any() else float("nan")
        row["lost"] = max(row["lost"], int(np.sum(good & (np.isfinite(there) != np.isfinite(there + change[name])))))
    changed = list(row["changes"].values())
    row["error"] = float(np.max(changed)) if changed else float("nan")  # NaN if any of them is
    return row


def _criterion(c: Criterion, verdict: Verdict, summary: Summary, error: float) -> dict[str, Any]:
    """Whether errors of an output as large as `error` [SI] could change the verdict on a criterion."""
    near_met = near_missed = 0
    for x in summary.outputs[c.output].parts():
        margin = c.margin(x)
        near = np.abs(margin) <= error
        met = c.met(x)  # whether a value on the bound meets it depends on the sign of the criterion
        near_met, near_missed = near_met + int(np.sum(near & met)), near_missed + int(np.sum(near & ~met))
    least, most = replace(verdict, met=verdict.met - near_met), replace(verdict, met=verdict.met + near_missed)
    return {
        "criterion": c.text, "met": verdict.met, "of": verdict.of, "near": near_met + near_missed,
        "passed": verdict.passed, "settled": bool(np.isfinite(error) and least.passed == most.passed),
    }  # fmt: skip


def table(found: Mapping[str, Any]) -> RenderableType:
    """What `check_steps` found, for the terminal."""
    from rich.console import Group
    from rich.text import Text

    kinds = {"worst": "nearest to missing a criterion", "random": "at random", "failed": "that failed"}
    chosen = ", ".join(f"{len(x)} {kinds[kind]}" for kind, x in found["samples"].items() if x)
    parts: list[RenderableType] = [Text(f"{found['folder']}: samples computed again: {chosen}", style="bold")]
    for v in found["variants"]:
        steps = f"{v['method']}, dt {v['dt']:g} s" + (f", tolerance {v['tolerance']:g}" if v["tolerance"] else "")
        said = v.get("fault") or ", ".join(
            [f"{v['failed']} failed" if v["failed"] else "all succeeded"]
            + ([f"{v['rescued']} of those that failed in the run succeeded"] if v["rescued"] else [])
        )
        parts.append(Text(f"{v['what']} ({steps}): {said}", style="red" if v.get("fault") or v.get("failed") else ""))
    whats = [v["what"] for v in found["variants"] if "fault" not in v]
    head = ("output", "median size", *(f"change with {what}" for what in whats), "error")
    rows = [
        (
            f"{r['output']} [{r['unit']}]" if r["unit"] else r["output"],
            "-" if r["size"] is None else f"{r['size']:.5g}",
            *(f"{r['changes'][what]:.2g}" for what in whats),
            f"{r['error']:.2g}" + (f", undefined in one of them: {r['lost']}" if r["lost"] else ""),
        )
        for r in found["outputs"]
    ]
    parts.append(printed("outputs: largest change", head, rows, head[1:]))
    if found["criteria"]:
        words = {True: "met", False: "not met"}
        lines = [
            (r["criterion"], f"{r['met']:,} of {r['of']:,}", f"{r['near']:,}",
             words[r["passed"]] + ("" if r["settled"] else ", but the steps leave it open"))
            for r in found["criteria"]
        ]  # fmt: skip
        columns = ("criterion", "met by", "nearer to a bound than the error", "verdict")
        parts.append(printed("criteria", columns, lines, columns[1:3]))
    parts.append(Text(CONCLUSIONS[found["settled"]], style={True: "green", False: "red", None: ""}[found["settled"]]))
    return Group(*parts)
