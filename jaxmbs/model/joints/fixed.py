"""The joint without relative motion."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.fields import element
from jaxmbs.model.joints.base import Coordinate, InPlane, Joint, JointMotion, Numbers, Scalars
from jaxmbs.model.joints.equations import Aligned, Equations, Points
from jaxmbs.spatial import IDENTITY, ZERO_MOTION, Force, Transform
from jaxmbs.spatial.scalar import Scalar


@element
class Fixed(Joint):
    """No relative motion. q: none.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_body("tip", mass=0.1)
    >>> mech.add_joint("bolt", mbs.Fixed(), "lower", "tip", mbs.Pose((0, 0, -1)))
    >>> mech.build().nv
    2
    """

    within_free: ClassVar[tuple[int, ...] | None] = ()
    fixed_hinge_point: ClassVar[bool] = True
    keeps_orientation: ClassVar[bool] = True

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        return JointMotion(IDENTITY, (), ZERO_MOTION, ZERO_MOTION)

    def coordinates(self) -> tuple[Coordinate, ...]:
        return ()

    def coordinates_of(self, p: Numbers, X: Transform) -> tuple[Scalar, ...]:
        return ()

    def duals(self, p: Numbers, X: Transform) -> tuple[Force, ...]:
        return ()

    def equations(self, p: Numbers) -> tuple[Equations, ...]:
        return Points(), Aligned()

    def in_plane(self, p: Numbers, normal: int) -> InPlane | str:
        return InPlane(False)
