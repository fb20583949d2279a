"""Conditions of events on how a body flies, and on the orbit that it has reached."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jaxmbs.model.events.base import Condition, Instant, Numbers
from jaxmbs.model.events.conditions import SENSES, passing
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.flying import FLIGHT, NEEDED, ORBIT, Whole, elements_of, planet_of
from jaxmbs.model.forces import Planet
from jaxmbs.model.forces.base import Force
from jaxmbs.model.forces.surroundings import Atmosphere, Ground
from jaxmbs.model.given import Number
from jaxmbs.spatial.scalar import Scalar

# without what jumps from pi to -pi, which would count as passing every value between
_FLIGHT = tuple(part for part in FLIGHT if part not in ("longitude", "angle_of_attack", "sideslip"))
_ORBIT = tuple(part for part in ORBIT if part != "ascending_node")
_SIGNED = ("height", "latitude")


@element
class FlightReaches(Condition):
    """The height of a body, its latitude, airspeed, Mach number or dynamic pressure, as in `mbs.flight_condition`, passes a
    value. Heights are above the ellipsoid of the planet, or over the ground z = 0; speeds are relative to the air.

    Mach number and dynamic pressure need an atmosphere, the latitude needs a planet (`Mechanism.set_environment`).

    >>> mech = mbs.Mechanism("ball", gravity=(0.0, 0.0, -9.81))
    >>> mech.add_point_mass("ball", 1.0)
    >>> mech.set_environment(atmosphere=mbs.StandardAtmosphere())
    >>> mech.add_event("dense", when=mbs.FlightReaches("ball", "dynamic_pressure", 50e3, direction="up"), then=mbs.Finish())
    >>> run = mbs.simulate(mech.build(), [0.0, 0.0, 8e3], [0.0, 0.0, -200.0], t_end=30.0, dt=0.5)
    >>> print(run.events.time[0].round(2), run.q[-1, 2].round(-1))
    15.02 3890.0
    """

    of_rates: ClassVar[bool] = True
    body: str = field(Kind.BODY, "", "body that flies")
    part: str = field(Kind.CHOICE, "", "what passes the value", choices=_FLIGHT)
    value: Number = field(Kind.NUMBER, "m or rad or m/s or 1 or Pa", "value of the part")
    direction: str = field(Kind.CHOICE, "", "sense of passing", default="either", choices=SENSES)

    def needs(self) -> Sequence[type[Force]]:
        return {"planet": (Ground,), "atmosphere": (Atmosphere,)}.get(NEEDED.get(self.part, ""), ())

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        latitude = abs(p["value"]) <= math.pi / 2
        return {
            f"value: {self.part} must be more than zero": (self.part in _SIGNED) | (p["value"] > 0),
            "value: a latitude is in radians, from -pi/2 to pi/2": (self.part != "latitude") | latitude,
        }

    def guards(self, p: Numbers, now: Instant) -> tuple[Scalar, ...]:
        """The guards as shares of the value or of the planet's radius, so that rounding errors are small compared with 1."""
        scene: Whole = now.state.scene
        beyond = scene.flight(self.body)[self.part] - p["value"]
        if self.part not in _SIGNED:
            beyond = beyond / p["value"]
        elif self.part == "height" and (planet := planet_of(scene.tree.structure)) is not None:
            beyond = beyond / scene.tree.values[f"{planet}.radius"]
        return passing(beyond, self.direction)


@element
class OrbitReaches(Condition):
    """An element of the osculating orbit of a body, as in `mbs.orbital_elements`, passes a value: the semi-major axis, the
    height of the periapsis or the apoapsis, the eccentricity or the inclination.

    A semi-major axis passes its value where the energy of the orbit, -mu/2a, passes that of the value; an apoapsis that
    rises beyond infinity passes every height above it. The condition needs a planet (`Mechanism.set_environment`).

    >>> mech = mbs.Mechanism("ball")
    >>> mech.add_point_mass("ball", 1.0)
    >>> mech.set_environment(planet=mbs.Earth(j2=False))
    >>> mech.add_force("engine", mbs.Thruster("ball", direction=(0, 1, 0), thrust=10.0))
    >>> mech.add_event("cut_off", when=mbs.OrbitReaches("ball", "apoapsis_height", 500e3, direction="up"), then=mbs.Finish())
    >>> run = mbs.simulate(mech.build(), [6.6e6, 0.0, 0.0], [0.0, 7780.0, 0.0], t_end=30.0, dt=1.0)
    >>> print(run.events.time[0].round(3), run.v[-1].round(1))
    7.113 [ -65.1 7850.9    0. ]
    """

    of_rates: ClassVar[bool] = True
    body: str = field(Kind.BODY, "", "body whose centre of mass is in orbit")
    part: str = field(Kind.CHOICE, "", "what passes the value", choices=_ORBIT)
    value: Number = field(Kind.NUMBER, "m or rad or 1", "value of the element")
    direction: str = field(Kind.CHOICE, "", "sense of passing", default="either", choices=SENSES)

    def needs(self) -> Sequence[type[Force]]:
        return (Planet,)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        value, part = p["value"], self.part
        return {
            "value: a semi-major axis is not zero; of a hyperbola it is negative": (part != "semi_major_axis")
            | (value != 0),
            "value: an eccentricity is not negative": (part != "eccentricity") | (value >= 0),
            "value: an inclination is in radians, from 0 to pi": (part != "inclination")
            | ((value >= 0) & (value <= math.pi)),
        }

    def guards(self, p: Numbers, now: Instant) -> tuple[Scalar, ...]:
        """The guards, with lengths in radii of the planet. Lengths that become infinite between an ellipse and a hyperbola
        enter as their inverses, which pass through zero there."""
        scene: Whole = now.state.scene
        found = elements_of(scene, self.body)
        radius = scene.tree.values[f"{planet_of(scene.tree.structure)}.radius"]
        value, axis = p["value"], found["semi_major_axis"]
        if self.part == "semi_major_axis":
            beyond = radius / value - radius / axis
        elif self.part == "apoapsis_height":
            beyond = radius / (radius + value) - radius / (axis * (1 + found["eccentricity"]))
        elif self.part == "periapsis_height":
            beyond = (found[self.part] - value) / radius
        else:
            beyond = found[self.part] - value
        return passing(beyond, self.direction)
