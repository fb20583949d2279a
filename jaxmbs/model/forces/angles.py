"""The angle of a vector, as arithmetic that machine code does for several rows at once; the C library's atan2 takes one row
at a time."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from jaxmbs.spatial.known import bare
from jaxmbs.spatial.scalar import Scalar, arctan2

# polynomial for atan(sqrt(z))/sqrt(z) between 0 and tan(pi/8)**2, exact at Chebyshev's 13 points there (error 3e-18)
_SERIES = (
    1.0, -0.33333333333333326, 0.19999999999997015, -0.1428571428532971, 0.11111111085322109, -0.09090908059031191,
    0.07692281099937744, -0.06666205259976526, 0.05876834004614161, -0.05217312574061591, 0.04499500728984032,
    -0.03338782450121195, 0.015113765096600925,
)  # fmt: skip
_STEEP = math.tan(math.pi / 8)


def angle(y: Scalar, x: Scalar) -> Scalar:
    """Angle of (x, y), from -pi to pi, to rounding; 0 with derivative 0 at the origin."""
    y, x = bare(y), bare(x)
    if isinstance(x, jax.Array) and isinstance(y, jax.Array):
        return _angle(y, x)
    return arctan2(y, x)


@jax.custom_jvp
def _angle(y: jax.Array, x: jax.Array) -> jax.Array:
    high, wide = jnp.abs(y), jnp.abs(x)
    small, large = jnp.minimum(high, wide), jnp.maximum(high, wide)
    steep = small > _STEEP * large  # then the angle to the diagonal, by the addition theorem
    under = jnp.where(steep, small + large, large)
    t = jnp.where(steep, small - large, small) / jnp.where(large == 0, 1.0, under)
    z = t * t
    series = jnp.full_like(z, _SERIES[-1])
    for c in _SERIES[-2::-1]:
        series = series * z + c
    found = t * series + jnp.where(steep, math.pi / 4, 0.0)
    found = jnp.where(high > wide, math.pi / 2 - found, found)
    found = jnp.where(x < 0, math.pi - found, found)
    return jnp.where(y < 0, -found, found)


@_angle.defjvp
def _(given: tuple[jax.Array, jax.Array], changes: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    (y, x), (dy, dx) = given, changes
    square = x * x + y * y
    return _angle(y, x), (x * dy - y * dx) / jnp.where(square == 0, 1.0, square)
