"""Principal moments of inertia of uniform bodies about their centres of mass."""

from __future__ import annotations


def cylinder(mass: float, radius: float, length: float, axis: int = 2) -> tuple[float, float, float]:
    """Solid cylinder along the coordinate axis `axis` (0, 1, 2) [kg m²]; radius 0 is a thin rod."""
    across = mass * (3 * radius**2 + length**2) / 12
    along = mass * radius**2 / 2
    return (
        along if axis == 0 else across,
        along if axis == 1 else across,
        along if axis == 2 else across,
    )


def box(mass: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Solid box with edges x, y, z [kg m²]."""
    return mass * (y * y + z * z) / 12, mass * (x * x + z * z) / 12, mass * (x * x + y * y) / 12
