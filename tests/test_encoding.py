"""Text is read and written with an encoding: else the host's decides, which is not always UTF-8.

Ruff's PLW1514 sees `open` and what is a Path for sure; here are all calls by their names, those of subprocesses too.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("jaxmbs", "tests", "benchmarks", "docs", "examples")
STARTED = ("run", "Popen", "check_output", "check_call", "call")  # of subprocess


def sources():
    """All Python files of the project."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def without_encoding(text):
    """Calls in a source that leave the encoding of text to the host."""
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and _lacks(node)]


def _lacks(call):
    given = {k.arg: k.value for k in call.keywords}
    if None in given or "encoding" in given:  # in what ** brings, if anywhere
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = getattr(getattr(call.func, "value", None), "id", "")
    if name == "read_text":
        return not call.args
    if name == "write_text":
        return len(call.args) < 2
    if name in STARTED and {"text", "universal_newlines"} & set(given):
        return True
    if name in ("NamedTemporaryFile", "TemporaryFile"):  # of bytes, if nothing is said
        mode = given.get("mode", call.args[0] if call.args else None)
        return isinstance(mode, ast.Constant) and "b" not in str(mode.value)
    if name == "open":
        own = isinstance(call.func, ast.Name)
        place = 1 if own else 0
        mode = given.get("mode", call.args[place] if len(call.args) > place else None)
        if own:
            return mode is None or (isinstance(mode, ast.Constant) and "b" not in str(mode.value))
        # a method: of a Path, if its mode says so
        known = isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set(mode.value) <= set("rwaxt+")
        return known and owner not in ("os", "webbrowser", "zarr", "Image", "tarfile", "zipfile")
    return False


@pytest.mark.parametrize("folder", FOLDERS)
def test_text_has_an_encoding(folder):
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for call in without_encoding(path.read_text(encoding="utf-8"))
    ]
    assert not found, f'encoding="utf-8" is missing: {", ".join(found)}'


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("p.read_text()", 1),
        ('p.read_text(encoding="utf-8")', 0),
        ("p.write_text(f(q.read_text()))", 2),
        ('p.write_text("", "ascii")', 0),
        ("open(p)", 1),
        ('open(p, "rb")', 0),
        ('p.open("w")', 1),
        ("p.open()", 0),
        ("webbrowser.open(p)", 0),
        ('NamedTemporaryFile("w")', 1),
        ("NamedTemporaryFile()", 0),
        ("subprocess.run(c, text=True)", 1),
        ("subprocess.run(c, capture_output=True)", 0),
    ],
)
def test_what_lacks_one(text, lacking):
    assert len(without_encoding(text)) == lacking
