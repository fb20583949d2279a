"""Bond graphs as GraphML and DOT text."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxmbs.dynamics.bond_graph.elements import Bond, Vertex
from jaxmbs.model.errors import ModelError

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_KEYS = {  # GraphML attribute: (node or edge, type)
    "kind": ("node", "string"), "name": ("node", "string"),
    "effort": ("edge", "string"), "flow": ("edge", "string"), "power": ("edge", "double"),
}  # fmt: skip
_SHAPES = {"0": "circle", "1": "circle", "MTF": "box", "MGY": "box"}
_WIDEST = 6.0  # [points] width of the line with the greatest power


def written(text: str, path: str | Path | None) -> str:
    """Return the text, after writing it to the path if one is given."""
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    return text


def checked_powers(bonds: Sequence[Bond]) -> np.ndarray:
    """Power of every bond [W]. Raises ModelError for a batch of states."""
    if any(np.ndim(b.effort) != 1 for b in bonds):
        raise ModelError(
            "bond graph: the graph is a batch of states; select one with jax.tree.map(lambda x: x[0], graph)"
        )
    return np.asarray([float(b.power) for b in bonds])


def graphml(name: str, vertices: Sequence[Vertex], bonds: Sequence[Bond]) -> str:
    """GraphML text; arrays are written as numbers separated by spaces."""
    powers = checked_powers(bonds)
    root = ET.Element("graphml", xmlns=_NAMESPACE)
    for key, (domain, kind) in _KEYS.items():
        ET.SubElement(root, "key", {"id": key, "for": domain, "attr.name": key, "attr.type": kind})
    top = ET.SubElement(root, "graph", id=name, edgedefault="directed")

    def item(tag: str, attributes: dict[str, str], data: dict[str, str]) -> None:
        element = ET.SubElement(top, tag, attributes)
        for key, text in data.items():
            ET.SubElement(element, "data", key=key).text = text

    for x in vertices:
        item("node", {"id": x.id}, {"kind": x.kind, "name": x.name})
    for k, (b, power) in enumerate(zip(bonds, powers, strict=True)):
        data = {"effort": _numbers(b.effort), "flow": _numbers(b.flow), "power": repr(float(power))}
        item("edge", {"id": f"bond{k}", "source": b.tail, "target": b.head}, data)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _numbers(x: object) -> str:
    return " ".join(repr(float(c)) for c in np.asarray(x))


def watts(power: float, greatest: float) -> str:
    """A power as text; values at the rounding level of the greatest power of the graph are shown as zero."""
    return f"{power if abs(power) > 1e-10 * greatest else 0.0:.4g} W"


def dot(name: str, vertices: Sequence[Vertex], bonds: Sequence[Bond]) -> str:
    """DOT text; the width of a line grows with the power."""
    powers = checked_powers(bonds)
    greatest = max(np.abs(powers).max(initial=0.0), 1e-300)
    lines = [f"digraph {_quoted(name)} {{", "  rankdir=LR; node [fontsize=10]; edge [fontsize=8];"]
    for x in vertices:
        label = _quoted(f"{x.kind}\n{x.id}")
        lines.append(f"  {_quoted(x.id)} [label={label}, shape={_SHAPES.get(x.kind, 'plaintext')}];")
    for b, power in zip(bonds, powers, strict=True):
        width = 0.5 + (_WIDEST - 0.5) * abs(power) / greatest
        style = f'label="{watts(power, greatest)}", penwidth={width:.2f}, arrowhead=lvee'
        lines.append(f"  {_quoted(b.tail)} -> {_quoted(b.head)} [{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
