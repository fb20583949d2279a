"""The commands, whose functions are in `commands/`. No module that computes is imported before a command runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from jaxmbs.cli.commands.bench import bench
from jaxmbs.cli.commands.evidence import bundle, check_steps
from jaxmbs.cli.commands.files import info, keys, new, schema
from jaxmbs.cli.commands.rare import rare
from jaxmbs.cli.commands.results import compare, export, report, sensitivity, verify
from jaxmbs.cli.commands.runs import resume, study
from jaxmbs.cli.commands.simulate import simulate
from jaxmbs.cli.commands.synthesize import synthesize
from jaxmbs.cli.commands.trade import trade
from jaxmbs.cli.common import speaking
from jaxmbs.cli.terminal import replace_unencodable
from jaxmbs.errors import ModelError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

HELP = """Rigid multibody dynamics over thousands of mechanisms at once.

`jaxmbs new study` writes a commented file to begin with, study.toml; `jaxmbs keys [PATH]` lists the keys of a file.
Exit codes: 0 success; 1 wrong use, a bad file or damaged results; 3 a criterion that is not met (`report --check`).
Compiled programs are stored for the next run in the user's cache folder, one gigabyte at most; JAXMBS_CACHE=off
switches this off, and JAXMBS_CACHE=DIR chooses another folder.
"""
_USAGE, _BAD = 2, 1


GROUP = "jaxmbs.commands"  # entry points of installed packages: each is a function that Typer accepts, or a Typer app


class _Group(TyperGroup):
    """Group of commands in which wrong usage has the same exit code as any other wrong input. Installed packages may
    add commands; they are looked up for an unknown command and for the list of all commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *(name for name in _of_packages() if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is None and (entry := _of_packages().get(cmd_name)):
            return _command(entry)
        return found

    def main(self, *args: Any, **options: Any) -> Any:
        replace_unencodable(sys.stdout, sys.stderr)
        try:
            return super().main(*args, **options)
        except SystemExit as end:
            raise SystemExit(_BAD if end.code == _USAGE else end.code) from None


def _of_packages() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _command(entry: EntryPoint) -> Any:
    """The command of an entry point; if it does not load, a command that reports why."""
    try:
        found = entry.load()
    except Exception as error:  # a broken package must not break the commands of other packages
        message = f"the command of the package entry point {entry.name!r} ({entry.value}) cannot be loaded: {error}"

        def found() -> None:
            with speaking():
                raise ModelError(message)

        found.__doc__ = f"(cannot be loaded: {error})"
    if not isinstance(found, typer.Typer):
        found, alone = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None), found
        found.command(entry.name)(alone)
    return typer.main.get_command(found)


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
    new, keys, schema, info, simulate, study, trade, resume, verify, report, compare, sensitivity, check_steps, rare,
    export, bundle, synthesize,
):  # fmt: skip
    app.command()(command)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)(bench)
