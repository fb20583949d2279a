"""jaxmbs export."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmbs.cli.common import Folder, Json, Quiet, speaking


def export(
    folder: Folder,
    csv: Annotated[bool, typer.Option("--csv", help="Comma-separated text, every digit.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Parquet (needs pyarrow).")] = False,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Default: DIR/samples.csv or .parquet.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Run the Python modules that the study names.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write all samples as a table, one row each: outputs, draws by component, status."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.results.export import written

        paths = written(folder, csv or not parquet, parquet, out, overwrite, trust)
        voice.document({"files": list(map(str, paths))})
        for path in paths:
            voice.line(f"samples: {path}")
