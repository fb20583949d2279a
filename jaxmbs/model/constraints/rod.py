"""Two points at a constant distance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.constraints.base import Constraint
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import WORLD
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.rows import Row
from jaxmbs.spatial import Force, Motion, Transform


@element
class Rod(Constraint):
    """A rigid rod without mass between two points, with a ball joint at each end: their distance is constant.

    The multiplier is minus the force [N] in the rod, which is positive in tension. For a distance of zero use Spherical.

    >>> mech = mbs.Mechanism("pendulum", gravity=(0.0, 0.0, -9.81))
    >>> mech.add_body("bob", mass=2.0, inertia=(0.01, 0.01, 0.01))
    >>> mech.add_joint("path", mbs.Free(), "world", "bob")
    >>> mech.add_constraint("rod", mbs.Rod("bob", length=1.5))
    >>> a, force = mbs.constrained_dynamics(mech.build(), [0, 0, -1.5, 1, 0, 0, 0], np.zeros(6))[:2]
    >>> print(force.round(3))  # it carries the weight
    [-19.62]
    """

    body_a: str = field(Kind.BODY, "", "body at one end")
    body_b: str = field(Kind.BODY_OR_WORLD, "", "body at the other end", default=WORLD)
    point_a: Vector = field(Kind.VECTOR, "m", "the end, in body axes", default=(0.0, 0.0, 0.0))
    point_b: Vector = field(Kind.VECTOR, "m", "the other end, in that body's axes", default=(0.0, 0.0, 0.0))
    length: Number = field(Kind.POSITIVE, "m", "distance of the points", default=1.0)
    count: ClassVar[int] = 1

    def rows(self, p: Mapping[str, Any], X: Transform, V: Motion) -> tuple[Row, ...]:
        a = p["point_a"]
        d = X.rotation.T @ (X.point(a) - p["point_b"])  # from b to a, in axes of body a
        distance = d.norm()
        e = d / distance
        d_rate = V.linear + V.angular.cross(a) - V.angular.cross(d)  # as seen in body a
        e_rate = (d_rate - e * (e @ d_rate)) / distance
        return (Row(Force(a.cross(e), e), Force(a.cross(e_rate), e_rate), distance - p["length"]),)
