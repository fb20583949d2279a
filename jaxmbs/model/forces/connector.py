"""Connector whose force follows a measured table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model import profiles
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Loads, Numbers, Scene
from jaxmbs.model.forces.directed import Directed
from jaxmbs.model.given import Vector
from jaxmbs.spatial.scalar import Scalar, where


@element
class Connector(Directed):
    """Electrical connector, umbilical or spring with a measured force: a table of the force against the extension.

    The force on body_b along the direction is piecewise linear through (extensions, forces): positive where it pushes the
    bodies apart, negative where it holds them together. Before the first extension the force has its first value; from the
    last extension on it is zero, because the connector is out. It acts again if the bodies come back, unless the event
    action Disable has switched it off.

    >>> mech = mbs.library.stage_separation()
    >>> plug = mbs.Connector(
    ...     "stage", "payload", (0, 0, 0), (0, 0, 0), (1, 0, 0), extensions=(0.0, 0.004, 0.01), forces=(-80.0, -120.0, -30.0)
    ... )
    >>> mech.add_force("umbilical", plug)
    >>> print(mbs.get(mech.build(), "umbilical.forces"))
    [ -80. -120.  -30.]
    """

    trials: ClassVar[int] = 4
    extensions: Vector = field(Kind.LIST, "m", "extensions of the table, increasing")
    forces: Vector = field(Kind.LIST, "N", "force at these extensions")

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        return profiles.requirements(p, "extensions", "forces")

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar], ...]:
        """The extensions of the table."""
        s, rate, _, _ = self._motion(p, scene)
        return tuple((s - x, rate) for x in p["extensions"])

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        s, _, direction, on_a = self._motion(p, scene)
        passed = self.sides(p, scene)
        level = profiles.piecewise_linear(s, p["extensions"], p["forces"], passed)
        self._apply_along(loads, p, where(passed[-1], 0.0, level), direction, on_a)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        """Work [J] that it would still do until it is out."""
        return profiles.remaining(self._motion(p, scene)[0], p["extensions"], p["forces"])
