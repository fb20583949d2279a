"""jaxmbs verify."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmbs.cli.common import BAD, Folder, Json, Quiet, Trust, speaking


def verify(
    folder: Folder,
    mend: Annotated[
        bool, typer.Option("--mend", help="Put back study file, modules, provenance and metadata from their copies.")
    ] = False,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a run's folder has, and whether every number in it is the one that was computed."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.cli.show import inventory
        from jaxmbs.study.damage import examined

        found = examined(folder, mend, trust)
        if as_json:
            voice.document(found.document)
        else:
            voice.show(inventory(found, trust))
        if not found.sound:
            raise typer.Exit(BAD)
