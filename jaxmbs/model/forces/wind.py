"""Wind as a function of height."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbs.model import profiles
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Numbers
from jaxmbs.model.forces.surroundings import AirMotion
from jaxmbs.model.given import Number, Rows, Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar


@element
class Wind(AirMotion):
    """Horizontal velocity of the air relative to the ground, towards the east and the north, at given heights; linear
    between them, constant before the first and after the last. A table of rows (height, east, north) may be given as
    `height`. Without a planet, east is x and north is y of the world.

    >>> mech = mbs.Mechanism("ball")
    >>> mech.set_environment(wind=mbs.Wind(height=(0.0, 10e3), east=(2.0, 30.0), north=(0.0, -5.0), factor=1.2))
    """

    height: Vector | Rows = field(Kind.LIST, "m", "heights, increasing", default=(0.0,))
    east: Vector = field(Kind.LIST, "m/s", "velocity towards the east at these heights", default=(0.0,))
    north: Vector = field(Kind.LIST, "m/s", "velocity towards the north at these heights", default=(0.0,))
    factor: Number = field(Kind.NUMBER, "", "by which the velocities are multiplied", default=1.0)

    def __post_init__(self) -> None:
        profiles.divide(self, "height", ("height", "east", "north"))

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        return profiles.requirements(p, "height", "east", "north")

    def velocity(self, p: Numbers, height: Scalar, t: Scalar) -> Vector3:
        passed = tuple(height >= x for x in p["height"])
        east, north = (profiles.piecewise_linear(height, p["height"], p[x], passed) for x in ("east", "north"))
        return Vector3(east * p["factor"], north * p["factor"], 0.0)
