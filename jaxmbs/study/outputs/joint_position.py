"""A coordinate of a joint."""

from __future__ import annotations

from collections.abc import Mapping

from jaxmbs.model.fields import element
from jaxmbs.model.forces.base import Scene
from jaxmbs.study.outputs.base import Scalar
from jaxmbs.study.outputs.coordinates import Coordinate, coordinate_quantities


@element
class JointPosition(Coordinate):
    """A coordinate of a joint."""

    def quantities(self, joint_types: Mapping[str, str]) -> tuple[str, ...]:
        return coordinate_quantities(joint_types[self.joint])

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        return scene.joints[self.joint][0][self.component], True
