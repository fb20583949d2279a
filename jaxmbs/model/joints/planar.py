"""The planar joint."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.fields import element
from jaxmbs.model.joints.base import Coordinate, InPlane, Joint, JointMotion, Numbers, Scalars, velocity_of
from jaxmbs.model.joints.equations import Equations, Parallel, Points, X, Y, Z
from jaxmbs.spatial import ZERO3, Force, Motion, Transform, Vector3, about_axis
from jaxmbs.spatial.scalar import Scalar, arctan2


@element
class Planar(Joint):
    """Motion in the xy plane of the parent joint frame. q: x, y [m], angle about z [rad].

    >>> mech = mbs.Mechanism("puck")
    >>> mech.add_body("puck", mass=1.0, inertia=(0.1, 0.1, 0.2))
    >>> mech.add_joint("ice", mbs.Planar(), "world", "puck")
    >>> mech.build().nv
    3
    """

    within_free: ClassVar[tuple[int, ...] | None] = (2, 3, 4)
    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        R = about_axis(Z, q[2])
        along_x, along_y = R.T @ X, R.T @ Y
        S = (Motion(ZERO3, along_x), Motion(ZERO3, along_y), Motion(Z, ZERO3))
        drift = (along_x * v[0] + along_y * v[1]).cross(Z) * v[2]
        placement = Transform(R, Vector3(q[0], q[1], 0))
        return JointMotion(placement, S, velocity_of(S, v), Motion(ZERO3, drift))

    def coordinates(self) -> tuple[Coordinate, ...]:
        return Coordinate("x", "m"), Coordinate("y", "m"), Coordinate("angle", "rad")

    def coordinates_of(self, p: Numbers, X: Transform) -> tuple[Scalar, ...]:
        return X.position.x, X.position.y, arctan2(X.rotation.yx, X.rotation.xx)

    def duals(self, p: Numbers, X: Transform) -> tuple[Force, ...]:
        R = X.rotation
        return Force(ZERO3, Vector3(R.xx, R.xy, R.xz)), Force(ZERO3, Vector3(R.yx, R.yy, R.yz)), Force(Z, ZERO3)

    def equations(self, p: Numbers) -> tuple[Equations, ...]:
        return Points((Z,)), Parallel(Z)  # the normal of the plane is common to both frames

    def in_plane(self, p: Numbers, normal: int) -> InPlane | str:
        return InPlane(True, (X, Y)) if normal == 2 else "moves in another plane"
