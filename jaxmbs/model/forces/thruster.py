"""Thrust with a time profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model import profiles
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number, Rows, Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar


@element
class Thruster(Force):
    """Force along a direction fixed in a body, with a time profile.

    The force is the thrust times the piecewise linear profile through (times, values), held at both ends. A table of rows
    (time [s], force [N]) given as `thrust` becomes such a profile, with a thrust of 1 N.

    >>> mech = mbs.library.stage_separation()
    >>> brake = mbs.Thruster("stage", direction=(-1, 0, 0), thrust=800.0, times=(0.0, 0.1), values=(0.0, 1.0))
    >>> mech.add_force("brake", brake)
    >>> mbs.get(mech.build(), "brake.thrust")
    800.0
    """

    source: ClassVar[bool] = True
    body: str = field(Kind.BODY, "", "body that it drives")
    point: Vector = field(Kind.VECTOR, "m", "where it acts, in body axes", default=(0.0, 0.0, 0.0))
    direction: Vector = field(Kind.DIRECTION, "", "of the force, in body axes", default=(0.0, 0.0, 1.0))
    thrust: Number | Rows = field(Kind.NUMBER, "N", "force where the profile is 1", default=0.0)
    times: Vector = field(Kind.LIST, "s", "times of the profile, increasing", default=(0.0,))
    values: Vector = field(Kind.LIST, "", "the profile at these times", default=(1.0,))

    def __post_init__(self) -> None:
        if profiles.divide(self, "thrust", ("times", "values")):
            object.__setattr__(self, "thrust", 1.0)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        return profiles.requirements(p)

    def _force(self, p: Numbers, scene: Scene) -> Vector3:
        passed = self.sides(p, scene)
        level = p["thrust"] * profiles.piecewise_linear(scene.t, p["times"], p["values"], passed)
        return scene.rotation(self.body) @ p["direction"] * level

    def instants(self, p: Numbers) -> tuple[Scalar, ...]:
        """The times of the profile."""
        return tuple(p["times"])

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        loads.force(self.body, self._force(p, scene), p["point"])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return self._force(p, scene) @ scene.velocity(self.body, p["point"])
