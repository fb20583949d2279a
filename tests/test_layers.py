"""Imports go down only: the layers of the package and the rooms of the dynamics, without circles."""

import ast
from pathlib import Path

import pytest

import jaxmbs

ROOT = Path(jaxmbs.__file__).parent
# what each part may import at its top level, beside itself
LAYERS = {
    "errors": set(),
    "lazy": set(),
    "spatial": {"errors"},
    "batching": {"errors"},
    "model": {"errors", "spatial"},
    "elements": {"errors", "spatial", "model"},
    "dynamics": {"errors", "spatial", "batching", "model", "lazy"},
    "symbolic": {"errors", "spatial", "model", "dynamics"},
    "textbook": {"model", "dynamics", "symbolic"},
    "absolute": {"errors", "spatial", "model", "dynamics"},
    "io": {"errors", "spatial", "model", "lazy"},
    "library": {"errors", "spatial", "model", "dynamics"},
    "simulate": {"errors", "spatial", "model", "dynamics", "lazy"},
    "stability": {"errors", "spatial", "model", "dynamics", "simulate"},
}
ROOMS = {
    "state": set(),
    "recursive": {"state"},
    "formulations": {"state", "recursive"},
    "constrained": {"state", "recursive"},
    "bond_graph": {"state", "recursive", "constrained"},
}


def imported(path):
    """Modules of the package that a file imports when it is loaded, type checking apart."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jaxmbs":
            yield from ([f"jaxmbs.{a.name}" for a in node.names] if node.module == "jaxmbs" else [node.module])


def files(part):
    folder = ROOT / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


@pytest.mark.parametrize("part", LAYERS)
def test_imports_of_a_layer_go_down(part):
    for path in files(part):
        found = {m.split(".")[1] for m in imported(path)} - {part}
        assert found <= LAYERS[part], f"{path.relative_to(ROOT)} imports {found - LAYERS[part]}"


@pytest.mark.parametrize("room", ROOMS)
def test_imports_of_a_room_go_down(room):
    for path in files(f"dynamics/{room}"):
        found = {m.split(".")[2] for m in imported(path) if m.startswith("jaxmbs.dynamics.")} - {room}
        assert found <= ROOMS[room], f"{path.relative_to(ROOT)} imports {found - ROOMS[room]}"


def test_every_part_has_its_layer():
    parts = {p.stem for p in ROOT.iterdir() if p.suffix == ".py" or (p.is_dir() and (p / "__init__.py").exists())}
    assert parts - {"__init__", "public", "cli", "study", "design", "view"} == set(LAYERS)


@pytest.mark.slow
def test_no_file_imports_itself_by_way_of_others():
    names = {".".join(("jaxmbs", *p.relative_to(ROOT).with_suffix("").parts)): p for p in ROOT.rglob("*.py")}
    arrows = {n: [m for m in imported(p) if m in names] for n, p in names.items()}
    done = set()

    def visit(name, above):
        assert name not in above, " -> ".join([*above[above.index(name) :], name])
        if name not in done:
            for other in arrows[name]:
                visit(other, [*above, name])
            done.add(name)

    for name in names:
        visit(name, [])
