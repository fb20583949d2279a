"""3-vectors and 3x3 matrices as components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import jax
import numpy as np

from jaxmbs.spatial.boundary import kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.known import known
from jaxmbs.spatial.scalar import Scalar, is_number, safe_sqrt


def _dot(a1: Scalar, a2: Scalar, a3: Scalar, b1: Scalar, b2: Scalar, b3: Scalar) -> Scalar:
    return a1 * b1 + a2 * b2 + a3 * b3


@components
class Vector3:
    """A 3-vector; `a @ b` is the scalar product."""

    x: Scalar
    y: Scalar
    z: Scalar

    @staticmethod
    def of(values: Sequence[Scalar] | np.ndarray | jax.Array) -> Vector3:
        return Vector3(values[0], values[1], values[2])

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.x, self.y, self.z))

    def __add__(self, other: Vector3) -> Vector3:
        return Vector3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vector3) -> Vector3:
        return Vector3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> Vector3:
        return Vector3(-self.x, -self.y, -self.z)

    def __mul__(self, s: Scalar) -> Vector3:
        s = known(s)
        return Vector3(s * self.x, s * self.y, s * self.z)

    __rmul__ = __mul__

    def __truediv__(self, s: Scalar) -> Vector3:
        s = known(s)
        return Vector3(self.x / s, self.y / s, self.z / s)

    def __matmul__(self, other: Vector3) -> Scalar:
        return _dot(self.x, self.y, self.z, other.x, other.y, other.z)

    def cross(self, other: Vector3) -> Vector3:
        return Vector3(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )

    def norm(self) -> Scalar:
        """Length; its derivative at the zero vector is zero."""
        return safe_sqrt(self @ self)


ZERO3 = Vector3(0, 0, 0)


def grouped(numbers: Sequence[Scalar]) -> list[Vector3]:
    """Vectors from their components, which follow one another."""
    return [Vector3.of(numbers[k : k + 3]) for k in range(0, len(numbers), 3)]


@components
class Matrix3:
    """A 3x3 matrix, row by row."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yx: Scalar
    yy: Scalar
    yz: Scalar
    zx: Scalar
    zy: Scalar
    zz: Scalar

    @staticmethod
    def of(v: Sequence[Scalar]) -> Matrix3:
        return Matrix3(*v)

    @staticmethod
    def from_columns(a: Vector3, b: Vector3, c: Vector3) -> Matrix3:
        return Matrix3(a.x, b.x, c.x, a.y, b.y, c.y, a.z, b.z, c.z)

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.xx, self.xy, self.xz, self.yx, self.yy, self.yz, self.zx, self.zy, self.zz))

    def rows(self) -> tuple[Vector3, Vector3, Vector3]:
        return (
            Vector3(self.xx, self.xy, self.xz),
            Vector3(self.yx, self.yy, self.yz),
            Vector3(self.zx, self.zy, self.zz),
        )

    @property
    def T(self) -> Matrix3:
        return Matrix3(self.xx, self.yx, self.zx, self.xy, self.yy, self.zy, self.xz, self.yz, self.zz)

    def __add__(self, other: Matrix3) -> Matrix3:
        return Matrix3(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Matrix3) -> Matrix3:
        return Matrix3(*(a - b for a, b in zip(self, other, strict=True)))

    @overload
    def __matmul__(self, other: Vector3) -> Vector3: ...

    @overload
    def __matmul__(self, other: Matrix3 | Symmetric3) -> Matrix3: ...

    def __matmul__(self, other: Vector3 | Matrix3 | Symmetric3) -> Vector3 | Matrix3:
        if isinstance(other, Vector3):
            a, b, c = self.rows()
            return Vector3(a @ other, b @ other, c @ other)
        other = other.full() if isinstance(other, Symmetric3) else other
        if self.is_identity() or other.is_identity():
            return other if self.is_identity() else self
        return _product(self, other)

    def is_identity(self) -> bool:
        return all(is_number(v) and v == w for v, w in zip(self, IDENTITY3, strict=True))


IDENTITY3 = Matrix3(1, 0, 0, 0, 1, 0, 0, 0, 1)


def skew(v: Vector3) -> Matrix3:
    """The matrix of the vector product: skew(v) @ u = v x u."""
    return Matrix3(0, -v.z, v.y, v.z, 0, -v.x, -v.y, v.x, 0)


@components
class Symmetric3:
    """A symmetric 3x3 matrix: the diagonal entries xx, yy, zz, then xy, xz, yz."""

    xx: Scalar
    yy: Scalar
    zz: Scalar
    xy: Scalar
    xz: Scalar
    yz: Scalar

    @staticmethod
    def diagonal(a: Scalar, b: Scalar, c: Scalar) -> Symmetric3:
        return Symmetric3(a, b, c, 0, 0, 0)

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.xx, self.yy, self.zz, self.xy, self.xz, self.yz))

    def full(self) -> Matrix3:
        return Matrix3(self.xx, self.xy, self.xz, self.xy, self.yy, self.yz, self.xz, self.yz, self.zz)

    def __add__(self, other: Symmetric3) -> Symmetric3:
        return Symmetric3(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Symmetric3) -> Symmetric3:
        return Symmetric3(*(a - b for a, b in zip(self, other, strict=True)))

    def __matmul__(self, v: Vector3) -> Vector3:
        return self.full() @ v

    def rotated(self, R: Matrix3) -> Symmetric3:
        """R S Rᵀ."""
        return self if R.is_identity() else _congruence(R, self)

    @staticmethod
    def outer(v: Vector3, scale: Scalar = 1) -> Symmetric3:
        """scale v vᵀ."""
        u = v * scale
        return Symmetric3(u.x * v.x, u.y * v.y, u.z * v.z, u.x * v.y, u.x * v.z, u.y * v.z)


@kernel
def _product(a: Matrix3, b: Matrix3) -> Matrix3:
    columns = b.T.rows()
    return Matrix3(*(row @ column for row in a.rows() for column in columns))


@kernel
def _congruence(R: Matrix3, S: Symmetric3) -> Symmetric3:
    """R S Rᵀ; only its six distinct entries are computed."""
    a, b, c = R.rows()
    ya, yb, yc = S @ a, S @ b, S @ c
    return Symmetric3(a @ ya, b @ yb, c @ yc, a @ yb, a @ yc, b @ yc)
