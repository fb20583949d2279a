"""Trees with revolute, universal and spherical joints in joint coordinates [Y 3.3; Wi 5.2.6.3].

Method "barycentric": A = (pT) K (pT)', B of (3.89), with the inertias K_ij of augmented bodies. Hinge points are fixed
in both bodies; a subtree attached by a Free joint is a free system and is completed by (3.43). Body 0 may move. The axes p
of a joint need not be orthogonal. [Wi 5.97] are the same equations.

Correction to the printed source: p is differentiated in the body i+, so that f_a = w_a + omega_{i+} x Omega_a in
(3.84).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.formulations import barycentric
from jaxmbs.dynamics.formulations.free_systems import (
    Centres,
    bias_with_centres,
    free_subtrees,
    in_free_subtree,
    parted,
    with_centres,
)
from jaxmbs.dynamics.formulations.system import System
from jaxmbs.model import Model


def obstacle(model: Model) -> str | None:
    """Why a joint is not served, or None: hinge points must be fixed in both bodies; roots may be Free [Y 3.2, 3.3]."""
    for link in model.structure.links:
        joint = link.joint
        if not (joint.fixed_hinge_point or (joint.free and link.parent < 0)):
            return f"the hinge point of joint {link.name!r} ({joint.type_name}) is not fixed in both bodies"
    return None


def hinged(s: System) -> System:
    """The system with the constant hinge vectors z added to c_plus, because rotational joints have only one hinge point."""
    h = s.hinges
    return replace(s, hinges=replace(h, c_plus=h.c_plus + h.z, z=jnp.zeros_like(h.z)))


def _rotations(s: System) -> tuple[jax.Array, jax.Array, barycentric.Vectors]:
    of = barycentric.of_system(s)
    K = barycentric.K(s, of)
    return K, barycentric.M_prime(s, of, K), of


def _A(s: System, K: jax.Array) -> jax.Array:
    return jnp.einsum("kix,ijxy,ljy->kl", s.pT, K, s.pT, optimize=True)


def _bias(s: System, K: jax.Array, M_prime: jax.Array) -> jax.Array:
    moments = jnp.einsum("ijxy,jy->ix", K, s.Ttf) + M_prime + s.M
    return jnp.einsum("kix,ix->k", s.pT, moments) - s.elements


def _centres(s: System, b0: jax.Array) -> Centres:
    """r_C = r_hinge - sum_j b_j0 of the free subtrees [Y 3.12 with 3.17]."""
    P = jnp.asarray(free_subtrees(s), s.m.dtype)
    root = P * jnp.asarray([a == i for i, a in enumerate(s.graph.subtree)], s.m.dtype)[None]
    J = jnp.einsum("cj,kjx->kcx", P, jnp.cross(s.pT, b0[None] * jnp.ones_like(s.pT))) - jnp.einsum(
        "ci,kix->kcx", root, s.kT
    )
    omega = s.omega[1:]
    rest = jnp.cross(s.Ttf, b0) - jnp.cross(omega, jnp.cross(omega, b0))
    return Centres.of(s, J, P @ rest - root @ (s.T.T @ s.hinges.s))


def mass_matrix(s: System) -> jax.Array:
    """A = (pT) K (pT)' [Y 3.88], completed by the motion of the centres of mass of free subtrees."""
    of = barycentric.of_system(s)
    A = _A(s, barycentric.K(s, of))
    return with_centres(A, _centres(s, of.b0)) if in_free_subtree(s).any() else A


def bias(s: System) -> jax.Array:
    """-B without the drives: B = -(pT)(K(T'f - omega0' 1) + M' + M) - pY [Y 3.89]."""
    K, M_prime, of = _rotations(s)
    b = _bias(s, K, M_prime)
    return bias_with_centres(b, _centres(s, of.b0)) if in_free_subtree(s).any() else b


def free_accelerations(s: System, tau: Any = None) -> jax.Array:
    """Accelerations (nv,) of a free system, with rotations and centre of mass decoupled [Y 3.67, 3.43]."""
    K, M_prime, of = _rotations(s)
    return parted(_A(s, K), _bias(s, K, M_prime), _centres(s, of.b0), s, tau)


def reactions(s: System, a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Hinge forces X^c and torques Y + Y^c (n, 3) at the accelerations a, in inertial axes; they act with positive sign on
    i+.

    Torques by (3.86); forces X^c = T(m r" - F) [Y 3.4], r" from (3.12), in free subtrees r" = r_C" + R" of (3.58). The
    force that drives the displacements of a free root, M r_C" - sum F, is treated as applied at its hinge.
    """
    free, of = in_free_subtree(s), barycentric.of_system(s)
    P = jnp.asarray(free_subtrees(s), s.m.dtype)
    centres = _centres(s, of.b0)
    centre = jnp.einsum("kcx,k->cx", centres.J, a) + centres.U
    root = P.T * jnp.asarray([x == i for i, x in enumerate(s.graph.subtree)], s.m.dtype)[:, None]
    drive = root @ (centres.mass[:, None] * centre - centres.F)
    driven = replace(s, F=s.F + drive, M=s.M + jnp.cross(s.hinges.c_minus, drive))

    K, M_prime, _ = _rotations(driven)
    omega, rate = s.omega[1:], -jnp.einsum("kix,k->ix", s.pT, a) - s.Ttf
    Y = s.T @ (jnp.einsum("ijxy,jy->ix", K, rate) - M_prime - driven.M)

    def sum_of(x: jax.Array) -> jax.Array:
        """sum over j of x"_ji, x_ji fixed in body j."""
        w = omega[:, None]
        return (jnp.cross(rate[:, None], x) + jnp.cross(w, jnp.cross(w, x))).sum(axis=0)

    grounded = s.m[:, None] * (barycentric.base_acceleration(s) - sum_of(of.d)) - s.F
    floating = s.m[:, None] * (sum_of(of.b) + P.T @ centre) - s.F
    return s.T @ jnp.where(jnp.asarray(free)[:, None], floating, grounded), Y
