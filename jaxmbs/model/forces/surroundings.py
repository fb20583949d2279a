"""What force elements know of the air around a body, and base classes of atmospheres and winds."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from jaxmbs.model.fields import element
from jaxmbs.model.forces.angles import angle
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.components import components
from jaxmbs.spatial.scalar import Scalar, safe_divide, safe_sqrt

ALWAYS = "{name!r} is part of the environment, which cannot be switched off; make its numbers zero instead"


@components
class Place:
    """A point near a planet, or over a flat ground. height [m]; up, east, north: unit vectors, in world axes; carried:
    velocity [m/s] in world axes of air that turns with the planet."""

    height: Scalar
    up: Vector3
    east: Vector3
    north: Vector3
    carried: Vector3


@components
class Air:
    """The air at a point. density [kg/m³], pressure [Pa], sound: speed of sound [m/s]; velocity: of the air [m/s], in world
    axes; height [m]."""

    density: Scalar
    pressure: Scalar
    sound: Scalar
    velocity: Vector3
    height: Scalar


@components
class Flow:
    """The air seen from a body. velocity, angular: of its reference point and of the body, in world axes; forward: direction
    of the velocity relative to the air, in the axes of its coefficients, x forward and z down, zero at rest; speed [m/s];
    mach; alpha, beta [rad]: angles of attack and sideslip."""

    velocity: Vector3
    angular: Vector3
    forward: Vector3
    speed: Scalar
    mach: Scalar
    alpha: Scalar
    beta: Scalar


def flow(scene: Scene, body: str, reference: Vector3, R: Matrix3, air: Air) -> Flow:
    """The flow at a point of a body; R: from the axes of its coefficients to the world."""
    velocity = scene.velocity(body, reference)
    u = R.T @ (velocity - air.velocity)
    speed = u.norm()
    e = Vector3(*(safe_divide(x, speed) for x in u))
    angles = angle(e.z, e.x), angle(e.y, safe_sqrt(e.x * e.x + e.z * e.z))
    return Flow(velocity, scene.angular(body), e, speed, speed / air.sound, *angles)


class Gas(NamedTuple):
    """Density [kg/m³], pressure [Pa] and speed of sound [m/s]."""

    density: Scalar
    pressure: Scalar
    sound: Scalar


@element
class Surround(Force):
    """Base of elements that apply no loads themselves, but are around the bodies; they cannot be switched off."""

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        pass


@element
class Atmosphere(Surround):
    """Base of atmospheres."""

    role: ClassVar[str] = "atmosphere"

    def gas(self, p: Numbers, height: Scalar) -> Gas:
        """The air at a height [m]."""
        raise NotImplementedError


@element
class AirMotion(Surround):
    """Base of winds."""

    role: ClassVar[str] = "wind"

    def velocity(self, p: Numbers, height: Scalar, t: Scalar) -> Vector3:
        """Velocity of the air [m/s] to the east, to the north and upwards, relative to the ground."""
        raise NotImplementedError


@element
class Ground(Force):
    """Base of planets."""

    role: ClassVar[str] = "planet"

    def place(self, p: Numbers, t: Scalar, x: Vector3) -> Place:
        """What is around the point x of the world: height above the ellipsoid and local directions."""
        raise NotImplementedError

    def geodetic(self, p: Numbers, t: Scalar, x: Vector3) -> tuple[Scalar, Scalar, Scalar]:
        """(height [m], geodetic latitude, longitude [rad]) of the point x of the world; longitude from the prime meridian,
        between -pi and pi."""
        raise NotImplementedError
