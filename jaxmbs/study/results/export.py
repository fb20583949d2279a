"""Exports samples as tables for other programs."""

from __future__ import annotations

import importlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.matlab import write_matlab
from jaxmbs.study.folder import storage
from jaxmbs.study.outputs.folding import AT_START, EVENT_COUNTS, EVENT_TIMES
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import sound_study
from jaxmbs.study.units import si

if TYPE_CHECKING:
    import pandas

    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.results.store import Store

_ROWS_OF_A_SHEET = 1_048_575  # of Excel, without the heads


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
    kinds: Collection[str] = (),
    out: str | Path | None = None,
    overwrite: bool = False,
    trust: bool = False,
) -> list[Path]:
    """Write all samples of a run, one row each; returns the files.

    kinds: some of "csv" (every digit), "parquet" (needs pyarrow), "mat" (MATLAB and Octave) and "xlsx" (Excel; needs
    openpyxl); without any, that of the file's suffix, or "csv". out: the name of the file, by default samples.KIND in the
    run's folder. Raises InputError if the run is damaged, a file exists (unless `overwrite` is set), a package is missing,
    or there are more samples than rows of a sheet.
    """
    store = stores.open_folder(folder)
    place = storage.place(out) if out is not None else None
    if place is not None:
        named = place.suffix.removeprefix(".")
        if len(kinds) > 1:
            raise InputError(Problem("--out", f"names one file, but {' and '.join(kinds)} are several; leave one out"))
        kinds = kinds or (named,)
        if named not in WRITERS or named not in kinds:
            ends = " or ".join(f".{kind}" for kind in (kinds if named in WRITERS else WRITERS))
            raise InputError(Problem("--out", f"{place.name} must end with {ends}"))
    kinds = kinds or ("csv",)
    wanted = [(kind, place or store.folder / f"samples.{kind}") for kind in kinds]
    for _, path in wanted:
        if path.exists() and not overwrite:
            raise InputError(Problem(str(path), "exists already; choose another name with --out, or pass --overwrite"))
    if "xlsx" in kinds and store.n > _ROWS_OF_A_SHEET:
        message = f"{store.n:,} samples are more than the {_ROWS_OF_A_SHEET:,} rows of a sheet; take --parquet or --csv"
        raise InputError(Problem("--xlsx", message))
    study = sound_study(store, trust)
    table = in_units(study, store, store.to_dataframe())
    for kind, path in wanted:
        try:
            WRITERS[kind](table, path)
        except ImportError:
            package = {"parquet": "pyarrow", "xlsx": "openpyxl"}.get(kind, "scipy")
            raise InputError(Problem(f"--{kind}", f"needs {package}: pip install {package}; or take --csv")) from None
    return [path for _, path in wanted]


def _csv(table: pandas.DataFrame, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table.to_csv(file, float_format="%.17g")


def _parquet(table: pandas.DataFrame, path: Path) -> None:
    importlib.import_module("pyarrow")
    with path.open("wb") as file:
        table.to_parquet(file)


def _mat(table: pandas.DataFrame, path: Path) -> None:
    write_matlab(path, {str(head): table[head].to_numpy() for head in table} | {"sample": table.index.to_numpy()})


def _xlsx(table: pandas.DataFrame, path: Path) -> None:
    importlib.import_module("openpyxl")  # pandas looks for it only once the file is there
    with path.open("wb") as file:
        table.to_excel(file, sheet_name="samples", engine="openpyxl")


WRITERS = {"csv": _csv, "parquet": _parquet, "mat": _mat, "xlsx": _xlsx}
