"""Commands about the results of a run: verify, report, compare, sensitivity, export."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import Annotated

import typer

from jaxmbs.cli.common import BAD, FAILED, Folder, Json, Quiet, Seal, Trust, compute, console, problems, say, speaking


def verify(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of a run, its address, or a bundle (.zip).")],
    repair: Annotated[
        bool, typer.Option("--repair", help="Restore study file, modules, provenance and metadata from their copies.")
    ] = False,
    machine: Annotated[
        bool,
        typer.Option(
            "--compare-machine",
            help="Compute the first block of samples again here, and compare it with the stored one.",
        ),
    ] = False,
    mend: Annotated[bool, typer.Option("--mend", hidden=True)] = False,  # the name of --repair in earlier versions
    seal: Seal = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what a run's folder or a bundle contains, and whether every number in it is the one that was computed. Exit code
    1 if not, or if the numbers computed here differ from these by more than rounding (--compare-machine)."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.cli.show import inventory
        from jaxmbs.study.evidence.bundle import examined_bundle, is_bundle, unpacked
        from jaxmbs.study.results.examination import examined
        from jaxmbs.study.results.store import open_folder

        if mend:
            say("warning: --mend is now called --repair, and will be removed in a later version", problems())
        packed = is_bundle(folder)
        if packed and (repair or mend):
            from jaxmbs.io.errors import InputError, Problem

            raise InputError(Problem("--repair", "a bundle is never changed; unpack it, and repair the folder"))
        with ExitStack() as stack:
            there, again = folder, None
            if machine:  # before any array exists
                if packed:
                    there = str(stack.enter_context(unpacked(folder))[0])
                compute(open_folder(there).provenance["precision"])
            found = examined_bundle(folder, trust, seal) if packed else examined(folder, repair or mend, trust, seal)
            document = found.document
            if machine and found.sound:
                from jaxmbs.study.evidence.machine import compare_machine

                again = document["machine"] = compare_machine(there, trust=trust) | {"folder": folder}
            if as_json:
                voice.document(document)
            else:
                voice.show(inventory(found, trust))
            if again is not None:
                from jaxmbs.study.evidence.machine import table

                voice.show(table(again))
        if not found.sound or (again is not None and again["verdict"] == "differs"):
            raise typer.Exit(BAD)


def report(
    folder: Folder,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit code 3 where a criterion or requirement fails, or samples are missing."),
    ] = False,
    seal: Seal = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Report a run, finished or not: a table here, and DIR/report.html. A criterion fails if fewer samples meet it than it
    asks for: all samples, or a share of them ("clearance > 0.02 m in 99 %")."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.results.store import open_folder

        compute(open_folder(folder).provenance["precision"])
        from jaxmbs.study.reports.report import report as write

        with nullcontext() if as_json or quiet else console().status("writing the report"):
            written = write(folder, trust, seal)
        if as_json:
            voice.document(written.document | {"page": str(written.path)})
        else:
            voice.show(written.table)
            voice.line(f"page: {written.path}")
        if check and not written.passed:
            raise typer.Exit(FAILED)


def compare(
    folders: Annotated[
        list[str],
        typer.Argument(metavar="DIR...", help="Folders or addresses of two runs, or of several finished ones."),
    ],
    within: Annotated[
        list[str] | None,
        typer.Option(
            help='How far outputs may differ: 1e-6 (in the unit of each), "0.1 %" (of its size) or "reach = 0.02 mm".'
        ),
    ] = None,
    trust: Trust = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare two runs: how their files differ, and whether criteria and outputs differ by more than chance or, with
    --within, by more than it allows. Several runs with the same draws are shown side by side, with their differences
    from the first and intervals that hold for all of them at once."""
    with speaking(as_json, quiet) as voice:
        if len(folders) != 2:
            from jaxmbs.io.errors import InputError, Problem
            from jaxmbs.study.trades.runs import compared_runs
            from jaxmbs.study.trades.terminal import table as table_of_runs

            if len(folders) < 2:
                raise InputError(Problem("DIR...", f"{len(folders)} run; name two or more"))
            if within:
                raise InputError(Problem("--within", "says whether two runs agree; name two runs"))
            document = compared_runs(folders, trust)
            voice.document(document)
            if not as_json:
                voice.show(table_of_runs(document, "run"))
            return
        from jaxmbs.study.statistics.comparison import compared, table

        found = compared(folders[0], folders[1], trust, within or ())
        if as_json:
            voice.document(found)
        else:
            voice.show(table(found))


def sensitivity(folder: Folder, trust: Trust = False, as_json: Json = False, quiet: Quiet = False) -> None:
    """Show which inputs drive each output of a run: Sobol indices (design = "saltelli" in the file), Morris' effects
    (design = "morris"), rank correlations otherwise."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.results.store import open_folder

        compute(open_folder(folder).provenance["precision"])
        from jaxmbs.study.statistics.sensitivity import sensitivity as computed
        from jaxmbs.study.statistics.sensitivity import table

        found = computed(folder, trust)
        voice.document(found)
        voice.show(table(found))


def export(
    folder: Folder,
    csv: Annotated[
        bool, typer.Option("--csv", help="Comma-separated text, every digit; without a choice, this.")
    ] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Parquet (needs pyarrow).")] = False,
    mat: Annotated[bool, typer.Option("--mat", help="For MATLAB and Octave.")] = False,
    xlsx: Annotated[bool, typer.Option("--xlsx", help="For Excel (needs openpyxl).")] = False,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Its suffix decides the kind if none is chosen. Default: DIR/samples.KIND."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the Python modules and FMUs that the study names.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write all samples as a table, one row each: outputs, draws by component, status."""
    with speaking(as_json, quiet) as voice:
        from jaxmbs.study.results.export import written

        chosen = {"csv": csv, "parquet": parquet, "mat": mat, "xlsx": xlsx}
        paths = written(folder, [kind for kind, on in chosen.items() if on], out, overwrite, trust)
        voice.document({"files": list(map(str, paths))})
        for path in paths:
            voice.line(f"samples: {path}")
