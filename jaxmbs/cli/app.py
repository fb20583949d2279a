"""Commands: info, simulate, study, resume, report."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from jaxmbs.study import Study

app = typer.Typer(
    name="jaxmbs", help="Rigid multibody dynamics over thousands of mechanisms at once.", no_args_is_help=True,
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip
console = Console()
problems = Console(stderr=True)


class Precision(StrEnum):
    float32 = "float32"
    float64 = "float64"


File = Annotated[Path, typer.Argument(metavar="FILE", help="TOML file of a mechanism or study; URDF or MJCF.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")]
Trust = Annotated[bool, typer.Option("--trust", help="Run the Python modules that the file names.")]
WithPrecision = Annotated[Precision, typer.Option("--precision", help="Precision of the computation.")]


@contextmanager
def _told() -> Iterator[None]:
    """Turns errors and warnings about the user's files into messages."""
    from jaxmbs.io import InputError
    from jaxmbs.model import ModelError, ModelWarning

    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
        if not issubclass(category, ModelWarning):
            usual(message, category, *rest)
        elif str(message) not in told:
            told.add(str(message))
            problems.print("warning: ", style="bold yellow", end="")
            _say(str(message), problems)

    try:
        with warnings.catch_warnings():
            usual, warnings.showwarning = warnings.showwarning, show
            warnings.simplefilter("always", ModelWarning)
            yield
    except (InputError, ModelError) as error:
        found = error.problems if isinstance(error, InputError) else [error]
        where = f"{error.file}: " if isinstance(error, InputError) and error.file else ""
        for problem in found:
            problems.print("error: ", style="bold red", end="")
            _say(f"{where}{problem}", problems)
        raise typer.Exit(2) from None


def _say(text: str, to: Console | None = None) -> None:
    """A line that is not broken: paths and commands are copied from it."""
    (to or console).print(text, markup=False, highlight=False, soft_wrap=True)


def _compute(precision: str) -> None:
    """Set the precision and show all cores; before any array exists."""
    import jax

    import jaxmbs as mbs

    jax.config.update("jax_enable_x64", precision == "float64")
    mbs.use_all_cores()


@app.command()
def info(file: File, trust: Trust = False) -> None:
    """Show what a file describes: bodies, joints, forces, dispersions, outputs, criteria."""
    with _told():
        from jaxmbs.cli.show import described
        from jaxmbs.study import read

        console.print(described(read(file, need="mechanism", trust=trust)))


@app.command()
def simulate(
    file: File,
    sample: Annotated[int | None, typer.Option(min=0, help="Repeat this sample instead of the nominal motion.")] = None,
    of: Annotated[Path | None, typer.Option(metavar="DIR", help="The run that the sample belongs to.")] = None,
    out: Annotated[Path | None, typer.Option(help="History: NAME.csv, NAME.npz or NAME.zarr.")] = None,
    animate: Annotated[Path | None, typer.Option(help="A picture that moves: NAME.html or NAME.glb.")] = None,
    save_every: Annotated[int, typer.Option(min=1, help="Keep every so many steps.")] = 1,
    precision: Annotated[Precision | None, typer.Option(help="Default: that of the run, else float64.")] = None,
    trust: Trust = False,
) -> None:
    """Simulate a mechanism, or repeat one sample of a study with its full history."""
    with _told():
        from jaxmbs.cli.show import one_run
        from jaxmbs.study.problem import read
        from jaxmbs.study.store import open_folder

        store = open_folder(of) if of else None
        study = read(file, need="simulation", trust=trust)
        _check_sample(study, store, sample, file)
        from jaxmbs.study.repeat import check_name, repeat, write

        path = out or Path(file.stem + (f"_sample_{sample}" if sample is not None else "") + ".csv")
        check_name(path)
        if animate:
            from jaxmbs.study.motion import check_picture

            check_picture(animate)
        _compute(precision or (store.provenance["precision"] if store else "float64"))
        history = repeat(study, None if sample is None else [sample], save_every)
        write(study, history, path)
        console.print(one_run(study, history, store, sample))
        _say(f"history: {path}")
        if animate:
            from jaxmbs.study.motion import motion
            from jaxmbs.view import animate as draw

            _say(f"picture: {draw(*motion(study, sample), animate)}")


