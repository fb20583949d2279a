"""An atmosphere from a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbs.model import profiles
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Numbers
from jaxmbs.model.forces.surroundings import Atmosphere, Gas
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial.scalar import Scalar, exp, log, minimum, where


@element
class TabulatedAtmosphere(Atmosphere):
    """Density and speed of sound at given heights. Between these, the logarithm of the density and the speed of sound are
    linear; below the first height they are constant. Above the last one, the density continues to fall as between the last
    two, and the speed of sound is constant.

    >>> mech = mbs.Mechanism("ball")
    >>> sounding = {"height": (0.0, 5e3, 10e3), "density": (1.18, 0.73, 0.41), "sound": (345.0, 320.0, 299.0)}
    >>> mech.set_environment(atmosphere=mbs.TabulatedAtmosphere(**sounding))
    """

    height: Vector = field(Kind.LIST, "m", "heights, increasing")
    density: Vector = field(Kind.LIST, "kg/m3", "density at these heights")
    sound: Vector = field(Kind.LIST, "m/s", "speed of sound at these heights")
    density_factor: Number = field(Kind.NOT_NEGATIVE, "", "by which density and pressure are multiplied", default=1.0)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        return {
            **profiles.requirements(p, "height", "density", "sound"),
            "density: pass numbers greater than zero": (p["density"] > 0).all(-1),
            "sound: pass numbers greater than zero": (p["sound"] > 0).all(-1),
        }

    def gas(self, p: Numbers, height: Scalar) -> Gas:
        passed = tuple(height >= x for x in p["height"])
        levels = tuple(map(log, p["density"]))
        level = profiles.piecewise_linear(height, p["height"], levels, passed)
        if len(levels) > 1:
            fall = minimum((levels[-1] - levels[-2]) / (p["height"][-1] - p["height"][-2]), 0.0)
            level = level + where(passed[-1], fall * (height - p["height"][-1]), 0.0)
        density = exp(level)
        density, sound = (
            density * p["density_factor"],
            profiles.piecewise_linear(height, p["height"], p["sound"], passed),
        )
        return Gas(density, density * (sound * sound) / 1.4, sound)
