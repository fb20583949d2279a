"""The force of a touch: one-sided normal force with damping, and friction."""

from __future__ import annotations

from jaxmbs.model.forces.base import Numbers
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, maximum, sqrt, where


def elastic(p: Numbers, depth: Scalar, touches: Scalar, full: Scalar) -> Scalar:
    """The normal force at rest [N]. touches, full: whether the depth is beyond -smoothing, and beyond smoothing."""
    e = p["smoothing"]
    rising = (depth + e) * (depth + e) / (4 * e)
    return p["stiffness"] * where(full, depth, where(touches, rising, 0.0))


def stored(p: Numbers, depth: Scalar, touches: Scalar, full: Scalar) -> Scalar:
    """The potential energy [J] of the normal force at rest; arguments as for `elastic`."""
    e = p["smoothing"]
    raised = depth + e
    rising = raised * (raised * raised) / (12 * e)
    deep = 0.5 * (depth * depth) + e * e / 6
    return p["stiffness"] * where(full, deep, where(touches, rising, 0.0))


def whole(p: Numbers, elastic: Scalar, normal: Vector3, relative: Vector3) -> Vector3:
    """The force [N] with damping and friction, on the body that is pushed along `normal`; relative: its velocity [m/s] minus
    that of the body that pushes it. elastic: the normal force at rest [N]."""
    closing = -(normal @ relative)
    push = elastic * maximum(1 + p["damping"] * closing, 0.0)
    slip = relative + normal * closing
    speed = sqrt(slip @ slip + p["transition_velocity"] * p["transition_velocity"])
    return normal * push - slip * (p["friction"] * push / speed)
