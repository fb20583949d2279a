"""A model in a notebook: its tree and the table of its joints."""

from __future__ import annotations

from html import escape

import numpy as np

from jaxmbs.model import Model, get
from jaxmbs.model.graph import graph_of
from jaxmbs.view.info import coordinates_text, count, drawn_tree


def model_html(model: Model) -> str:
    """What notebooks show for a model: counts, the drawn tree, bodies with their joints. Starts no backend."""
    s = model.structure
    head = f"{count(len(s.links), 'body', 'bodies')}, {count(model.nv, 'degree')} of freedom (nq = {model.nq})"
    others = (
        (len(s.loops), "cut joint"), (len(s.forces), "force element"), (len(s.constraints), "constraint"),
        (len(s.events), "event"),
    )  # fmt: skip
    head += "".join(f", {count(n, what)}" for n, what in others if n)
    rows = []
    for link in s.links:
        mass = get(model, f"{link.body}.mass")
        said = f"{mass:.4g}" if np.ndim(mass) == 0 else f"{len(np.asarray(mass))} values"
        cells = (link.body, said, link.name, link.joint.type_name, coordinates_text(link.joint.coordinates()))
        rows.append("<tr>" + "".join(f"<td style='text-align:left'>{escape(str(c))}</td>" for c in cells) + "</tr>")
    names = "".join(
        f"<th style='text-align:left'>{x}</th>" for x in ("body", "mass [kg]", "joint", "type", "coordinates")
    )
    tree = escape(drawn_tree(model, graph_of(model)))
    return (
        f"<div><b>{escape(model.name)}</b>: {head}<pre style='line-height:1.2'>{tree}</pre>"
        f"<details><summary>bodies and joints</summary><table><tr>{names}</tr>{''.join(rows)}</table></details></div>"
    )
