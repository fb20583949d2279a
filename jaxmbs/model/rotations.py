"""Rotations as users write them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.model.errors import ModelError
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.shapes import Float

_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def rotation(axes: str | Vector, angles: Number | Vector) -> Float[jax.Array, " 4"]:
    """Quaternion (w, x, y, z) of a rotation about an axis, or of several in succession, each about an axis of the frame
    that the ones before have turned.

    axes: a direction (3,) of any length, or a word of the letters x, y and z: "zyx" with (yaw, pitch, roll). angles: one
    angle [rad] for each. The result is a value for a `Pose` and for the coordinates of Spherical and Free joints; it is
    differentiable. Raises ModelError for other axes, or another number of angles.

    >>> print(mbs.rotation("z", np.pi / 2).round(4))
    [0.7071 0.     0.     0.7071]
    >>> quarter = mbs.Pose(rotation=mbs.rotation((0, 0, 2), np.pi / 2))
    """
    if isinstance(axes, str):
        if not axes or not set(axes) <= set(_AXES):
            raise ModelError(f'rotation: axes are {axes!r}; pass a direction or letters of x, y and z, such as "zyx"')
        turns: list[Any] = [_AXES[letter] for letter in axes]
    else:
        direction = jnp.asarray(axes, float)
        if direction.shape != (3,):
            raise ModelError(f"rotation: axes are {axes!r}; pass a direction (3,) or letters of x, y and z")
        length = jnp.sqrt(jnp.sum(jnp.square(direction)))
        if not is_traced(length) and not float(length) > 0:
            raise ModelError("rotation: the direction of the axis is zero; pass one of any other length")
        turns = [direction / length]
    x = jnp.atleast_1d(jnp.asarray(angles, float))
    if x.shape != (len(turns),):
        raise ModelError(f"rotation: {axes!r} takes {len(turns)} angles, not {x.size}")
    found = jnp.array([1.0, 0.0, 0.0, 0.0])
    for axis, angle in zip(turns, x, strict=True):
        own, scalar = jnp.sin(angle / 2) * jnp.asarray(axis), jnp.cos(angle / 2)
        w, u = found[0], found[1:]
        found = jnp.concatenate([(w * scalar - u @ own)[None], w * own + scalar * u + jnp.cross(u, own)])
    return found
