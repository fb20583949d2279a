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
    """The bond graph of a mechanism at one state (under vmap, at a batch of states); `bond_graph` returns it.

    bonds: with their efforts and flows; vertices: nodes and elements; name: the model's. A pytree whose leaves are the
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
        """Residual of every node: the sum of the efforts (of the flows at a "0"), incoming minus outgoing [K 2].

        All residuals are zero if the accelerations are those of the motion and the velocities satisfy the constraints.
        Other accelerations leave residuals A (true a - a) at the rates; other velocities leave residuals of flows.
        """
        out: dict[str, Any] = {}
        for node in self.nodes:
            summed = "effort" if self.kind(node) == "1" else "flow"
            terms = [(getattr(b, summed), b.head == node) for b in self.bonds if node in (b.tail, b.head)]
            out[node] = sum(x if inwards else -x for x, inwards in terms)
        return out

    def powers(self) -> dict[str, Float[jax.Array, " ..."]]:
        """Power [W] that every element takes up, negative for a source that supplies power. The powers sum to zero.

        The inertias take up the rate of change of the kinetic energy, the springs that of their potential energy.
        """
        out: dict[str, Any] = {x: 0.0 for x in self.elements}
        for b in self.bonds:
            for end, received in ((b.head, b.power), (b.tail, -b.power)):
                if end in out:
                    out[end] = out[end] + received
        return {x: jnp.asarray(power) for x, power in out.items()}

    def graphml(self, path: str | Path | None = None) -> str:
        """Return GraphML text and write it to `path` if one is given. Raises ModelError for a batch of states.

        The text has the kind and name of every vertex, and the effort, flow and power of every bond.
        """
        return text.written(text.graphml(self.name, self.vertices, self.bonds), path)

    def dot(self, path: str | Path | None = None) -> str:
        """Return DOT text for Graphviz and write it to `path` if one is given. Raises ModelError for a batch of states.

        Half arrows point where power counts as positive; their labels are the powers."""
        return text.written(text.dot(self.name, self.vertices, self.bonds), path)
