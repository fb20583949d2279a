"""Rotations: about an axis, from and to quaternions (w, x, y, z; body to parent)."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.spatial.known import ONE
from jaxmbs.spatial.scalar import Scalar, cos, divisor, is_number, sin, sqrt, total, where
from jaxmbs.spatial.vectors import Matrix3, Vector3


def about_axis(axis: Vector3, angle: Scalar) -> Matrix3:
    """Rotation by `angle` [rad] about the unit vector `axis` (Rodrigues); 0 and +-1 in the axis cost nothing."""
    c, s = cos(angle), sin(angle)
    k = 1 - c
    x, y, z = axis
    kx, ky, kz = axis * k

    def diagonal(u: Scalar, ku: Scalar) -> Scalar:
        if is_number(u) and abs(u) == 1:
            return ONE
        return c + ku * u

    return Matrix3(
        diagonal(x, kx), kx * y - s * z, kx * z + s * y,
        kx * y + s * z, diagonal(y, ky), ky * z - s * x,
        kx * z - s * y, ky * z + s * x, diagonal(z, kz),
    )  # fmt: skip


def from_quaternion(q: Sequence[Scalar]) -> Matrix3:
    """Rotation matrix of q/|q|; smooth for every nonzero q, half turns included; the identity where q is zero."""
    w, x, y, z = q
    s = 2 / divisor(total(w * w, x * x, y * y, z * z))
    sx, sy, sz = s * x, s * y, s * z
    wx, wy, wz = w * sx, w * sy, w * sz
    xx, xy, xz = x * sx, x * sy, x * sz
    yy, yz, zz = y * sy, y * sz, z * sz
    return Matrix3(
        1 - (yy + zz), xy - wz, xz + wy,
        xy + wz, 1 - (xx + zz), yz - wx,
        xz - wy, yz + wx, 1 - (xx + yy),
    )  # fmt: skip


def to_quaternion(R: Matrix3) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """One of the two unit quaternions of a rotation, computed from its largest component; valid for half turns too."""
    a, b, c = R.zy - R.yz, R.xz - R.zx, R.yx - R.xy
    d, e, f = R.yx + R.xy, R.zx + R.xz, R.zy + R.yz
    xx, yy, zz = R.xx, R.yy, R.zz
    # rows of 4 q qᵀ, in the order w, x, y, z
    candidates = (
        (1 + total(xx, yy, zz), a, b, c),
        (a, 1 + (xx - yy - zz), d, e),
        (b, d, 1 + (yy - xx - zz), f),
        (c, e, f, 1 + (zz - xx - yy)),
    )
    best, largest = candidates[0], candidates[0][0]
    for k, row in enumerate(candidates[1:], 1):
        larger = row[k] > largest
        best = tuple(where(larger, x, y) for x, y in zip(row, best, strict=True))
        largest = where(larger, row[k], largest)
    w, x, y, z = (0.5 * x / sqrt(largest) for x in best)
    return w, x, y, z


def unit_quaternion(q: Sequence[Scalar]) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """q/|q|; 1, 0, 0, 0 where q is zero."""
    square = total(*(c * c for c in q))
    size = divisor(square)
    scale = 1 / sqrt(size)
    w, x, y, z = (c * scale for c in q)
    return where(square == size, w, w + 1), x, y, z


def quaternion_rate(q: Sequence[Scalar], omega: Vector3) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """dq/dt = q o (0, omega)/2 with omega in body axes [rad/s]; |q| stays constant."""
    w, x, y, z = (0.5 * c for c in q)
    a, b, c = omega
    return (
        -total(x * a, y * b, z * c),
        w * a + y * c - z * b,
        w * b + z * a - x * c,
        w * c + x * b - y * a,
    )
