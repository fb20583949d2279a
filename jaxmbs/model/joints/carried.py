"""The joint whose motion is a given function of time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model import profiles
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.joints.base import Coordinate, Joint, JointMotion, Numbers, Scalars
from jaxmbs.spatial import ZERO3, Motion, Transform, about_axis
from jaxmbs.spatial.scalar import Scalar


@element
class Carried(Joint):
    """A moving base without degrees of freedom: its motion is a given function of time. q: none.

    At t = 0 the child's frame coincides with the parent's. It has a velocity and an acceleration along the parent's
    axes and rotates at a constant rate. The acceleration is multiplied by the piecewise linear profile through
    (times, values), constant beyond both ends. Place the corners of the profile at multiples of the step: runs do not
    locate them.

    >>> mech = mbs.Mechanism("climb", gravity=(0, 0, -9.81))
    >>> mech.add_body("stage")
    >>> mech.add_body("pendulum", 1.0, (0, 0, -0.5))
    >>> mech.add_joint("burn", mbs.Carried(acceleration=(0, 0, 20.0)), "world", "stage")
    >>> mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "stage", "pendulum")
    >>> print(mbs.forward_dynamics(mech.build(), [0.1], [0.0]).round(3))
    [-5.952]
    """

    velocity: Vector = field(Kind.VECTOR, "m/s", "at t = 0, in the joint frame of the parent", default=(0.0, 0.0, 0.0))
    acceleration: Vector = field(
        Kind.VECTOR, "m/s2", "where the profile is 1, in the joint frame of the parent", default=(0.0, 0.0, 0.0)
    )
    times: Vector = field(Kind.LIST, "s", "times of the profile, increasing", default=(0.0,))
    values: Vector = field(Kind.LIST, "", "the profile at these times", default=(1.0,))
    axis: Vector = field(Kind.DIRECTION, "", "axis of its rotation, in the joint frame", default=(0.0, 0.0, 1.0))
    rate: Number = field(Kind.NUMBER, "rad/s", "rate of its rotation", default=0.0)
    rheonomic: ClassVar[bool] = True

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        return profiles.requirements(p)

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        level, gained, way = profiles.integrals(t, p["times"], p["values"])
        position = p["velocity"] * t + p["acceleration"] * way
        R = about_axis(p["axis"], p["rate"] * t)
        turning = p["axis"] * p["rate"]
        velocity = R.T @ (p["velocity"] + p["acceleration"] * gained)
        bias = R.T @ (p["acceleration"] * level) - turning.cross(velocity)
        return JointMotion(Transform(R, position), (), Motion(turning, velocity), Motion(ZERO3, bias))

    def coordinates(self) -> tuple[Coordinate, ...]:
        return ()
