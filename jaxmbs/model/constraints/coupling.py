"""Joints whose coordinates follow one another: gears, mimic joints, cams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.constraints.base import Constraint
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector
from jaxmbs.model.rows import CoordinateRow
from jaxmbs.spatial.known import ONE, ZERO
from jaxmbs.spatial.scalar import Scalar


@element
class Coupling(Constraint):
    """The coordinate of a joint is a polynomial in that of another: q = c0 + c1 q_driver + c2 q_driver² + ...

    Both are joints of the tree with one coordinate. Without a driver the coordinate is c0.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_constraint("gear", mbs.Coupling("elbow", "shoulder", coefficients=(0.1, -2.0)))
    >>> q, *_ = mbs.assemble(mech.build(), [0.5, 0.0], fixed=["shoulder"])
    >>> print(q)
    [ 0.5 -0.9]
    """

    joint: str = field(Kind.JOINT, "", "joint that follows")
    driver: str | None = field(Kind.JOINT, "", "joint that it follows", default=None)
    coefficients: Vector = field(Kind.LIST, "", "c0, c1, ... of the polynomial", default=(0.0, 1.0))
    count: ClassVar[int] = 1

    def coordinate_rows(
        self, p: Mapping[str, Any], q: Mapping[str, Scalar], v: Mapping[str, Scalar]
    ) -> tuple[CoordinateRow, ...]:
        if self.driver is None:
            return (CoordinateRow({"joint": ONE}, ZERO, q["joint"] - p["coefficients"][0]),)
        value: Scalar = ZERO
        slope: Scalar = ZERO
        curvature: Scalar = ZERO
        for c in reversed(p["coefficients"]):
            curvature = curvature * q["driver"] + 2 * slope
            slope = slope * q["driver"] + value
            value = value * q["driver"] + c
        drift = -curvature * (v["driver"] * v["driver"])
        return (CoordinateRow({"joint": ONE, "driver": -slope}, drift, q["joint"] - value),)
