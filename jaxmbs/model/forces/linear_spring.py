"""Spring between two points."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, safe_divide


@element
class Line(Force):
    """Base of elements that pull along the line between two points."""

    pairwise: ClassVar[bool] = True
    body_a: str = field(Kind.BODY_OR_WORLD, "", "body at one end")
    body_b: str = field(Kind.BODY_OR_WORLD, "", "body at the other end")
    point_a: Vector = field(Kind.VECTOR, "m", "end on body_a, in its axes", default=(0.0, 0.0, 0.0))
    point_b: Vector = field(Kind.VECTOR, "m", "end on body_b, in its axes", default=(0.0, 0.0, 0.0))

    def _line(self, p: Numbers, scene: Scene) -> tuple[Vector3, Scalar, Vector3, Scalar]:
        """Vector from a to b, its length, unit vector and rate of the length."""
        d = scene.point(self.body_b, p["point_b"]) - scene.point(self.body_a, p["point_a"])
        length = d.norm()
        unit = Vector3(*(safe_divide(c, length) for c in d))
        rate = unit @ (scene.velocity(self.body_b, p["point_b"]) - scene.velocity(self.body_a, p["point_a"]))
        return d, length, unit, rate

    def _pull_along(self, loads: Loads, p: Numbers, pull: Vector3) -> None:
        """Apply the pull on body_a, towards b, and its reaction."""
        loads.force(self.body_a, pull, p["point_a"])
        loads.force(self.body_b, -pull, p["point_b"])


@element
class LinearSpring(Line):
    """Spring and damper along the line between two points.

    At zero length the line has no direction: the force is zero there, and so is its derivative with respect to a rest
    length.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("strut", mbs.LinearSpring("lower", "world", stiffness=100.0, rest_length=0.5))
    >>> mbs.get(mech.build(), "strut.stiffness")
    100.0
    """

    stiffness: Number = field(Kind.NOT_NEGATIVE, "N/m", "force per stretch", default=0.0)
    rest_length: Number = field(Kind.NOT_NEGATIVE, "m", "length without force", default=0.0)
    damping: Number = field(Kind.NOT_NEGATIVE, "N s/m", "force per rate of the length", default=0.0)

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        d, _, unit, rate = self._line(p, scene)
        # k d - k L0 unit: the part without rest length stays smooth at zero length
        pull = d * p["stiffness"] + unit * (p["damping"] * rate - p["stiffness"] * p["rest_length"])
        self._pull_along(loads, p, pull)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        stretch = self._line(p, scene)[1] - p["rest_length"]
        return 0.5 * p["stiffness"] * (stretch * stretch)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        rate = self._line(p, scene)[3]
        return -p["damping"] * (rate * rate)
