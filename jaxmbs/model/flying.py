"""What is measured of a body that flies, and the orbit on which it would go on if the planet attracted it as a point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from jaxmbs.model.forces import Planet
from jaxmbs.model.forces.angles import angle
from jaxmbs.model.forces.base import Numbers, Scene
from jaxmbs.spatial import ZERO3, Vector3, kernel
from jaxmbs.spatial.scalar import Scalar, safe_sqrt, where

if TYPE_CHECKING:
    from jaxmbs.model.structure import Structure

FLIGHT = {  # part of a flight condition: the quantity that it is
    "height": "length", "latitude": "angle", "longitude": "angle", "airspeed": "velocity", "mach": "number",
    "dynamic_pressure": "pressure", "angle_of_attack": "angle", "sideslip": "angle",
}  # fmt: skip
# what each part needs of the environment in order to be defined
NEEDED = {"latitude": "planet", "longitude": "planet", "mach": "atmosphere", "dynamic_pressure": "atmosphere"}
ORBIT = {  # element of an orbit: the quantity that it is
    "semi_major_axis": "length", "eccentricity": "number", "inclination": "angle", "ascending_node": "angle",
    "periapsis_height": "length", "apoapsis_height": "length",
}  # fmt: skip


class Whole(Protocol):
    """The state of a whole mechanism at an instant."""

    @property
    def tree(self) -> Any:
        """The tree, with its `structure`, and the `values` of its parameters by name."""
        ...

    def around(self, *bodies: str) -> Scene:
        """The part of the state that concerns these bodies."""
        ...

    def masses(self) -> Mapping[str, Any]:
        """{body: (mass, centre of mass in its axes)} of the bodies that have mass."""
        ...

    def flight(self, body: str) -> Mapping[str, Scalar]:
        """The flight condition of a body: {name: number} of the fields of `mbs.FlightCondition`."""
        ...


def planet_of(structure: Structure) -> str | None:
    """The name of the planet with a gravitational parameter, None if there is none."""
    return next((f.name for f in structure.forces if isinstance(f.element, Planet)), None)


def elements_of(state: Whole, body: str) -> dict[str, Scalar]:
    """The orbit of a body in a mechanism with a planet: {name: number} of the fields of `mbs.OrbitalElements`."""
    values, planet = state.tree.values, planet_of(state.tree.structure)
    assert planet is not None, body
    com = state.masses().get(body, (None, ZERO3))[1]
    seen = state.around(body)
    p = {name: values[f"{planet}.{name}"] for name in ("mu", "radius", "center", "attitude")}
    return _elements(p, seen.point(body, com), seen.velocity(body, com))


@kernel
def _elements(p: Numbers, x: Vector3, velocity: Vector3) -> dict[str, Scalar]:
    mu, to_planet = p["mu"], p["attitude"].T
    r, v = to_planet @ (x - p["center"]), to_planet @ velocity
    d, h = r.norm(), r.cross(v)
    e = (v.cross(h) * (1 / mu) - r * (1 / d)).norm()  # the vector points to the periapsis
    parameter = (h @ h) / mu
    inverse = 2 / d - (v @ v) / mu  # of the semi-major axis: it says whether the body returns, even where e rounds to 1
    returns = inverse > 0
    far = where(returns, (1 + e) / where(returns, inverse, 1.0), float("inf"))
    return {
        "semi_major_axis": 1 / inverse,
        "eccentricity": e,
        "inclination": angle(safe_sqrt(h.x * h.x + h.y * h.y), h.z),
        "ascending_node": angle(h.x, -h.y),
        "periapsis_height": parameter / (1 + e) - p["radius"],
        "apoapsis_height": far - p["radius"],
    }
