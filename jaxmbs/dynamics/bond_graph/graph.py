"""A bond graph as data, and the two laws that its efforts and flows obey [K 2]."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.bond_graph import text
from jaxmbs.dynamics.bond_graph.elements import STATIC, Bond, Vertex
from jaxmbs.model.errors import unknown
from jaxmbs.model.shapes import Float


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BondGraph:
    """The bond graph of a mechanism at one state (or, mapped, at a batch of them); made by `bond_graph`.

    bonds: with their efforts and flows; vertices: nodes and elements; name: of the model. A pytree whose leaves are the
    efforts and flows.

    >>> graph = mbs.textbook.bond_graph(mbs.library.double_pendulum().build(), [0.5, 0.0], [1.0, 0.0])
    >>> graph.nodes
    ('body:upper', 'rate:shoulder', 'body:lower', 'rate:elbow', 'joint:elbow', 'joint:shoulder')
    """

    bonds: tuple[Bond, ...]
    vertices: tuple[Vertex, ...] = field(metadata=STATIC)
    name: str = field(metadata=STATIC)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Ids of the nodes."""
        return tuple(x.id for x in self.vertices if x.is_node)

    @property
    def elements(self) -> tuple[str, ...]:
        """Ids of the elements."""
        return tuple(x.id for x in self.vertices if not x.is_node)

    def kind(self, vertex: str) -> str:
        """Kind of a vertex, see `Vertex`. Raises ModelError for an unknown id."""
        kinds = {x.id: x.kind for x in self.vertices}
        if vertex not in kinds:
            raise unknown("vertex", vertex, kinds, "bond graph")
        return kinds[vertex]

    def bond(self, tail: str, head: str) -> Bond:
        """The bond from tail to head. Raises ModelError if there is none."""
        found = {(b.tail, b.head): b for b in self.bonds}
        if (tail, head) not in found:
            raise unknown("bond", f"{tail} -> {head}", [" -> ".join(k) for k in found], "bond graph")
        return found[tail, head]

    def residuals(self) -> dict[str, Float[jax.Array, "... n"]]:
        """Per node what must be zero: the sum of the efforts (of the flows at a "0"), inwards less outwards [K 2].

        Efforts do not sum to zero if the accelerations are not those of the motion: the residuals of the rates are then
        A (a - true a). Flows do not if the velocities violate a constraint.
        """
        out: dict[str, Any] = {}
        for node in self.nodes:
            summed = "effort" if self.kind(node) == "1" else "flow"
            terms = [(getattr(b, summed), b.head == node) for b in self.bonds if node in (b.tail, b.head)]
            out[node] = sum(x if inwards else -x for x, inwards in terms)
        return out

    def powers(self) -> dict[str, Float[jax.Array, " ..."]]:
        """Power [W] that every element takes up, negative for a source that gives power. The powers sum to zero.

        What the inertias take up is the rate of the kinetic energy; what the springs take up, of their potential.
        """
        out: dict[str, Any] = {x: 0.0 for x in self.elements}
        for b in self.bonds:
            for end, received in ((b.head, b.power), (b.tail, -b.power)):
                if end in out:
                    out[end] = out[end] + received
        return {x: jnp.asarray(power) for x, power in out.items()}

    def graphml(self, path: str | Path | None = None) -> str:
        """GraphML text, also written to the path: kind and name of vertices; effort, flow and power of bonds.

        Raises ModelError for a batch of states.
        """
        return text.written(text.graphml(self.name, self.vertices, self.bonds), path)

    def dot(self, path: str | Path | None = None) -> str:
        """DOT text for Graphviz, also written to the path: half arrows in the sense of positive power, which is their
        label. Raises ModelError for a batch of states."""
        return text.written(text.dot(self.name, self.vertices, self.bonds), path)
