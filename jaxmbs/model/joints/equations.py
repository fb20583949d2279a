"""Elementary equations between two frames, of which the closures of joints consist [Y 2.6.1, 3.6].

A joint lists its equations once. For cut joints they are evaluated here, as rows on the motion of frame b relative to
frame a in the axes of b at its origin; absolute coordinates translate them into their own equations. Forces come first,
then torques, so that multipliers are components of the joint's wrench. Directions and axes are fixed in b, unless
stated otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.model.errors import ModelError
from jaxmbs.model.rows import Row
from jaxmbs.spatial import ZERO3, ZERO_FORCE, Force, Motion, Transform, Vector3
from jaxmbs.spatial.scalar import Scalar, arctan2, cos, sin, vanishes, where

X, Y, Z = AXES = (Vector3(1, 0, 0), Vector3(0, 1, 0), Vector3(0, 0, 1))


def perpendicular(a: Vector3) -> tuple[Vector3, Vector3]:
    """Two unit vectors that form a right-handed frame with the unit vector a; smooth except at a.z = 0."""
    x, y, z = a
    sign = where(z >= 0, 1, -1)
    c = -1 / (sign + z)
    d = x * y * c
    first = Vector3(1 + sign * x * (x * c), sign * d, -sign * x)
    return first, Vector3(d, sign + y * (y * c), -y)


def axis_times_sine(X: Transform) -> Vector3:
    """The rotation of b relative to a, as its axis times the sine of its angle: the rotation vector if it is small."""
    R = X.rotation
    return Vector3(R.zy - R.yz, R.xz - R.zx, R.yx - R.xy) * 0.5


def cosine_of(X: Transform) -> Scalar:
    """Cosine of the angle between the frames."""
    R = X.rotation
    return 0.5 * (R.xx + R.yy + R.zz - 1)


def angle_about(axis: Vector3, X: Transform) -> Scalar:
    """Angle in (-pi, pi] between frames that have the axis in common."""
    return arctan2(axis @ axis_times_sine(X), cosine_of(X))


@dataclass(frozen=True)
class Equations:
    """Base of the elementary equations."""

    def turn(self, X: Transform) -> Vector3:
        """The part of the rotation of b relative to a that the equations make zero: a rotation vector if small."""
        return ZERO3

    def rows(self, X: Transform, V: Motion, turn: Vector3) -> list[Row]:
        """Rows for frame b placed at X in a, moving with V; turn: sum of the `turn` of all equations of the joint."""
        raise NotImplementedError


@dataclass(frozen=True)
class Points(Equations):
    """The origin of b has no displacement from that of a along the directions."""

    directions: tuple[Vector3, ...] = AXES

    def rows(self, X: Transform, V: Motion, turn: Vector3) -> list[Row]:
        offset = X.rotation.T @ X.position
        if len(self.directions) < 3:  # `turn` changes the offset, too; with it, d(residual)/dt = wrench @ V
            offset = offset + turn.cross(offset)
        return [Row(Force(ZERO3, d), ZERO_FORCE, d @ offset) for d in self.directions]


@dataclass(frozen=True)
class Parallel(Equations):
    """Frame b rotates relative to a only about the axis, which has the same components in both frames."""

    axis: Vector3

    def turn(self, X: Transform) -> Vector3:
        return (X.rotation.T @ self.axis).cross(self.axis)

    def rows(self, X: Transform, V: Motion, turn: Vector3) -> list[Row]:
        return [_rotation_row(n, n @ turn) for n in perpendicular(self.axis)]


@dataclass(frozen=True)
class Aligned(Equations):
    """Both frames have the same orientation."""

    def turn(self, X: Transform) -> Vector3:
        return axis_times_sine(X)

    def rows(self, X: Transform, V: Motion, turn: Vector3) -> list[Row]:
        return [_rotation_row(e, e @ turn) for e in AXES]


@dataclass(frozen=True)
class ConstantAngle(Equations):
    """The angle between axis_1, fixed in a, and axis_2, fixed in b, is the same as where both frames coincide."""

    axis_1: Vector3
    axis_2: Vector3

    def rows(self, X: Transform, V: Motion, turn: Vector3) -> list[Row]:
        first, second = X.rotation.T @ self.axis_1, self.axis_2
        turning = first.cross(V.angular).cross(second)
        residual = self.axis_1 @ second - first @ second
        return [Row(Force(first.cross(second), ZERO3), Force(turning, ZERO3), residual)]


@dataclass(frozen=True)
class Screw(Equations):
    """Displacement along the axis, which is common to both frames, is pitch times the angle about it. Poses of the
    frames tell this angle only up to full turns."""

    axis: Vector3
    pitch: Scalar

    def rows(self, X: Transform, V: Motion, turn: Vector3) -> list[Row]:
        a, pitch = self.axis, self.pitch
        advance = a @ X.position
        residual: Scalar = advance
        if not vanishes(pitch):
            expected = advance / pitch
            residual = pitch * (sin(expected) * cosine_of(X) - cos(expected) * (a @ axis_times_sine(X)))
        return [Row(Force(a * -pitch, a), ZERO_FORCE, residual)]


def rows_of(equations: Sequence[Equations], X: Transform, V: Motion) -> tuple[Row, ...]:
    """The rows of all equations of a joint."""
    turn = ZERO3
    for e in equations:
        turn = turn + e.turn(X)
    return tuple(row for e in equations for row in e.rows(X, V, turn))


def _rotation_row(direction: Vector3, residual: Scalar) -> Row:
    return Row(Force(direction, ZERO3), ZERO_FORCE, residual)


def rows_of_function(
    f: Callable[[Any, Any, Any], Any], count: int, X: Transform, V: Motion, t: Scalar
) -> tuple[Row, ...]:
    """The rows of f(z, R, t) = 0, (count,), on the position and rotation of b in a, differentiated by JAX [Y 3.194].

    f: written with jax.numpy. Raises ModelError if it returns another shape.
    """
    given = (*X.rotation, *X.position, *V.scalars(), t)
    dtype = jnp.result_type(*(x for x in given if isinstance(x, jax.Array)), *([] if _any_array(given) else [float]))
    z, R = _array(X.position, dtype), _array(X.rotation, dtype).reshape(3, 3)
    rate, ta = _array(V.scalars(), dtype), jnp.asarray(t, dtype)

    def residual(z: Any, R: Any, t: Any) -> Any:
        found = jnp.asarray(f(z, R, t), dtype)
        if found.shape != (count,):
            raise ModelError(
                f"the closure must return shape ({count},) for {6 - count} degrees of freedom, but it returned "
                f"{found.shape}"
            )
        return found

    def moved(z: Any, R: Any, V: Any) -> tuple[Any, Any]:
        """Rates of z and R under a motion V in axes of b."""
        return R @ V[3:], R @ _skew(V[:3])

    def along(z: Any, R: Any, t: Any, V: Any, flow: Any) -> Any:
        return jax.jvp(residual, (z, R, t), (*moved(z, R, V), flow))[1]

    def parts(z: Any, R: Any, t: Any) -> tuple[Any, Any]:
        one, none = jnp.ones_like(t), jnp.zeros(6, dtype)
        columns = [along(z, R, t, e, jnp.zeros_like(t)) for e in jnp.eye(6, dtype=dtype)]
        return jnp.stack(columns, axis=1), along(z, R, t, none, one)

    (wrench, own), (turning, change) = jax.jvp(parts, (z, R, ta), (*moved(z, R, rate), jnp.ones_like(ta)))
    value = residual(z, R, ta)
    return tuple(Row(_force(wrench[k]), _force(turning[k]), value[k], own[k], change[k]) for k in range(count))


def _any_array(x: Sequence[Any]) -> bool:
    return any(isinstance(c, jax.Array) for c in x)


def _array(x: Any, dtype: Any) -> Any:
    return jnp.stack([jnp.asarray(c, dtype) for c in x])


def _skew(w: Any) -> Any:
    o = jnp.zeros_like(w[0])
    return jnp.stack([jnp.stack([o, -w[2], w[1]]), jnp.stack([w[2], o, -w[0]]), jnp.stack([-w[1], w[0], o])])


def _force(x: Any) -> Force:
    return Force(Vector3(x[0], x[1], x[2]), Vector3(x[3], x[4], x[5]))
