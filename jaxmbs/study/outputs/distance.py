"""Distance between two points."""

from __future__ import annotations

from collections.abc import Mapping

from jaxmbs.model.fields import element
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Vector3
from jaxmbs.study.outputs.base import Scalar
from jaxmbs.study.outputs.pairs import Pair


@element
class Distance(Pair):
    """Distance from a point of body_a to a point of body_b [m]."""

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "length"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        a, b = Vector3.of(self.point_a), Vector3.of(self.point_b)
        return self.part(scene, scene.point(self.body_b, b) - scene.point(self.body_a, a)), True
