"""Vertices and bonds, what a bond graph is made of [K 2]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax

from jaxmbs.model.shapes import Float

STATIC: Any = {"static": True}


@dataclass(frozen=True)
class Vertex:
    """A node or an element. id: unique, "role:name"; kind: what it is in the language of bond graphs.

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
        """Whether it is a node, not an element."""
        return self.kind in ("0", "1")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bond:
    """Energy that passes from `tail` to `head`, ids of two vertices.

    effort (n,) [N, N m], flow (n,) [m/s, rad/s]; a batch of states has its axis first.

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
        """Power [W] from tail to head; negative if it passes the other way."""
        return (self.effort * self.flow).sum(axis=-1)
