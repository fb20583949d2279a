"""jaxmbs synthesize."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmbs.cli.common import FAILED, File, Json, Quiet, Trust, compute, console, problems, say, speaking

KEPT = "checkpoint.npz"


def synthesize(
    file: File,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the design; goes on with a search begun there.")],
    pareto: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Designs between the best of each of two objectives: DIR/front.json."),
    ] = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the parameters that a file's [design] asks for: DIR/design.json and DIR/report.html.

    With --pareto N the front of its two objectives that get least or lowest: DIR/front.json and DIR/front.html.
    """
    with speaking(as_json, quiet) as voice:
        import numpy as np

        from jaxmbs.design import front_report
        from jaxmbs.design import pareto as front_of
        from jaxmbs.design.file import read
        from jaxmbs.design.front_report import FRONT
        from jaxmbs.design.report import DESIGN, table, written
        from jaxmbs.design.report import as_json as record
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
            voice.line(f"going on with the search in {kept}")
        try:
            with (problems() if as_json or quiet else console()).status("compiling") as said:

                def tell(steps: int, running: int, cost: float) -> None:
                    value = f"best value {cost:.4g}" if np.isfinite(cost) else "no start meets the conditions yet"
                    said.update(f"step {steps}, {running} searches running, {value}")

                if pareto is not None:
                    front = front_of(found.problem, pareto, kept, tell)
                    front_report.written(front, out)
                    voice.show(front_report.table(front))
                    voice.line(f"parameters: {out / FRONT}; page: {out / front_report.PAGE}")
                    voice.document(front_report.as_json(front))
                    return
                design = search(found.problem, kept, tell)
                said.update("comparing with the original")
                comparison = compare(design, found.check, found.study)
                said.update("writing the report")
                written(design, comparison, out)
        except KeyboardInterrupt:
            say(f"stopped; the same command goes on from {kept}", problems())
            raise typer.Exit(130) from None
        voice.show(table(design, comparison))
        voice.line(f"parameters: {out / DESIGN}; page: {out / 'report.html'}")
        voice.document(record(design, comparison))
        if not design.status.success:
            raise typer.Exit(FAILED)
