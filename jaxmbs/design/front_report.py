"""The output of a front of two objectives: front.json, a table for the terminal, one HTML page with its picture."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from jaxmbs.design import plots
from jaxmbs.design.front import Front
from jaxmbs.design.report import write
from jaxmbs.design.terminal import said
from jaxmbs.io.reports import plain, printed
from jaxmbs.study.reports.page_style import document, panel, picture, table_of_texts

FRONT, PAGE = "front.json", "front.html"


def as_json(front: Front) -> dict[str, Any]:
    """The front as data for programs: `set` takes the "parameters" of each point as they are."""
    record = {
        "objectives": front.names,
        "dropped": front.dropped,
        "points": [
            {
                "values": p.values,
                "status": p.status.name,
                "parameters": p.parameters,
                "failed_samples": [str(f) for f in p.failed],
            }
            for p in front.points
        ],
    }
    return plain(record)


def _rows(front: Front) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    names = list(front.points[0].parameters) if front.points else []
    failed = any(p.failed for p in front.points)
    rows = [
        (*(f"{v:.6g}" for v in p.values), *(said(p.parameters[n]) for n in names),
         *(["; ".join(map(str, p.failed))] if failed else []))
        for p in front.points
    ]  # fmt: skip
    return (*front.names, *names, *(["failed"] if failed else [])), rows


def outcome(front: Front) -> str:
    """The result in one line."""
    return (
        f"{len(front.points)} designs, none better than another in both objectives; {front.dropped} searches ended at "
        "worse ones"
    )


def table(front: Front) -> RenderableType:
    """The front as a table for the terminal."""
    return printed(outcome(front), *_rows(front))


def written(front: Front, folder: Path) -> tuple[Path, Path]:
    """Write front.json and the page into the folder; returns their paths."""
    name = escape(front.problem.model.name)
    content = (
        f"<h1>{name}: front of two objectives</h1><p class=lead>{escape(outcome(front))}</p>"
        + picture(plots.front(front.values, front.names))
        + "<h2>Designs, SI</h2>"
        + panel(table_of_texts(*_rows(front)))
    )
    return (
        write(folder / FRONT, json.dumps(as_json(front), indent=1, allow_nan=False) + "\n"),
        write(folder / PAGE, document(f"{name}: front", content)),
    )
