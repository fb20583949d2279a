"""Imports go down only: the layers of the package and the rooms of `dynamics` and `study`, without circles; imports inside
functions count, too."""

import ast
import functools
import sys

import pytest

from docs.imports import PACKAGE, PICTURES, ROOT, UPWARD, drawn, graph, imported, modules, part

# what each part may import beside itself, of those above it in this table
LAYERS = {
    "errors": set(),
    "lazy": set(),
    "spatial": {"errors"},
    "batching": {"errors"},
    "geometry": {"errors", "spatial", "batching"},
    "model": {"errors", "spatial", "geometry"},
    "elements": {"errors", "spatial", "model"},
    "dynamics": {"errors", "spatial", "batching", "model", "lazy"},
    "building": {"errors", "spatial", "model", "dynamics"},
    "symbolic": {"errors", "spatial", "model", "dynamics"},
    "textbook": {"model", "dynamics", "symbolic"},
    "absolute": {"errors", "spatial", "model", "dynamics"},
    "io": {"errors", "spatial", "model", "building", "lazy"},
    "library": {"errors", "spatial", "model", "building", "dynamics"},
    "simulate": {"errors", "spatial", "batching", "model", "dynamics", "building", "lazy"},
    "exporting": {"errors", "batching", "model", "dynamics", "building", "io", "simulate"},
    "stability": {"errors", "spatial", "model", "dynamics", "building", "simulate"},
    "view": {"errors", "model", "dynamics", "building", "io", "simulate"},
    "study": {
        "errors",
        "lazy",
        "spatial",
        "batching",
        "geometry",
        "model",
        "dynamics",
        "building",
        "io",
        "simulate",
        "stability",
        "view",
    },
    "design": {"errors", "batching", "model", "dynamics", "io", "study"},
    "cli": {"errors", "batching", "io", "simulate", "view", "study", "design"},
}
ROOMS = {
    "dynamics": {
        "state": set(),
        "recursive": {"state"},
        "formulations": {"state", "recursive"},
        "constrained": {"state", "recursive"},
        "bond_graph": {"state", "recursive", "constrained"},
    },
    "study": {
        "units": set(),
        "mixing": set(),
        "outputs": {"units"},
        "folder": {"mixing", "outputs"},
        "distributions": set(),
        "sampling": {"units", "mixing", "outputs", "distributions"},
        "problem": {"units", "outputs", "folder", "distributions", "sampling"},
        "samples": {"units", "outputs", "folder", "sampling", "problem"},
        "results": {"units", "outputs", "folder", "sampling", "problem", "samples"},
        "statistics": {"units", "outputs", "folder", "sampling", "problem", "samples", "results"},
        "reliability": {"folder", "problem", "samples", "results", "statistics"},
        "runs": {"folder", "problem", "samples", "results", "statistics"},
        "reports": {"units", "outputs", "folder", "sampling", "problem", "samples", "results", "statistics"},
        "evidence": {"folder", "problem", "samples", "results", "statistics", "reports"},
        "trades": {"units", "folder", "sampling", "problem", "results", "statistics", "runs", "reports"},
    },
}
WHOLE = {of: table for of, table in [("jaxmbs", LAYERS), *((f"jaxmbs.{name}", rooms) for name, rooms in ROOMS.items())]}
PARTS = [(of, name) for of, table in WHOLE.items() for name in table]


@pytest.mark.parametrize(("of", "name"), PARTS)
def test_imports_go_down(of, name):
    below = WHOLE[of][name]
    assert below <= set(list(WHOLE[of])[: list(WHOLE[of]).index(name)]), "the table itself goes up"
    for module in modules():
        if module.startswith(f"{of}.") and part(module, of) == name:
            found = {part(m, of) for m in imported(module, inside=True) if m.startswith(f"{of}.")} - {name}
            assert found <= below, f"{module} imports {found - below}"


def test_every_part_has_its_layer():
    parts = {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p.is_dir() and (p / "__init__.py").exists())}
    assert parts - {"__init__", "public"} == set(LAYERS)
    rooms = {p.stem for p in (PACKAGE / "study").iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert rooms - {"__init__", "public"} == set(ROOMS["study"])


def test_no_file_imports_itself_by_way_of_others():
    """Nor by way of imports inside functions, in any package."""
    arrows = {n: sorted(m for m in imported(n, inside=True) if m in modules()) for n in modules()}
    done = set()

    def visit(name, above):
        assert name not in above, " -> ".join([*above[above.index(name) :], name])
        if name not in done:
            for other in arrows[name]:
                visit(other, [*above, name])
            done.add(name)

    for name in modules():
        visit(name, [])


def imports_of(module, inside):
    """What a file imports when it is loaded, or `inside` its functions, from this package and from others. A name of a
    package that imports nothing at first (`jaxmbs.lazy`) comes from its `public`."""

    def found(node, within):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ImportFrom) and within == inside:
                for name in (f"{child.module}.{alias.name}" for alias in child.names):
                    public, package = f"{child.module}.public", str(child.module)
                    yield name if name in modules() else public if public in modules() else package
            elif isinstance(child, ast.Import) and within == inside:
                yield from (alias.name for alias in child.names)
            elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
                yield from found(child, within or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)))

    return set(found(ast.parse(modules()[module].read_text(encoding="utf-8")), False))


@functools.cache
def loaded(module):
    """Everything that is imported when a file is loaded."""
    found, left = set(), [module]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [name.rpartition(".")[0]] if "." in name and name.startswith("jaxmbs") else []
            left += imports_of(name, False) if name in modules() else []
    return found


def test_imports_inside_functions_save_time_at_the_start():
    """That is their only reason; so they are never of the standard library, nor of what the file loads anyway. Excepted are
    the reading of entry points, which is slow, and what a package imports of itself."""
    needless = []
    for module in modules():
        for name in imports_of(module, True):
            standard = name.partition(".")[0] in sys.stdlib_module_names and name != "importlib.metadata"
            if standard or (name in loaded(module) and not name.startswith(f"{module}.")):
                needless.append(f"{module}: {name}")
    assert not needless


def test_what_goes_up_still_does():
    """What is excepted from these tests is there, and inside a function."""
    for (module, other), _ in UPWARD.items():
        assert f"        from {other} import" in modules()[module].read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_the_architecture_are_current(name):
    """If not: python -m docs.imports."""
    kept = (ROOT / "docs" / "theory" / name).read_text(encoding="utf-8")
    assert kept == drawn(graph(PICTURES[name]))
