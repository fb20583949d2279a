"""Commands that compute samples: study, resume."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmbs.cli.common import (
    Cluster,
    File,
    Folder,
    Json,
    Precision,
    Quiet,
    Seal,
    Trust,
    Wait,
    WithPrecision,
    compute,
    count,
    progress,
    say_what_is_not_kept,
    speaking,
)


def study(
    file: File,
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="Folder for the results, or s3://BUCKET/NAME; must not contain results yet."),
    ],
    n: Annotated[
        int | None,
        typer.Option(
            "-n", "--samples", metavar="N", parser=count(1), help="Number of samples; a sweep determines its own."
        ),
    ] = None,
    block_rows: Annotated[int | None, typer.Option(min=64, help="Samples computed at once on a core.")] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Stop before n: as soon as all criteria are 'decided', or all intervals as narrow as, say, 0.01.",
        ),
    ] = None,
    cluster: Cluster = None,
    precision: WithPrecision = Precision.float64,
    wait: Wait = False,
    seal: Seal = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a Monte Carlo study."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.problem.study import read

        checked = read(file, trust=trust).of_size(n)
        n = checked.n or 0
        from jaxmbs.study.folder.storage import place
        from jaxmbs.study.runs.estimate import check

        there = place(out)
        check(checked, n, block_rows or 0, precision, there)
        compute(precision)
        say_what_is_not_kept(checked, voice)
        from jaxmbs.study.folder.shell import command
        from jaxmbs.study.reports.terminal import table
        from jaxmbs.study.runs.run import run
        from jaxmbs.study.statistics.summary import document

        with progress(voice, out, trust) as announce:
            store = run(checked, n, there, block_rows, announce, wait, rule(until), cluster, trust, seal)
        if as_json:
            voice.document(document(checked, store))
        elif not quiet:
            voice.show(table(checked, store))
            page = command("report", store.folder, record=store.provenance)
            voice.line(f"results: {store.folder}; for a report as a page: {page}")


def rule(until: str | None) -> float | str | None:
    """The rule of --until as a number if it is one, else as text; None if there is none."""
    try:
        return float(until) if until else None
    except ValueError:
        return until


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
        from jaxmbs.study.results.described import read_study
        from jaxmbs.study.results.store import open_folder

        compute(open_folder(folder).provenance["precision"])
        from jaxmbs.study.reports.terminal import table
        from jaxmbs.study.runs.run import resume as go_on
        from jaxmbs.study.statistics.summary import document

        with progress(voice, folder, trust) as announce:
            store = go_on(folder, other_versions, announce, trust, wait, cluster, seal)
        checked = read_study(store, trust)
        if as_json:
            voice.document(document(checked, store))
        elif not quiet:
            voice.show(table(checked, store))
