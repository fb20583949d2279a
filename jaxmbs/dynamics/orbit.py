"""The orbit of a body: the path on which it would go on if the planet attracted it as a point mass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, state_dtype, vector
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model
from jaxmbs.model.errors import ModelError
from jaxmbs.model.forces import Planet
from jaxmbs.model.forces.angles import angle
from jaxmbs.model.forces.base import Numbers
from jaxmbs.model.given import Coordinates, Number, Rates
from jaxmbs.model.shapes import Float
from jaxmbs.model.structure import Structure
from jaxmbs.spatial import ZERO3, Vector3, kernel
from jaxmbs.spatial.scalar import Scalar, safe_sqrt, where

if TYPE_CHECKING:
    from jaxmbs.dynamics.state.scene import TreeScene


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
    """The osculating orbital elements of a body's centre of mass, with the propellant that the model has on it.

    q (nq,), v (nv,); t [s]. They are those of the motion that would follow under the attraction mu/d² alone, without zonal
    harmonics, thrust and air. The condition of an event that cuts off an engine is, for instance,
    `mbs.When(lambda model, t, q, v: 1 / 6.6e6 - 1 / mbs.orbital_elements(model, q, v, "stage").semi_major_axis)`.
    Raises ModelError for an unknown body, wrong shapes, and a mechanism without a planet.

    >>> mech = mbs.Mechanism("ball")
    >>> mech.add_point_mass("ball", 1.0)
    >>> mech.set_environment(planet=mbs.Earth())
    >>> found = mbs.orbital_elements(mech.build(), [7e6, 0.0, 0.0], [0.0, 0.0, 7500.0], "ball")
    >>> print(f"{found.inclination:.4f}")
    1.5708
    """
    dtype = state_dtype(q, v)
    q, v = vector(model, "q", q, model.nq, dtype), vector(model, "v", v, model.nv, dtype)
    model.structure.find_body(body)
    if planet_of(model.structure) is None:
        raise ModelError("orbital_elements: the mechanism has no planet; call set_environment(planet=mbs.Earth())")
    found = elements_of(State(Tree(model, dtype), q, v, t, None).scene, body)
    return OrbitalElements(**{name: jnp.asarray(x, dtype) for name, x in found.items()})


def planet_of(structure: Structure) -> str | None:
    """The name of the planet with a gravitational parameter, None if there is none."""
    return next((f.name for f in structure.forces if isinstance(f.element, Planet)), None)


def elements_of(scene: TreeScene, body: str) -> dict[str, Scalar]:
    """What `OrbitalElements` has, of a body in a mechanism with a planet."""
    values, planet = scene.tree.values, planet_of(scene.tree.structure)
    assert planet is not None, body
    com = scene.masses().get(body, (None, ZERO3))[1]
    seen = scene.around(body)
    p = {name: values[f"{planet}.{name}"] for name in ("mu", "radius", "center", "attitude")}
    return _elements(p, seen.point(body, com), seen.velocity(body, com))


@kernel
def _elements(p: Numbers, x: Vector3, velocity: Vector3) -> dict[str, Scalar]:
    mu, to_planet = p["mu"], p["attitude"].T
    r, v = to_planet @ (x - p["center"]), to_planet @ velocity
    d, h = r.norm(), r.cross(v)
    e = (v.cross(h) * (1 / mu) - r * (1 / d)).norm()  # the vector points to the periapsis
    parameter = (h @ h) / mu
    returns = e < 1
    far = where(returns, parameter / where(returns, 1 - e, 1.0), float("inf"))
    return {
        "semi_major_axis": 1 / (2 / d - (v @ v) / mu),
        "eccentricity": e,
        "inclination": angle(safe_sqrt(h.x * h.x + h.y * h.y), h.z),
        "ascending_node": angle(h.x, -h.y),
        "periapsis_height": parameter / (1 + e) - p["radius"],
        "apoapsis_height": far - p["radius"],
    }
