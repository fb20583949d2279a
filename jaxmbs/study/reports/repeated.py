"""The simulations that a report repeats: histories of the samples that matter, a band of many samples, and the motion
of the worst one.

They are saved with the results, so that the next report of the same samples is quick. The modules that simulate and
draw are imported only if nothing is saved yet.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
import zlib
from dataclasses import dataclass, field, fields
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.study.folder.layout import HISTORIES
from jaxmbs.study.folder.seal import fault_of_marked, marked
from jaxmbs.study.folder.storage import write_whole
from jaxmbs.study.outputs import Clearance
from jaxmbs.study.results.provenance import salt

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.results.store import Store
    from jaxmbs.study.samples.repeat import History
    from jaxmbs.study.statistics.summary import Summary

FILE = HISTORIES
_MOST_BYTES = 1 << 30  # a saved file whose unpacked size is larger is not read
VERSION = 2  # of what is made here; what another version has saved is made again
PLACES = ("worst", "median", "best")
BAND = (0.0, 0.05, 0.95, 1.0)
_POINTS = 400  # approximate number of points of a history
_OF_A_BAND = 100  # most samples of a band
_NUMBERS = 2e7  # most numbers in the motions of a band; they limit the number of its samples


@dataclass(frozen=True)
class Repeated:
    """t (T,) [s]; samples (S,): indices of the repeated samples; values: output -> what it measures in these samples,
    (S, T); bands: output -> (4, T), quantiles `BAND` of what it measures, over the first `of_band` samples that
    succeeded; motion: a page that plays the motion, "" if nothing can be drawn; closest: the closest approaches,
    as JSON, "" if there are none."""

    t: np.ndarray = field(default_factory=lambda: np.zeros(0))
    samples: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    of_band: int = 0
    values: dict[str, np.ndarray] = field(default_factory=dict)
    bands: dict[str, np.ndarray] = field(default_factory=dict)
    motion: str = ""
    closest: str = ""

    def history(self, name: str, sample: int) -> np.ndarray:
        """What an output measures in a sample, (T,)."""
        return self.values[name][int(np.flatnonzero(self.samples == sample)[0])]


def repeated(study: Study, store: Store, summary: Summary, picked: dict[str, tuple[int, int, int]]) -> Repeated:
    """Histories of the picked samples {output: (worst, median, best)}; the motions are those of the worst and the median
    sample of the first output, and the nominal one."""
    if not picked:
        return Repeated()
    samples = _samples(picked)
    steps = max(1, int(study.simulation.t_end / study.simulation.dt))
    many = min(_OF_A_BAND, int(_NUMBERS / (steps * (study.model.nq + study.model.nv + len(study.outputs)))))
    good = summary.good(max(many, 0))
    shown = next(iter(picked.values()))[:2]
    wanted = np.array([VERSION, salt(store.provenance), *shown, *samples, 2**63, *good], np.uint64)
    found = _saved(store, wanted)
    return found or _made(study, store, picked, good, shown, wanted)


def _samples(picked: dict[str, tuple[int, int, int]]) -> list[int]:
    return sorted({sample for three in picked.values() for sample in three})


def _made(
    study: Study, store: Store, picked: dict[str, tuple[int, int, int]], good: np.ndarray, shown: tuple[int, ...],
    wanted: np.ndarray,
) -> Repeated:  # fmt: skip
    from jaxmbs.study.samples.repeat import repeat

    samples = _samples(picked)
    every, several = max(1, int(study.simulation.t_end / study.simulation.dt / _POINTS)), [*samples, *good.tolist()]
    draws = list(store.draws(study, several).values())
    nominal = study.dispersions.neutral[None]  # the last motion
    given = np.concatenate([np.concatenate(draws, axis=1), nominal]) if draws else None
    history = repeat(study, [*several, None], every, given, forces=True)
    s, last = len(samples), len(several)
    values = {name: x[:s] for name, x in history.values.items()}
    bands = {name: np.quantile(x[s:last], BAND, axis=0) for name, x in history.values.items() if len(good) > 1}
    worst = {name: (three[0], samples.index(three[0])) for name, three in picked.items()}
    pages = _motion(study, history, samples, shown), _closest(study, history, worst)
    found = Repeated(history.t, np.array(samples), len(good), values, bands, *pages)
    with contextlib.suppress(OSError):  # a read-only folder
        _save(found, store, wanted)
    return found


def _motion(study: Study, history: History, samples: list[int], shown: tuple[int, ...]) -> str:
    """The page of the worst sample's motion, over which the median and the nominal one are drawn."""
    from jaxmbs.dynamics import body_poses
    from jaxmbs.study.reports.closest import gap_lines
    from jaxmbs.study.reports.motion import limits_of, mechanisms, plots_of, shapes_of
    from jaxmbs.view.animate import moving_page
    from jaxmbs.view.segments import arrows

    rows = {f"{place} (sample {i})": samples.index(i) for place, i in zip(PLACES, shown, strict=False)}
    if history.numbers is not None:
        rows["nominal"] = len(history.q) - 1
    own = jax.tree.map(lambda x: x[list(rows.values())], history.numbers)
    models = dict(zip(rows, [m for m, _, _ in mechanisms(study, own)], strict=True))
    motions = {n: SimpleNamespace(t=history.t, q=history.q[k], events=None) for n, k in rows.items()}
    plots = plots_of(study, {name: {n: x[k] for n, k in rows.items()} for name, x in history.values.items()})
    worst, k = next(iter(rows.items()))
    positions = jax.vmap(lambda q, t: body_poses(models[worst], q, t=t).position)(history.q[k], history.t)
    forces = arrows(models[worst], worst, {n: x[k] for n, x in history.forces.items()}, np.asarray(positions))
    segments = [*forces, *(x for n, k in rows.items() for x in gap_lines(study, models[n], n, history, k))]
    limits = limits_of(study, plots)
    try:
        return moving_page(models, motions, plots, shapes=shapes_of(study), limits=limits, segments=segments)
    except ModelError:  # a mechanism that cannot be drawn
        return ""


