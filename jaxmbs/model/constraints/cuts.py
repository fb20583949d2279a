"""Cut joints: any joint type as a constraint between two frames [Y 3.6].

The wrenches that a joint transmits are those without power on its freedoms. Frame a is on the first body, frame b on
the second; all rows are in the axes of b, at its origin, so that multipliers are components of the joint's wrench.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jaxmbs.model.constraints.base import Row
from jaxmbs.model.constraints.closure import general_rows
from jaxmbs.model.errors import ModelError
from jaxmbs.model.joints import (
    Cylindrical,
    Fixed,
    Free,
    General,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from jaxmbs.spatial import ZERO3, ZERO_FORCE, Force, Motion, Transform, Vector3
from jaxmbs.spatial.scalar import Scalar, add, cos, div, is_number, mul, sin, sub, where

Numbers = Mapping[str, Any]
_AXES = (Vector3(1, 0, 0), Vector3(0, 1, 0), Vector3(0, 0, 1))


def perpendicular(a: Vector3) -> tuple[Vector3, Vector3]:
    """Two unit vectors that form a right-handed frame with the unit vector a; smooth but at a.z = 0."""
    x, y, z = a
    sign = where(z >= 0, 1, -1)
    c = div(-1, add(sign, z))
    d = mul(mul(x, y), c)
    first = Vector3(add(1, mul(mul(sign, x), mul(x, c))), mul(sign, d), mul(mul(-1, sign), x))
    return first, Vector3(d, add(sign, mul(y, mul(y, c))), mul(-1, y))


def _force(direction: Vector3, residual: Scalar) -> Row:
    return Row(Force(ZERO3, direction), ZERO_FORCE, residual)


def _moment(direction: Vector3, residual: Scalar) -> Row:
    return Row(Force(direction, ZERO3), ZERO_FORCE, residual)


def _point(X: Transform, directions: tuple[Vector3, ...] = _AXES, turn: Vector3 = ZERO3) -> list[Row]:
    """The origin of b stays at that of a along the given directions of b.

    turn: the small rotation that other rows make zero; its product with the offset makes d(residual)/dt = wrench @ V.
    """
    offset = X.rotation.T @ X.position
    return [_force(d, d @ (offset + turn.cross(offset))) for d in directions]


def _tilt(X: Transform, axis: Vector3) -> Vector3:
    """Small rotation that takes the axis, fixed in both frames, away from itself, in axes of b."""
    return (X.rotation.T @ axis).cross(axis)


def turn_of(X: Transform) -> Vector3:
    """Small rotation between the frames."""
    R = X.rotation
    return Vector3(sub(R.zy, R.yz), sub(R.xz, R.zx), sub(R.yx, R.xy)) * 0.5


def _parallel(X: Transform, axis: Vector3) -> list[Row]:
    """The axis stays parallel to itself."""
    tilt = _tilt(X, axis)
    return [_moment(n, n @ tilt) for n in perpendicular(axis)]


def _aligned(X: Transform) -> list[Row]:
    """Both frames keep the same orientation."""
    turn = turn_of(X)
    return [_moment(e, e @ turn) for e in _AXES]


def _spherical(p: Numbers, X: Transform, V: Motion) -> list[Row]:
    return _point(X)


def _revolute(p: Numbers, X: Transform, V: Motion) -> list[Row]:
    return _point(X) + _parallel(X, p["axis"])


def _universal(p: Numbers, X: Transform, V: Motion) -> list[Row]:
    first, second = X.rotation.T @ p["axis_1"], p["axis_2"]
    turning = first.cross(V.angular).cross(second)
    residual = sub(p["axis_1"] @ second, first @ second)
    return [*_point(X), Row(Force(first.cross(second), ZERO3), Force(turning, ZERO3), residual)]


def _cylindrical(p: Numbers, X: Transform, V: Motion) -> list[Row]:
    return _point(X, perpendicular(p["axis"]), _tilt(X, p["axis"])) + _parallel(X, p["axis"])


def _prismatic(p: Numbers, X: Transform, V: Motion) -> list[Row]:
    return _point(X, perpendicular(p["axis"]), turn_of(X)) + _aligned(X)


def _planar(p: Numbers, X: Transform, V: Motion) -> list[Row]:
    # the normal of the plane is common to both frames
    return _point(X, (_AXES[2],), _tilt(X, _AXES[2])) + _parallel(X, _AXES[2])


def _fixed(p: Numbers, X: Transform, V: Motion) -> list[Row]:
    return _point(X) + _aligned(X)


def _helical(p: Numbers, X: Transform, V: Motion) -> list[Row]:
    a, pitch = p["axis"], p["pitch"]
    advance = a @ X.position
    residual: Scalar = advance
    if not (is_number(pitch) and pitch == 0):
        # cos and sin of the angle between the frames from the trace and the skew part of the rotation
        R = X.rotation
        c = mul(0.5, sub(add(add(R.xx, R.yy), R.zz), 1))
        s = a @ turn_of(X)
        expected = div(advance, pitch)
        residual = mul(pitch, sub(mul(sin(expected), c), mul(cos(expected), s)))
    screw = Row(Force(a * mul(-1, pitch), a), ZERO_FORCE, residual)
    return [*_point(X, perpendicular(a), _tilt(X, a)), *_parallel(X, a), screw]


def _free(p: Numbers, X: Transform, V: Motion) -> list[Row]:
    return []


_ROWS: dict[type[Joint], tuple[int, Callable[[Numbers, Transform, Motion], list[Row]]]] = {
    Spherical: (3, _spherical), Revolute: (5, _revolute), Universal: (4, _universal), Cylindrical: (4, _cylindrical),
    Prismatic: (5, _prismatic), Planar: (3, _planar), Fixed: (6, _fixed), Helical: (5, _helical), Free: (0, _free),
}  # fmt: skip


def count(joint: Joint) -> int:
    """Number of constraints of the joint as a cut joint."""
    if isinstance(joint, General):
        if joint.closure is None:
            raise ModelError(
                "a General joint closes a loop by a function of the placement: pass General(z, G, dof, closure=f) with "
                "f(z, G, t) -> (6 - dof,) that is zero where the joint can be"
            )
        return 6 - joint.dof
    return _ROWS[type(joint)][0]


def rows(joint: Joint, p: Numbers, X: Transform, V: Motion, t: Scalar) -> tuple[Row, ...]:
    """The rows of the joint between frame a and frame b, placed at X in a and moving with V relative to a, at t."""
    if isinstance(joint, General):
        return general_rows(joint, X, V, t)
    return tuple(_ROWS[type(joint)][1](p, X, V))
