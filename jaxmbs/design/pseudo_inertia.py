"""Mass distributions from unconstrained numbers, always physically possible: log-Cholesky form of the pseudo-inertia.

Let the second moments about the centre of mass, divided by the mass, be S = A Aᵀ, where A is lower triangular with
diagonal exp(d). Then every y = (d (3), off-diagonal entries of A (3), centre of mass (3)) describes the distribution of
some body, and every body with extent in all directions has one y. A body with this distribution fits into an ellipsoid
if the trace of its second moments about the ellipsoid's centre, in units of the half-axes, is at most the mass: |A|² +
|c|² <= 1 for A and the centre of mass c in these units. With an envelope, y is therefore mapped into this ball.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

Array = Any
FLAT = 1e-6  # second moment, relative to the largest, below which a body counts as flat


def distribution(y: Array, center: Array, half: Array, inside: bool, least: float = 0.0) -> tuple[Array, Array]:
    """(centre of mass (3,) [m], second moments about it per mass (3, 3) [m²]) of y (9,).

    center, half (3,): centre and half-axes of the envelope or, if `inside` is false, origin and units of lengths [m];
    least: smallest second moment per mass that the body has in any direction [m²].
    """
    z = jnp.concatenate([jnp.exp(y[:3]), y[3:]])
    if inside:
        z = z * np.sqrt(1 - np.sum(least / np.asarray(half) ** 2)) / jnp.sqrt(1 + z @ z)
    o = jnp.zeros((), z.dtype)
    A = jnp.stack([z[0], o, o, z[3], z[1], o, z[4], z[5], z[2]]).reshape(3, 3) * half[:, None]
    return center + half * z[6:], A @ A.T + least * np.eye(3)


def unconstrained(
    com: np.ndarray, second: np.ndarray, center: np.ndarray, half: np.ndarray, inside: bool, least: float = 0.0
) -> np.ndarray:
    """y (9,) of a distribution; a flat body gets a little thickness, and one that exceeds the envelope is shrunk into
    it."""
    scaled = (second - least * np.eye(3)) / np.outer(half, half)
    moments, axes = np.linalg.eigh((scaled + scaled.T) / 2)
    moments = np.maximum(moments, FLAT * max(moments.max(), FLAT))
    A = np.linalg.cholesky((axes * moments[None, :]) @ axes.T)
    z = np.concatenate([np.diag(A), [A[1, 0], A[2, 0], A[2, 1]], (com - center) / half])
    if inside:
        z = z / np.sqrt(1 - np.sum(least / half**2))
        size = np.linalg.norm(z)
        z = z / size * min(size, 0.95)
        z = z / np.sqrt(1 - z @ z)
    return np.concatenate([np.log(z[:3]), z[3:]])


def second_moments(inertia: Array) -> Array:
    """(3, 3) integral of x xᵀ dm from an inertia matrix about the same point; the inverse of `inertia_of`."""
    xp = np if isinstance(inertia, np.ndarray) else jnp
    return xp.trace(inertia) / 2 * xp.eye(3) - inertia


def inertia_of(second: Array) -> Array:
    """Inertia matrix (3, 3) of second moments about the same point."""
    xp = np if isinstance(second, np.ndarray) else jnp
    return xp.trace(second) * xp.eye(3) - second
