"""Which elementary equations make a joint [Y 2.6.1].

The planes and axes are on the second body (a tree joint's child, a cut joint's body b), the points on the first, with
the directions turned round, so that multipliers are components of the joint's wrench on the second body, in its axes.
Rows stand in the order of `mbs.constrained_dynamics`: forces, then moments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxmbs.model import ModelError
from jaxmbs.model.constraints.cuts import perpendicular
from jaxmbs.model.joints import (
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from jaxmbs.model.structure import Structure
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar

Numbers = Mapping[str, Any]
X, Y, Z = Vector3(1, 0, 0), Vector3(0, 1, 0), Vector3(0, 0, 1)


@dataclass(frozen=True)
class Arc:
    """A joint as an arc of the graph: from body `first` to body `second` (-1: the world), frames by parameter name.

    kept: rows of the joint that are equations of the system, in order.
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
    """Moment along d on the second body; with the axis that both bodies keep in common, None for all directions."""

    d: Vector3
    axis: Vector3 | None


@dataclass(frozen=True)
class AngleRow:
    """The angle between axis_1 of the first body and axis_2 of the second."""

    axis_1: Vector3
    axis_2: Vector3


@dataclass(frozen=True)
class ScrewRow:
    """Displacement along the axis is pitch times the angle about it."""

    axis: Vector3
    pitch: Scalar


Row = PointRow | TurnRow | AngleRow | ScrewRow


def _points(*directions: Vector3) -> list[Row]:
    return [PointRow(d) for d in directions]


def _parallel(axis: Vector3) -> list[Row]:
    return [TurnRow(d, axis) for d in perpendicular(axis)]


_ALIGNED: list[Row] = [TurnRow(d, None) for d in (X, Y, Z)]

_ROWS: dict[type[Joint], tuple[int, Callable[[Numbers], list[Row]]]] = {
    Free: (0, lambda p: []),
    Spherical: (3, lambda p: _points(X, Y, Z)),
    Revolute: (5, lambda p: _points(X, Y, Z) + _parallel(p["axis"])),
    Universal: (4, lambda p: [*_points(X, Y, Z), AngleRow(p["axis_1"], p["axis_2"])]),
    Cylindrical: (4, lambda p: _points(*perpendicular(p["axis"])) + _parallel(p["axis"])),
    Prismatic: (5, lambda p: _points(*perpendicular(p["axis"])) + _ALIGNED),
    Planar: (3, lambda p: _points(Z) + _parallel(Z)),
    Fixed: (6, lambda p: _points(X, Y, Z) + _ALIGNED),
    Helical: (5, lambda p: [*_points(*perpendicular(p["axis"])), *_parallel(p["axis"]), ScrewRow(p["axis"], p["pitch"])]),
}  # fmt: skip


def rows(arc: Arc, numbers: Numbers) -> list[Row]:
    """The equations of the joint."""
    found = _ROWS[type(arc.joint)][1](numbers)
    return [found[k] for k in arc.kept]


@functools.lru_cache(maxsize=256)
def arcs(s: Structure) -> tuple[Arc, ...]:
    """Tree joints in their order (arc i carries body i), then the cut joints, less the rows that `build` removed.

    Raises ModelError for joints and constraints that absolute coordinates do not serve.
    """
    for c in s.constraints:
        raise ModelError(
            f"absolute coordinates: constraint {c.name!r} is {type(c.element).__name__}, not a joint; use "
            "mbs.constrained_dynamics"
        )
    out = []
    for i, link in enumerate(s.links):
        if type(link.joint) not in _ROWS:
            raise ModelError(
                f"absolute coordinates: joint {link.name!r} is {type(link.joint).__name__}, which no point-plane and "
                f"relative-rotation equations make; use one of {', '.join(j.__name__ for j in _ROWS)}, or "
                "mbs.forward_dynamics"
            )
        frames = (f"{link.name}.parent_pose", f"{link.name}.child_pose")
        out.append(Arc(link.name, link.joint, link.parent, i, frames, tuple(range(_ROWS[type(link.joint)][0]))))
    for loop in s.loops:
        first, second = s.find_body(loop.body_a), s.find_body(loop.body_b)
        frames = (f"{loop.name}.pose_a", f"{loop.name}.pose_b")
        out.append(Arc(loop.name, loop.joint, first, second, frames, loop.kept))
    return tuple(out)
