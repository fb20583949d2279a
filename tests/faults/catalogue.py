"""Seeded faults: plausible mistakes, each a replaced piece of text, and the default tests that must notice it.

The lists are the TOML files beside this one, one per package, with tables

    [[fault]]
    name = "what is wrong"              # one of its kind
    file = "spatial/inertias.py"        # in jaxmbs/
    old = "..."                         # occurs exactly once in it
    new = "..."
    tests = ["tests/spatial/test_inertias.py::test_name"]   # quick ones, of the default suite

and, in place of tests, `equivalent = "why no test can tell"`.
"""

import ast
import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@dataclass(frozen=True)
class Fault:
    """One piece of wrong text in a file of the package, and the tests that fail with it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    equivalent: str = ""

    @property
    def package(self):
        return str(Path(self.file).parent)


def faults():
    """All of them, by list and in order of their lists."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        found += [
            Fault(**{**x, "tests": tuple(x.get("tests", ()))})
            for x in tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
        ]
    return found


def faulty(fault, root=ROOT):
    """(path, its text with the fault). ValueError where the fault no longer applies."""
    path = root / "jaxmbs" / fault.file
    if not path.exists():
        raise ValueError(f"{fault.name!r} is stale: there is no {fault.file}")
    text = path.read_text(encoding="utf-8")
    if (times := text.count(fault.old)) != 1:
        raise ValueError(f"{fault.name!r} is stale: its old text occurs {times} times in {fault.file}, not once")
    text = text.replace(fault.old, fault.new)
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"{fault.name!r} is no Python: {error}") from None
    return path, text


def missing_tests(fault, root=ROOT):
    """Those of the fault's tests that are not there."""
    return [test for test in fault.tests if not _exists(root, *test.partition("[")[0].split("::"))]


def _exists(root, file, name=None):
    return (root / file).is_file() and (name is None or name in _functions(root / file))


@functools.cache
def _functions(path):
    return {x.name for x in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(x, ast.FunctionDef)}
