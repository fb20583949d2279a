"""jaxmbs trade."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmbs.cli.common import (
    Cluster,
    Json,
    Precision,
    Quiet,
    Trust,
    Voice,
    WithPrecision,
    compute,
    count,
    problems,
    say,
    speaking,
    watching,
)


def trade(
    designs: Annotated[Path, typer.Argument(metavar="DESIGNS", help="TOML file of designs: jaxmbs keys trade.")],
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for the results; what is computed there already is kept.")
    ],
    n: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--samples",
            metavar="N",
            parser=count(1),
            help="Samples of each design, unless a sampling plan fixes them.",
        ),
    ] = None,
    cluster: Cluster = None,
    precision: WithPrecision = Precision.float64,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare designs: the same study of each, with the same draws in all of them, and their differences from the
    baseline, the first unless the file names another.

    Every design gets a run's folder, DIR/NAME; the comparison is DIR/trade.html and DIR/trade.json. The same command
    continues what was interrupted.
    """
    with speaking(as_json, quiet) as voice:
        compute(precision)
        from jaxmbs.study.trades.trade import trade as computed

        try:
            with watching(Voice(quiet=as_json or quiet)) as announce:
                announce(f"reading {designs}")

                def tell(design: str, stage: str, done: int, n: int) -> None:
                    announce({"compile": f"{design}: compiling"}.get(stage, design), f"{done:,} of {n:,} samples")

                found = computed(designs, n, out, progress=tell, trust=trust, cluster=cluster)
        except KeyboardInterrupt:
            say("stopped; the same command continues", problems())
            raise typer.Exit(130) from None
        voice.document(found.document)
        if not as_json:
            voice.show(found.table)
            voice.line(f"page: {found.path}; each design's results: {found.folder}/NAME")
