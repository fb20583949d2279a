"""Commands about a file: new, keys, schema, info."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from jaxmbs.cli.common import File, Json, Quiet, Trust, speaking

EVERYTHING, DESIGNS = "all", "trade"


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


def keys(
    path: Annotated[
        str,
        typer.Argument(
            metavar="[PATH]",
            help='A key, table or type, such as "mechanism.forces" or "pusher", "all", or "trade" for a file of designs; '
            "without it, a table of contents.",
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Show the keys of a file: what they hold, their units and defaults."""
    with speaking(as_json) as voice:
        from jaxmbs.cli.show import overview, reference
        from jaxmbs.design.file import file_table
        from jaxmbs.io.reference import keys as known_keys
        from jaxmbs.io.reference import table_of_contents
        from jaxmbs.study.trades.schema import DesignsFile

        table = DesignsFile if path == DESIGNS else file_table()
        found = known_keys(table, "" if path in (EVERYTHING, DESIGNS) else path)
        voice.document([asdict(k) for k in found])
        if not as_json:
            voice.show(reference(found) if path else overview(table_of_contents(found)))


def schema(
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it to this file instead of the terminal.")
    ] = None,
) -> None:
    """Write the JSON schema of a file, with which editors complete keys and mark mistakes.

    A file names it in its first line, "#:schema ./jaxmbs.schema.json", for editors with Taplo or Even Better TOML.
    """
    with speaking(True) as voice:
        from jaxmbs.design.file import file_table
        from jaxmbs.io.reference import json_schema

        found = json_schema(file_table())
        if out is None:
            voice.document(found)
        else:
            out.write_text(json.dumps(found, indent=1), encoding="utf-8")


def info(file: File, trust: Trust = False, as_json: Json = False) -> None:
    """Show everything that a file describes: bodies, joints, forces, events, dispersions, outputs, criteria."""
    with speaking(as_json) as voice:
        from jaxmbs.cli.describe import described
        from jaxmbs.study.problem.contents import contents
        from jaxmbs.study.problem.study import read

        found = read(file, need="mechanism", trust=trust)
        voice.document(contents(found) if as_json else None)
        if not as_json:
            voice.show(described(found))
