"""Angular rate of a body."""

from __future__ import annotations

from collections.abc import Mapping

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import WORLD, Scene
from jaxmbs.model.given import Vector
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Vector3
from jaxmbs.study.outputs.base import Output, Scalar, turned


@element
class AngularRate(Output):
    """Angular rate of a body [rad/s]: the magnitude of the whole rate or of its part transverse to an axis fixed in the
    body, or the component along that axis, with its sign."""

    body: str = field(Kind.BODY_OR_WORLD, "", "body that turns")
    part: str = field(
        Kind.CHOICE, "", "the whole rate, or a part of it", default="total", choices=("total", "transverse", "axial")
    )
    axis: Vector = field(Kind.AXIS, "", "axis of the parts, in body axes", default=(1.0, 0.0, 0.0))
    relative_to: str = field(Kind.BODY_OR_WORLD, "", "what the rate is relative to", default=WORLD)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "angular rate"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        rate = scene.angular(self.body)
        if self.relative_to != WORLD:
            rate = rate - scene.angular(self.relative_to)
        if self.part == "total":
            return rate.norm(), True
        axis = turned(scene.rotation(self.body), Vector3.of(self.axis))
        spin = axis @ rate
        return (spin if self.part == "axial" else (rate - axis * spin).norm()), True
