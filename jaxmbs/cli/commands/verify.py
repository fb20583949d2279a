"""jaxmbs verify."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmbs.cli.common import BAD, Folder, Json, Quiet, Seal, Trust, problems, say, speaking


def verify(
    folder: Folder,
    repair: Annotated[
        bool, typer.Option("--repair", help="Restore study file, modules, provenance and metadata from their copies.")
    ] = False,
    mend: Annotated[bool, typer.Option("--mend", hidden=True)] = False,  # the name of --repair in earlier versions
    seal: Seal = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what a run's folder contains, and whether every number in it is the one that was computed."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.cli.show import inventory
        from jaxmbs.study.results.examination import examined

        if mend:
            say("warning: --mend is now called --repair, and will be removed in a later version", problems())
        found = examined(folder, repair or mend, trust, seal)
        if as_json:
            voice.document(found.document)
        else:
            voice.show(inventory(found, trust))
        if not found.sound:
            raise typer.Exit(BAD)
