"""The elementary equations of each joint [Y 2.6.1].

The planes and axes are on the second body (the child of a tree joint, body b of a cut joint), which is body i of
`equations`; the points are on the first, body j. Normals and axes are passed with reversed sign, so that multipliers
are components of the joint's wrench on the second body, in the axes of the joint frame on it.
Constraint rows are in the order of `mbs.constrained_dynamics`: forces, then torques.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from jaxmbs.model import ModelError
from jaxmbs.model.constraint_rows import sites
from jaxmbs.model.joints import Joint
from jaxmbs.model.joints.base import Numbers
from jaxmbs.model.joints.equations import (
    AXES,
    Aligned,
    ConstantAngle,
    Equations,
    Parallel,
    Points,
    Screw,
    perpendicular,
)
from jaxmbs.model.structure import Structure
from jaxmbs.spatial import Vector3


@dataclass(frozen=True)
class Arc:
    """A joint as an arc of the graph: from body `first` to body `second` (-1: the world).

    frames: names of the parameters of the joint frames on `first` and `second`; kept: indices of the constraint rows of
    the joint that are equations of the system, in order.
    """

    name: str
    joint: Joint
    first: int
    second: int
    frames: tuple[str, str]
    kept: tuple[int, ...]


@dataclass(frozen=True)
class PointRow:
    """Force along d on the second body."""

    d: Vector3


@dataclass(frozen=True)
class TurnRow:
    """Torque along d on the second body; axis: the axis that stays parallel in both bodies, None for all directions."""

    d: Vector3
    axis: Vector3 | None


Row = PointRow | TurnRow | ConstantAngle | Screw


def rows(arc: Arc, numbers: Numbers) -> list[Row]:
    """The equations of the joint."""
    found = [row for e in arc.joint.equations(numbers) for row in _rows(arc, e)]
    return [found[k] for k in arc.kept]


def _rows(arc: Arc, e: Equations) -> Iterator[Row]:
    match e:
        case Points(directions):
            yield from (PointRow(d) for d in directions)
        case Parallel(axis):
            yield from (TurnRow(d, axis) for d in perpendicular(axis))
        case Aligned():
            yield from (TurnRow(d, None) for d in AXES)
        case ConstantAngle() | Screw():
            yield e
        case _:
            raise ModelError(
                f"absolute coordinates: joint {arc.name!r} has constraint equations of type {type(e).__name__}, which "
                "absolute coordinates do not support; use mbs.forward_dynamics or mbs.constrained_dynamics"
            )


@functools.lru_cache(maxsize=256)
def arcs(s: Structure) -> tuple[Arc, ...]:
    """Tree joints in order (arc i carries body i), then the cut joints without the constraint rows that `build` removed.

    Raises ModelError for joints and constraints that absolute coordinates do not support.
    """
    for c in s.constraints:
        raise ModelError(
            f"absolute coordinates: constraint {c.name!r} is {type(c.element).__name__}, but only joints are supported; use "
            "mbs.constrained_dynamics"
        )
    out = []
    for x in (*s.links, *s.loops):
        if not x.joint.gives("equations"):
            raise ModelError(
                f"absolute coordinates: joint {x.name!r} is {x.joint.type_name}, a type that absolute coordinates do not "
                "support; use mbs.forward_dynamics or mbs.constrained_dynamics"
            )
    for i, link in enumerate(s.links):
        frames = (f"{link.name}.parent_pose", f"{link.name}.child_pose")
        out.append(Arc(link.name, link.joint, link.parent, i, frames, tuple(range(link.joint.constraints))))
    for x in sites(s):
        (first, second), (a, b) = x.links, x.poses
        out.append(Arc(x.name, x.formulas, first, second, (a, b), x.kept))
    return tuple(out)
