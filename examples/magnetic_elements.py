"""User-defined elements for magnets.toml: a force element and an output."""

from typing import Any

from jaxmbs.elements import Force, Kind, element, field
from jaxmbs.study.outputs import Output


@element
class Magnet(Force):
    """Repels two bodies along the line between two points, by strength / distance²."""

    body_a: str = field(Kind.BODY_OR_WORLD, "", "body of one pole")
    body_b: str = field(Kind.BODY_OR_WORLD, "", "body of the other pole")
    strength: Any = field(Kind.NOT_NEGATIVE, "N m2", "force times distance squared")
    point_a: Any = field(Kind.VECTOR, "m", "one pole, in axes of body_a", default=(0.0, 0.0, 0.0))
    point_b: Any = field(Kind.VECTOR, "m", "other pole, in axes of body_b", default=(0.0, 0.0, 0.0))

    def _apart(self, p, scene):
        return scene.point(self.body_b, p["point_b"]) - scene.point(self.body_a, p["point_a"])

    def apply(self, p, scene, loads):
        d = self._apart(p, scene)
        r = d.norm()
        push = d * (p["strength"] / (r * (r * r)))
        loads.force(self.body_b, push, p["point_b"])
        loads.force(self.body_a, -push, p["point_a"])

    def potential(self, p, scene):
        return p["strength"] / self._apart(p, scene).norm()


@element
class Height(Output):
    """Height [m] of a body's origin above the world's plane z = 0."""

    body: str = field(Kind.BODY, "", "body whose origin is followed")

    def quantity(self, joints):
        return "length"

    def measure(self, scene):
        return scene.bodies[self.body].placement.position.z, True
