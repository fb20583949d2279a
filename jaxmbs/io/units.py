"""Units of a file: their factors to SI and the quantities that they measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxmbs.io.errors import choices


@dataclass(frozen=True)
class Unit:
    """A unit: its name, its factor to SI, and the quantity that it measures."""

    name: str
    factor: float
    quantity: str


_DEG = math.pi / 180
_TABLE: dict[str, dict[str, float]] = {
    "number": {"": 1.0, "1": 1.0, "%": 0.01},
    "length": {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "km": 1e3, "inch": 0.0254, "ft": 0.3048},
    "area": {"m2": 1.0, "cm2": 1e-4},
    "pressure": {"Pa": 1.0, "hPa": 100.0, "kPa": 1e3},
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0},
    "angle": {"rad": 1.0, "mrad": 1e-3, "deg": _DEG},
    "velocity": {"m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2, "km/h": 1 / 3.6},
    "angular rate": {"rad/s": 1.0, "mrad/s": 1e-3, "deg/s": _DEG, "rpm": math.pi / 30},
    "acceleration": {"m/s2": 1.0},
    "pitch": {"m/rad": 1.0, "mm/rad": 1e-3},
    "mass": {"kg": 1.0, "g": 1e-3, "t": 1e3},
    "first moment of mass": {"kg m": 1.0, "g cm": 1e-5},
    "inertia": {"kg m2": 1.0, "g cm2": 1e-7},
    "density": {"kg/m3": 1.0, "g/cm3": 1e3},
    "mass flow": {"kg/s": 1.0, "g/s": 1e-3},
    "force": {"N": 1.0, "kN": 1e3},
    "force rate": {"N/s": 1.0, "kN/s": 1e3},
    "moment": {"N m": 1.0},
    "moment rate": {"N m/s": 1.0},
    "impulse": {"N s": 1.0},
    "angular impulse": {"N m s": 1.0},
    "rotational stiffness": {"N m/rad": 1.0},
    "rotational damping": {"N m s/rad": 1.0},
    "stiffness": {"N/m": 1.0, "N/mm": 1e3, "kN/m": 1e3},
    "damping": {"N s/m": 1.0},
    "inverse velocity": {"s/m": 1.0},
    "gravitational parameter": {"m3/s2": 1.0, "km3/s2": 1e9},
    "energy": {"J": 1.0, "kJ": 1e3},
    "growth rate": {"1/s": 1.0},
    "curvature": {"1/m": 1.0},
    "frequency": {"Hz": 1.0},
    "modal coordinate": {"m kg^0.5": 1.0},
    "modal rate": {"m kg^0.5/s": 1.0},
    "modal momentum": {"kg^0.5": 1.0},
    "modal displacement": {"kg^-0.5": 1.0},
    "modal rotation": {"rad/(m kg^0.5)": 1.0},
    "modal shortening": {"1/(m kg)": 1.0},
}
_NO_UNITS = {  # what to do about names that are no units here
    "in": 'write "inch"',
    **dict.fromkeys(("degC", "degF", "C", "F", "°C", "°F"), "its zero is not that of SI; write the numbers in SI"),
}
UNITS = {name: Unit(name, factor, quantity) for quantity, row in _TABLE.items() for name, factor in row.items()}


def unit(name: str, quantity: str | None = None) -> Unit:
    """The unit called `name`, which must measure `quantity` if that is given. Raises ValueError with the remedy."""
    key = " ".join(name.replace("*", " ").replace("·", " ").replace("²", "2").replace("^2", "2").split())
    fitting = [n for n, u in UNITS.items() if n and (quantity is None or u.quantity == quantity)]
    if key not in UNITS:
        raise ValueError(f'"{name}" is not a unit; {_NO_UNITS.get(key) or choices(name, fitting, "units")}')
    found = UNITS[key]
    if quantity is not None and found.quantity != quantity:
        raise ValueError(f'"{name}" measures {found.quantity}, not {quantity}; use one of: {", ".join(fitting)}')
    return found


def check_unit(name: str, wanted: Sequence[str]) -> None:
    """Raise ValueError if a unit measures none of the quantities of the SI units `wanted`, as far as these are known."""
    known = [found for found in map(quantity, wanted) if found]
    if len(known) == len(wanted) and unit(name).quantity not in known:
        if known == ["number"]:
            found = unit(name)
            raise ValueError(
                f'"{name}" measures {found.quantity}, but these numbers have no unit; write factor = {found.factor!r} '
                "in place of the unit"
            )
        unit(name, known[0])


def quantity(unit: str) -> str | None:
    """The quantity that a number with this SI unit measures; None if it depends on the joint ("N m/rad or N/m")."""
    return UNITS[unit].quantity if unit in UNITS else None


def si(quantity: str) -> Unit:
    """The SI unit of a quantity."""
    return next(u for u in UNITS.values() if u.quantity == quantity and u.factor == 1.0)
