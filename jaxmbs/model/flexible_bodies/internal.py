"""Messages about what the joints that belong to a flexible body itself do not have."""

from __future__ import annotations

from jaxmbs.model.errors import ModelError


def no_motion(where: str, node: str, modes: str) -> ModelError:
    """The error where the joint `node` of a node should have a motion of its own, but moves with the joint `modes`."""
    return ModelError(
        f"{where}: {node!r} is a node of flexible body {modes!r} and has no motion of its own; name {modes!r}, whose modes "
        "move its nodes"
    )


def no_wrench(modes: str, nodes: list[str]) -> str:
    """Why the joint `modes` transmits no reaction, and what does."""
    at_nodes = f", or the node {nodes[0]!r}, for what is attached there" if nodes else ""
    return (
        f"{modes!r} has the modes of a flexible body, which transmit no force or torque; name the joint that carries the "
        f"body{at_nodes}"
    )
