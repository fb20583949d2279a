"""Coordinates of cut joints and the wrenches of force elements that act along them [Y 3.199]."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.model.constraints.cuts import Numbers, turn_of
from jaxmbs.model.joints import Cylindrical, Helical, Joint, Prismatic, Revolute, Spherical
from jaxmbs.spatial import ZERO3, Force, Motion, Transform, Vector3
from jaxmbs.spatial.scalar import Scalar, add, arctan2, mul, sub

SERVED = (Revolute, Prismatic, Helical, Cylindrical, Spherical)


def rates(joint: Joint, p: Numbers, V: Motion) -> tuple[Scalar, ...]:
    """Rates of the joint's freedoms for the motion V of frame b relative to a, in axes of b."""
    if isinstance(joint, Spherical):
        return tuple(V.angular)
    turning, sliding = p["axis"] @ V.angular, p["axis"] @ V.linear
    return {Prismatic: (sliding,), Cylindrical: (turning, sliding)}.get(type(joint), (turning,))


def coordinates(joint: Joint, p: Numbers, X: Transform) -> tuple[Scalar, ...]:
    """Coordinates of the joint with frame b at X in a; angles in (-pi, pi]. A spherical joint has none."""
    if isinstance(joint, Spherical):
        return ()
    R, a = X.rotation, p["axis"]
    cosine = mul(0.5, sub(add(add(R.xx, R.yy), R.zz), 1))
    angle = arctan2(a @ turn_of(X), cosine)
    along = a @ X.position
    return {Prismatic: (along,), Cylindrical: (angle, along)}.get(type(joint), (angle,))


def wrench(joint: Joint, p: Numbers, values: Sequence[Scalar]) -> Force:
    """The wrench on frame b, in its axes, of generalized forces along the joint's freedoms."""
    if isinstance(joint, Spherical):
        return Force(Vector3.of(list(values)), ZERO3)
    a = p["axis"]
    if isinstance(joint, Prismatic):
        return Force(ZERO3, a * values[0])
    return Force(a * values[0], a * values[1] if isinstance(joint, Cylindrical) else ZERO3)