def _check_sample(study: Study, store: Any, sample: int | None, file: Path) -> None:
    from jaxmbs.io import InputError
    from jaxmbs.io.errors import Problem

    if store is None:
        return
    if sample is None:
        raise InputError(Problem("--of", "needs --sample, the sample of the run that is to be repeated"))
    record = store.provenance
    if (record["file_sha256"], record.get("modules", {})) != (study.sha256, study.catalogue.hashes):
        message = f"is not the file of this run; use {store.folder / 'study.toml'}"
        raise InputError(Problem(str(file), message))
    if sample >= store.n:
        raise InputError(Problem("--sample", f"{sample} does not exist; the run has samples 0 to {store.n - 1}"))


@app.command()
def study(
    file: File,
    n: Annotated[int, typer.Option("-n", "--samples", min=1, help="Number of samples.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results; must not have any yet.")],
    block_rows: Annotated[int | None, typer.Option(min=64, help="Samples computed at once on a core.")] = None,
    precision: WithPrecision = Precision.float64,
    trust: Trust = False,
) -> None:
    """Run a Monte Carlo study."""
    with _told():
        from jaxmbs.study.problem import read

        checked = read(file, trust=trust)
        _compute(precision)
        from jaxmbs.study.report import table
        from jaxmbs.study.run import BLOCK_ROWS, run

        with _progress(out) as progress:
            store = run(checked, n, out, block_rows or BLOCK_ROWS, progress)
        console.print(table(checked, store))
        _say(f"results: {store.folder}; for the page: jaxmbs report {store.folder}")


@app.command()
def resume(
    folder: Folder,
    other_versions: Annotated[bool, typer.Option("--other-versions", help="Accept other versions.")] = False,
    trust: Trust = False,
) -> None:
    """Continue a run that was interrupted; the results are those of an uninterrupted one."""
    with _told():
        from jaxmbs.study.store import open_folder

        _compute(open_folder(folder).provenance["precision"])
        from jaxmbs.study.problem import read
        from jaxmbs.study.report import table
        from jaxmbs.study.run import resume as go_on

        with _progress(folder) as progress:
            store = go_on(folder, other_versions, progress, trust)
        console.print(table(read(folder / "study.toml", trust=trust), store))


@app.command()
def report(folder: Folder, trust: Trust = False) -> None:
    """Report a run, finished or not: a table here, and DIR/report.html."""
    with _told():
        from jaxmbs.study.store import open_folder

        _compute(open_folder(folder).provenance["precision"])
        from jaxmbs.study.report import report as write

        with console.status("writing the report"):
            path, table = write(folder, trust)
        console.print(table)
        _say(f"page: {path}")


@app.command()
def keys(
    path: Annotated[
        str, typer.Argument(metavar="[PATH]", help='A key, table or type: "mechanism.forces", "pusher".')
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show the keys of a file: what they hold, units, defaults."""
    with _told():
        from dataclasses import asdict

        from jaxmbs.cli.show import reference
        from jaxmbs.study.problem import known_keys

        found = known_keys(path)
        if as_json:
            _say(json.dumps([asdict(k) for k in found], indent=2))
        else:
            console.print(reference(found))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def bench(context: typer.Context) -> None:
    """Measure the speed beside other libraries; --help tells the options. Needs a checkout of the project."""
    root = Path(__file__).parents[2]
    if not (root / "benchmarks" / "suite.py").exists():
        _say(
            "bench: the benchmarks are in the project's repository, not in the package; run it from a checkout",
            problems,
        )
        raise typer.Exit(2)
    raise typer.Exit(
        subprocess.run([sys.executable, "-m", "benchmarks", *context.args], cwd=root, check=False).returncode
    )


@contextmanager
def _progress(folder: Path) -> Iterator[Any]:
    """A progress bar as the run's `progress`; an interruption says how to go on."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from jaxmbs.cli.show import Pace

    columns = (TextColumn("{task.description:>9}"), BarColumn(), MofNCompleteColumn(), Pace(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=problems) as bar:
            task = bar.add_task("compiling", total=None)

            def progress(stage: str, done: int, n: int) -> None:
                bar.update(task, description={"compile": "compiling"}.get(stage, "samples"), completed=done, total=n)

            yield progress
    except KeyboardInterrupt:
        _say(f"stopped; go on with: jaxmbs resume {folder}", problems)
        raise typer.Exit(130) from None
