"""Relative velocity of two points."""

from __future__ import annotations

from collections.abc import Mapping

from jaxmbs.model.fields import element
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Vector3
from jaxmbs.study.outputs.base import Scalar
from jaxmbs.study.outputs.pairs import Pair


@element
class RelativeVelocity(Pair):
    """Velocity of a point of body_b minus that of a point of body_a, both in the inertial frame [m/s]: the length of
    the difference, or its component along `direction`."""

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "velocity"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        a, b = Vector3.of(self.point_a), Vector3.of(self.point_b)
        return self.part(scene, scene.velocity(self.body_b, b) - scene.velocity(self.body_a, a)), True
