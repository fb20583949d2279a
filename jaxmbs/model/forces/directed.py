"""Elements that push along a direction fixed in one body, on a point of another."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar


@element
class Directed(Force):
    """Base of elements that act between two bodies along a direction fixed in body_a.

    The extension is s = direction . (p_b - p_a). The force acts on body_b at p_b; its reaction acts on body_a along
    the same line.
    """

    pairwise: ClassVar[bool] = True
    body_a: str = field(Kind.BODY_OR_WORLD, "", "body that it is mounted on")
    body_b: str = field(Kind.BODY_OR_WORLD, "", "body that it pushes")
    point_a: Vector = field(Kind.VECTOR, "m", "p_a: where s = 0, in axes of body_a")
    point_b: Vector = field(Kind.VECTOR, "m", "p_b: where it pushes, in axes of body_b")
    direction: Vector = field(Kind.DIRECTION, "", "direction of the push, in axes of body_a")

    def _motion(self, p: Numbers, scene: Scene) -> tuple[Scalar, Scalar, Vector3, Vector3]:
        """Extension, its rate, direction in world axes, point of action on body_a."""
        direction = scene.rotation(self.body_a) @ p["direction"]
        x_b = scene.point(self.body_b, p["point_b"])
        on_a = scene.local_point(self.body_a, x_b)
        rate = direction @ (scene.velocity(self.body_b, p["point_b"]) - scene.velocity(self.body_a, on_a))
        return direction @ (x_b - scene.point(self.body_a, p["point_a"])), rate, direction, on_a

    def _apply_along(self, loads: Loads, p: Numbers, force: Scalar, direction: Vector3, on_a: Vector3) -> None:
        """Apply a force along the direction, and its reaction."""
        loads.force(self.body_b, direction * force, p["point_b"])
        loads.force(self.body_a, direction * -force, on_a)
