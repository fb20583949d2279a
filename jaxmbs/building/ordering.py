"""The order of the links of a tree."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxmbs.model.bodies import Hinge
from jaxmbs.model.errors import ModelError
from jaxmbs.model.joints.base import Joint
from jaxmbs.model.structure import WORLD, TreeJoint


@dataclass(frozen=True)
class Placed:
    """A tree joint, its place and, if it is releasable, the hinge that it acts as until its release."""

    joint: Joint
    at: Hinge
    hinge: Joint | None


def tree_order(bodies: Sequence[str], inward: Mapping[str, tuple[str, Placed]]) -> tuple[TreeJoint, ...]:
    """Inward joints in regular order: parents before children, otherwise in the order of the bodies [Y 1.1].

    bodies: names in the order of adding; inward: for each body, the name and place of its inward joint. Raises ModelError
    for bodies that are not connected to the world.
    """
    rank = {body: i for i, body in enumerate(bodies)}
    hanging: dict[str, list[str]] = {}
    for body, (_, placed) in inward.items():
        hanging.setdefault(placed.at.parent, []).append(body)
    ready = [rank[b] for b in hanging.get(WORLD, [])]
    heapq.heapify(ready)
    index, links = {WORLD: -1}, []
    while ready:
        body = bodies[heapq.heappop(ready)]
        name, placed = inward[body]
        index[body] = len(links)
        links.append(TreeJoint(name, body, index[placed.at.parent], placed.joint, placed.hinge))
        for child in hanging.get(body, []):
            heapq.heappush(ready, rank[child])
    missing = [b for b in bodies if b not in index]
    if missing:
        raise ModelError(
            f"bodies {missing} are connected to one another but not to the world; connect one of them to the world "
            "(with mbs.Free() if it moves freely) and close loops with close_loop"
        )
    return tuple(links)
