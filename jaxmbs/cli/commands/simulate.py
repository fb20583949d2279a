"""jaxmbs simulate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jaxmbs.cli.common import File, Json, Precision, Quiet, Trust, compute, speaking

if TYPE_CHECKING:
    from jaxmbs.study import Study


def simulate(
    file: File,
    sample: Annotated[int | None, typer.Option(min=0, help="Repeat this sample instead of the nominal motion.")] = None,
    of: Annotated[str | None, typer.Option(metavar="DIR", help="The run that the sample belongs to.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the history: NAME.csv, NAME.npz or NAME.zarr.")] = None,
    animate: Annotated[
        Path | None, typer.Option(help="An animation: NAME.html, NAME.glb, NAME.gif or NAME.mp4.")
    ] = None,
    shapes: Annotated[
        bool, typer.Option("--shapes", help="Draw the shapes of clearances also on bodies that have visuals.")
    ] = False,
    save_every: Annotated[int, typer.Option(min=1, help="Save one in so many steps.")] = 1,
    precision: Annotated[Precision | None, typer.Option(help="Default: that of the run, else float64.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the history if it exists.")] = False,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a mechanism, or repeat one sample of a study with its full history."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.folder.storage import is_address, place
        from jaxmbs.study.problem.study import read
        from jaxmbs.study.results.described import read_study
        from jaxmbs.study.results.store import open_folder

        store = open_folder(of) if of else None
        there = place(file)
        if store and is_address(there) and there == store.folder / "study.toml":
            study = read_study(store, trust)
        else:
            study = read(file, need="simulation", trust=trust)
        _check_sample(study, store, sample, file)
        study = study.of_size(store.n) if store else study
        from jaxmbs.study.runs.estimate import check_history
        from jaxmbs.study.samples.repeat import check_name, repeat, write

        path = out or Path(file.stem + (f"_sample_{sample}" if sample is not None else "") + ".csv")
        check_name(path, overwrite)
        if animate:
            from jaxmbs.study.reports.motion import check_picture

            check_picture(animate)
        check_history(study)
        compute(precision or (store.provenance["precision"] if store else "float64"))
        from jaxmbs.cli.show import one_run, one_run_document

        history = repeat(study, None if sample is None else [sample], save_every)
        write(study, history, path, overwrite=overwrite)
        written = {"history": path}
        if animate:
            from jaxmbs.study.reports.motion import limits_of, motion, plots_with_coordinates, shapes_of
            from jaxmbs.view import animate as draw
            from jaxmbs.view.animate import FILMS

            every = history if save_every == 1 else repeat(study, None if sample is None else [sample])
            plots = None if animate.suffix in FILMS else plots_with_coordinates(study, every)
            given = {"plots": plots, "shapes": shapes_of(study), "over_visuals": shapes}
            given["limits"] = limits_of(study, plots or {})
            given["forces"] = animate.suffix == ".html"
            written["picture"] = draw(*motion(study, sample), animate, **given)
        if as_json:
            voice.document(one_run_document(study, history, store, sample) | written)
        else:
            voice.show(one_run(study, history, store, sample))
            for what, where in written.items():
                voice.line(f"{what}: {where}")


def _check_sample(study: Study, store: Any, sample: int | None, file: Path) -> None:
    from jaxmbs.io.errors import InputError, Problem

    if store is None:
        return
    if sample is None:
        raise InputError(Problem("--of", "needs --sample, the sample of the run that is to be repeated"))
    record = store.provenance
    if (record["file_sha256"], record.get("modules", {})) != (study.sha256, study.hashes):
        message = f"is not the file of this run; use {store.folder / 'study.toml'}"
        raise InputError(Problem(str(file), message))
    if sample >= store.n:
        raise InputError(Problem("--sample", f"{sample} does not exist; the run has samples 0 to {store.n - 1}"))
