"""Surfaces that a point touches."""

from __future__ import annotations

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, element, field
from jaxmbs.model.forces.base import Numbers
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, safe_divide


@element
class Surface(Element):
    """A surface fixed to a body: its depth and outward normal at a point."""

    def depth(self, p: Numbers, x: Vector3) -> tuple[Scalar, Vector3]:
        """Penetration [m] (negative outside) of the point x and the unit normal that pushes it out."""
        raise NotImplementedError


@element
class Plane(Surface):
    """The half space behind a plane, on the side opposite to its normal.

    >>> mbs.Contact("lower", (0, 0, -1), mbs.Plane(point=(0, 0, -1.9)), stiffness=1e4).surface.point
    (0, 0, -1.9)
    """

    point: Vector = field(Kind.VECTOR, "m", "a point of the plane", default=(0.0, 0.0, 0.0))
    normal: Vector = field(Kind.DIRECTION, "", "outward normal", default=(0.0, 0.0, 1.0))

    def depth(self, p: Numbers, x: Vector3) -> tuple[Scalar, Vector3]:
        return p["surface.normal"] @ (p["surface.point"] - x), p["surface.normal"]


def _round(p: Numbers, r: Vector3, inside: bool) -> tuple[Scalar, Vector3]:
    distance = r.norm()
    outward = Vector3(*(safe_divide(c, distance) for c in r))
    if inside:
        return distance - p["surface.radius"], -outward
    return p["surface.radius"] - distance, outward


@element
class Sphere(Surface):
    """Ball, or with `inside` a spherical cavity.

    >>> mbs.Contact("lower", (0, 0, -1), mbs.Sphere(radius=0.4, inside=True), stiffness=1e4).surface.radius
    0.4
    """

    center: Vector = field(Kind.VECTOR, "m", "centre", default=(0.0, 0.0, 0.0))
    radius: Number = field(Kind.POSITIVE, "m", "radius", default=1.0)
    inside: bool = field(Kind.FLAG, "", "true keeps the point within it", default=False)

    def depth(self, p: Numbers, x: Vector3) -> tuple[Scalar, Vector3]:
        return _round(p, x - p["surface.center"], self.inside)


@element
class Cylinder(Surface):
    """Infinite cylinder, or with `inside` a cylindrical bore.

    >>> mbs.Contact("lower", (0, 0, -1), mbs.Cylinder(axis=(1, 0, 0), radius=0.4), stiffness=1e4).surface.axis
    (1, 0, 0)
    """

    point: Vector = field(Kind.VECTOR, "m", "a point of its axis", default=(0.0, 0.0, 0.0))
    axis: Vector = field(Kind.DIRECTION, "", "direction of its axis", default=(0.0, 0.0, 1.0))
    radius: Number = field(Kind.POSITIVE, "m", "radius", default=1.0)
    inside: bool = field(Kind.FLAG, "", "true keeps the point within it", default=False)

    def depth(self, p: Numbers, x: Vector3) -> tuple[Scalar, Vector3]:
        a, r = p["surface.axis"], x - p["surface.point"]
        return _round(p, r - a * (a @ r), self.inside)
