"""The picture of a bond graph."""

import numpy as np
from matplotlib.text import Annotation

from jaxmbs.dynamics.bond_graph.elements import Bond, Vertex
from jaxmbs.dynamics.bond_graph.graph import BondGraph
from jaxmbs.view.energy_flow import _flows, _places, energy_flow

# a body on a hinge with a damper: its weight gives 5 W, of which the hinge takes 2 to the damper
VERTICES = [("body:b", "1"), ("rate:j", "1"), ("joint:j", "0"), ("axes:j", "MTF"), ("gravity:b", "Se"),
            ("inertia:b", "I"), ("loss:oil", "R")]  # fmt: skip
POWERS = {
    ("gravity:b", "body:b"): 5.0, ("body:b", "inertia:b"): 3.0, ("joint:j", "body:b"): -2.0,
    ("rate:j", "axes:j"): -2.0, ("axes:j", "joint:j"): -2.0, ("rate:j", "loss:oil"): 2.0,
}  # fmt: skip


def test_arrows_follow_the_energy():
    vertices = tuple(Vertex(x, kind, x.split(":")[1]) for x, kind in VERTICES)
    bonds = tuple(Bond(np.array([power]), np.ones(1), *ends) for ends, power in POWERS.items())
    graph = BondGraph(bonds, vertices, "hinge")
    flows = _flows(graph)
    assert len(flows) == 5, "the two bonds of the transformer are one arrow"
    assert not [f for f in flows if "axes:j" in (f.tail, f.head)]
    places = _places(graph, flows)
    axes = energy_flow(graph)
    arrows = [t for t in axes.texts if isinstance(t, Annotation)]
    for f, arrow in zip(flows, arrows, strict=True):
        start, end = (f.tail, f.head) if f.power > 0 else (f.head, f.tail)
        assert (arrow.xyann, arrow.xy) == (places[start], places[end])
    labels = [t.get_text() for t in axes.texts if t.get_text().endswith(" W")]
    assert sorted(labels) == ["2 W", "2 W", "2 W", "3 W", "5 W"]
