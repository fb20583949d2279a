"""Options, output and preparation of the computation that all commands share."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

BAD = 1  # exit code of wrong use, bad files, damaged results
# exit code of `report --check` if a criterion fails, of `check-steps --check` if a verdict depends on the steps, and of
# `synthesize` without success
FAILED = 3


class Precision(StrEnum):
    float32 = "float32"
    float64 = "float64"


def count(least: int) -> Callable[[str], int]:
    """Parser of a number of samples: 10000, 10_000 or 1e4."""

    def parse(text: str) -> int:
        try:
            n = float(text)
        except ValueError:
            n = 0.5
        if not n.is_integer() or n < least:
            raise typer.BadParameter(
                f"{text} is not a number of samples; give a whole number of at least {least}, such as 1000 or 1e6"
            )
        return int(n)

    return parse


File = Annotated[Path, typer.Argument(metavar="FILE", help="TOML file of a mechanism or study.")]
Folder = Annotated[str, typer.Argument(metavar="DIR", help="Folder of a run, or its address: s3://BUCKET/NAME.")]
Trust = Annotated[bool, typer.Option("--trust", help="Run the Python modules and FMUs that the file names.")]
WithPrecision = Annotated[Precision, typer.Option("--precision", help="Precision of the computation.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document instead of tables, for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors.")]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Compute on Dask's workers: local:4 (processes here) or tcp://HOST:PORT."),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait while another process works in the folder.")]
Seal = Annotated[
    Path | None,
    typer.Option(
        metavar="KEYFILE", help="File with a key that seals record and numbers; make one: openssl rand -hex 32."
    ),
]


@dataclass(frozen=True)
class Voice:
    """Output of a command: tables and lines for people, or one JSON document for programs; warnings on stderr."""

    as_json: bool = False
    quiet: bool = False

    def show(self, table: RenderableType) -> None:
        """Print a table, for people."""
        if not (self.as_json or self.quiet):
            console().print(table)

    def line(self, text: str) -> None:
        """Print a line for people, without breaking it, since they copy paths and commands from it."""
        if not (self.as_json or self.quiet):
            say(text, console())

    def document(self, content: Any) -> None:
        """Print the command's result as JSON, for programs."""
        if self.as_json:
            from jaxmbs.cli.terminal import has_every_letter
            from jaxmbs.io.reports import plain

            print(json.dumps(plain(content), indent=2, ensure_ascii=not has_every_letter()))


def console() -> Console:
    """Standard output."""
    return _console(False)


def problems() -> Console:
    """Standard error."""
    return _console(True)


def _console(error: bool) -> Console:
    from rich.console import Console

    return Console(stderr=error)


def say(text: str, to: Console) -> None:
    """Print a line without breaking it."""
    to.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def speaking(as_json: bool = False, quiet: bool = False) -> Iterator[Voice]:
    """Context with the output of a command; prints errors and warnings about the user's files as messages."""
    from jaxmbs.errors import ModelError, ModelWarning

    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
        if not issubclass(category, ModelWarning):
            usual(message, category, *rest)
        elif str(message) not in shown:
            shown.add(str(message))
            problems().print("warning: ", style="bold yellow", end="")
            say(str(message), problems())

    try:
        with warnings.catch_warnings():
            usual, warnings.showwarning = warnings.showwarning, show
            warnings.simplefilter("always", ModelWarning)
            yield Voice(as_json, quiet)
    except ModelError as error:
        from jaxmbs.io.errors import InputError

        found = error.problems if isinstance(error, InputError) else [error]
        file = error.file if isinstance(error, InputError) else None
        _refuse(as_json, [(str(file) if file else None, getattr(p, "path", ""), _message(p)) for p in found])
    except OSError as error:  # for instance a full disk or a read-only folder
        if error.filename is None and error.errno is None:
            raise
        from jaxmbs.io.names import remedy

        _refuse(as_json, [(None, str(error.filename or "")[:120], remedy(error, "choose another file or folder"))])


def _message(problem: Any) -> str:
    return getattr(problem, "message", None) or str(problem)


