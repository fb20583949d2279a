"""Block LDL' of a symmetric matrix whose graph is a tree: no fill-in, linear in the number of vertices [Y 2.59-2.61].

Vertices are numbered so that a parent follows its descendants. With H_{i,par(i)} the block that couples a vertex to its
parent,

    D_ii = H_ii - sum over children k of H_ki' D_kk^-1 H_ki,        L_{par(i),i}' = D_ii^-1 H_{i,par(i)}.

Corrections to the printed source: D_kk^-1 and the order of the factors in (2.60); (2.61) gives the transpose of L.

Bodies and joints alternate as vertices: the parent of a body is the joint that carries it, the parent of a joint is the
body to which it is attached. The root of a grounded tree is then the constraint to ground; if the root were a body, this
constraint would be a leaf with the pivot 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.absolute.system import System


class Vertices(NamedTuple):
    """The blocks of a matrix H whose graph is a tree.

    D (m, s, s): blocks H_ii; U (m, s, s): blocks H_{i,par(i)}; parent: number of the parent of each vertex, m for none;
    merged: whether each vertex is a body together with its joint.
    """

    D: jax.Array
    U: jax.Array
    parent: tuple[int, ...]
    merged: bool


def vertices(s: System, border: Sequence[int] = ()) -> Vertices:
    """The tree of a system, without the arcs of the border, which close loops (see `solvers.ldl`).

    If a body lacks inertia, its block has no inverse: every body is then one vertex together with the joint that carries it.
    """
    n, k = s.force.shape
    on = s.on[:n] & jnp.asarray([a not in border for a in range(n)])[:, None]
    near, far = (jnp.where(on[..., None], x[:n], 0.0) for x in (s.near, s.far))
    C = jnp.where(on, 0.0, 1.0).astype(near.dtype)[..., None] * jnp.eye(k, dtype=near.dtype)[None]
    up = [j if a not in border else -1 for a, (_, j) in enumerate(s.ends[:n])]
    # in reverse order: from the last body inwards
    M, near, far, C = s.inertia[::-1], near[::-1], far[::-1], C[::-1]
    near_T, zero = jnp.swapaxes(near, 1, 2), jnp.zeros_like(near)
    if s.singular:
        parent = [n - 1 - j for j in reversed(up)]  # n for the world, -1
        return Vertices(_blocks(M, near_T, near, -C), _blocks(zero, zero, far, zero), tuple(parent), True)
    D = jnp.stack([M, -C], axis=1).reshape(2 * n, k, k)
    U = jnp.stack([near_T, far], axis=1).reshape(2 * n, k, k)
    parent = [p for v, j in enumerate(reversed(up)) for p in (2 * v + 1, 2 * (n - 1 - j))]
    return Vertices(D, U, tuple(parent), False)


class Factors(NamedTuple):
    """H = L D L': D (m, s, s); L (m, s, s): blocks L_{par(i),i}'; parent, merged as in `Vertices`."""

    D: jax.Array
    L: jax.Array
    parent: tuple[int, ...]
    merged: bool

    @staticmethod
    def of(h: Vertices) -> Factors:
        m, k, _ = h.D.shape

        def eliminate(D: jax.Array, step: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            i, up, U = step
            L = jnp.linalg.solve(D[i], U)
            return D.at[up].add(-U.T @ L), L

        D = jnp.concatenate([h.D, jnp.zeros((1, k, k), h.D.dtype)])  # the last block absorbs the terms of the roots
        D, L = jax.lax.scan(eliminate, D, (jnp.arange(m), jnp.asarray(h.parent), h.U))
        return Factors(D[:m], L, h.parent, h.merged)

    def solve(self, bodies: jax.Array, joints: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Solution of H x = z, for right-hand sides (n, k, columns) of bodies and of joints [Y 2.56-2.58]."""
        n, k, c = bodies.shape
        z = jnp.stack([bodies[::-1], joints[::-1]], axis=1)
        z = z.reshape(n, 2 * k, c) if self.merged else z.reshape(2 * n, k, c)
        root = jnp.zeros((1, *z.shape[1:]), z.dtype)
        steps = (jnp.arange(len(z)), jnp.asarray(self.parent), self.L)

        def inward(z: jax.Array, step: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            i, up, L = step
            return z.at[up].add(-L.T @ z[i]), None

        z, _ = jax.lax.scan(inward, jnp.concatenate([z, root]), steps)
        w = jnp.concatenate([jnp.linalg.solve(self.D, z[:-1]), root])

        def outward(x: jax.Array, step: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            i, up, L = step
            return x.at[i].add(-L @ x[up]), None

        x, _ = jax.lax.scan(outward, w, steps, reverse=True)
        x = x[:-1].reshape(n, 2, k, c)[::-1]
        return x[:, 0], x[:, 1]


def _blocks(a: jax.Array, b: jax.Array, c: jax.Array, d: jax.Array) -> jax.Array:
    return jnp.concatenate([jnp.concatenate([a, b], axis=2), jnp.concatenate([c, d], axis=2)], axis=1)
