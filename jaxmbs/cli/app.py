"""The commands, one file each in `commands/`. Nothing that computes is imported before a command runs."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from jaxmbs.cli.commands.bench import bench
from jaxmbs.cli.commands.compare import compare
from jaxmbs.cli.commands.export import export
from jaxmbs.cli.commands.info import info
from jaxmbs.cli.commands.keys import keys
from jaxmbs.cli.commands.new import new
from jaxmbs.cli.commands.rare import rare
from jaxmbs.cli.commands.report import report
from jaxmbs.cli.commands.resume import resume
from jaxmbs.cli.commands.schema import schema
from jaxmbs.cli.commands.sensitivity import sensitivity
from jaxmbs.cli.commands.simulate import simulate
from jaxmbs.cli.commands.study import study
from jaxmbs.cli.commands.synthesize import synthesize
from jaxmbs.cli.commands.verify import verify
from jaxmbs.cli.terminal import speakable

HELP = """Rigid multibody dynamics over thousands of mechanisms at once.

`jaxmbs new study` writes a commented file to begin with, study.toml; `jaxmbs keys [PATH]` tells what may stand in a file.
Exit codes: 0; 1 wrong use, a bad file, damaged results; 3 a criterion failed (`report --check`). Compiled programs are kept
for the next run in the user's cache folder, a gigabyte at most; JAXMBS_CACHE=off switches that off, JAXMBS_CACHE=DIR
moves it.
"""
_USAGE, _BAD = 2, 1


class _Group(TyperGroup):
    """Group of commands in which wrong usage has the same exit code as any other wrong input."""

    def main(self, *args: Any, **options: Any) -> Any:
        speakable(sys.stdout, sys.stderr)
        try:
            return super().main(*args, **options)
        except SystemExit as end:
            raise SystemExit(_BAD if end.code == _USAGE else end.code) from None


app = typer.Typer(
    name="jaxmbs", help=HELP, cls=_Group, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"jaxmbs {version('jaxmbs')}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    return None


for command in (
    new, keys, schema, info, simulate, study, resume, verify, report, compare, sensitivity, rare, export, synthesize,
):  # fmt: skip
    app.command()(command)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)(bench)
