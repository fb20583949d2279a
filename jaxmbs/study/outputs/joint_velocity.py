"""A component of the velocity of a joint."""

from __future__ import annotations

from jaxmbs.model.fields import element
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.joints import Coordinate as Component
from jaxmbs.model.joints import Joint
from jaxmbs.study.outputs.base import Scalar
from jaxmbs.study.outputs.coordinates import Coordinate


@element
class JointVelocity(Coordinate):
    """A component of the velocity of a joint."""

    def components(self, joint: Joint) -> tuple[Component, ...]:
        return joint.speeds()

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        return scene.joints[self.joint][1][self.component], True
