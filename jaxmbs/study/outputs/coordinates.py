"""Coordinates and velocities of joints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.joints import Coordinate as Component
from jaxmbs.model.joints import Joint
from jaxmbs.study import units
from jaxmbs.study.outputs.base import Output, Scalar


@element
class Coordinate(Output):
    """Base of the outputs of one component of a joint's q or v."""

    joint: str = field(Kind.JOINT, "", "joint of the tree")
    component: int = field(Kind.COUNT, "", "counted from 0 in the order of the joint's coordinates", default=0)

    def quantities(self, joints: Mapping[str, Joint]) -> tuple[str, ...]:
        """The quantity that each component measures."""
        return tuple(units.quantity(c.unit) or "number" for c in self.components(joints[self.joint]))

    def components(self, joint: Joint) -> tuple[Component, ...]:
        """The components from which one is chosen."""
        raise NotImplementedError

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return self.quantities(joints)[self.component]

    def faults(self, joints: Mapping[str, Joint]) -> Iterator[tuple[str, str]]:
        size = len(self.quantities(joints))
        if self.component >= size:
            yield "component", f'{self.component} is out of range; joint "{self.joint}" has components 0 to {size - 1}'


@element
class JointPosition(Coordinate):
    """A coordinate of a joint."""

    def components(self, joint: Joint) -> tuple[Component, ...]:
        return joint.coordinates()

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        return scene.joints[self.joint][0][self.component], True


@element
class JointVelocity(Coordinate):
    """A component of the velocity of a joint."""

    def components(self, joint: Joint) -> tuple[Component, ...]:
        return joint.speeds()

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        return scene.joints[self.joint][1][self.component], True
