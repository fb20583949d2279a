"""How a body flies: where it is over a planet, and how it moves through the air."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, vectors
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model
from jaxmbs.model.given import Coordinates, Number, Rates
from jaxmbs.model.shapes import Float


class FlightCondition(NamedTuple):
    """How a body flies, from `flight_condition`.

    height [m] above the ellipsoid of the planet, or over the ground z = 0; latitude (geodetic), longitude [rad], zero
    without a planet; airspeed [m/s]; mach (relative to 1 m/s without an atmosphere); dynamic_pressure [Pa]; density [kg/m³];
    angle_of_attack, sideslip [rad].

    >>> mech = mbs.Mechanism("ball")
    >>> mech.add_point_mass("ball", 1.0)
    >>> mech.set_environment(atmosphere=mbs.StandardAtmosphere())
    >>> found = mbs.flight_condition(mech.build(), [0.0, 0.0, 11e3], [295.154, 0.0, 0.0], "ball")
    >>> print(found.mach.round(4), found.dynamic_pressure.round(-1))
    1.0 15890.0
    """

    height: Float[jax.Array, ""]
    latitude: Float[jax.Array, ""]
    longitude: Float[jax.Array, ""]
    airspeed: Float[jax.Array, ""]
    mach: Float[jax.Array, ""]
    dynamic_pressure: Float[jax.Array, ""]
    density: Float[jax.Array, ""]
    angle_of_attack: Float[jax.Array, ""]
    sideslip: Float[jax.Array, ""]


@compiles_itself("body")
def flight_condition(model: Model, q: Coordinates, v: Rates, body: str, *, t: Number = 0.0) -> FlightCondition:
    """The flight condition of a body in the environment of the mechanism (`Mechanism.set_environment`).

    q (nq,), v (nv,); t [s]. It is that of the reference point of the first Aerodynamics element on the body, in the axes of
    its coefficients; without one, that of the origin of the body, with x forward and z down. Events can wait for it with
    `FlightReaches`. Raises ModelError for an unknown body and wrong shapes.

    >>> mech = mbs.Mechanism("ball")
    >>> mech.add_point_mass("ball", 1.0)
    >>> mech.set_environment(planet=mbs.Earth())
    >>> print(mbs.flight_condition(mech.build(), [6.5e6, 0.0, 0.0], [0.0, 7e3, 0.0], "ball").height)
    121863.0
    """
    q, v = vectors(model, q=q, v=v)
    model.structure.find_body(body)
    found = State(Tree(model, q.dtype), q, v, t, None).scene.flight(body)
    return FlightCondition(**{name: jnp.asarray(x, q.dtype) for name, x in found.items()})
