"""A planet: its gravity on every body, its shape, and its rotation, which carries the air."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Loads, Numbers, Scene
from jaxmbs.model.forces.surroundings import Ground, Place
from jaxmbs.model.given import Number, Rows, Vector
from jaxmbs.spatial import Symmetric3, Vector3
from jaxmbs.spatial.known import ONE, ZERO
from jaxmbs.spatial.scalar import Scalar, arctan2, cos, safe_divide, safe_sqrt, sin, sqrt, where

EARTH = {"mu": 3.986004418e14, "radius": 6_378_137.0, "flattening": 1 / 298.257223563, "rate": 7.292115e-5}
J2 = 1.0826298213e-3  # of WGS-84: -sqrt(5) times its normalised coefficient of degree 2
TURNS = (
    3  # iterations of Bowring for the geodetic latitude: exact to rounding from 10 km below ground to beyond the moon
)


@element
class Planet(Ground):
    """Gravity of a planet on every body, with zonal harmonics and the gravity gradient within each body, and the ellipsoid
    and the rotation that heights, directions and the air refer to.

    The attraction of a body follows from its potential energy -mu m/d (1 - sum J_n (radius/d)^n P_n(z/d)) at its centre of
    mass, plus the term of its inertia -mu/2 (tr J - 3 J_dd)/d³ (MacCullagh), so that energy is conserved exactly; for a
    flexible body, the inertia is that of the undeformed body. The same formula holds inside the planet; at its centre
    nothing acts. World axes do not rotate; attitude: planet axes at t = 0, z to the north pole and x to the prime meridian.
    `mbs.Earth` makes the earth.

    >>> mech = mbs.Mechanism("satellite")
    >>> mech.add_body("satellite", 100.0, inertia=(10.0, 20.0, 25.0))
    >>> mech.add_joint("orbit", mbs.Free(), "world", "satellite")
    >>> mech.set_environment(planet=mbs.Planet(mu=4.9028e12, radius=1_737_400.0))
    >>> mbs.get(mech.build(), "planet.radius")
    1737400.0
    """

    mu: Number = field(Kind.NOT_NEGATIVE, "m3/s2", "gravitational parameter")
    radius: Number = field(Kind.POSITIVE, "m", "equatorial radius")
    flattening: Number = field(Kind.NOT_NEGATIVE, "", "of the ellipsoid", default=0.0)
    rate: Number = field(Kind.NUMBER, "rad/s", "rate of rotation about the pole", default=0.0)
    zonals: Vector = field(Kind.LIST, "", "zonal harmonics J2, J3, ...", default=(0.0,))
    center: Vector = field(Kind.VECTOR, "m", "its centre, in world axes", default=(0.0, 0.0, 0.0))
    attitude: Vector | Rows = field(
        Kind.ROTATION, "", "planet axes at t = 0, in the world", default=(1.0, 0.0, 0.0, 0.0)
    )
    on_every_mass: ClassVar[bool] = True
    on_every_inertia: ClassVar[bool] = True

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        return {"flattening: pass a number below 1, such as 1/298.257 for the earth": p["flattening"] < 1}

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        R = p["attitude"]
        for body, (mass, com) in scene.masses.items():
            e, i = self._direction(p, scene.point(body, com))
            J = scene.inertias[body].rotated(R.T @ scene.rotation(body))
            Je, k = J @ e, 3 * ((p["mu"] * i) * i * i)
            pull = self._field(p, e, i) * mass
            pull += (e * (0.5 * _trace(J) - 2.5 * (Je @ e)) + Je) * (-k * i)
            loads.force(body, R @ pull, com)
            loads.moment(body, R @ (e.cross(Je) * k))

    def gravitation(self, p: Numbers, t: Scalar, x: Vector3) -> Vector3:
        e, i = self._direction(p, x)
        return p["attitude"] @ self._field(p, e, i)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        energy: Scalar = ZERO
        for body, (mass, com) in scene.masses.items():
            e, i = self._direction(p, scene.point(body, com))
            harmonic = ONE
            for n, J, P, _ in self._zonals(p, e.z):
                harmonic = harmonic - J * _power(p["radius"] * i, n) * P
            J = scene.inertias[body].rotated(p["attitude"].T @ scene.rotation(body))
            spread = _trace(J) - 3 * ((J @ e) @ e)
            energy -= (p["mu"] * i) * (mass * harmonic + 0.5 * spread * (i * i))
        return energy

    def _direction(self, p: Numbers, x: Vector3) -> tuple[Vector3, Scalar]:
        """(direction from the planet's centre to a point, in planet axes, one over the distance); powers of the distance
        itself would leave the range of float32."""
        r = p["attitude"].T @ (x - p["center"])
        i = safe_divide(1.0, r.norm())
        return r * i, i

    def _field(self, p: Numbers, e: Vector3, i: Scalar) -> Vector3:
        """Acceleration of gravity [m/s²], in planet axes."""
        along, across = -ONE, ZERO  # of the unit vectors away from the centre and to the pole
        for n, J, P, slope in self._zonals(p, e.z):
            size = J * _power(p["radius"] * i, n)
            along = along + size * ((n + 1) * P + e.z * slope)
            across = across - size * slope
        return (e * along + Vector3(ZERO, ZERO, ONE) * across) * ((p["mu"] * i) * i)

    def _zonals(self, p: Numbers, s: Scalar) -> list[tuple[int, Scalar, Scalar, Scalar]]:
        """(n, J_n, P_n(s), P_n'(s)) of the harmonics."""
        out = []
        before, P, dbefore, dP = ONE, s, ZERO, ONE
        for n, J in enumerate(p["zonals"], 2):
            before, P, last = P, ((2 * n - 1) * (s * P) - (n - 1) * before) / n, P
            dbefore, dP = dP, dbefore + (2 * n - 1) * last
            out.append((n, J, P, dP))
        return out

    def place(self, p: Numbers, t: Scalar, x: Vector3) -> Place:
        R = p["attitude"]
        r = R.T @ (x - p["center"])
        cosine, sine, height, w = self._latitude(p, r)
        safe = where(w > 0, w, 1.0)
        cx, cy = where(w > 0, r.x / safe, 1.0), where(w > 0, r.y / safe, 0.0)  # at a pole, some direction
        up = Vector3(cosine * cx, cosine * cy, sine)
        east = Vector3(-cy, cx, ZERO)
        turning = Vector3(-r.y * p["rate"], r.x * p["rate"], ZERO)
        return Place(height, R @ up, R @ east, R @ up.cross(east), R @ turning)

    def geodetic(self, p: Numbers, t: Scalar, x: Vector3) -> tuple[Scalar, Scalar, Scalar]:
        r = p["attitude"].T @ (x - p["center"])
        cosine, sine, height, _ = self._latitude(p, r)
        angle = p["rate"] * t
        c, s = cos(angle), sin(angle)
        return height, arctan2(sine, cosine), arctan2(c * r.y - s * r.x, c * r.x + s * r.y)

    def _latitude(self, p: Numbers, r: Vector3) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """(cosine and sine of the geodetic latitude, height, distance from the axis)."""
        a, f = p["radius"], p["flattening"]
        b, e2 = a * (1 - f), f * (2 - f)
        w = safe_sqrt(r.x * r.x + r.y * r.y)
        c, s = _unit(w * (1 - f), r.z)
        up, out = s, c
        for _ in range(TURNS):
            up = r.z + safe_divide(e2, 1 - e2) * b * (s * s * s)
            out = w - e2 * a * (c * c * c)
            c, s = _unit(out, (1 - f) * up)
        cosine, sine = _unit(out, up)
        return cosine, sine, w * cosine + r.z * sine - a * sqrt(1 - e2 * (sine * sine)), w


def _unit(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    d = safe_sqrt(x * x + y * y)
    return safe_divide(x, d), safe_divide(y, d)


def _power(x: Scalar, n: int) -> Scalar:
    out = x
    for _ in range(n - 1):
        out = out * x
    return out


def _trace(J: Symmetric3) -> Scalar:
    return J.xx + J.yy + J.zz


def Earth(
    *,
    at: Vector | None = None,
    j2: bool = True,
    rotation: bool = True,
    oblate: bool = True,
    center: Vector = (0.0, 0.0, 0.0),
    attitude: Vector | Rows = (1.0, 0.0, 0.0, 0.0),
) -> Planet:
    """The earth of WGS-84.

    at: (latitude, longitude, height) [rad, rad, m] of the origin of the world, whose axes are then east, north and up at
    t = 0; without it, center [m] and attitude say where the earth is in the world, see `Planet`. j2: with its second zonal
    harmonic; rotation: whether it rotates, and carries the air; oblate: an ellipsoid, else a sphere of the same equatorial
    radius. Raises ModelError if `at` is not three numbers, or has a latitude beyond a pole or a longitude beyond 2 pi.

    >>> kourou = mbs.Earth(at=(np.radians(5.2), np.radians(-52.8), 0.0))
    >>> print(np.linalg.norm(kourou.center).round(-3))
    6378000.0
    """
    flattening = EARTH["flattening"] if oblate else 0.0
    if at is not None:
        place = np.asarray(at, float)
        if place.shape != (3,) or not (abs(place[0]) <= np.pi / 2 + 1e-9 and abs(place[1]) <= 2 * np.pi + 1e-9):
            raise ModelError(
                f"Earth: at is {at!r}; pass latitude and longitude in radians, at most pi/2 and 2 pi, and the height in "
                "metres"
            )
        center, attitude = _laboratory(float(place[0]), float(place[1]), float(place[2]), flattening)
    return Planet(
        EARTH["mu"],
        EARTH["radius"],
        flattening,
        EARTH["rate"] if rotation else 0.0,
        (J2,) if j2 else (0.0,),
        center,
        attitude,
    )


def _laboratory(f: float, L: float, height: float, flattening: float) -> tuple[Any, Any]:
    """(centre, attitude) of the earth in the axes east, north, up of a point."""
    e2 = flattening * (2 - flattening)
    N = EARTH["radius"] / (1 - e2 * np.sin(f) ** 2) ** 0.5
    out = (N + height) * np.cos(f)
    x = np.array([out * np.cos(L), out * np.sin(L), (N * (1 - e2) + height) * np.sin(f)])
    east = np.array([-np.sin(L), np.cos(L), 0.0])
    up = np.array([np.cos(f) * np.cos(L), np.cos(f) * np.sin(L), np.sin(f)])
    R = np.array([east, np.cross(up, east), up])
    return tuple((-R @ x).tolist()), tuple(map(tuple, R.tolist()))
