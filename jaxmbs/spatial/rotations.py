"""Rotations: about an axis, from and to quaternions (w, x, y, z; body to parent)."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.spatial.scalar import Scalar, add, cos, div, divisor, mul, sin, sqrt, sub, total, where
from jaxmbs.spatial.vectors import Matrix3, Vector3


def about_axis(axis: Vector3, angle: Scalar) -> Matrix3:
    """Rotation by `angle` [rad] about the unit vector `axis` (Rodrigues); 0 and +-1 in the axis cost nothing."""
    c, s = cos(angle), sin(angle)
    k = sub(1, c)
    x, y, z = axis
    kx, ky, kz = axis * k

    def diagonal(u: Scalar, ku: Scalar) -> Scalar:
        if type(u) in (int, float) and abs(u) == 1:
            return 1
        return add(c, mul(ku, u))

    return Matrix3(
        diagonal(x, kx), sub(mul(kx, y), mul(s, z)), add(mul(kx, z), mul(s, y)),
        add(mul(kx, y), mul(s, z)), diagonal(y, ky), sub(mul(ky, z), mul(s, x)),
        sub(mul(kx, z), mul(s, y)), add(mul(ky, z), mul(s, x)), diagonal(z, kz),
    )  # fmt: skip


def from_quaternion(q: Sequence[Scalar]) -> Matrix3:
    """Rotation matrix of q/|q|; smooth for every q but zero, half turns included; no rotation where q is zero."""
    w, x, y, z = q
    s = div(2, divisor(total(mul(w, w), mul(x, x), mul(y, y), mul(z, z))))
    sx, sy, sz = mul(s, x), mul(s, y), mul(s, z)
    wx, wy, wz = mul(w, sx), mul(w, sy), mul(w, sz)
    xx, xy, xz = mul(x, sx), mul(x, sy), mul(x, sz)
    yy, yz, zz = mul(y, sy), mul(y, sz), mul(z, sz)
    return Matrix3(
        sub(1, add(yy, zz)), sub(xy, wz), add(xz, wy),
        add(xy, wz), sub(1, add(xx, zz)), sub(yz, wx),
        sub(xz, wy), add(yz, wx), sub(1, add(xx, yy)),
    )  # fmt: skip


def to_quaternion(R: Matrix3) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """One of the two unit quaternions of a rotation, from the largest of its components; half turns included."""
    a, b, c = sub(R.zy, R.yz), sub(R.xz, R.zx), sub(R.yx, R.xy)
    d, e, f = add(R.yx, R.xy), add(R.zx, R.xz), add(R.zy, R.yz)
    xx, yy, zz = R.xx, R.yy, R.zz
    # rows of 4 q q': by w, x, y, z
    candidates = (
        (add(1, total(xx, yy, zz)), a, b, c),
        (a, add(1, sub(sub(xx, yy), zz)), d, e),
        (b, d, add(1, sub(sub(yy, xx), zz)), f),
        (c, e, f, add(1, sub(sub(zz, xx), yy))),
    )
    best, largest = candidates[0], candidates[0][0]
    for k, row in enumerate(candidates[1:], 1):
        larger = row[k] > largest
        best = tuple(where(larger, x, y) for x, y in zip(row, best, strict=True))
        largest = where(larger, row[k], largest)
    w, x, y, z = (div(mul(0.5, x), sqrt(largest)) for x in best)
    return w, x, y, z


def unit_quaternion(q: Sequence[Scalar]) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """q/|q|; 1, 0, 0, 0 where q is zero."""
    square = total(*(mul(c, c) for c in q))
    size = divisor(square)
    scale = div(1, sqrt(size))
    w, x, y, z = (mul(c, scale) for c in q)
    return where(square == size, w, add(w, 1)), x, y, z


def quaternion_rate(q: Sequence[Scalar], omega: Vector3) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """dq/dt = q o (0, omega)/2 with omega in body axes [rad/s]; keeps |q|."""
    w, x, y, z = (mul(0.5, c) for c in q)
    a, b, c = omega
    return (
        mul(-1, total(mul(x, a), mul(y, b), mul(z, c))),
        sub(add(mul(w, a), mul(y, c)), mul(z, b)),
        sub(add(mul(w, b), mul(z, a)), mul(x, c)),
        sub(add(mul(w, c), mul(x, b)), mul(y, a)),
    )
