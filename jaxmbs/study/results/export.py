"""Exports samples as tables for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.folder import storage
from jaxmbs.study.outputs.folding import AT_START, EVENT_COUNTS, EVENT_TIMES
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import sound_study
from jaxmbs.study.units import si

if TYPE_CHECKING:
    import pandas

    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.results.store import Store


def in_units(study: Study, store: Store, table: pandas.DataFrame) -> pandas.DataFrame:
    """A table of a run's samples in the units of the study's file, which the column heads state: "reach [mm]".

    Columns for which the file gives no unit stay in SI. If a variable has one number per event or output, the name of
    the event or output follows in the head: "event_times.release [s]", "at_start.reach".
    """
    called = store.labels(study)
    used = {called.outputs[name]: unit for name, unit in study.shown.items()}
    used |= {"energy_error": si("energy"), EVENT_TIMES: si("time")}
    used |= {called.draws[d.name]: d.unit or si(d.quantity or "number") for d in study.dispersions.items}
    members: dict[str, tuple[str, ...]] = dict.fromkeys((EVENT_COUNTS, EVENT_TIMES), study.model.event_names)
    members |= {AT_START: names} if (names := store.starting(study)) else {}
    found = {}
    for column, values in table.items():
        name, _, number = str(column).removesuffix("]").partition("[")
        unit = used.get(name)
        head = f"{name}.{members[name][int(number or 0)]}" if name in members else str(column)
        if unit is None or unit.factor == 1.0:
            found[head + (f" [{unit.name}]" if unit and unit.name else "")] = values
        else:
            found[f"{head} [{unit.name}]"] = values / unit.factor
    return type(table)(found, index=table.index)


def written(
    folder: str | Path,
    csv: bool = True,
    parquet: bool = False,
    out: str | Path | None = None,
    overwrite: bool = False,
    trust: bool = False,
) -> list[Path]:
    """Write all samples of a run, one row each; returns the files. out: the name of the file, by default samples.csv or
    samples.parquet in the run's folder.

    Raises InputError if the run is damaged, a file exists (unless `overwrite` is set) or pyarrow is missing.
    """
    store = stores.open_folder(folder)
    place = storage.place(out) if out is not None else None
    if csv and parquet and out is not None:
        raise InputError(Problem("--out", "names one file, but --csv and --parquet write two; leave one out"))
    wanted = [
        (kind, place or store.folder / f"samples.{kind}") for kind, on in (("csv", csv), ("parquet", parquet)) if on
    ]
    for _, path in wanted:
        if path.exists() and not overwrite:
            raise InputError(Problem(str(path), "exists already; choose another name with --out, or pass --overwrite"))
    study = sound_study(store, trust)
    table = in_units(study, store, store.to_dataframe())
    for kind, path in wanted:
        if kind == "csv":
            with path.open("w", newline="", encoding="utf-8") as file:
                table.to_csv(file, float_format="%.17g")
            continue
        try:
            with path.open("wb") as file:
                table.to_parquet(file)
        except ImportError:
            message = "Parquet needs pyarrow: pip install pyarrow; or take --csv"
            raise InputError(Problem("--parquet", message)) from None
    return [path for _, path in wanted]
