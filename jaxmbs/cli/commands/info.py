"""jaxmbs info."""

from __future__ import annotations

from jaxmbs.cli.common import File, Json, Trust, speaking


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
