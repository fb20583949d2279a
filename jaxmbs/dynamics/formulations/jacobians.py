"""Virtual power with differentiated placements: A = sum of Jv' m Jv + Jw' J Jw.

Method "jacobian", for any joint. Velocities and accelerations come from differentiating the placements of the bodies
with JAX, not from the motions S of the joints, so that this method checks all others independently.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.formulations.system import apply, body_numbers, placements, system
from jaxmbs.dynamics.state import State

Velocities = tuple[jax.Array, jax.Array]


def _velocities(state: State, q: Any, v: jax.Array, t: Any) -> Velocities:
    """Angular velocities and velocities of the centres of mass, (n, 3) each, at (q, v, t)."""
    tree = state.tree
    at = State(tree, q, v, t)
    rates = tree.vector(tree.flat([m.rates for m in at.motions]))

    _, com, _ = body_numbers(tree)

    def placed(q: jax.Array, t: Any) -> Velocities:
        A, origins = placements(State(tree, q, jnp.zeros_like(v), t))
        return A, origins + apply(A, com)

    (A, _), (dA, dr) = jax.jvp(placed, (q, t), (rates, jnp.ones_like(t)))
    W = dA @ jnp.swapaxes(A, 1, 2)
    return jnp.stack([W[:, 2, 1] - W[:, 1, 2], W[:, 0, 2] - W[:, 2, 0], W[:, 1, 0] - W[:, 0, 1]], axis=1) / 2, dr


def _columns(state: State) -> Velocities:
    """Jw and Jv, (n, 3, nv) each, by differentiating the velocities, which are affine in v."""
    t, zero = jnp.asarray(state.t, state.tree.dtype), jnp.zeros(state.tree.structure.nv, state.tree.dtype)
    return jax.jacfwd(lambda v: _velocities(state, state.q, v, t))(zero)


def mass_matrix(state: State) -> jax.Array:
    """A (nv, nv)."""
    s = system(state)
    Jw, Jv = _columns(state)
    return jnp.einsum("ixk,i,ixl->kl", Jv, s.m, Jv) + jnp.einsum("ixk,ixy,iyl->kl", Jw, s.J, Jw)


def bias(state: State) -> jax.Array:
    """Bias forces (nv,): inertia forces at dv/dt = 0, minus the applied forces."""
    s, tree, t = system(state), state.tree, jnp.asarray(state.t, state.tree.dtype)
    rates = tree.vector(tree.flat([m.rates for m in state.motions]))
    _, (dw, dv) = jax.jvp(lambda q, t: _velocities(state, q, state.v, t), (state.q, t), (rates, jnp.ones_like(t)))
    Jw, Jv = _columns(state)
    force, moment = s.m[:, None] * dv - s.F, apply(s.J, dw) + s.V - s.M
    return jnp.einsum("ixk,ix->k", Jv, force) + jnp.einsum("ixk,ix->k", Jw, moment) - s.elements
