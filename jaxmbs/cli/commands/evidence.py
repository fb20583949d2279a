"""Commands that gather evidence on a run: check-steps, bundle."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from jaxmbs.cli.common import FAILED, Folder, Json, Precision, Quiet, Seal, Trust, compute, console, speaking


def check_steps(
    folder: Folder,
    check: Annotated[bool, typer.Option("--check", help="Exit code 3 where a verdict depends on the steps.")] = False,
    seal: Seal = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute the worst and some random samples of a run again, in float64, with finer steps and with another method of
    integration, and estimate how far its outputs are from those of the exact motion."""
    with speaking(as_json, quiet) as voice:
        compute(Precision.float64)
        from jaxmbs.study.evidence.steps import check_steps as checked
        from jaxmbs.study.evidence.steps import table

        with nullcontext() if as_json or quiet else console().status("computing samples again"):
            found = checked(folder, trust, seal)
        voice.document(found)
        voice.show(table(found))
        if check and found["settled"] is False:
            raise typer.Exit(FAILED)


def bundle(
    folder: Folder,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: DIR.zip beside it.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
    seal: Seal = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a finished run with its report, versions and checksums as one file, which `jaxmbs verify` checks anywhere."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.results.store import open_folder

        compute(open_folder(folder).provenance["precision"])
        from jaxmbs.study.evidence.bundle import bundle as written

        path = written(folder, out, overwrite, trust, seal)
        voice.document({"file": str(path), "bytes": path.stat().st_size})
        voice.line(f"bundle: {path} ({path.stat().st_size / 1e6:,.1f} MB)")
