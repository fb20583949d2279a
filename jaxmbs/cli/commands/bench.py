"""jaxmbs bench."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import typer

from jaxmbs.cli.common import BAD, problems, say


def bench(context: typer.Context) -> None:
    """Compare the speed with other libraries; --help lists the options. Needs a checkout of the project."""
    root = Path(__file__).parents[3]
    if not (root / "benchmarks" / "suite.py").exists():
        message = "bench: the benchmarks are in the project's repository, not in the package; run it from a checkout"
        say(message, problems())
        raise typer.Exit(BAD)
    command = [sys.executable, "-m", "benchmarks", *context.args]
    raise typer.Exit(subprocess.run(command, cwd=root, check=False).returncode)
