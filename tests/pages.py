"""Pages of Markdown as programs: `run` executes what they show and compares what it prints.

Blocks by their language: `python` in order, in one namespace for a page, a `text` block behind it being what it prints;
with a title, a file; `toml` with a title likewise; `console`: lines "$ jaxmbs ..." are run, those behind them are printed.
"...", as in doctests, stands for anything.
"""

import contextlib
import doctest
import io
import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple
from unittest import mock

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)
LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block: its language, its title ("" for none), its text, the line of the page on which it begins."""

    language: str
    title: str
    text: str
    line: int


def blocks(path: Path, language: str = "") -> list[Block]:
    """The fenced blocks of a page, or those of a language."""
    page = path.read_text(encoding="utf-8")
    found = [Block(m[1], m[2] or "", m[3], page[: m.start()].count("\n") + 1) for m in BLOCK.finditer(page)]
    return [b for b in found if language in ("", b.language)]


def run(path: Path, folder: Path, command) -> dict:
    """Execute a page in a folder; command: the fixture that runs jaxmbs. Returns the namespace of its Python."""
    space, printed = {"__name__": "page"}, None
    for b in blocks(path):
        where = f"{path.relative_to(ROOT)}:{b.line}"
        if b.title:
            (folder / b.title).write_text(b.text, encoding="utf-8")
        elif b.language == "python":
            path_of_a_script = mock.patch.object(sys, "path", [str(folder), *sys.path])
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.chdir(folder), path_of_a_script:
                exec(compile("\n" * b.line + b.text, str(path), "exec"), space)
            printed = out.getvalue()
            continue
        elif b.language == "text" and printed is not None:
            same(b.text, printed, where)
        elif b.language == "console":
            for line, said in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", b.text, re.MULTILINE):
                program, *arguments = shlex.split(line, comments=True)
                if program == "jaxmbs":
                    done = command(*arguments, cwd=folder)
                    assert done.returncode == 0, f"{where}: {line}: {done.stdout}{done.stderr}"
                    if said.strip():
                        same(said, done.stdout + done.stderr, where)
        assert not printed or b.language == "text", f"{where}: what the block before it prints is not shown"
        printed = None
    assert not printed, f"{path.name}: what its last block prints is not shown"
    return space


def same(want: str, got: str, where: str) -> None:
    assert doctest.OutputChecker().check_output(want, got, LIKE), f"{where}: shows\n{want}\nbut gets\n{got}"
