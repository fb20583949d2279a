"""Samples as tables of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study import storage
from jaxmbs.study import store as stores
from jaxmbs.study.damage import require_sound
from jaxmbs.study.outputs.folding import AT_START, EVENT_COUNTS, EVENT_TIMES, at_their_start
from jaxmbs.study.units import si

if TYPE_CHECKING:
    import pandas

    from jaxmbs.study.layout import Labels
    from jaxmbs.study.problem import Study


def in_units(study: Study, table: pandas.DataFrame, labels: Labels) -> pandas.DataFrame:
    """A table of samples in the units that the study's file uses, told in the heads of columns: "reach [mm]".

    labels: of the table's columns. Numbers without a unit stay in SI. Columns of events and of outputs at their start are
    named after them.
    """
    used = {"energy_error": si("energy"), EVENT_TIMES: si("time")}
    used |= {labels.outputs[name]: unit for name, unit in study.shown.items()}
    used |= {labels.draws[d.name]: d.unit or si(d.quantity or "number") for d in study.dispersions.items}
    members: dict[str, tuple[str, ...]] = dict.fromkeys((EVENT_COUNTS, EVENT_TIMES), study.model.event_names)
    members |= {} if AT_START in used else {AT_START: at_their_start(study.outputs)}
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
    """Write all samples of a run, one row each; returns the files.

    Raises InputError where the run is damaged, a file exists (unless overwrite) or pyarrow is missing.
    """
    store = stores.open_folder(folder)
    place = storage.place(out) if out is not None else None
    if csv and parquet and out is not None:
        raise InputError(Problem("--out", "names one file, and --csv and --parquet make two; leave one out"))
    wanted = [
        (kind, place or store.folder / f"samples.{kind}") for kind, on in (("csv", csv), ("parquet", parquet)) if on
    ]
    for _, path in wanted:
        if path.exists() and not overwrite:
            raise InputError(Problem(str(path), "exists already; choose another name with --out, or say --overwrite"))
    study = stores.read_study(store, trust)
    stores.require_results(study, store)
    require_sound(study, store)
    table = in_units(study, store.to_dataframe(), store.labels(study))
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
