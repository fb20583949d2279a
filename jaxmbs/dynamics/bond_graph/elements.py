"""Vertices and bonds, the parts of a bond graph [K 2]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax

from jaxmbs.model.shapes import Float

STATIC: Any = {"static": True}


@dataclass(frozen=True)
class Vertex:
    """A node or an element of a bond graph. id: unique, "role:name"; kind: its bond graph symbol.

    Nodes: "1" (one flow, the efforts sum to zero) and "0" (one effort, the flows sum to zero). Elements: "I" inertia,
    "C" spring, "R" damper, "Se" and "Sf" sources of effort and of flow, "MTF" transformer, "MGY" gyrator.

    >>> mbs.textbook.Vertex("gravity:arm", "Se", "arm").is_node
    False
    """

    id: str
    kind: str
    name: str

    @property
    def is_node(self) -> bool:
        """Whether this vertex is a node; otherwise it is an element."""
        return self.kind in ("0", "1")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bond:
    """A path of energy from the vertex `tail` to the vertex `head`, both given by their ids.

    effort (n,) [N, N m], flow (n,) [m/s, rad/s]; a batch of states adds a leading axis.

    >>> bond = mbs.textbook.Bond(jnp.array([2.0, 0.0]), jnp.array([3.0, 1.0]), "rate:hinge", "loss:oil")
    >>> print(bond.power)
    6.0
    """

    effort: Float[jax.Array, "... n"]
    flow: Float[jax.Array, "... n"]
    tail: str = field(metadata=STATIC)
    head: str = field(metadata=STATIC)

    @property
    def power(self) -> Float[jax.Array, " ..."]:
        """Power [W] from tail to head; negative if energy passes the other way."""
        return (self.effort * self.flow).sum(axis=-1)
