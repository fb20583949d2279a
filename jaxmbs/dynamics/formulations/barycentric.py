"""Augmented bodies: barycentre vectors and the inertias K_ij of trees with fixed hinge points [Y 3.2].

The vectors d_ij lie in body i and end at its hinge towards body 0; they start at its centre of mass (d_ii) or at its hinge
towards body j. The vectors b_ij run from the barycentre of the augmented body i to its hinge towards j. Equations of
rotation: sum_j K_ij omega_j' = M'_i + M_i + sum_a S_ia Y_a [Y 3.32, 3.67]; `wittenburg` transforms them to joint
coordinates.

Every subtree of body 0 is a separate system with its own mass M; one that is attached by a Free joint is a free system.

Corrections to the printed source: CT x m in (3.14); d_ij x b"_j0 and forces over s_i <= s_j in (3.25); j != i in
(3.60); the sum over k of d_ik mu_kj in (3.57). `GetBaricenterVectors` returns -b_ii, not -b_i0, and `Get_b` needs |T| when
arcs point outwards: its index a = |S(i, i+1..n)| T(i+1..n, j) . (1..n-i) + i is less than i for T = -1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.formulations.free_systems import in_free_subtree, subtree_masses
from jaxmbs.dynamics.formulations.system import System
from jaxmbs.model.graph import Graph

RIGID = "its barycentre and inertia change as it bends; use mbs.mass_matrix, or a rigid body (add_body)"  # of constants


class Vectors(NamedTuple):
    """d (n, n, 3), b0 (n, 3) and b (n, n, 3): d_ij, b_i0 and b_ij; d and b are zero where j belongs to another subtree."""

    d: Any
    b0: Any
    b: Any


def vectors(C: Any, T: Any, m: Any, graph: Graph) -> Vectors:
    """d = CT, b_i0 = sum_j m_j d_ij / M, b_ij = b_i0 - d_ij [Y 3.11, 3.17, 3.18].

    C (n, n, 3): S_ia c_ia, row i in any axes (for example those of body i); T (n, n), m (n,).
    """
    xp = np if isinstance(C, np.ndarray) else jnp  # NumPy arrays stay in double precision
    roots = np.asarray(graph.subtree)
    same = xp.asarray(roots[:, None] == roots[None], m.dtype)
    d = xp.einsum("iax,aj->ijx", C, T)
    b0 = xp.einsum("ijx,j->ix", d, m) / (same @ m)[:, None]
    return Vectors(d, b0, (b0[:, None] - d) * same[:, :, None])


def of_system(s: System) -> Vectors:
    """The vectors of a tree, in inertial axes."""
    return vectors(s.C[1:], s.T, s.m, s.graph)


def spread(u: jax.Array, v: jax.Array) -> jax.Array:
    """(..., 3, 3): u . v E - u (x) v."""
    E = jnp.eye(3, dtype=u.dtype)
    dots = jnp.sum(u * v, axis=-1)[..., None, None]
    return dots * E.reshape((1,) * (u.ndim - 1) + (3, 3)) - u[..., :, None] * v[..., None, :]


def augmented_inertias(J: jax.Array, m: jax.Array, x: jax.Array) -> jax.Array:
    """J_i + sum_k m_k (x_ik² E - x_ik x_ik): K_i about the inward hinge with x = d [Y 3.22], K*_i about the barycentre
    with x = b [Y 3.63]."""
    outer = jnp.einsum("ikx,k,iky->ixy", x, m, x)
    trace = jnp.einsum("ixx->i", outer)
    return J + trace[:, None, None] * jnp.eye(3, dtype=J.dtype)[None] - outer


def _masks(s: System) -> tuple[np.ndarray, np.ndarray]:
    """Two masks (n, n) of bool: s_i < s_j in grounded subtrees; i != j within the same free subtree."""
    free, roots = in_free_subtree(s), np.asarray(s.graph.subtree)
    other = ~np.eye(s.graph.n, dtype=bool)
    return s.graph.carries & other & ~free[:, None], (roots[:, None] == roots[None]) & other & free[:, None]


def K(s: System, of: Vectors) -> jax.Array:
    """(n, n, 3, 3): K_ij by [Y 3.31], in free subtrees by [Y 3.66]; K_ji = K_ij'."""
    d, b0, b = of
    outward, free_pairs = _masks(s)
    M, free = subtree_masses(s), in_free_subtree(s)
    own = augmented_inertias(s.J, s.m, jnp.where(jnp.asarray(free)[:, None, None], b, d))
    out = jnp.eye(s.graph.n, dtype=s.m.dtype)[:, :, None, None] * own[:, None]
    if outward.any():
        towards = jnp.where(outward[:, :, None, None], spread((M[:, None] * b0)[None], d), 0.0)
        out = out + towards + towards.transpose(1, 0, 3, 2)
    if free_pairs.any():
        back = b.transpose(1, 0, 2)
        out = out - jnp.where(free_pairs[:, :, None, None], M[:, None, None, None] * spread(back, b), 0.0)
    return out


def base_acceleration(s: System) -> jax.Array:
    """(n, 3): acceleration of the point of body 0 at which the subtree of each body is hinged, r0" of [Y 3.30]."""
    d0 = jnp.einsum("ax,aj->jx", s.C[0], s.T)
    omega = s.base.omega[None]
    return s.base.a[None] - jnp.cross(s.base.alpha[None], d0) - jnp.cross(omega, jnp.cross(omega, d0))


def M_prime(s: System, of: Vectors, K: jax.Array) -> jax.Array:
    """M'_i (n, 3): gyroscopic and centrifugal torques and those of the forces, by [Y 3.30], in free subtrees by [Y 3.65]."""
    d, b0, b = of
    outward, free_pairs = _masks(s)
    free, M = in_free_subtree(s), subtree_masses(s)
    omega = s.omega[1:]
    own = jnp.einsum("iixy,iy->ix", K, omega)

    def centripetal(x: jax.Array) -> jax.Array:
        """omega_j x (omega_j x x_j.) for row j of x."""
        w = omega[:, None]
        return jnp.cross(w, jnp.cross(w, x))

    gyroscopic = -jnp.cross(omega, own)
    carried = jnp.einsum("ij,jx->ijx", jnp.asarray(outward, M.dtype), M[:, None] * centripetal(b0[:, None])[:, 0])
    carriers = jnp.where(outward[:, :, None], centripetal(d), 0.0).sum(axis=0) - base_acceleration(s)
    grounded = (
        -jnp.cross(d, carried).sum(axis=1)
        - jnp.cross(M[:, None] * b0, carriers)
        - jnp.cross(d, s.F[None] * jnp.ones_like(d)).sum(axis=1)
    )
    if not free.any():
        return gyroscopic + grounded
    back = jnp.where(free_pairs[:, :, None], centripetal(b).transpose(1, 0, 2), 0.0)
    floating = jnp.cross(b, M[:, None, None] * back + s.F[None]).sum(axis=1)
    return gyroscopic + jnp.where(jnp.asarray(free)[:, None], floating, grounded)
