"""Scalar constraints between two frames: what cut joints and constraint elements consist of."""

from __future__ import annotations

from jaxmbs.spatial import Force
from jaxmbs.spatial.components import components
from jaxmbs.spatial.scalar import Scalar


@components
class Row:
    """One scalar constraint on the motion V of frame b relative to frame a, in the axes of b at its origin.

    wrench @ V + rate = 0 with the wrench that the constraint can transmit; turning: the rate of change of the
    wrench, seen in frame b; residual: what is zero when the constraint holds, with d(residual)/dt = wrench @ V + rate
    there; None for a nonholonomic row; rate: what time alone does (rheonomic), rate_change: its rate of change. The
    multiplier is the component of the joint's wrench, in N or N m.
    """

    wrench: Force
    turning: Force
    residual: Scalar | None
    rate: Scalar = 0
    rate_change: Scalar = 0
