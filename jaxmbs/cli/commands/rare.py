"""jaxmbs rare."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from jaxmbs.cli.common import File, Json, Quiet, Trust, compute, count, say_what_is_not_kept, speaking, watching


def rare(
    file: File,
    criterion: Annotated[
        str | None, typer.Option(help="The criterion, or its output; the only one by default.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="importance (importance sampling around failures) or subset (subset simulation).")
    ] = "importance",
    n: Annotated[
        int,
        typer.Option(
            "-n", "--samples", metavar="N", parser=count(100), help="Samples around the most probable failures."
        ),
    ] = 4000,
    radius: Annotated[
        float, typer.Option(min=0.1, help="Radius in which the worst case is searched, in standard deviations.")
    ] = 3.0,
    of: Annotated[
        str | None, typer.Option(metavar="DIR", help="A run of the same study, whose worst sample is also shown.")
    ] = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find how rarely a criterion is missed: probabilities down to one in ten million from a few thousand simulations."""
    with speaking(as_json, quiet) as voice, watching(voice) as announce:
        announce(f"reading {file}")
        from jaxmbs.study.problem.study import read

        checked = read(file, trust=trust)
        compute("float64")
        say_what_is_not_kept(checked, voice)
        from jaxmbs.study.reliability.rare import rare as computed
        from jaxmbs.study.reliability.rare import table

        def progress(stage: str, done: int, margin: float) -> None:
            down = "" if math.isnan(margin) else f", least margin {margin:.3g}"
            announce(stage, f"{done:,} simulations{down}")

        found = computed(checked, criterion, method, n, radius, of, progress)
        voice.document(found)
        voice.show(table(found))
