"""The configuration graph and matrix of Wang Ensong [W].

Method "wang". Stems b_j run from the inward hinge of the carrying body to hinge j, c_i from the inward hinge of body i
to its centre of mass; column k of the matrix [b^c] holds the vectors from the first hinge to the centre of mass of k.
All arcs point outwards: [I] = S, [H] = T, [b^c] = -d and [J] = [K] of `barycentric`.

Correction to the printed source: (3.9) is sum m_l (b_il . b_jl E - b_jl (x) b_il). The axes p of a joint need not be
orthogonal.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.formulations.barycentric import base_acceleration
from jaxmbs.dynamics.formulations.free_systems import (
    Centres,
    bias_with_centres,
    free_subtrees,
    in_free_subtree,
    subtree_masses,
    with_centres,
)
from jaxmbs.dynamics.formulations.system import System, apply
from jaxmbs.model.shapes import Float


def stems(s: System) -> tuple[jax.Array, jax.Array]:
    """(b, c), each (n, 3): stems b_j to the inward hinge of body j, and c_i; b of the roots is not used."""
    h = s.hinges
    inward = jnp.concatenate([jnp.zeros((1, 3), s.m.dtype), h.c_minus])[jnp.asarray(s.graph.i_plus[: s.graph.n])]
    return h.c_plus - inward, -h.c_minus


def matrix(s: System) -> jax.Array:
    """[b^c] = [c] - ([E] + [I]) [b] [H] (n, n, 3) [W 2.3]."""
    b, c = stems(s)
    E = jnp.eye(s.graph.n, dtype=s.m.dtype)
    others = E + s.integers(s.graph.wang_I)
    return E[:, :, None] * c[:, None] - jnp.einsum("ij,jx,jk->ikx", others, b, s.integers(s.graph.wang_H))


def masses(s: System) -> jax.Array:
    """[m], and [m] - (m)(m)'/M within free subtrees (n, n) [W 3.19]."""
    P = jnp.asarray(free_subtrees(s), s.m.dtype)
    m = jnp.diag(s.m)
    return m - (P.T @ P) * (s.m[:, None] * s.m[None]) / subtree_masses(s)[:, None] if P.size else m


def inertias(s: System, bc: jax.Array) -> jax.Array:
    """[J] = [J^c] + [J^s] (n, n, 3, 3) [W 3.9, 3.10; 3.22]."""
    outer = jnp.einsum("jkx,lk,ily->ijxy", bc, masses(s), bc, optimize=True)
    E = jnp.eye(3, dtype=bc.dtype)
    reduced = jnp.einsum("ijxx->ij", outer)[:, :, None, None] * E[None, None] - outer
    return reduced + jnp.eye(s.graph.n, dtype=bc.dtype)[:, :, None, None] * s.J[:, None]


def _centripetal(s: System, bc: jax.Array) -> jax.Array:
    """(n, 3): {[b^c]' x [omega]} x (omega), the accelerations of the centres of mass at omega' = 0."""
    omega = s.omega[1:, None]
    return jnp.cross(jnp.cross(bc, omega), omega).sum(axis=0)


def moments(s: System, bc: jax.Array) -> jax.Array:
    """(L) + [b^c] x (F) + (L^o) (n, 3) [W 3.7, 3.11; 3.20, 3.23]."""
    m, free = masses(s), in_free_subtree(s)
    driven = jnp.where(jnp.asarray(free)[:, None], 0.0, base_acceleration(s))
    P = jnp.asarray(free_subtrees(s), s.m.dtype)
    shared = P.T @ ((P @ s.F) / (P @ s.m)[:, None])  # R/M of the free subtrees
    forces = s.F - s.m[:, None] * (shared + driven) - m @ _centripetal(s, bc)
    return s.M - s.V + jnp.cross(bc, forces[None] * jnp.ones_like(bc)).sum(axis=1)


