"""jaxmbs synthesize."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmbs.cli.common import FAILED, File, Json, Quiet, Trust, Voice, compute, problems, say, speaking, watching

KEPT = "checkpoint.npz"
LINES = 10.0  # time between two lines about a search if standard error is not a terminal [s]


def synthesize(
    file: File,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the design; a search that was begun there is continued.")
    ],
    pareto: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="A front of N designs between the best ones of two objectives: DIR/front.json."
        ),
    ] = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the parameters that a file's [design] asks for: DIR/design.json and DIR/report.html.

    With --pareto N, find the front of its two objectives with the goal least or lowest: DIR/front.json and DIR/front.html.
    """
    with speaking(as_json, quiet) as voice:
        from jaxmbs.design import front_report
        from jaxmbs.design import pareto as front_of
        from jaxmbs.design.file import read
        from jaxmbs.design.front_report import FRONT
        from jaxmbs.design.report import DESIGN, written
        from jaxmbs.design.report import as_json as record
        from jaxmbs.design.tally import counting
        from jaxmbs.design.terminal import table
        from jaxmbs.io.errors import InputError, Problem

        found = read(file, trust=trust)
        for name in (DESIGN, FRONT):
            if (out / name).exists():
                raise InputError(Problem("--out", f"{out / name} exists already; choose another folder"))
        out.mkdir(parents=True, exist_ok=True)
        compute("float64")
        from jaxmbs.design import synthesize as search
        from jaxmbs.design.comparison import compare

        kept = out / KEPT
        if kept.exists():
            voice.line(f"continuing the search in {kept}")
        try:
            with watching(Voice(quiet=as_json or quiet), LINES) as announce, counting() as tally:
                announce("compiling")

                def tell(steps: int, points: int, cost: float) -> None:
                    announce(tally.stage, tally.in_words(cost))

                if pareto is not None:
                    front = front_of(found.problem, pareto, kept, tell)
                    announce("writing the report")
                    front_report.written(front, out)
                    shown, document, success = front_report.table(front), front_report.as_json(front), True
                    parameters, page = FRONT, front_report.PAGE
                else:
                    design = search(found.problem, kept, tell)
                    announce("comparing with the original", f"{tally.evaluations:,} evaluations")
                    comparison = compare(design, found.check, found.study)
                    announce("writing the report")
                    written(design, comparison, out)
                    shown, document = table(design, comparison), record(design, comparison)
                    success, parameters, page = design.status.success, DESIGN, "report.html"
        except KeyboardInterrupt:
            say(f"stopped; the same command continues from {kept}", problems())
            raise typer.Exit(130) from None
        voice.show(shown)
        voice.line(f"parameters: {out / parameters}; page: {out / page}")
        voice.document(document)
        if not success:
            raise typer.Exit(FAILED)
