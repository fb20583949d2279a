"""Scalar constraints between two frames; cut joints and constraint elements consist of them."""

from __future__ import annotations

from jaxmbs.spatial import Force
from jaxmbs.spatial.components import components
from jaxmbs.spatial.scalar import Scalar


@components
class Row:
    """One scalar constraint on the motion V of frame b relative to frame a, in the axes of b at its origin.

    The row is wrench @ V + rate = 0. wrench: the wrench that the constraint can transmit; turning: its rate of change,
    seen in frame b; residual: zero when the constraint holds, and then d(residual)/dt = wrench @ V + rate; None for a
    nonholonomic row; rate: the part of this rate at V = 0 (rheonomic); rate_change: rate of change of `rate`. The
    multiplier is the component of the joint's wrench, in N or N m.
    """

    wrench: Force
    turning: Force
    residual: Scalar | None
    rate: Scalar = 0
    rate_change: Scalar = 0
