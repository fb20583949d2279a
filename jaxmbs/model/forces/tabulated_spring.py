"""Spring between two points whose force is a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model import profiles
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Loads, Numbers, Scene
from jaxmbs.model.forces.linear_spring import Line
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial.scalar import Scalar, where


@element
class TabulatedSpring(Line):
    """Spring and damper along the line between two points, with a table of the force against the length.

    The pull on both ends is piecewise linear through (lengths, forces), positive where it draws them together, and constant
    before the first and after the last length; a damper adds damping times the rate of the length. At zero length the line
    has no direction: the force is zero there.

    >>> mech = mbs.library.double_pendulum()
    >>> at = {"point_a": (0, 0, -1), "point_b": (0, 0, 1)}
    >>> mech.add_force("strap", mbs.TabulatedSpring("lower", "world", **at, lengths=(2.8, 3.0, 3.1), forces=(0, 50, 200)))
    >>> print(mbs.get(mech.build(), "strap.forces"))
    [  0.  50. 200.]
    """

    trials: ClassVar[int] = 24
    lengths: Vector = field(Kind.LIST, "m", "lengths of the table, increasing", kw_only=True)
    forces: Vector = field(Kind.LIST, "N", "pull at these lengths", kw_only=True)
    damping: Number = field(Kind.NOT_NEGATIVE, "N s/m", "force per rate of the length", default=0.0, kw_only=True)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        return profiles.requirements(p, "lengths", "forces")

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar], ...]:
        """The lengths of the table."""
        _, length, _, rate = self._line(p, scene)
        return tuple((length - x, rate) for x in p["lengths"])

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        _, length, unit, rate = self._line(p, scene)
        pull = profiles.piecewise_linear(length, p["lengths"], p["forces"], self.sides(p, scene))
        self._pull_along(loads, p, unit * (pull + p["damping"] * rate))

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        """Energy [J] relative to that at the last length of the table: negative at shorter lengths if it takes up work on
        the way there."""
        length = self._line(p, scene)[1]
        end, last = p["lengths"][-1], p["forces"][-1]
        return where(length > end, last * (length - end), 0.0) - profiles.remaining(length, p["lengths"], p["forces"])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        rate = self._line(p, scene)[3]
        return -p["damping"] * (rate * rate)
