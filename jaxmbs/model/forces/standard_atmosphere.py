"""The U.S. Standard Atmosphere of 1976."""

from __future__ import annotations

import itertools
import math

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Numbers
from jaxmbs.model.forces.surroundings import Atmosphere, Gas
from jaxmbs.model.given import Number
from jaxmbs.spatial.known import known
from jaxmbs.spatial.scalar import Scalar, exp, log, sqrt, where

RADIUS = 6_356_766.0  # m, of the earth in the relation of geometric to geopotential height
GRAVITY, GAS, RATIO = 9.80665, 8314.32 / 28.9644, 1.4  # m/s²; J/(kg K); of specific heats
# geopotential height [m], temperature [K], its rate [K/m]
LAYERS = (
    (0.0, 288.15, -0.0065), (11_000.0, 216.65, 0.0), (20_000.0, 216.65, 0.001), (32_000.0, 228.65, 0.0028),
    (47_000.0, 270.65, 0.0), (51_000.0, 270.65, -0.0028), (71_000.0, 214.65, -0.002),
)  # fmt: skip
TOP = 86_000.0  # m, above which the molecules separate by weight, and the table of densities holds
UPPER = (  # geometric height [km], density [kg/m³]
    (86, 6.958e-6), (90, 3.416e-6), (95, 1.393e-6), (100, 5.604e-7), (110, 9.708e-8), (115, 4.289e-8), (120, 2.222e-8),
    (124, 1.428e-8), (130, 8.152e-9), (140, 3.831e-9), (150, 2.076e-9), (160, 1.233e-9), (180, 5.194e-10),
    (200, 2.541e-10), (225, 1.184e-10), (250, 6.073e-11), (300, 1.916e-11), (350, 7.014e-12), (400, 2.803e-12),
    (450, 1.184e-12), (500, 5.215e-13), (600, 1.137e-13), (650, 5.712e-14), (700, 3.070e-14), (750, 1.788e-14),
    (800, 1.136e-14), (850, 7.824e-15), (900, 5.759e-15), (1000, 3.561e-15),
)  # fmt: skip


def _pressures() -> list[float]:
    """At the bottoms of the layers [Pa]."""
    out = [101_325.0]
    for (low, T, rate), (high, *_) in itertools.pairwise(LAYERS):
        fall = math.log1p(rate * (high - low) / T) / rate if rate else (high - low) / T
        out.append(out[-1] * math.exp(-GRAVITY / GAS * fall))
    return out


PRESSURES = _pressures()
GROUNDS = [(z, T, math.log(P / (GAS * T)), rate) for (z, T, rate), P in zip(LAYERS, PRESSURES, strict=True)]


def _lines() -> list[tuple[float, float, float]]:
    """(height [m] from which it holds, value at height zero, slope [1/m]) for each of the lines that make up the logarithm
    of the density above 86 km."""
    out = []
    for (a, x), (b, y) in itertools.pairwise(UPPER):
        rate = math.log(y / x) / (1e3 * (b - a))
        out.append((1e3 * a, math.log(x) - rate * 1e3 * a, rate))
    last, x = UPPER[-1]
    return [*out, (1e3 * last, math.log(x) + 1e3 * last / SCALE, -1 / SCALE)]


SCALE = 268e3  # scale height [m] at 1000 km
LINES = _lines()


@element
class StandardAtmosphere(Atmosphere):
    """The U.S. Standard Atmosphere of 1976 [NASA-TM-X-74335]: seven layers up to 86 km. From there to 1000 km, the logarithm
    of the density is linear between heights of the printed table, within 3 % of the standard; above that, the density falls
    with a scale height of 268 km. Above 86 km, pressure and speed of sound are those of a gas of that density at 186.95 K.
    The lowest layer continues below sea level down to -5 km; below that, the air is that at -5 km.

    >>> mech = mbs.Mechanism("ball")
    >>> mech.set_environment(atmosphere=mbs.StandardAtmosphere(density_factor=1.1))
    >>> mech.add_point_mass("ball", 1.0)
    >>> mbs.get(mech.build(), "atmosphere.density_factor")
    1.1
    """

    density_factor: Number = field(Kind.NOT_NEGATIVE, "", "by which density and pressure are multiplied", default=1.0)

    def gas(self, p: Numbers, height: Scalar) -> Gas:
        z = where(height < -5000.0, -5000.0, height)  # a NaN remains a NaN
        H = RADIUS * z / (RADIUS + z)
        # of the layer: its bottom, the temperature and the logarithm of the density there, the slope of the temperature
        low, warm, ground, slope = map(known, GROUNDS[0])
        for values in GROUNDS[1:]:
            above = values[0] <= H
            low, warm, ground, slope = (
                where(above, x, y) for x, y in zip(values, (low, warm, ground, slope), strict=True)
            )
        top = known(RADIUS * TOP / (RADIUS + TOP))
        d = where(top < H, top, H) - low
        T = warm + slope * d
        level = slope == 0
        warming = log(T / warm)
        fall = where(level, d / warm, warming / where(level, 1.0, slope))
        lower = ground - GRAVITY / GAS * fall - warming
        _, start, rate = LINES[0]
        begin, falling = known(start), known(rate)
        for bottom, start, rate in LINES[1:]:
            above = bottom <= z
            begin, falling = where(above, start, begin), where(above, rate, falling)
        density = exp(where(z > TOP, begin + falling * z, lower)) * p["density_factor"]
        return Gas(density, density * (GAS * T), sqrt(RATIO * GAS * T))
