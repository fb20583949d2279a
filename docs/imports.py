"""python -m docs.imports: draws which packages import which, and which rooms of `jaxmbs.study` import which.

The pictures in docs/theory/architecture.md are drawn from the code; a test checks that they are up to date.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "jaxmbs"
PICTURES = {"imports.svg": "jaxmbs", "imports_of_study.svg": "jaxmbs.study"}  # in docs/theory
# imports inside functions from a higher layer, and the reasons for them
UPWARD = {
    ("jaxmbs.model.model", "jaxmbs.view.html"): "a notebook asks a model itself how it is shown",
    ("jaxmbs.simulate.solution", "jaxmbs.view.html"): "a notebook asks a motion itself how it is shown",
    ("jaxmbs.study.results.store", "jaxmbs.study.reports.notebook"): "a notebook asks a run itself how it is shown",
}
Graph = dict[str, set[str]]
_WIDE, _ROW, _APART = 92, 64, 14  # width of a box, distance between rows, gap between boxes


# --- what imports what ------------------------------------------------------------------------------------------------


@functools.cache
def modules() -> dict[str, Path]:
    """The files of the package: {name of the module: path}."""
    found = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in sorted(PACKAGE.rglob("*.py"))}
    return {name.removesuffix(".__init__"): path for name, path in found.items()}


@functools.cache
def imported(module: str, inside: bool = False) -> frozenset[str]:
    """Modules of the package that a module imports when it is loaded, without imports for type checking; with `inside`
    also those that its functions import, except `UPWARD`."""
    found = {m for m in _named(ast.parse(modules()[module].read_text(encoding="utf-8")).body, inside)}
    return frozenset(m for m in found if m != module and (module, m) not in UPWARD)


def _named(body: Iterable[ast.AST], inside: bool) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jaxmbs":
            for alias in node.names:
                file = f"{node.module}.{alias.name}"
                yield file if file in modules() else str(node.module)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif inside or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _named(ast.iter_child_nodes(node), inside)


def part(module: str, of: str) -> str:
    """The part of the package `of` to which a module belongs: "model" for jaxmbs.model.joints.base, of = "jaxmbs"."""
    return module.removeprefix(f"{of}.").split(".")[0]


def graph(of: str) -> Graph:
    """The folders of a package, each with those that it imports."""
    folders = {p.name for p in modules()[of].parent.iterdir() if (p / "__init__.py").exists()}
    found: Graph = {name: set() for name in sorted(folders)}
    for module in modules():
        if module.startswith(f"{of}.") and part(module, of) in folders:
            others = {part(m, of) for m in imported(module, True) if m.startswith(f"{of}.")}
            found[part(module, of)] |= (others & folders) - {part(module, of)}
    return found


# --- the picture ------------------------------------------------------------------------------------------------------


def reduced(arrows: Mapping[str, set[str]]) -> Graph:
    """The arrows without those that others imply."""

    @functools.cache
    def below(name: str) -> frozenset[str]:
        return frozenset().union(*({n} | below(n) for n in arrows[name]))

    return {name: {n for n in to if not any(n in below(m) for m in to)} for name, to in arrows.items()}


def rows_of(arrows: Graph) -> tuple[list[list[str]], Graph]:
    """The names in rows, each above all names that it imports, ordered so that few arrows cross; and the arrows from
    row to row. A long arrow passes through placeholders, which are named "from>to>row"."""

    @functools.cache
    def height(name: str) -> int:
        return max((1 + height(n) for n in arrows[name]), default=0)

    rows: list[list[str]] = [[] for _ in range(1 + max(map(height, arrows)))]
    short: Graph = {name: set() for name in arrows}
    for name in sorted(arrows):
        rows[height(name)].append(name)
        for other in sorted(arrows[name]):
            above = name
            for row in range(height(name) - 1, height(other), -1):
                place = f"{name}>{other}>{row}"
                rows[row].append(place)
                short[place] = set()
                short[above].add(place)
                above = place
            short[above].add(other)
    for _ in range(12):
        for down in (True, False):
            for k in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
                place = {n: i - len(row) / 2 for row in rows for i, n in enumerate(row)}
                near = {
                    n: sorted(short[n]) if down else sorted(m for m in rows[k + 1] if n in short[m]) for n in rows[k]
                }
                rows[k].sort(key=lambda n: sum(place[m] for m in near[n]) / len(near[n]) if near[n] else place[n])
    return rows, short


def drawn(arrows: Graph) -> str:
    """The graph as SVG: each box above those that it imports; arrows that others imply are left out."""
    rows, short = rows_of(reduced(arrows))
    wide = {n: 4 if ">" in n else _WIDE for row in rows for n in row}
    width = max(sum(wide[n] + _APART for n in row) for row in rows) + _APART
    at: dict[str, tuple[float, float]] = {}
    for k, row in enumerate(reversed(rows)):
        free = (width - sum(wide[n] for n in row)) / (len(row) + 1)
        x = free
        for n in row:
            at[n] = (x + wide[n] / 2, 30 + k * _ROW)
            x += wide[n] + free
    lines = [
        f'<path d="M{at[a][0]:.0f} {at[a][1] + (0 if ">" in a else 14):.0f}'
        f'L{at[b][0]:.0f} {at[b][1] - (0 if ">" in b else 14):.0f}"/>'
        for a in sorted(short)
        for b in sorted(short[a])
    ]
    boxes = [
        f'<rect x="{x - _WIDE / 2:.0f}" y="{y - 14:.0f}" width="{_WIDE}" height="28" rx="4"/>'
        f'<text x="{x:.0f}" y="{y + 4:.0f}">{n}</text>'
        for n, (x, y) in sorted(at.items())
        if ">" not in n
    ]
    height = 60 + (len(rows) - 1) * _ROW
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}">',
        "<style>text{font:13px sans-serif;text-anchor:middle}rect{fill:#eef3fa;stroke:#4a6a96}path{stroke:#888;fill:none}"
        ".back{fill:#fff;stroke:none}</style>",
        f'<rect class="back" width="{width:.0f}" height="{height}"/>',
        *lines,
        *boxes,
        "</svg>\n",
    ))  # fmt: skip


def main() -> None:
    for name, of in PICTURES.items():
        (ROOT / "docs" / "theory" / name).write_text(drawn(graph(of)), encoding="utf-8")


if __name__ == "__main__":
    main()
