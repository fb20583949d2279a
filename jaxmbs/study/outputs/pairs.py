"""Outputs of two points on two bodies: their distance and their relative velocity."""

from __future__ import annotations

from collections.abc import Mapping

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.given import Vector
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Vector3
from jaxmbs.study.outputs.base import Output, Scalar, turned


@element
class Pair(Output):
    """Base of the outputs of two points."""

    body_a: str = field(Kind.BODY_OR_WORLD, "", "body of the first point")
    body_b: str = field(Kind.BODY_OR_WORLD, "", "body of the second point")
    point_a: Vector = field(Kind.VECTOR, "m", "first point, in axes of body_a", default=(0.0, 0.0, 0.0))
    point_b: Vector = field(Kind.VECTOR, "m", "second point, in axes of body_b", default=(0.0, 0.0, 0.0))
    direction: Vector | None = field(
        Kind.AXIS, "", "in axes of body_a: the component along it instead of the length of the vector", default=None
    )

    def part(self, scene: Scene, vector: Vector3) -> Scalar:
        """The vector's length, or its component along `direction`."""
        if self.direction is None:
            return vector.norm()
        return turned(scene.rotation(self.body_a), Vector3.of(self.direction)) @ vector


@element
class Distance(Pair):
    """Distance from a point of body_a to a point of body_b [m]."""

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "length"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        a, b = Vector3.of(self.point_a), Vector3.of(self.point_b)
        return self.part(scene, scene.point(self.body_b, b) - scene.point(self.body_a, a)), True


@element
class RelativeVelocity(Pair):
    """Velocity of a point of body_b minus that of a point of body_a, both in the inertial frame [m/s]: the length of
    the difference, or its component along `direction`."""

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "velocity"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        a, b = Vector3.of(self.point_a), Vector3.of(self.point_b)
        return self.part(scene, scene.velocity(self.body_b, b) - scene.velocity(self.body_a, a)), True
