"""jaxmbs keys."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmbs.cli.common import Json, speaking

EVERYTHING = "all"


def keys(
    path: Annotated[
        str,
        typer.Argument(
            metavar="[PATH]",
            help='A key, table or type, such as "mechanism.forces" or "pusher", or "all"; without it, a table of contents.',
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Show the keys of a file: what they hold, their units and defaults."""
    with speaking(as_json) as voice:
        from dataclasses import asdict

        from jaxmbs.cli.show import overview, reference
        from jaxmbs.design.file import file_table
        from jaxmbs.io.reference import keys as known_keys
        from jaxmbs.io.reference import table_of_contents

        found = known_keys(file_table(), "" if path == EVERYTHING else path)
        voice.document([asdict(k) for k in found])
        if not as_json:
            voice.show(reference(found) if path else overview(table_of_contents(found)))