def _closest(study: Study, history: History, worst: dict[str, tuple[int, int]]) -> str:
    """The closest approaches, as JSON. worst: output -> (its worst sample, the row of this sample in the history)."""
    if not any(isinstance(study.outputs[name], Clearance) for name in worst):
        return ""
    from jaxmbs.study.reports.closest import closest
    from jaxmbs.study.reports.motion import mechanisms

    rows = sorted({row for _, row in worst.values()})
    models = mechanisms(study, jax.tree.map(lambda x: x[np.array(rows)], history.numbers))
    return closest(study, history, dict(zip(rows, [m for m, _, _ in models], strict=True)), worst)


def _save(found: Repeated, store: Store, wanted: np.ndarray) -> None:
    arrays: dict[str, Any] = {"wanted": wanted}
    for f in fields(found):
        x = getattr(found, f.name)
        if isinstance(x, dict):
            arrays |= {f"{f.name}/{name}": y for name, y in x.items()}
        else:
            arrays[f.name] = np.frombuffer(x.encode(), np.uint8) if isinstance(x, str) else np.asarray(x)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_whole(store.folder / FILE, marked(buffer.getvalue(), f"{salt(store.provenance):x}", store.key))


def _saved(store: Store, wanted: np.ndarray) -> Repeated | None:
    """What was saved for exactly these samples; None if it is missing, of other samples, or not as it was written."""
    tables: dict[str, dict[str, np.ndarray]] = {"values": {}, "bands": {}}
    try:
        content = (store.folder / FILE).read_bytes()
        if fault_of_marked(content, f"{salt(store.provenance):x}", store.key) or _unpacked(content) > _MOST_BYTES:
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            if not np.array_equal(file["wanted"], wanted):
                return None
            for name in file.files:
                table, _, key = name.partition("/")
                if key:
                    tables[table][key] = file[name]
            pages = {name: file[name].tobytes().decode() for name in ("motion", "closest")}
            return Repeated(file["t"], file["samples"], int(file["of_band"]), **tables, **pages)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
        return None


def _unpacked(content: bytes) -> int:
    """Unpacked size that an archive states for its content [byte]."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return sum(item.file_size for item in archive.infolist())
