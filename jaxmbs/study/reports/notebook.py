"""What notebooks show of a run: its criteria, quantiles and histograms."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING

from jaxmbs.io.errors import InputError
from jaxmbs.study.reports import plots
from jaxmbs.study.reports.terminal import table
from jaxmbs.study.results.damage import sound_study
from jaxmbs.study.results.store import Store
from jaxmbs.study.statistics.summary import summarize

if TYPE_CHECKING:
    from rich.console import RenderableType

FRAME = "<pre style='line-height:1.25;font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace'>{code}</pre>"


def table_html(shown: RenderableType) -> str:
    """The table for the terminal, as HTML."""
    from rich.console import Console

    console = Console(record=True, file=io.StringIO(), width=120, force_terminal=True)
    console.print(shown)
    return console.export_html(inline_styles=True, code_format=FRAME)


def run_html(store: Store) -> str:
    """The table for the terminal and a histogram of every output; if a run cannot be shown, the reason instead."""
    head = f"<b>{escape(str(store.folder))}</b>"
    try:
        study = sound_study(store)  # without its Python modules, which run only if the user trusts them
    except InputError as error:
        return f"<div>{head}<pre>{escape(str(error))}</pre></div>"
    summary = summarize(study, store)
    pictures = "".join(
        plots.histogram(values, name, study.shown[name], [c for c in study.criteria if c.output == name])
        for name, values in summary.outputs.items()
    )
    return f"<div>{head}{table_html(table(study, store, summary))}{pictures}</div>"
