"""Subtrees without a joint to a body of given motion: mu, motion of the centres of mass [Y 3.2.3, 3.4.5; W 3].

Such a subtree is attached to body 0 by a Free joint. Its equations decouple: those of the rotations do not contain the
acceleration of the centre of mass, which follows from M r_C" = sum F_i [Y 3.43, 3.96].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.formulations.system import System


def free_subtrees(s: System) -> np.ndarray:
    """(number of free subtrees, n) bool: whether each body belongs to each free subtree."""
    roots = np.asarray(s.graph.subtree)
    members = [roots == a for a in np.unique(roots) if s.joints[a].free]
    return np.array(members, bool).reshape(-1, s.graph.n)


def in_free_subtree(s: System) -> np.ndarray:
    """(n,) bool: whether a body belongs to a free subtree."""
    return np.asarray(free_subtrees(s).any(axis=0))


def subtree_masses(s: System) -> jax.Array:
    """(n,): total mass M of the subtree of body 0 to which each body belongs."""
    roots = np.asarray(s.graph.subtree)
    return jnp.asarray(roots[:, None] == roots[None], s.m.dtype) @ s.m


def mu(s: System) -> jax.Array:
    """(n, n): mu_ij = delta_ij - m_i/M within a free subtree, delta_ij elsewhere [Y 3.45]; mu' 1 = 0 on free subtrees."""
    P = jnp.asarray(free_subtrees(s), s.m.dtype)
    same = P.T @ P
    return jnp.eye(s.graph.n, dtype=s.m.dtype) - same * (s.m / subtree_masses(s))[:, None]


@dataclass(frozen=True)
class Centres:
    """Centres of mass of the free subtrees: r_C" = J' q" + U.

    mass (c,), J (nv, c, 3), U (c, 3), F (c, 3): applied forces on the whole subtree.
    """

    mass: jax.Array
    J: jax.Array
    U: jax.Array
    F: jax.Array

    @staticmethod
    def of(s: System, J: jax.Array, U: jax.Array) -> Centres:
        P = jnp.asarray(free_subtrees(s), s.m.dtype)
        return Centres(P @ s.m, J, U, P @ s.F)


def with_centres(A: jax.Array, centres: Centres) -> jax.Array:
    """Mass matrix (nv, nv) from that of the rotations about the centres of mass (Koenig)."""
    return A + jnp.einsum("kcx,c,lcx->kl", centres.J, centres.mass, centres.J)


def bias_with_centres(bias: jax.Array, centres: Centres) -> jax.Array:
    return bias + jnp.einsum("kcx,cx->k", centres.J, centres.mass[:, None] * centres.U - centres.F)


def parted(A: jax.Array, bias: jax.Array, centres: Centres, s: System, tau: Any) -> jax.Array:
    """Accelerations (nv,) from the decoupled equations: rotations first, then the centres of mass [Y 3.67 with 3.43].

    A, bias: those of the rotations alone (the rows of the displacements of free roots are zero). tau along the six
    degrees of freedom of a free root is a wrench on its body at the hinge; it accelerates the centre of mass of the
    subtree and changes the rotations about this centre.
    """
    tau = jnp.zeros(bias.shape, bias.dtype) if tau is None else tau
    roots = [a for a in dict.fromkeys(s.graph.subtree) if s.joints[a].free]
    slots = [np.flatnonzero(s.arc == a) for a in roots]
    turning = np.setdiff1d(np.arange(len(s.arc)), [k for rows in slots for k in rows[3:]])
    # a force at the hinge point acts on the centre of mass and, minus that share, on the rotations: mu of [Y 3.44]
    force = jnp.stack([tau[rows[3:]] @ s.hinges.k[rows[3:]] for rows in slots])
    share = tau - jnp.einsum("kcx,cx->k", centres.J, force)
    a = jnp.zeros_like(bias).at[turning].set(jnp.linalg.solve(A[np.ix_(turning, turning)], (share - bias)[turning]))
    centre = (centres.F + force) / centres.mass[:, None] - centres.U - jnp.einsum("kcx,k->cx", centres.J, a)
    for c, rows in enumerate(slots):
        a = a.at[rows[3:]].set(s.hinges.k[rows[3:]] @ centre[c])
    return a
