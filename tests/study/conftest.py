"""Two studies: a cart on a spring, which compiles in a second, and the stage separation of the examples."""

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from jaxmbs.study import read

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "stage_separation.toml"
CART = """
criteria = ["reach > 90 mm", "speed < 0.9 m/s"]

[mechanism]
name = "cart"
[[mechanism.bodies]]
name = "cart"
mass = 2.0
com = [0.0, 0.1, 0.0]
inertia = [0.1, 0.2, 0.25]
[[mechanism.joints]]
name = "rail"
type = "prismatic"
axis = [1.0, 0.0, 0.0]
parent = "world"
child = "cart"
[[mechanism.forces]]
name = "spring"
type = "linear_spring"
body_a = "world"
body_b = "cart"
point_a = [-1.0, 0.0, 0.0]
stiffness = 50.0
rest_length = 1.2
damping = 0.5

[initial.rail]
q = [0.0]
v = [0.05]

[dispersions."cart.mass"]
distribution = "normal"
apply = "multiply"
std = 0.02
[dispersions."spring.stiffness"]
distribution = "lognormal"
apply = "multiply"
sigma = 0.05
[dispersions."initial.rail.v"]
distribution = "uniform"
low = -0.1
high = 0.1

[simulation]
t_end = 0.2
dt = 1e-3
[study]
seed = 7
[outputs.reach]
type = "joint_position"
joint = "rail"
reduce = "max"
[outputs.speed]
type = "joint_velocity"
joint = "rail"
"""


@pytest.fixture
def cart(tmp_path):
    """Function (old, new, ...) -> path of the cart's file with texts replaced, each of which must be there."""

    def write(*edits: str, name: str = "cart.toml") -> Path:
        text = CART
        for old, new in zip(edits[::2], edits[1::2], strict=True):
            assert old in text, f"{old!r} is not in the file"
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def separation():
    return read(EXAMPLE)


@dataclass(frozen=True)
class Finished:
    """A command that has ended, named as in `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def command(monkeypatch):
    """Function (arguments, ...) -> finished command, which ran in this process: one start of Python for all of them."""
    from rich.console import Console
    from typer.testing import CliRunner

    from jaxmbs.cli import app as commands
    from jaxmbs.cli import common

    monkeypatch.setattr(common, "_console", lambda error: Console(stderr=error, width=160))
    # this process has its precision and its devices already; `process` tests that a command sets them
    for name in COMPUTING:
        monkeypatch.setattr(f"jaxmbs.cli.commands.{name}.compute", check_precision)

    def run(*arguments: object, cwd: Path = ROOT) -> Finished:
        with contextlib.chdir(cwd):
            done = CliRunner().invoke(commands.app, list(map(str, arguments)), catch_exceptions=False)
        return Finished(done.exit_code, done.stdout, done.stderr)

    return run


COMPUTING = (
    "evidence",
    "rare",
    "results",
    "runs",
    "simulate",
    "synthesize",
    "trade",
)  # files with commands that compute


def check_precision(precision: str) -> None:
    assert precision == "float64", "another precision needs a process of its own"


@pytest.fixture(scope="session")
def process():
    """Function (arguments, ...) -> finished process of the command line."""

    def run(*arguments: object, **options) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*cli(), *map(str, arguments)], capture_output=True, text=True, env=environment(), check=False, **options
        )

    return run


def cli() -> list[str]:
    return [sys.executable, "-m", "jaxmbs.cli"]


def environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "160", "TERM": "dumb"}
