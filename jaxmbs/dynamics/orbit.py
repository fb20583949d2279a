"""The orbit of a body: the path on which it would go on if the planet attracted it as a point mass."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, vectors
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model
from jaxmbs.model.errors import ModelError
from jaxmbs.model.flying import elements_of, planet_of
from jaxmbs.model.given import Coordinates, Number, Rates
from jaxmbs.model.shapes import Float


class OrbitalElements(NamedTuple):
    """The osculating orbit of a body around the planet of the mechanism.

    semi_major_axis [m], negative on a hyperbola; eccentricity; inclination [rad] to the equator, from 0 to pi;
    ascending_node [rad], from the planet's x axis at t = 0, 0 for an orbit in the equator's plane; periapsis_height,
    apoapsis_height [m] above a sphere of the planet's equatorial radius, the latter infinite for an orbit that does not
    return.

    >>> mech = mbs.Mechanism("ball")
    >>> mech.add_point_mass("ball", 1.0)
    >>> mech.set_environment(planet=mbs.Earth())
    >>> found = mbs.orbital_elements(mech.build(), [6_678_137.0, 0.0, 0.0], [0.0, 7800.0, 0.0], "ball")
    >>> print(found.periapsis_height.round(-1), found.apoapsis_height.round(-3))
    300000.0 563000.0
    """

    semi_major_axis: Float[jax.Array, ""]
    eccentricity: Float[jax.Array, ""]
    inclination: Float[jax.Array, ""]
    ascending_node: Float[jax.Array, ""]
    periapsis_height: Float[jax.Array, ""]
    apoapsis_height: Float[jax.Array, ""]


@compiles_itself("body")
def orbital_elements(model: Model, q: Coordinates, v: Rates, body: str, *, t: Number = 0.0) -> OrbitalElements:
    """The osculating orbital elements of a body's centre of mass, including the propellant that the model has in it.

    q (nq,), v (nv,); t [s]. They are those of the motion that would follow under the attraction mu/d² alone, without zonal
    harmonics, thrust and air. Events can wait for them with `OrbitReaches`. Raises ModelError for an unknown body, wrong
    shapes, and a mechanism without a planet.

    >>> mech = mbs.Mechanism("ball")
    >>> mech.add_point_mass("ball", 1.0)
    >>> mech.set_environment(planet=mbs.Earth())
    >>> found = mbs.orbital_elements(mech.build(), [7e6, 0.0, 0.0], [0.0, 0.0, 7500.0], "ball")
    >>> print(f"{found.inclination:.4f}")
    1.5708
    """
    q, v = vectors(model, q=q, v=v)
    model.structure.find_body(body)
    if planet_of(model.structure) is None:
        raise ModelError("orbital_elements: the mechanism has no planet; call set_environment(planet=mbs.Earth())")
    found = elements_of(State(Tree(model, q.dtype), q, v, t, None).scene, body)
    return OrbitalElements(**{name: jnp.asarray(x, q.dtype) for name, x in found.items()})
