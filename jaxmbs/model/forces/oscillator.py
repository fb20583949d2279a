"""Lag of second order with a limited rate, for drives that follow a command as an oscillator does."""

from __future__ import annotations

from jaxmbs.model.forces.base import Numbers
from jaxmbs.spatial.scalar import Scalar, where

BRAKE = 10.0  # how many times faster than the oscillator the rate nears its limit


def acceleration(p: Numbers, wanted: Scalar, now: Scalar, rate: Scalar) -> Scalar:
    """Acceleration of the value `now` towards the one that is wanted, without the limit."""
    w = p["frequency"]
    return w * w * (wanted - now) - 2 * p["damping_ratio"] * (w * rate)


def bounds(p: Numbers, rate: Scalar) -> tuple[Scalar, Scalar]:
    """Least and largest acceleration: those with which the rate nears its limits exponentially."""
    fast, most = BRAKE * p["frequency"], p["rate_limit"]
    return -fast * (most + rate), fast * (most - rate)


def corners(p: Numbers, wanted: Scalar, now: Scalar, rate: Scalar) -> tuple[tuple[Scalar, None], ...]:
    """Where the limits of the rate begin and end to act."""
    a, (least, most) = acceleration(p, wanted, now, rate), bounds(p, rate)
    return (a - most, None), (least - a, None)


def limited(p: Numbers, wanted: Scalar, now: Scalar, rate: Scalar, above: Scalar, below: Scalar) -> Scalar:
    """The acceleration with the limit; above, below: the sides of the two corners."""
    a, (least, most) = acceleration(p, wanted, now, rate), bounds(p, rate)
    return where(above, most, where(below, least, a))
