"""jaxmbs compare."""

from __future__ import annotations

from jaxmbs.cli.common import Folder, Json, Quiet, Trust, speaking


def compare(a: Folder, b: Folder, trust: Trust = False, as_json: Json = False, quiet: Quiet = False) -> None:
    """Compare two runs: what differs in their files, and whether criteria and outputs differ by more than chance."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.comparison import compared, table

        found = compared(a, b, trust)
        if as_json:
            voice.document(found)
        else:
            voice.show(table(found))
