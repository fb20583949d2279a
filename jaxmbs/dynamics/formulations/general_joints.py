"""Trees with joints of any kind: d'Alembert's principle in the coordinates of the joints [Y 3.4].

Method "configuration": A and B of (3.165) for 1 to 6 degrees of freedom per joint, rheonomic joints, a moving body 0 and
several joints on it. With D = pT x (C + Z)T - kT the accelerations of the centres of mass are r" = D'q" + U. The terms of
body 0 in (3.153) and (3.186) are row 0 of C + Z here. Method "fictitious" [Y 3.4.5]: joint 1 is fictitious, and there
is no body 0.

Corrections to the printed source: r" = D'q" + U in (3.142) and (3.160) (the signs there differ); U of (3.143) holds
with g = + sum omega x (omega x d); omega0 x (omega0 x z) in (3.139) and (3.185); c*_01 is added in (3.151); mu appears in A
and B of 3.4.5 only, not in those of 3.6.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.formulations.free_systems import (
    Centres,
    bias_with_centres,
    free_subtrees,
    mu,
    parted,
    with_centres,
)
from jaxmbs.dynamics.formulations.system import System, apply, cross_sum


def d_star(s: System) -> jax.Array:
    """(n + 1, n, 3): d*_ij = ((C + Z)T)_ij, not fixed in any body if the hinge vectors z move [Y 3.148-3.150]."""
    Z = s.S_plus[:, :, None] * s.hinges.z[None]
    return jnp.einsum("iax,aj->ijx", s.C + Z, s.T)


def positions(s: System) -> jax.Array:
    """Centres of mass (n, 3): r_i = r0 - sum of d*_ji over j from 0 on [Y 3.123, 3.151]."""
    return s.base.r[None] - d_star(s).sum(axis=0)


def columns(s: System) -> jax.Array:
    """D (nv, n, 3): delta r = D' delta q [Y 3.161]."""
    return cross_sum(s.pT, d_star(s)[1:]) - s.kT


def remaining(s: System) -> jax.Array:
    """U (n, 3): accelerations of the centres of mass at q" = 0 [Y 3.143, 3.153]."""
    d = d_star(s)
    turning = jnp.concatenate([s.base.alpha[None], -s.Ttf])[:, None]
    omega = s.omega[:, None]
    of_d = jnp.cross(turning, d) + jnp.cross(omega, jnp.cross(omega, d))
    h = jnp.cross(s.omega_plus, s.hinges.dz)
    return s.base.a[None] - of_d.sum(axis=0) - s.T.T @ (s.hinges.s + 2 * h)


def mass_matrix(s: System) -> jax.Array:
    """A = D m D' + (pT) J (pT)' [Y 3.165]."""
    return _mass_matrix(s, columns(s))


def _mass_matrix(s: System, D: jax.Array) -> jax.Array:
    turning = jnp.einsum("kix,ixy,liy->kl", s.pT, s.J, s.pT)
    return jnp.einsum("kix,i,lix->kl", D, s.m, D) + turning


def bias(s: System) -> jax.Array:
    """-B without the drives (nv,): B = D(F - m U) - pT(M + J(T'f - omega0' 1) - V) - kX - pY [Y 3.165]."""
    return _bias(s, columns(s), remaining(s))


def _bias(s: System, D: jax.Array, U: jax.Array) -> jax.Array:
    forces = s.F - s.m[:, None] * U
    moments = s.M + apply(s.J, s.Ttf) - s.V
    return jnp.einsum("kix,ix->k", s.pT, moments) - jnp.einsum("kix,ix->k", D, forces) - s.elements


def _fictitious(s: System) -> tuple[jax.Array, jax.Array, Centres]:
    """(A of the rotations, bias of the rotations, centres of mass of the free subtrees), decoupled [Y 3.4.5]."""
    D, U, mu_ = columns(s), remaining(s), mu(s)
    D_mu = jnp.einsum("kix,ij->kjx", D, mu_)
    P = jnp.asarray(free_subtrees(s), s.m.dtype)
    share = P * s.m[None] / (P @ s.m)[:, None]
    centres = Centres.of(s, jnp.einsum("kix,ci->kcx", D, share), share @ U)
    return _mass_matrix(s, D_mu), _bias(s, D_mu, mu_.T @ U), centres


def fictitious_mass_matrix(s: System) -> jax.Array:
    """A of [Y 3.4.5], completed by the motion of the centres of mass."""
    A, _, centres = _fictitious(s)
    return with_centres(A, centres)


def fictitious_bias(s: System) -> jax.Array:
    """-B of [Y 3.4.5] without the drives, completed by M r_C" = sum F [Y 3.96]."""
    _, b, centres = _fictitious(s)
    return bias_with_centres(b, centres)


def fictitious_accelerations(s: System, tau: Any = None) -> jax.Array:
    """Accelerations (nv,) from the decoupled equations of a free system [Y 3.96, 3.4.5]."""
    A, b, centres = _fictitious(s)
    return parted(A, b, centres, s, tau)


def reactions(s: System, a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Hinge forces X^c and torques Y + Y^c (n, 3) at the accelerations a, in inertial axes; they act with positive sign on
    i+.

    X^c = T(m r" - F) [Y 3.4], Y from the balance of torques (3.2) with c* in place of c: Y = T(L' - M - (C + Z) x X).
    """
    acceleration = jnp.einsum("kix,k->ix", columns(s), a) + remaining(s)
    X = s.T @ (s.m[:, None] * acceleration - s.F)
    omega_rate = -jnp.einsum("kix,k->ix", s.pT, a) - s.Ttf
    Z = s.S_plus[1:, :, None] * s.hinges.z[None]
    momentum_rate = apply(s.J, omega_rate) + s.V
    Y = s.T @ (momentum_rate - s.M - jnp.cross(s.C[1:] + Z, X[None]).sum(axis=1))
    return X, Y
