"""Gravity of a central body."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, safe_divide


@element
class CentralGravity(Force):
    """Attraction -mu m r/|r|³ of every body at its centre of mass, where r points from the attracting centre to it.

    The gravity gradient within a body is not included; the gradient between the bodies is. At the attracting centre,
    the force, the potential and their derivatives are zero.

    >>> mech = mbs.library.stage_separation()
    >>> mech.add_force("earth", mbs.CentralGravity(mu=3.986e14, center=(0, 0, -6.8e6)))
    >>> mbs.get(mech.build(), "earth.mu")
    398600000000000.0
    """

    mu: Number = field(Kind.NOT_NEGATIVE, "m3/s2", "gravitational parameter of the central body")
    center: Vector = field(Kind.VECTOR, "m", "its centre, in world axes", default=(0.0, 0.0, 0.0))
    on_every_mass: ClassVar[bool] = True

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        for body, (mass, com) in scene.masses.items():
            loads.force(body, self.gravitation(p, scene.t, scene.point(body, com)) * mass, com)

    def gravitation(self, p: Numbers, t: Scalar, x: Vector3) -> Vector3:
        r = x - p["center"]
        i = safe_divide(1.0, r.norm())  # powers of the distance itself would leave the range of float32
        return r * -(((p["mu"] * i) * i) * i)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        energy: Scalar = ZERO
        for body, (mass, com) in scene.masses.items():
            r = scene.point(body, com) - p["center"]
            energy -= safe_divide(p["mu"] * mass, r.norm())
        return energy
