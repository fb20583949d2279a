"""Samples as tables of other programs."""

from __future__ import annotations

from pathlib import Path

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study import storage
from jaxmbs.study import store as stores
from jaxmbs.study.damage import require_sound


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
    table = store.to_dataframe()
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
