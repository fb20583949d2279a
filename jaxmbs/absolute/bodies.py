"""Bodies in absolute coordinates: their parameters, their state and the loads on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.absolute.equations import Body
from jaxmbs.dynamics.formulations.moving_base import BaseMotion
from jaxmbs.dynamics.formulations.system import System as Tree
from jaxmbs.dynamics.formulations.system import apply
from jaxmbs.dynamics.state import State
from jaxmbs.model.parameters import Values
from jaxmbs.model.structure import Structure
from jaxmbs.spatial.scalar import Scalar, is_number


def table(rows: Sequence[Sequence[Scalar]], width: int, dtype: Any) -> jax.Array:
    """Array (rows, width): all numbers form one constant, into which the other entries are set."""
    flat = [x for row in rows for x in row]
    out = jnp.asarray(np.array([x if is_number(x) else 0.0 for x in flat], float), dtype)
    where = [k for k, x in enumerate(flat) if not is_number(x)]
    if where:
        out = out.at[np.asarray(where)].set(jnp.stack([jnp.asarray(flat[k], dtype) for k in where]))
    return out.reshape(len(rows), width)


def inertias(s: Structure, values: Values, dtype: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Masses (n,), centres of mass (n, 3) and central inertias (n, 3, 3), in body axes."""
    rows = [(values[f"{b.body}.mass"], *values[f"{b.body}.com"], *values[f"{b.body}.inertia"].full()) for b in s.links]
    x = table(rows, 13, dtype)
    return x[:, 0], x[:, 1:4], x[:, 4:].reshape(-1, 3, 3)


def lacks_inertia(s: Structure, values: Values, axes: Sequence[int] | None = None) -> bool:
    """Whether some M_i is structurally singular: no mass, or no inertia about a body axis (in a plane: axes[i])."""
    found = False
    for i, b in enumerate(s.links):
        J = tuple(values[f"{b.body}.inertia"])[:3]
        moments = J if axes is None else (J[axes[i]],)
        found |= any(is_number(x) and x == 0 for x in (values[f"{b.body}.mass"], *moments))
    return found


def state_of(state: State, tree: Tree) -> Body:
    """Rows of all bodies and, last, of the world (body 0), which moves with the base of the tree.

    The axes of a body are those of its body frame.
    """
    s, base, dtype = state.tree.structure, tree.base, state.tree.dtype
    turn = table([tuple(B.rotation) for B in state.tree.body_in_link], 9, dtype).reshape(-1, 3, 3)
    rates = table([m.V.scalars() for m in state.tree.per_link(state.motions)], 6, dtype)
    origins = table(
        [
            tuple(B.point(state.tree.values[f"{b.body}.com"]))
            for B, b in zip(state.tree.body_in_link, s.links, strict=True)
        ],
        3,
        dtype,
    )
    omega, v = rates[:, :3], rates[:, 3:] + jnp.cross(rates[:, :3], origins)
    omega0 = base.omega[None]
    v = base.v[None] + jnp.cross(omega0, tree.r - base.r[None]) + apply(tree.A, v)
    A = tree.A @ turn
    omega = jnp.einsum("ixy,ix->iy", A, omega0 + apply(tree.A, omega))
    world = world_row(base)
    return Body(*(jnp.concatenate([x, w]) for x, w in zip((tree.r, A, omega, v), world, strict=True)))


def world_row(base: BaseMotion) -> Body:
    """Body 0 as a row."""
    return Body(base.r[None], base.A[None], (base.A.T @ base.omega)[None], base.v[None])


def loads(state: State, tree: Tree, tau: jax.Array | None) -> tuple[jax.Array, jax.Array]:
    """Loads on the bodies other than the joint reactions: force elements, gravity and drives.

    Returns (torques about the centres of mass and forces (n, 6), world axes; drives (n, 6): the wrenches by which drives
    and force elements act along the degrees of freedom of the joints, on the child at its joint frame, world axes).
    """
    s = state.tree.structure
    along = tree.elements if tau is None else tree.elements + tau
    drives = jnp.zeros((len(s.links), 6), along.dtype)
    if s.nv:
        drives = _drives(tree, along)
    moment, force = drives[:, :3], drives[:, 3:]
    joint = tree.r + tree.hinges.c_minus  # child joint frames
    parent = np.array([b.parent for b in s.links])
    r = jnp.concatenate([tree.r, tree.base.r[None]])
    M = jnp.concatenate([tree.M + moment + jnp.cross(joint - tree.r, force), jnp.zeros((1, 3), along.dtype)])
    F = jnp.concatenate([tree.F + force, jnp.zeros((1, 3), along.dtype)])
    M = M.at[parent].add(-moment - jnp.cross(joint - r[parent], force))
    F = F.at[parent].add(-force)
    return jnp.concatenate([M, F], axis=1)[:-1], drives


def _drives(tree: Tree, along: jax.Array) -> jax.Array:
    """Per joint, the wrench W of least norm with S' W = the generalized forces; it is in the span of S: W = S y."""
    n, arc = tree.graph.n, tree.arc
    place = np.concatenate([np.arange(c) for c in np.bincount(arc, minlength=n)]).astype(int)
    most = int(place.max()) + 1
    S = jnp.zeros((n, most, 6), along.dtype).at[arc, place].set(jnp.concatenate([tree.hinges.p, tree.hinges.k], axis=1))
    f = jnp.zeros((n, most), along.dtype).at[arc, place].set(along)
    absent = np.ones((n, most))
    absent[arc, place] = 0.0
    gram = S @ jnp.swapaxes(S, 1, 2) + jnp.asarray(absent[:, None, :] * np.eye(most), along.dtype)
    y = jnp.linalg.solve(gram, f[..., None])
    return jnp.einsum("ika,ikb->ia", S, y)
