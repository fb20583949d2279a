"""The motion after a unit of time at constant velocity: the exponential map, exact and smooth at rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jaxmbs.spatial.scalar import Scalar, add, cos, div, mul, sin, sqrt, sub, total, where
from jaxmbs.spatial.vectors import Vector3

_NEAR = 0.25  # [rad²] below which series are exact to rounding and quotients of small numbers are not
_TERMS = 8


def _smooth(x: Scalar, offset: int, exact: Callable[[Scalar], Scalar]) -> Scalar:
    """The sum over k of (-x)^k / (2k + offset)!, whose closed form is exact(sqrt(x))."""
    near = x < _NEAR
    value: Scalar = 0.0
    for k in reversed(range(_TERMS)):
        value = sub(1 / math.factorial(2 * k + offset), mul(x, value))
    return where(near, value, exact(sqrt(where(near, 1.0, x))))


def turned(q: Sequence[Scalar], turn: Vector3) -> tuple[Scalar, ...]:
    """The quaternion q after a turn by |turn| [rad] about `turn`, in body axes; keeps |q|."""
    half = turn * 0.5
    x = half @ half
    w = _smooth(x, 0, cos)
    a, b, c = half * _smooth(x, 1, lambda angle: div(sin(angle), angle))
    qw, qx, qy, qz = q
    return (
        sub(mul(qw, w), total(mul(qx, a), mul(qy, b), mul(qz, c))),
        add(mul(qx, w), sub(add(mul(qw, a), mul(qy, c)), mul(qz, b))),
        add(mul(qy, w), sub(add(mul(qw, b), mul(qz, a)), mul(qx, c))),
        add(mul(qz, w), sub(add(mul(qw, c), mul(qx, b)), mul(qy, a))),
    )


def displacement(turn: Vector3, linear: Vector3) -> Vector3:
    """Displacement of a body's origin, in its initial axes, after a unit of time at the constant velocity (turn,
    linear) in its own axes."""
    x = turn @ turn
    across = turn.cross(linear)
    first = _smooth(x, 2, lambda angle: div(sub(1, cos(angle)), mul(angle, angle)))
    second = _smooth(x, 3, lambda angle: div(sub(angle, sin(angle)), mul(angle, mul(angle, angle))))
    return linear + across * first + turn.cross(across) * second
