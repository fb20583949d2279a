"""Knife edges and rolling wheels [K; Y 3.6.1]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.constraints.base import Constraint
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import WORLD
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.rows import Row
from jaxmbs.spatial import ZERO_FORCE, Force, Motion, Transform, Vector3
from jaxmbs.spatial.scalar import safe_sqrt, where


@element
class KnifeEdge(Constraint):
    """A point of a body cannot move along a direction fixed in the body, relative to what it slides on (skate, blade).

    >>> mech = mbs.Mechanism("skate")
    >>> mech.add_body("skate", mass=1.0, inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("ice", mbs.Planar(), "world", "skate")
    >>> mech.add_constraint("blade", mbs.KnifeEdge("skate", normal=(0, 1, 0)))
    >>> mech.build().constraint_names
    ('blade',)
    """

    body: str = field(Kind.BODY, "", "body that carries the edge")
    point: Vector = field(Kind.VECTOR, "m", "point of the edge, in body axes", default=(0.0, 0.0, 0.0))
    normal: Vector = field(Kind.DIRECTION, "", "where the point cannot go, in body axes", default=(0.0, 1.0, 0.0))
    on: str = field(Kind.BODY_OR_WORLD, "", "what it slides on", default=WORLD)
    count: ClassVar[int] = 1

    def rows(self, p: Mapping[str, Any], X: Transform, V: Motion) -> tuple[Row, ...]:
        n = p["normal"]
        return (Row(Force(p["point"].cross(n), n), ZERO_FORCE, None),)


@element
class RollingDisc(Constraint):
    """A wheel rolls without slip on a plane, of the world (z = 0) or of a body.

    The wheel is centred at the body's origin. Its rim is a circle, or a torus with a cross section of radius `tube`.
    There are three constraint rows. Two are nonholonomic: the point of the wheel at the contact has no velocity along
    the plane, relative to it. The third is holonomic: this point has no height above the plane. The height is positive
    on the side of the normal. The rows are undefined when the wheel lies flat.

    >>> mech = mbs.Mechanism("coin")
    >>> mech.add_body("coin", mass=0.1, inertia=(1e-5, 2e-5, 1e-5))
    >>> mech.add_joint("free", mbs.Free(), "world", "coin")
    >>> mech.add_constraint("rim", mbs.RollingDisc("coin", radius=0.012, axis=(0, 1, 0)))
    >>> mech.build().constraint_names
    ('rim',)
    """

    body: str = field(Kind.BODY, "", "the wheel")
    radius: Number = field(Kind.POSITIVE, "m", "of the rim; of a torus, to the middle of its cross section")
    axis: Vector = field(Kind.DIRECTION, "", "axis of the wheel, in body axes", default=(0.0, 1.0, 0.0))
    tube: Number = field(Kind.NOT_NEGATIVE, "m", "radius of the cross section of a torus", default=0.0)
    on: str = field(Kind.BODY_OR_WORLD, "", "body that the plane belongs to", default=WORLD)
    point: Vector = field(Kind.VECTOR, "m", "a point of the plane, in that body's axes", default=(0.0, 0.0, 0.0))
    normal: Vector = field(Kind.DIRECTION, "", "of the plane, towards the wheel", default=(0.0, 0.0, 1.0))
    count: ClassVar[int] = 3

    def rows(self, p: Mapping[str, Any], X: Transform, V: Motion) -> tuple[Row, ...]:
        def seen(e: Vector3) -> tuple[Vector3, Vector3]:
            """The direction e, fixed to the plane, and its rate of change, both in axes of the wheel."""
            local = X.rotation.T @ e
            return local, local.cross(V.angular)

        n, (up, up_rate) = p["axis"], seen(p["normal"])
        along, along_rate = n @ up, n @ up_rate
        steep = safe_sqrt(1 - along * along)  # sine of the angle between the wheel's axis and the normal
        steep_rate = -(along * along_rate / steep)
        down = (n * along - up) / steep
        down_rate = (n * along_rate - up_rate - down * steep_rate) / steep
        # from the centre to the contact point
        r, r_rate = (d * p["radius"] - u * p["tube"] for d, u in ((down, up), (down_rate, up_rate)))
        height = (X.position - p["point"]) @ p["normal"] - p["radius"] * steep - p["tube"]
        out = []
        for e, residual in zip((*_across(p["normal"]), p["normal"]), (None, None, height), strict=True):
            local, rate = seen(e)
            out.append(Row(Force(r.cross(local), local), Force(r_rate.cross(local) + r.cross(rate), rate), residual))
        return tuple(out)


def _across(n: Vector3) -> tuple[Vector3, Vector3]:
    """Two orthogonal unit vectors along the plane with the normal n; x and y if n is z."""
    near_x = n.x * n.x > 0.5
    start = Vector3(where(near_x, 0, 1), where(near_x, 1, 0), 0)
    first = start - n * (n @ start)
    first = first / safe_sqrt(first @ first)
    return first, n.cross(first)
