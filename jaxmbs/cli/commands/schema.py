"""jaxmbs schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmbs.cli.common import speaking


def schema(
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it to this file instead of the terminal.")
    ] = None,
) -> None:
    """Write the JSON schema of a file, with which editors complete keys and mark mistakes.

    A file names it in its first line, "#:schema ./jaxmbs.schema.json", for editors with Taplo or Even Better TOML.
    """
    with speaking(True) as voice:
        import json

        from jaxmbs.design.file import file_table
        from jaxmbs.io.reference import json_schema

        found = json_schema(file_table())
        if out is None:
            voice.document(found)
        else:
            out.write_text(json.dumps(found, indent=1), encoding="utf-8")
