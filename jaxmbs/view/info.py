"""A mechanism as text: its tree, joints and degrees of freedom, and the matrices of its graph [Y 1.1; W 2]."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from jaxmbs.dynamics.constrained.order import equations_text
from jaxmbs.model import Model
from jaxmbs.model.graph import Graph, graph_of
from jaxmbs.model.joints import Coordinate


def info_text(model: Model, matrices: bool = False) -> str:
    """A mechanism as text: counts, the drawn tree, a table of the joints; with `matrices` also S, T, [I] and [H].

    Starts no JAX backend.
    """
    graph, s = graph_of(model), model.structure
    cuts = f", {count(len(s.loops), 'cut joint')}" if s.loops else ""
    parts = [
        f"{model.name}: {count(graph.n, 'body', 'bodies')}, {count(graph.n, 'joint')}{cuts}, "
        f"{count(model.nv, 'degree')} of freedom of the tree (nq = {model.nq}, nv = {model.nv}), "
        f"{count(len(s.forces), 'force element')}",
        *([solved] if (solved := equations_text(s)) else []),
        drawn_tree(model, graph),
        joint_table(model, graph),
    ]
    return "\n\n".join(parts + ([matrices_text(graph)] if matrices else [])) + "\n"


def count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def drawn_tree(model: Model, graph: Graph) -> str:
    """The tree, beginning with the world: one line for each body, with its inward joint."""
    hanging: dict[int, list[int]] = {}
    for i, (_, before) in enumerate(graph.preceding, 1):
        hanging.setdefault(before, []).append(i)
    lines = [graph.bodies[0]]
    # a stack instead of recursion, because chains may be long
    stack = [(i, "", i == hanging[0][-1]) for i in reversed(hanging.get(0, []))]
    while stack:
        i, indent, last = stack.pop()
        link = model.structure.links[i - 1]
        lines.append(f"{indent}{'└─' if last else '├─'} {link.body}  ({link.name}: {_said(model, i - 1)})")
        below = hanging.get(i, [])
        indent += "   " if last else "│  "
        stack += [(k, indent, k == below[-1]) for k in reversed(below)]
    return "\n".join(lines)


def _said(model: Model, i: int) -> str:
    joint = model.structure.links[i].joint
    return f"{joint.type_name}, {joint.nv}"


def joint_table(model: Model, graph: Graph) -> str:
    """Tree joints in the order of q, then cut joints: arc, name, type, i+ and i-, indices in q and v, coordinates."""
    head = ("arc", "joint", "type", "i+", "i-", "q", "v", "coordinates")
    rows = []
    for a, link in enumerate(model.structure.links):
        spans = (model.structure.q_slices[a], model.structure.v_slices[a])
        rows.append((
            str(a + 1), link.name, link.joint.type_name, *(f"{k} {graph.bodies[k]}" for k in graph.arcs[a]),
            *(_span(x) for x in spans), coordinates_text(link.joint.coordinates()),
        ))  # fmt: skip
    for a, loop in enumerate(model.structure.loops, graph.n):
        ends = (f"{k} {graph.bodies[k]}" for k in graph.arcs[a])
        rows.append((str(a + 1), loop.name, loop.joint.type_name, *ends, "cut", "cut", ""))
    return _table(head, rows)


def coordinates_text(components: Sequence[Coordinate]) -> str:
    """Names and units of coordinates; where several in sequence have the same unit, it is written once, after the
    last."""
    groups = [(unit, [c.name for c in same]) for unit, same in itertools.groupby(components, key=lambda c: c.unit)]
    return ", ".join(", ".join(names) + (f" [{unit}]" if unit else "") for unit, names in groups)


def _span(x: slice) -> str:
    if x.stop == x.start:
        return "-"
    return str(x.start) if x.stop == x.start + 1 else f"{x.start}..{x.stop - 1}"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[c]) for row in (head, *rows)) for c in range(len(head))]
    return "\n".join("  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip() for row in (head, *rows))


def matrices_text(graph: Graph) -> str:
    """S0, S, T, the matrices of the cut joints, and [I], [H] of the graph with all arcs directed outwards."""
    named = [("S0", graph.S0[None]), ("S", graph.S), ("T = S⁻¹", graph.T)]
    if graph.S_cut.size:
        named += [("S0* above S* (cut joints)", graph.S_cut)]
    named += [("[I]", graph.wang_I), ("[H] = [I]⁻¹", graph.wang_H)]
    return "\n\n".join(f"{name}\n{matrix_text(x)}" for name, x in named)


def matrix_text(x: np.ndarray) -> str:
    """A matrix of signed integers as text, zeros as dots."""
    said = {0: "·"}
    return "\n".join(" ".join(said.get(v, f"{v:+d}").rjust(2) for v in row) for row in x.tolist())
