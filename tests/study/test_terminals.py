"""Terminals that know ASCII alone get sentences from every command."""

import contextlib
import json
import os
import subprocess

import pytest
from rich.console import Console
from typer.testing import CliRunner

from jaxmbs.cli import app, common
from jaxmbs.study import read, run
from tests.study.conftest import CART, COMPUTING, check_precision, cli, environment

NAMED = CART.replace('name = "cart"\n[[mech', 'name = "Prüfstand 2 m² – 20 °"\n[[mech')
COMMANDS = [
    ("--help",), ("new", "study"), ("keys",), ("keys", "all"), ("info", "wägen.toml"), ("simulate", "wägen.toml"),
    ("study", "wägen.toml", "-n", "64", "--out", "läufe/zwei"), ("resume", "läufe/eins"), ("verify", "läufe/eins"),
    ("report", "läufe/eins"), ("compare", "läufe/eins", "läufe/zwei"), ("export", "läufe/eins"),
    ("sensitivity", "läufe/eins"), ("schema",), ("rare", "wägen.toml", "--criterion", "gibt es nicht: ö"),
    ("synthesize", "wägen.toml", "--out", "läufe/drei"), ("report", "läufe/ohne"), ("info", "wégen.toml"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ascii")
    (folder / "wägen.toml").write_text(NAMED, encoding="utf-8")
    run(read(folder / "wägen.toml"), 64, folder / "läufe" / "eins", 64)
    return folder


def test_every_command_speaks_in_ascii(folder, monkeypatch):
    monkeypatch.setattr(common, "_console", lambda error: Console(stderr=error, width=160))
    for name in COMPUTING:
        monkeypatch.setattr(f"jaxmbs.cli.commands.{name}.compute", check_precision)
    said = {}
    with contextlib.chdir(folder):
        for words in COMMANDS:
            done = CliRunner(charset="ascii").invoke(app.app, [*words], catch_exceptions=False)
            said[words] = done.stdout + done.stderr
            assert said[words].isascii() and said[words].strip() and done.exit_code in (0, 1), words
            assert (done.exit_code == 0) != ("error: " in said[words]), (words, said[words])
        document = CliRunner(charset="ascii").invoke(app.app, ["info", "wägen.toml", "--json"], catch_exceptions=False)
    assert "Prufstand 2 m2 - 20 deg: 1 body" in said["info", "wägen.toml"].replace("  ", " ")
    assert "laufe/ohne" in said["report", "läufe/ohne"]
    assert json.loads(document.stdout)["name"] == "Prüfstand 2 m² – 20 °", "documents lose nothing"


@pytest.mark.slow
def test_a_process_without_a_language(folder):
    """Python makes its streams by the locale, before any code of ours."""
    here = environment() | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    words = [*cli(), "info", os.fsencode("wägen.toml")]
    done = subprocess.run(words, capture_output=True, env=here, cwd=folder, check=False)
    assert done.returncode == 0 and b"Prufstand" in done.stdout, done.stderr
