"""The motion after a unit of time at constant velocity: the exponential map, exact and smooth at rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, cos, sin, sqrt, total, where
from jaxmbs.spatial.vectors import Vector3

_NEAR = 0.25  # [rad²] below this, series are exact to rounding, while quotients of small numbers are not
_TERMS = 8


def _smooth(x: Scalar, offset: int, exact: Callable[[Scalar], Scalar]) -> Scalar:
    """The sum over k of (-x)^k / (2k + offset)!, whose closed form is exact(sqrt(x))."""
    near = x < _NEAR
    value: Scalar = ZERO
    for k in reversed(range(_TERMS)):
        value = 1 / math.factorial(2 * k + offset) - x * value
    return where(near, value, exact(sqrt(where(near, 1.0, x))))


def turned(q: Sequence[Scalar], turn: Vector3) -> tuple[Scalar, ...]:
    """The quaternion q after a rotation by |turn| [rad] about `turn`, given in body axes; |q| does not change."""
    half = turn * 0.5
    x = half @ half
    w = _smooth(x, 0, cos)
    a, b, c = half * _smooth(x, 1, lambda angle: sin(angle) / angle)
    qw, qx, qy, qz = q
    return (
        qw * w - total(qx * a, qy * b, qz * c),
        qx * w + (qw * a + qy * c - qz * b),
        qy * w + (qw * b + qz * a - qx * c),
        qz * w + (qw * c + qx * b - qy * a),
    )


def displacement(turn: Vector3, linear: Vector3) -> Vector3:
    """Displacement of a body's origin, in its initial axes, after a unit of time at the constant twist (turn, linear)
    in its own axes."""
    x = turn @ turn
    across = turn.cross(linear)
    first = _smooth(x, 2, lambda angle: (1 - cos(angle)) / (angle * angle))
    second = _smooth(x, 3, lambda angle: (angle - sin(angle)) / (angle * (angle * angle)))
    return linear + across * first + turn.cross(across) * second