def _centres(s: System, bc: jax.Array) -> Centres:
    """M r_1" by [W 3.17], written for the centre of mass r_C = r_1 + (m)'[b^c]'(1) / M."""
    P = jnp.asarray(free_subtrees(s), s.m.dtype)
    share = P * s.m[None] / (P @ s.m)[:, None]
    roots = P * jnp.asarray([a == i for i, a in enumerate(s.graph.subtree)], s.m.dtype)[None]
    arm = jnp.einsum("ci,jix->cjx", share, bc)
    turning = jnp.cross(s.pT[:, None], arm[None] * jnp.ones_like(s.pT[:, None])).sum(axis=2)
    U = jnp.cross(s.Ttf[None], arm).sum(axis=1) - share @ _centripetal(s, bc) + roots @ (s.T.T @ s.hinges.s)
    return Centres.of(s, -turning - jnp.einsum("ci,kix->kcx", roots, s.kT), -U)


def mass_matrix(s: System) -> jax.Array:
    """[p^H] [J] [p^H]' (nv, nv), [p^H] = [p][H] [W 3.14, 3.15]; free subtrees completed by (3.25)."""
    bc = matrix(s)
    A = jnp.einsum("kix,ijxy,ljy->kl", s.pT, inertias(s, bc), s.pT, optimize=True)
    return with_centres(A, _centres(s, bc)) if in_free_subtree(s).any() else A


def bias(s: System) -> jax.Array:
    """Bias forces from (3.15), in free subtrees from (3.24) and (3.25), without the drives."""
    bc = matrix(s)
    right = jnp.einsum("ijxy,jy->ix", inertias(s, bc), s.Ttf) + moments(s, bc)
    b = jnp.einsum("kix,ix->k", s.pT, right) - s.elements
    return bias_with_centres(b, _centres(s, bc)) if in_free_subtree(s).any() else b


class BodyLoads(NamedTuple):
    """The loads on each body taken alone, with its inward hinge as the pole [W 4]; vectors in inertial axes.

    at_centre (n, 3): F_i + Q_ei [N] at the centre of mass, where Q_ei = -m_i r_i" with the acceleration r_i" of the
    inward hinge; at_hinge (n, 3), row j: sum of F_k + Q_k [N] over the bodies k from j outwards, which acts on the
    carrying body at its hinge j, with Q_k = -m_k times the acceleration of the centre of mass of k; moment (n, 3): sum
    of L_i and the torques of all hinges of body i [N m]; momentum_rate (n, 3): rate of the angular momentum about the
    inward hinge [N m], which the other three together produce [W 4.2].

    >>> model = mbs.library.double_pendulum().build()
    >>> loads = mbs.textbook.body_loads(model, [0.5, 0.3], [1.0, 2.0])
    >>> loads.moment.shape, loads.momentum_rate.shape
    ((2, 3), (2, 3))
    """

    at_centre: Float[jax.Array, "n 3"]
    at_hinge: Float[jax.Array, "n 3"]
    moment: Float[jax.Array, "n 3"]
    momentum_rate: Float[jax.Array, "n 3"]


def body_loads(s: System, a: jax.Array, hinge_moments: jax.Array) -> BodyLoads:
    """Dynamically equivalent decomposition at the accelerations a [W 4.1, 4.2].

    hinge_moments (n, 3): (Y) + (Y^h) of every hinge, which act on the carrying body with positive sign.
    """
    bc, (_, c) = matrix(s), stems(s)
    rate = -jnp.einsum("kix,k->ix", s.pT, a) - s.Ttf
    omega = s.omega[1:]
    free_roots = jnp.einsum("kix,k->ix", s.kT, a) + s.T.T @ s.hinges.s
    first = jnp.where(jnp.asarray(in_free_subtree(s))[:, None], -free_roots, base_acceleration(s))
    rho = -jnp.cross(bc, rate[:, None] * jnp.ones_like(bc)).sum(axis=0) + _centripetal(s, bc) + first
    of_c = jnp.cross(rate, c) + jnp.cross(omega, jnp.cross(omega, c))
    Q, Q_e = -s.m[:, None] * rho, -s.m[:, None] * (rho - of_c)
    momentum_rate = apply(s.J, rate) + s.V + jnp.cross(c, s.m[:, None] * of_c)
    at_hinge = -s.integers(s.graph.wang_H) @ (s.F + Q)
    return BodyLoads(s.F + Q_e, at_hinge, s.M + s.integers(s.graph.wang_I) @ hinge_moments, momentum_rate)
