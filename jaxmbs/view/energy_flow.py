"""A bond graph as a picture of the energy flow [K]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jaxmbs.dynamics.bond_graph.graph import BondGraph
from jaxmbs.dynamics.bond_graph.text import checked_powers, watts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]
COLORS = {
    "I": "#2b6cb0", "C": "#2f855a", "R": "#c2513a", "Se": "#b7791f", "Sf": "#6b46c1", "MGY": "#94a3b5",
    "0": "#1d2b3a", "1": "#1d2b3a",
}  # fmt: skip
STEP, ROW, PORT = 2.4, 5.2, 1.5  # distances between neighbours, between branches, and from a node to its elements


@dataclass(frozen=True)
class _Flow:
    """An arrow from one vertex to another, without the transformers between them; power [W]."""

    tail: str
    head: str
    power: float


def energy_flow(graph: BondGraph, axes: Axes | None = None) -> Axes:
    """Draw the power [W] that flows between bodies, joints and elements; returns the axes (new ones if None).

    Arrows point in the direction of the energy flow, and their width grows with the power; transformers, which pass on all
    power, are part of the arrows. Bodies and joints are placed from left to right, with the rates of a joint above it
    and the elements of each node around it. Raises ModelError for a batch of states.
    """
    from matplotlib.figure import Figure

    flows = _flows(graph)
    places = _places(graph, flows)
    xs, ys = zip(*places.values(), strict=True)
    if axes is None:
        size = (1.1 * (max(xs) - min(xs)) + 2, 0.8 * (max(ys) - min(ys)) + 1.5)
        axes = Figure(figsize=size, layout="constrained").add_subplot()
    greatest = max([abs(f.power) for f in flows], default=0.0) or 1e-300
    for f in flows:
        _arrow(axes, f, graph, places, greatest)
    for x in graph.vertices:
        if x.id in places:
            edge = COLORS[x.kind]
            box: dict[str, Any] = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": edge}
            text = x.name if x.is_node and x.id.startswith("body:") else x.id.replace(":", "\n", 1)
            axes.text(
                *places[x.id], f"{x.kind}  {text}" if x.is_node else text, color=edge, bbox=box, fontsize=8,
                ha="center", va="center", weight="bold" if x.is_node else "normal", zorder=3,
            )  # fmt: skip
    axes.set(xlim=(min(xs) - 1.2, max(xs) + 1.2), ylim=(min(ys) - 0.8, max(ys) + 0.8))
    axes.axis("off")
    return axes


def _flows(graph: BondGraph) -> list[_Flow]:
    """All bonds, with the two bonds of a transformer joined into one."""
    powers = checked_powers(graph.bonds)
    source = {b.head: b.tail for b in graph.bonds if graph.kind(b.head) == "MTF"}
    return [
        _Flow(source.get(b.tail, b.tail), b.head, float(power))
        for b, power in zip(graph.bonds, powers, strict=True)
        if b.head not in source
    ]


def _places(graph: BondGraph, flows: list[_Flow]) -> dict[str, Point]:
    """Positions of all vertices except the transformers."""
    places = _tree(graph, flows)
    neighbours: dict[str, list[str]] = {}
    for f in flows:
        for own, other in ((f.tail, f.head), (f.head, f.tail)):
            if own not in places:
                neighbours.setdefault(own, []).append(other)
    around: dict[str, list[str]] = {}
    below = []
    for vertex, nodes in neighbours.items():
        if not any(n in places for n in nodes):
            continue  # the source of a constraint is placed beside it
        if len(nodes) == 1 and graph.kind(vertex) != "0":
            around.setdefault(nodes[0], []).append(vertex)
        else:
            below.append(vertex)
    y_below = min(y for _, y in places.values()) - 2 * PORT
    for k, vertex in enumerate(below):
        known = [places[n] for n in neighbours[vertex] if n in places]
        places[vertex] = (sum(x for x, _ in known) / len(known), y_below - PORT * k)
        places |= {n: (places[vertex][0] + STEP, places[vertex][1]) for n in neighbours[vertex] if n not in places}
    for node, elements in around.items():
        x, y = places[node]
        for k, vertex in enumerate(elements):
            aside = 1.3 * (k - (len(elements) - 1) / 2)
            places[vertex] = (x + aside, y + (-PORT if node.startswith("body:") else PORT))
    return places


def _tree(graph: BondGraph, flows: list[_Flow]) -> dict[str, Point]:
    """Positions of bodies, joints and rates: one column per joint, one row per branch."""
    joint_of = {f.head: f.tail for f in flows if f.head.startswith("body:") and f.tail.startswith("joint:")}
    parent_of = {f.head: f.tail for f in flows if f.head.startswith("joint:") and f.tail.startswith("body:")}
    places: dict[str, Point] = {}
    continued, rows = set(), 0
    for body in (n for n in graph.nodes if n in joint_of):  # parents come first
        joint = joint_of[body]
        parent = parent_of.get(joint)
        if parent is None or parent in continued:
            y, rows = -ROW * rows, rows + 1
        else:
            y = places[parent][1]
        x = places[parent][0] + STEP if parent else 0.0
        continued.add(parent)
        places |= {joint: (x, y), body: (x + STEP, y), joint.replace("joint", "rate", 1): (x, y + PORT)}
    return {n: p for n, p in places.items() if n in graph.nodes}


def _arrow(axes: Axes, f: _Flow, graph: BondGraph, places: dict[str, Point], greatest: float) -> None:
    start, end = (f.tail, f.head) if f.power >= 0 else (f.head, f.tail)
    share = abs(f.power) / greatest
    moves = share > 1e-10
    kinds = [k for k in (graph.kind(f.tail), graph.kind(f.head)) if k not in ("0", "1")]
    color = COLORS[kinds[0]] if kinds else COLORS["1"]
    style = "-|>,head_length=0.6,head_width=0.3" if moves else "-"
    (x0, y0), (x1, y1) = places[start], places[end]
    axes.annotate(
        "", (x1, y1), (x0, y0), zorder=1,
        arrowprops={"arrowstyle": style, "color": color if moves else "#d3dae2", "linewidth": 1 + 6 * share,
                    "shrinkA": 14, "shrinkB": 16, "mutation_scale": 10 + 6 * share, "alpha": 0.75 if moves else 1},
    )  # fmt: skip
    if moves:
        box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        label = watts(abs(f.power), greatest)
        axes.text((x0 + x1) / 2, (y0 + y1) / 2, label, fontsize=7, ha="center", va="center", bbox=box, zorder=2)
