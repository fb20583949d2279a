"""A velocity of a joint."""

from __future__ import annotations

from collections.abc import Mapping

from jaxmbs.model.fields import element
from jaxmbs.model.forces.base import Scene
from jaxmbs.study.outputs.base import Scalar
from jaxmbs.study.outputs.coordinates import Coordinate, rate_quantities


@element
class JointVelocity(Coordinate):
    """A velocity of a joint."""

    def quantities(self, joint_types: Mapping[str, str]) -> tuple[str, ...]:
        return rate_quantities(joint_types[self.joint])

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        return scene.joints[self.joint][1][self.component], True
