"""Smooth one-sided contact of a point with a surface."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces import touch
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.forces.surfaces import Surface
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar


@element
class Contact(Force):
    """Contact of a point of a body with a surface of another body or of the world.

    The normal force is stiffness depth (1 + damping d(depth)/dt) and never pulls (Hunt-Crossley). It rises smoothly
    from zero within +-smoothing of the surface, so that its derivatives exist.

    >>> mech = mbs.library.double_pendulum()
    >>> ground = mbs.Plane(point=(0, 0, -1.9), normal=(0, 0, 1))
    >>> mech.add_force("ground", mbs.Contact("lower", (0, 0, -1), ground, stiffness=1e4, friction=0.3))
    >>> mbs.get(mech.build(), "ground.surface.normal")
    array([0., 0., 1.])
    """

    pairwise: ClassVar[bool] = True
    trials: ClassVar[int] = 24  # enough for a few touches
    body: str = field(Kind.BODY_OR_WORLD, "", "body of the point")
    point: Vector = field(Kind.VECTOR, "m", "the point, in body axes")
    surface: Surface = field(Kind.PART, "", "Plane, Sphere or Cylinder, in axes of `other`", of=Surface)
    other: str = field(Kind.BODY_OR_WORLD, "", "body of the surface", default="world")
    stiffness: Number = field(Kind.NOT_NEGATIVE, "N/m", "normal force per depth", default=0.0)
    damping: Number = field(
        Kind.NOT_NEGATIVE, "s/m", "relative gain of the normal force per rate of the depth", default=0.0
    )
    friction: Number = field(Kind.NOT_NEGATIVE, "", "Coulomb coefficient", default=0.0)
    transition_velocity: Number = field(Kind.POSITIVE, "m/s", "over which friction is reached smoothly", default=1e-2)
    smoothing: Number = field(Kind.POSITIVE, "m", "over which the normal force rises smoothly", default=1e-4)

    def _state(self, p: Numbers, scene: Scene) -> tuple[Scalar, Vector3, Vector3, Vector3]:
        """Depth, normal and relative velocity (world axes), point in axes of `other`."""
        x = scene.local_point(self.other, scene.point(self.body, p["point"]))
        depth, normal = self.surface.depth(p, x)
        relative = scene.velocity(self.body, p["point"]) - scene.velocity(self.other, x)
        return depth, scene.rotation(self.other) @ normal, relative, x

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar], ...]:
        """The depths at which the normal force begins to rise and at which it has its full stiffness."""
        depth, normal, relative, _ = self._state(p, scene)
        rate = -(normal @ relative)
        return (depth + p["smoothing"], rate), (depth - p["smoothing"], rate)

    def _force(self, p: Numbers, scene: Scene) -> tuple[Vector3, Vector3, Vector3, Vector3]:
        """Elastic force, whole force on the body, relative velocity, point of action on `other`."""
        depth, normal, relative, x = self._state(p, scene)
        elastic = touch.elastic(p, depth, *self.sides(p, scene))
        return normal * elastic, touch.whole(p, elastic, normal, relative), relative, x

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        _, whole, _, x = self._force(p, scene)
        loads.force(self.body, whole, p["point"])
        loads.force(self.other, -whole, x)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        return touch.stored(p, self._state(p, scene)[0], *self.sides(p, scene))

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        elastic, whole, relative, _ = self._force(p, scene)
        return (whole - elastic) @ relative
