"""Knife edges and rolling discs [K; Y 3.6.1]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.constraints.base import Constraint
from jaxmbs.model.fields import element, field
from jaxmbs.model.kinds import Kind
from jaxmbs.model.rows import Row
from jaxmbs.spatial import ZERO_FORCE, Force, Motion, Transform, Vector3
from jaxmbs.spatial.scalar import Scalar, div, mul, safe_sqrt, sub


@element
class KnifeEdge(Constraint):
    """A point of a body has no velocity along a direction fixed in the body (skate, blade, wheel).

    >>> mech = mbs.Mechanism("skate")
    >>> mech.add_body("skate", mass=1.0, inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("ice", mbs.Planar(), "world", "skate")
    >>> mech.add_constraint("blade", mbs.KnifeEdge("skate", normal=(0, 1, 0)))
    >>> mech.build().constraint_names
    ('blade',)
    """

    body: str = field(Kind.BODY, "", "body that carries the edge")
    point: Any = field(Kind.VECTOR, "m", "point of the edge, in body axes", default=(0.0, 0.0, 0.0))
    normal: Any = field(Kind.DIRECTION, "", "where the point cannot go, in body axes", default=(0.0, 1.0, 0.0))
    count: ClassVar[int] = 1

    def rows(self, p: Mapping[str, Any], X: Transform, V: Motion) -> tuple[Row, ...]:
        n = p["normal"]
        return (Row(Force(p["point"].cross(n), n), ZERO_FORCE, None),)


@element
class RollingDisc(Constraint):
    """A thin disc rolls without slip on the world plane z = 0.

    The disc is centred at the body's origin. Three rows: the contact point has no velocity in x, y (nonholonomic) and z
    (its height is zero). Undefined when the disc lies flat.

    >>> mech = mbs.Mechanism("coin")
    >>> mech.add_body("coin", mass=0.1, inertia=(1e-5, 2e-5, 1e-5))
    >>> mech.add_joint("free", mbs.Free(), "world", "coin")
    >>> mech.add_constraint("rim", mbs.RollingDisc("coin", radius=0.012, axis=(0, 1, 0)))
    >>> mech.build().constraint_names
    ('rim',)
    """

    body: str = field(Kind.BODY, "", "the disc")
    radius: Any = field(Kind.POSITIVE, "m", "of the rim")
    axis: Any = field(Kind.DIRECTION, "", "axis of the disc, in body axes", default=(0.0, 1.0, 0.0))
    count: ClassVar[int] = 3

    def rows(self, p: Mapping[str, Any], X: Transform, V: Motion) -> tuple[Row, ...]:
        R, up = X.rotation, Vector3(0, 0, 1)
        n, w = R @ p["axis"], R @ V.angular
        n_rate = w.cross(n)
        steep = safe_sqrt(sub(1, mul(n.z, n.z)))  # sine of the angle between the disc's axis and the vertical
        steep_rate = mul(-1, div(mul(n.z, n_rate.z), steep))
        down = (n * n.z - up) / steep
        down_rate = (n_rate * n.z + n * n_rate.z - down * steep_rate) / steep
        r, r_rate = down * p["radius"], down_rate * p["radius"]  # from the centre to the contact point
        height = sub(X.position.z, mul(p["radius"], steep))
        out = []
        for e in (Vector3(1, 0, 0), Vector3(0, 1, 0), up):
            moment, local = R.T @ r.cross(e), R.T @ e
            # rates seen in the body: the world rate less what the body's turning makes of it
            turning = Force(R.T @ r_rate.cross(e) - V.angular.cross(moment), -V.angular.cross(local))
            residual: Scalar | None = height if e is up else None
            out.append(Row(Force(moment, local), turning, residual))
        return tuple(out)