def _refuse(as_json: bool, found: list[tuple[str | None, str, str]]) -> None:
    for file, path, message in found:
        problems().print("error: ", style="bold red", end="")
        say(": ".join(filter(None, (file, path, message))), problems())
    keys = ("file", "path", "message")
    Voice(as_json).document({"errors": [dict(zip(keys, x, strict=True)) for x in found]})
    raise typer.Exit(BAD) from None


def compute(precision: str) -> None:
    """Set the precision, cache compiled programs and let JAX use all cores. Call it before any array exists."""
    import jax

    from jaxmbs.batching import use_all_cores

    jax.config.update("jax_enable_x64", precision == "float64")
    keep_programs()
    use_all_cores()


def say_what_is_not_kept(study: Any, voice: Voice) -> None:
    """If the study's programs cannot be cached, so that every process compiles them again, print why on stderr."""
    from jaxmbs.batching import disk_cache
    from jaxmbs.study.problem.programs import content

    _, why = content(study) if disk_cache.FOLDER is not None else (None, "")
    if why and not voice.quiet:
        say(f"compiled programs cannot be stored, so the next process compiles them again: {why}", problems())


CACHE_BYTES = 1 << 30
CACHE_SECONDS = 0.1  # programs that compile in less time are not cached


def keep_programs() -> None:
    """Cache compiled programs for the next process, unless JAXMBS_CACHE is off. If a folder is set for JAX's own cache,
    that folder is used; otherwise both caches use "compiled" in the folder JAXMBS_CACHE or the user's cache folder."""
    import jax

    from jaxmbs.batching import disk_cache
    from jaxmbs.batching.folder import folder, is_off

    if is_off():
        return
    found = folder()
    if jax.config.values.get("jax_compilation_cache_dir"):
        disk_cache.FOLDER = found
        return
    if found is None:
        return
    try:
        found.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # without a folder for the cache, programs are compiled again
    disk_cache.FOLDER = found
    jax.config.update("jax_compilation_cache_dir", str(found))
    jax.config.update("jax_compilation_cache_max_size", CACHE_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", CACHE_SECONDS)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@contextmanager
def progress(voice: Voice, folder: str, trust: bool) -> Iterator[Any]:
    """A progress bar for the `progress` argument of a run; an interruption prints how to continue."""
    bar = None
    try:
        if voice.quiet or not sys.stderr.isatty():
            yield lambda stage, done, n: None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        from jaxmbs.cli.show import pace

        columns = (TextColumn("{task.description:>9}"), BarColumn(), MofNCompleteColumn(), pace(), TimeElapsedColumn())
        with Progress(*columns, console=problems()) as bar:
            task = bar.add_task("compiling", total=None)

            def announce(stage: str, done: int, n: int) -> None:
                bar.update(task, description={"compile": "compiling"}.get(stage, "samples"), completed=done, total=n)

            yield announce
    except KeyboardInterrupt:
        from jaxmbs.study.folder.shell import command

        say(f"stopped; continue with: {command('resume', folder, trust=trust)}", problems())
        raise typer.Exit(130) from None


LINES = 5.0  # time between two lines of one stage if standard error is not a terminal [s]


@contextmanager
def watching(voice: Voice, every: float | None = None) -> Iterator[Callable[..., None]]:
    """A function (stage, details = "") that reports on standard error how far a search is. On a terminal it updates a
    single line. Elsewhere it prints separate lines: at every new stage, and every LINES seconds within one; if `every`
    [s] is given, at the first call and then at this interval, whatever the stage."""
    if voice.quiet:
        yield lambda stage, details="": None
        return
    if sys.stderr.isatty():
        with problems().status("") as status:
            yield lambda stage, details="": status.update(": ".join(filter(None, (stage, details))))
        return
    last: tuple[str, float] = ("", 0.0)

    def announce(stage: str, details: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        new = stage != last[0] if every is None else not last[0]
        if new or now - last[1] > (every or LINES):
            last = (stage, now)
            say(": ".join(filter(None, (stage, details))), problems())
            sys.stderr.flush()

    yield announce
