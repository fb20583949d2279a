"""Scalar constraints, of which cut joints and constraint elements consist: between two frames, or between joints."""

from __future__ import annotations

from collections.abc import Mapping

from jaxmbs.spatial import Force
from jaxmbs.spatial.components import components
from jaxmbs.spatial.scalar import Scalar


@components
class Row:
    """One scalar constraint wrench @ V + rate = 0; V: motion of frame b relative to a, in the axes of b at its origin.

    wrench: the wrench that the constraint can transmit; turning: rate of change of `wrench`, seen in frame b; rate: the
    part that does not depend on V, zero unless the constraint is rheonomic; rate_change: rate of change of `rate`;
    residual: None for a nonholonomic row; otherwise a number that is zero when the constraint holds, and then has the
    rate of change wrench @ V + rate. The multiplier, in N or N m, times `wrench` is the wrench that the row transmits to b.
    """

    wrench: Force
    turning: Force
    residual: Scalar | None
    rate: Scalar = 0
    rate_change: Scalar = 0


@components
class CoordinateRow:
    """One scalar constraint between joints with one coordinate each: the sum of coefficient * rate is zero.

    coefficients: {field that names a joint: the coefficient of the joint's rate}, zero for other joints; drift: rate of
    change of the sum while the rates of the joints do not change; residual: None for a nonholonomic row; otherwise a
    number that is zero when the constraint holds, and whose rate of change is the sum. The multiplier is the generalized
    force on a joint with the coefficient 1, in N or N m.
    """

    coefficients: Mapping[str, Scalar]
    drift: Scalar
    residual: Scalar | None
