"""jaxmbs compare."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmbs.cli.common import Folder, Json, Quiet, Trust, speaking


def compare(
    a: Folder,
    b: Folder,
    within: Annotated[
        list[str] | None,
        typer.Option(
            help='How far outputs may differ: 1e-6 (in the unit of each), "0.1 %" (of its size) or "reach = 0.02 mm".'
        ),
    ] = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare two runs: how their files differ, and whether criteria and outputs differ by more than chance or, with
    --within, by more than it allows."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.statistics.comparison import compared, table

        found = compared(a, b, trust, within or ())
        if as_json:
            voice.document(found)
        else:
            voice.show(table(found))
