"""jaxmbs report."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmbs.cli.common import FAILED, Folder, Json, Quiet, Seal, Trust, compute, console, speaking


def report(
    folder: Folder,
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 3 where a criterion fails or samples are missing.")
    ] = False,
    seal: Seal = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Report a run, finished or not: a table here, and DIR/report.html. A criterion fails if fewer samples meet it than it
    asks for: all samples, or a share of them ("clearance > 0.02 m in 99 %")."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.results.store import open_folder

        compute(open_folder(folder).provenance["precision"])
        from contextlib import nullcontext

        from jaxmbs.study.reports.report import report as write

        with nullcontext() if as_json or quiet else console().status("writing the report"):
            written = write(folder, trust, seal)
        if as_json:
            voice.document(written.document | {"page": str(written.path)})
        else:
            voice.show(written.table)
            voice.line(f"page: {written.path}")
        if check and not written.passed:
            raise typer.Exit(FAILED)
