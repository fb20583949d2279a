"""An atmosphere whose density falls exponentially."""

from __future__ import annotations

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Numbers
from jaxmbs.model.forces.surroundings import Atmosphere, Gas
from jaxmbs.model.given import Number
from jaxmbs.spatial.known import known
from jaxmbs.spatial.scalar import Scalar, exp, maximum


@element
class ExponentialAtmosphere(Atmosphere):
    """An atmosphere of the density density * exp(-(height - base_height)/scale_height), at most exp(10) times that at the
    base height; the speed of sound is the same everywhere.

    >>> mech = mbs.Mechanism("ball")
    >>> mech.set_environment(atmosphere=mbs.ExponentialAtmosphere(density=1.2, scale_height=8000.0))
    """

    density: Number = field(Kind.NOT_NEGATIVE, "kg/m3", "density at the base height", default=1.225)
    scale_height: Number = field(Kind.POSITIVE, "m", "height in which it falls by the factor e", default=8434.5)
    base_height: Number = field(Kind.NUMBER, "m", "height at which the density is given", default=0.0)
    sound: Number = field(Kind.POSITIVE, "m/s", "speed of sound", default=340.294)

    def gas(self, p: Numbers, height: Scalar) -> Gas:
        fall = maximum((height - p["base_height"]) / p["scale_height"], known(-10.0))
        density = p["density"] * exp(-fall)
        return Gas(density, density * (p["sound"] * p["sound"]) / 1.4, p["sound"])
