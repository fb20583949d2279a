"""jaxmbs resume."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmbs.cli.common import Cluster, Folder, Json, Quiet, Seal, Trust, Wait, compute, progress, speaking


def resume(
    folder: Folder,
    other_versions: Annotated[
        bool, typer.Option("--other-versions", help="Accept other versions of packages than those of the run.")
    ] = False,
    cluster: Cluster = None,
    wait: Wait = False,
    seal: Seal = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Continue an interrupted run and recompute what is damaged; the results are those of an uninterrupted run."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.results.store import open_folder, read_study

        compute(open_folder(folder).provenance["precision"])
        from jaxmbs.study.reports.terminal import table
        from jaxmbs.study.runs.run import resume as go_on
        from jaxmbs.study.statistics.summary import document

        with progress(voice, folder, trust) as told:
            store = go_on(folder, other_versions, told, trust, wait, cluster, seal)
        checked = read_study(store, trust)
        if as_json:
            voice.document(document(checked, store))
        elif not quiet:
            voice.show(table(checked, store))
