"""Which code a saved table was made with: tables carry the commit that made them, a digest of that code, and the machine.

A table is out of date when a file in its list has changed since it was made, apart from comments and docstrings:
`python -m benchmarks.made_from` lists such tables, and the release tests fail for them, unless they were measured on a
machine that may not be at hand: on a GPU, or on another processor than that of a current table of the same kind. These
are kept, and the pages name their commits.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ENGINE = ("jaxmbs/spatial/*.py", "jaxmbs/dynamics/state/*.py", "jaxmbs/dynamics/recursive/*.py")
COMPILER = ("jaxmbs/batching/**/*.py",)
STEPS = ("jaxmbs/simulate/*.py", "jaxmbs/simulate/steppers/*.py", *ENGINE)
SAMPLES = ("jaxmbs/study/runs/run.py", "jaxmbs/study/samples/batch.py", "jaxmbs/study/results/store.py")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
BASELINES = "benchmarks/results/*-cores-*.json"  # one for each machine
TABLES = {  # with the files whose changes may change the table
    "tests/io/robots.md": (
        "tests/io/robots.py",
        "jaxmbs/io/urdf.py",
        "jaxmbs/io/physical.py",
        "jaxmbs/model/*.py",
        *ENGINE,
    ),
    BASELINES: ("benchmarks/suite.py", "benchmarks/peers.py", *ENGINE, *COMPILER),
    "benchmarks/results/air.json": (
        "benchmarks/air.py",
        "jaxmbs/model/forces/aerodynamics.py",
        "jaxmbs/model/forces/*atmosphere.py",
        *STEPS,
        *COMPILER,
    ),
    "benchmarks/results/clearances.json": (
        "benchmarks/clearances.py",
        "jaxmbs/geometry/*.py",
        "jaxmbs/study/outputs/*.py",
        *STEPS,
        *COMPILER,
    ),
    "benchmarks/results/controller.json": (
        "benchmarks/controller.py",
        "jaxmbs/model/control/*.py",
        *STEPS,
        *COMPILER,
    ),
    "benchmarks/results/flexible_arms.json": (
        "benchmarks/flexible_arms.py",
        "tests/flexible/parts.py",
        "jaxmbs/model/flexible_bodies/*.py",
        *STEPS,
        *COMPILER,
    ),
    "benchmarks/results/loops.json": ("benchmarks/loops.py", "jaxmbs/dynamics/constrained/*.py", *ENGINE, *COMPILER),
    "benchmarks/results/beside-mjx-*.json": (
        "benchmarks/beside_mjx.py",
        "benchmarks/suite.py",
        "benchmarks/peers.py",
        *ENGINE,
        *COMPILER,
    ),
    "benchmarks/results/many_samples.json": (
        "benchmarks/many_samples.py",
        "jaxmbs/study/statistics/summary.py",
        *SAMPLES,
    ),
    "benchmarks/results/on-*.json": ("benchmarks/on_gpu.py", "benchmarks/suite.py", *ENGINE, *COMPILER),
    "benchmarks/results/ptx.json": ("benchmarks/ptx.py", "benchmarks/suite.py", *ENGINE, *COMPILER),
    "benchmarks/results/rare_failure.json": ("benchmarks/rare_failure.py", "jaxmbs/study/reliability/*.py"),
    "benchmarks/results/separation.json": ("benchmarks/separation.py", *STEPS, *COMPILER),
    "benchmarks/results/solvers.json": (
        "benchmarks/solvers.py",
        "tests/design/published.py",
        "jaxmbs/design/optimisers/constrained.py",
        "jaxmbs/design/local.py",
        "jaxmbs/design/optimality.py",
        "jaxmbs/design/under_conditions.py",
    ),
    "benchmarks/results/within_jax.json": ("benchmarks/within_jax.py", *STEPS, *COMPILER),
    "benchmarks/results/work-precision.json": ("benchmarks/work_precision.py", *STEPS),
    "benchmarks/results/workers.json": ("benchmarks/workers.py", "jaxmbs/study/runs/cluster.py", *SAMPLES),
}


def tables() -> dict[str, tuple[str, ...]]:
    """The tables that exist, by their paths from the project's root, with the patterns of their files."""
    return {
        path.relative_to(ROOT).as_posix(): files for name, files in TABLES.items() for path in sorted(ROOT.glob(name))
    }


def code(files: tuple[str, ...], root: Path = ROOT) -> str:
    """A digest of the code in all files that match the patterns; comments, docstrings and layout do not count."""
    found = hashlib.sha256()
    for path in sorted({path for pattern in files for path in root.glob(pattern)}):
        statements = without_words(path.read_text(encoding="utf-8"))
        found.update(f"{path.relative_to(root).as_posix()}\n{statements}\n".encode())
    return found.hexdigest()[:16]


def without_words(text: str) -> str:
    """What Python executes of a module: its syntax tree without docstrings; comments and layout are in no tree.

    It is the same in all versions of Python, which differ in the empty fields of their trees.
    """

    def said(node: Any) -> Any:
        if isinstance(node, ast.AST):
            fields = ((name, said(x)) for name, x in ast.iter_fields(node))
            return type(node).__name__, *(f for f in fields if f[1] not in ("None", []))
        return [said(x) for x in node] if isinstance(node, list) else repr(node)

    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node):
            node.body = node.body[1:]
    return repr(said(tree))


def made_from(table: Path) -> dict[str, Any]:
    """The origin that a table written now carries: the commit that is checked out, and the digest of its code."""
    from jaxmbs.study.results.origin import commit

    files = next((files for pattern, files in TABLES.items() if table.match(Path(pattern).name)), ())
    return {"commit": (commit(ROOT) or "unknown")[:12], "code": code(files)}


def in_words(table: Path) -> str:
    """The same as text, for a table in Markdown."""
    return "commit {commit}, code {code}".format(**made_from(table))


def keep(path: Path, found: dict[str, Any]) -> None:
    """Write results as JSON, together with their origin, and with the machine and the versions unless they have them."""
    from benchmarks import suite  # which keeps its results by this module

    head = {"made_from": made_from(path)} | ({} if "machine" in found else {"machine": suite.machine()})
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**head, **found}, indent=1) + "\n", encoding="utf-8")


def carried(table: Path) -> dict[str, str]:
    """The commit and the digest that a table carries; empty if it carries none."""
    text = table.read_text(encoding="utf-8")
    if table.suffix == ".json":
        return json.loads(text).get("made_from", {})
    said = re.search(r"commit (\w+), code (\w+)", text)
    return dict(zip(("commit", "code"), said.groups(), strict=True)) if said else {}


def out_of_date(elsewhere: bool = False) -> list[str]:
    """The tables whose code has changed since they were made: those of machines that may not be at hand, or all others."""
    late = {name for name, files in tables().items() if carried(ROOT / name).get("code") != code(files)}
    baselines = {path.relative_to(ROOT).as_posix() for path in ROOT.glob(BASELINES) if "nvidia" not in path.name}
    others = baselines if baselines - late else set()
    return [name for name in tables() if name in late and ("nvidia" in name or name in others) is elsewhere]


if __name__ == "__main__":
    print("\n".join(late := out_of_date()) or "all tables that can be made on any machine are current")
    for name in out_of_date(elsewhere=True):
        print(f"measured elsewhere with earlier code, commit {carried(ROOT / name)['commit']}: {name}")
    sys.exit(bool(late))
