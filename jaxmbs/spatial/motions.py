"""Twists, wrenches and the transforms between frames; the angular part comes first throughout."""

from __future__ import annotations

from jaxmbs.spatial.boundary import kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.scalar import Scalar
from jaxmbs.spatial.vectors import IDENTITY3, ZERO3, Matrix3, Vector3


@components
class Motion:
    """Twist: angular velocity of a frame and linear velocity of its origin (or the rates of both)."""

    angular: Vector3
    linear: Vector3

    def __add__(self, other: Motion) -> Motion:
        return Motion(self.angular + other.angular, self.linear + other.linear)

    def __mul__(self, s: Scalar) -> Motion:
        return Motion(self.angular * s, self.linear * s)

    __rmul__ = __mul__

    def __matmul__(self, f: Force) -> Scalar:
        """Power of a wrench on this twist."""
        return self.angular @ f.moment + self.linear @ f.force

    @kernel
    def cross(self, other: Motion) -> Motion:
        """Rate of change of the twist `other`, which is fixed in a frame that moves with this twist."""
        w, v = self.angular, self.linear
        return Motion(w.cross(other.angular), w.cross(other.linear) + v.cross(other.angular))

    @kernel
    def cross_force(self, f: Force) -> Force:
        """Rate of change of a wrench or momentum that is fixed in a frame that moves with this twist."""
        w, v = self.angular, self.linear
        return Force(w.cross(f.moment) + v.cross(f.force), w.cross(f.force))

    def scalars(self) -> tuple[Scalar, ...]:
        return (*self.angular, *self.linear)


@components
class Force:
    """Wrench: torque about the frame's origin and force (or angular and linear momentum)."""

    moment: Vector3
    force: Vector3

    def __add__(self, other: Force) -> Force:
        return Force(self.moment + other.moment, self.force + other.force)

    def __sub__(self, other: Force) -> Force:
        return Force(self.moment - other.moment, self.force - other.force)

    def __neg__(self) -> Force:
        return Force(-self.moment, -self.force)

    def __mul__(self, s: Scalar) -> Force:
        return Force(self.moment * s, self.force * s)

    __rmul__ = __mul__

    def scalars(self) -> tuple[Scalar, ...]:
        return (*self.moment, *self.force)


ZERO_MOTION = Motion(ZERO3, ZERO3)
ZERO_FORCE = Force(ZERO3, ZERO3)


@components
class Transform:
    """Placement of a child frame: x_parent = rotation @ x_child + position."""

    rotation: Matrix3
    position: Vector3

    def __matmul__(self, other: Transform) -> Transform:
        """Placement of the other's child frame in this one's parent frame."""
        return Transform(self.rotation @ other.rotation, self.position + self.rotation @ other.position)

    def inverse(self) -> Transform:
        R = self.rotation.T
        return Transform(R, -(R @ self.position))

    def point(self, x: Vector3) -> Vector3:
        """The point x of the child frame, in coordinates of the parent frame."""
        return self.rotation @ x + self.position

    @kernel
    def motion_to_child(self, m: Motion) -> Motion:
        R = self.rotation.T
        return Motion(R @ m.angular, R @ (m.linear + m.angular.cross(self.position)))

    @kernel
    def motion_to_parent(self, m: Motion) -> Motion:
        w = self.rotation @ m.angular
        return Motion(w, self.rotation @ m.linear + self.position.cross(w))

    @kernel
    def force_to_parent(self, f: Force) -> Force:
        F = self.rotation @ f.force
        return Force(self.rotation @ f.moment + self.position.cross(F), F)


IDENTITY = Transform(IDENTITY3, ZERO3)
