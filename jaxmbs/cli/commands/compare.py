"""jaxmbs compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmbs.cli.common import Json, Quiet, Trust, speaking

Run = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")]


def compare(a: Run, b: Run, trust: Trust = False, as_json: Json = False, quiet: Quiet = False) -> None:
    """Compare two runs: what differs in their files, and whether criteria and outputs differ by more than chance."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.comparison import compared, table

        found = compared(a, b, trust)
        if as_json:
            voice.document(found)
        else:
            voice.show(table(found))
