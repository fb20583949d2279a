"""Assembly of the system of equations from a model and its state."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.absolute import plane, space
from jaxmbs.absolute.bodies import inertias, lacks_inertia, loads, state_of
from jaxmbs.absolute.equations import Body
from jaxmbs.absolute.joints import Arc, arcs
from jaxmbs.absolute.space import Frames
from jaxmbs.absolute.system import Rows, System
from jaxmbs.dynamics.formulations.moving_base import MovingBase
from jaxmbs.dynamics.formulations.system import apply
from jaxmbs.dynamics.formulations.system import system as tree_system
from jaxmbs.dynamics.state import State
from jaxmbs.model import Mode
from jaxmbs.model.parameters import Values
from jaxmbs.model.structure import Structure


class Assembled(NamedTuple):
    """The system of equations with the bodies, the drives of the tree joints (see `loads`) and the frames of the joints
    (None in a plane)."""

    system: System
    bodies: Body
    drives: jax.Array
    frames: Frames | None


def assembled(state: State, tau: jax.Array | None, base: MovingBase | None, planar: bool) -> Assembled:
    """M, F, Q and b at a state of the tree."""
    tree, s = tree_system(state, base), state.tree.structure
    values, dtype = state.tree.values, state.tree.dtype
    bodies = state_of(state, tree)
    wrenches, drives = loads(state, tree, tau)
    n = len(s.links)
    A, omega = bodies.A[:n], bodies.omega[:n]
    mass, _, J = inertias(s, values, dtype)
    moment = jnp.einsum("ixy,ix->iy", A, wrenches[:, :3]) - jnp.cross(omega, apply(J, omega))
    force = jnp.concatenate([moment, wrenches[:, 3:]], axis=1)
    if planar:
        p = plane.plane_of(state.tree.model)
        rows = plane.joint_rows(p, s, values, plane.in_plane(p, bodies))
        about = J[np.arange(n), np.array(p.normals), np.array(p.normals)]
        inertia = _diagonal(jnp.stack([mass, mass, about], axis=1))
        known = lacks_inertia(s, values, p.normals), s.redundant
        out = _system(rows, p.arcs, inertia, plane.projected(p, force), state.mode, n, *known)
        return Assembled(out, bodies, drives, None)
    rows, frames = space.joint_rows(arcs(s), s, values, bodies)
    known = lacks_inertia(s, values), s.redundant
    out = _system(rows, arcs(s), spatial_inertia(mass, J), force, state.mode, n, *known)
    if base is not None:
        out = _carried(out, jnp.concatenate([tree.base.A.T @ tree.base.alpha, tree.base.a]))
    return Assembled(out, bodies, drives, frames)


def unloaded(s: Structure, values: Values, bodies: Body) -> System:
    """The system for given bodies, without a state of the tree and with F = 0."""
    n, dtype = len(s.links), bodies.r.dtype
    rows, _ = space.joint_rows(arcs(s), s, values, bodies)
    mass, _, J = inertias(s, values, dtype)
    force = jnp.zeros((n, 6), dtype)
    known = lacks_inertia(s, values), s.redundant
    return _system(rows, arcs(s), spatial_inertia(mass, J), force, None, n, *known)


def spatial_inertia(mass: jax.Array, J: jax.Array) -> jax.Array:
    """(n, 6, 6), block-diagonal: J about the centre of mass in body axes, then the mass three times [Y 2.9]."""
    n = len(mass)
    out = jnp.zeros((n, 6, 6), mass.dtype).at[:, :3, :3].set(J)
    return out.at[:, 3:, 3:].set(mass[:, None, None] * jnp.eye(3, dtype=mass.dtype)[None])


def _diagonal(d: jax.Array) -> jax.Array:
    return d[:, :, None] * jnp.eye(d.shape[1], dtype=d.dtype)[None]


def _system(
    rows: Rows,
    arcs: tuple[Arc, ...],
    inertia: jax.Array,
    force: jax.Array,
    mode: Mode | None,
    n: int,
    singular: bool,
    redundant: bool,
) -> System:
    """The system from its parts; the rows of loops that the mode switches off are zero."""
    counts = tuple(len(arc.kept) for arc in arcs)
    on = jnp.asarray(np.arange(force.shape[1])[None] < np.array(counts)[:, None])
    if mode is not None and len(arcs) > n:
        held = jnp.concatenate([jnp.ones(n, bool), jnp.asarray(mode.constraint)[: len(arcs) - n]])
        on = on & held[:, None]
    near, far = (jnp.where(on[..., None], x, 0.0) for x in (rows.near, rows.far))
    target, residual = (jnp.where(on, x, 0.0) for x in (rows.target, rows.residual))
    ends = tuple((arc.second, arc.first) for arc in arcs)
    return System(inertia, force, near, far, target, residual, on, ends, counts, singular, redundant)


def _carried(s: System, acceleration: jax.Array) -> System:
    """The system for a moving world: the world's columns times its acceleration move to the right-hand side [Y 2.3]."""
    target = s.target
    for column, side in enumerate((s.near, s.far)):
        on_world = np.array([end[column] < 0 for end in s.ends])
        moved = jnp.where(jnp.asarray(on_world)[:, None, None], side, 0.0) @ acceleration
        target = target - moved
    return replace(s, target=target)
