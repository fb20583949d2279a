"""jaxmbs new."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmbs.cli.common import Json, Quiet, speaking


def new(
    template: Annotated[
        str, typer.Argument(metavar="TEMPLATE", help="Name of a template; without it, all are listed.")
    ] = "",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: TEMPLATE.toml.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a commented file to start from: a mechanism, a study, a separation, a deployment, a synthesis."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.folder.shell import command
        from jaxmbs.study.problem.templates import about, write

        if not template:
            found = about()
            voice.document(found)
            for name, said in found.items():
                voice.line(f"{name:12} {said}")
            return
        path = write(template, out)
        voice.document({"file": path})
        voice.line(f"{path} was written; look at it with: {command('info', path)}")
