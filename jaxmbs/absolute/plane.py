"""Mechanisms that move in a plane: three coordinates per body and point-line equations [Y 2.5].

Bodies and joint frames have axes normal to the plane, so that plane vectors are two components of spatial ones. A frame
whose axis k points along the normal uses its axes (k + 1, k + 2) modulo 3, and one whose axis k points against it
uses (k + 2, k + 1).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.absolute import equations
from jaxmbs.absolute.bodies import table
from jaxmbs.absolute.equations import Body, Equation
from jaxmbs.absolute.joints import Arc, arcs
from jaxmbs.absolute.space import Frames
from jaxmbs.absolute.system import Rows
from jaxmbs.dynamics.formulations.system import apply
from jaxmbs.model import Model, ModelError
from jaxmbs.model.joints.base import InPlane
from jaxmbs.model.parameters import Values
from jaxmbs.model.structure import WORLD, Structure
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import is_number

Axes = tuple[int, int]


@dataclass(frozen=True)
class Plane:
    """The plane in which a mechanism moves. bodies: plane axes of every body and, last, of the world; second, first: plane
    axes of the joint frames on the second and first body of every joint; normals: the axis of each body that is normal to
    the plane; arcs: the joints.
    """

    bodies: tuple[Axes, ...]
    second: tuple[Axes, ...]
    first: tuple[Axes, ...]
    normals: tuple[int, ...]
    arcs: tuple[Arc, ...]


class _NotPlanar(Exception):
    pass


def plane_of(model: Model) -> Plane:
    """The plane of a mechanism, determined from its structure. Raises ModelError if there is none."""
    reasons, values = [], model.values()
    for k, name in enumerate("xyz"):
        try:
            return _plane(model.structure, values, Vector3.of([int(i == k) for i in range(3)]))
        except _NotPlanar as reason:
            reasons.append(f"in the plane normal to {name}, {reason}")
    raise ModelError(
        f"absolute coordinates in a plane: model {model.name!r} does not move in a coordinate plane of the world: "
        + "; ".join(reasons)
        + ". Use planar=False, or give axes and poses along the coordinate axes"
    )


def _plane(s: Structure, values: Values, world: Vector3) -> Plane:
    normal, second, first, kept = {-1: world}, [], [], []
    for arc in arcs(s):
        along = _frame(values, arc.frames[0]).T @ normal[arc.first]
        motion = _motion(arc, values, _axis(arc.name, along)[0])
        if arc.second not in normal:
            normal[arc.second] = _frame(values, arc.frames[1]) @ along
        own = _frame(values, arc.frames[1]).T @ normal[arc.second]
        if _axis(arc.name, own) != _axis(arc.name, along):
            raise _NotPlanar(f"the frames of joint {arc.name!r} are rotated out of the plane")
        count = _lines(motion) + (not motion.turns)
        if len(arc.kept) < count:
            raise _NotPlanar(f"loop {arc.name!r} repeats constraint equations of the other joints of its loop")
        first.append(_basis(_axis(arc.name, along)))
        second.append(_basis(_axis(arc.name, own)))
        kept.append(replace(arc, kept=tuple(range(count))))
    axes = [_axis(s.links[i].body if i >= 0 else WORLD, normal[i]) for i in (*range(len(s.links)), -1)]
    bases, normals = tuple(map(_basis, axes)), tuple(k for k, _ in axes[:-1])
    return Plane(bases, tuple(second), tuple(first), normals, tuple(kept))


def _frame(values: Values, name: str) -> Any:
    return values[f"{name}.rotation"]


def _motion(arc: Arc, values: Values, normal: int) -> InPlane:
    """How the joint moves in the plane normal to an axis of its frames."""
    found = arc.joint.in_plane(values.of(arc.name, arc.joint.numbers), normal)
    if isinstance(found, str):
        raise _NotPlanar(f"joint {arc.name!r} {found}")
    return found


def _lines(motion: InPlane) -> int:
    """Number of line equations of the joint: 2 if it has a fixed point, 1 if it slides along a line, 0 if along two."""
    return 2 - len(motion.slides)


def _axis(name: str, v: Vector3) -> tuple[int, int]:
    """(k, sign) of a vector that is structurally along coordinate axis k."""
    for k, x in enumerate(v):
        if is_number(x) and x in (1, -1):
            return k, int(x)
    raise _NotPlanar(f"{name!r} is not known to have a coordinate axis normal to the plane")


def _basis(axis: tuple[int, int]) -> Axes:
    k, sign = axis
    return ((k + 1) % 3, (k + 2) % 3) if sign > 0 else ((k + 2) % 3, (k + 1) % 3)


def in_plane(p: Plane, bodies: Body) -> Body:
    """The bodies of `state_of` in the plane: r, v along the world's axes, omega about the normal."""
    of = np.array(p.bodies)
    world, normal = of[-1], _signed_normals(p)
    A = bodies.A[:, world][np.arange(len(of))[:, None, None], np.arange(2)[None, :, None], of[:, None, :]]
    omega = (bodies.omega * jnp.asarray(normal, bodies.r.dtype)).sum(axis=1)
    return Body(bodies.r[:, world], A, omega, bodies.v[:, world])


def _signed_normals(p: Plane) -> np.ndarray:
    """(n + 1, 3): the normal in the axes of each body."""
    u, w = (np.eye(3)[np.array(p.bodies)[:, c]] for c in range(2))
    return np.cross(u, w)


def projected(p: Plane, wrenches: jax.Array) -> jax.Array:
    """(n, 3): forces in the plane and torques about the normal, of wrenches (n, 6) = (torque, body axes; force)."""
    normal = jnp.asarray(_signed_normals(p)[:-1], wrenches.dtype)
    moment = (wrenches[:, :3] * normal).sum(axis=1, keepdims=True)
    return jnp.concatenate([wrenches[:, 3:][:, np.array(p.bodies[-1])], moment], axis=1)


def joint_rows(p: Plane, s: Structure, values: Values, bodies: Body) -> Rows:
    """All equations of the joints; bodies: from `in_plane`. Forces are along the axes of the second body's frame."""
    dtype = bodies.r.dtype
    frames = Frames(p.arcs, s, values, dtype)
    out = Rows(len(p.arcs), 3, dtype)
    lines, turns, directions = [], [], []
    for a, arc in enumerate(p.arcs):
        motion = _motion(arc, values, 3 - sum(p.second[a]))
        found: list[tuple[Any, Any]] = [(1, 0), (0, 1)][: _lines(motion)]
        if len(found) == 1:  # the line along which the joint slides
            (slide,) = motion.slides
            u, w = (tuple(slide)[k] for k in p.second[a])
            found = [(-w, u)]
        lines += [(a, k) for k in range(len(found))]
        directions += found
        if not motion.turns:
            turns.append((a, len(found)))
    i, j = (functools.partial(_flat, frames, p, side) for side in ("second", "first"))
    if lines:
        arc, row = np.array(lines).T
        (body_i, C_i, p_i), (body_j, _, p_j) = i(arc, bodies), j(arc, bodies)
        n = -apply(C_i, table(directions, 2, dtype))
        out.put(arc, row, equations.point_line(body_i, body_j, n, p_i, p_j))
    if turns:
        arc, row = np.array(turns).T
        (body_i, C_i, _), (body_j, C_j, _) = i(arc, bodies), j(arc, bodies)
        relative = jnp.swapaxes(body_j.A @ C_j, 1, 2) @ body_i.A @ C_i
        e = equations.equal_angles(body_j, body_i, relative[:, 1, 0])
        out.put(arc, row, Equation(e.Q_j, e.Q_i, e.b, e.residual))
    return out


def _flat(f: Frames, p: Plane, side: str, arc: Sequence[int], bodies: Body) -> tuple[Body, jax.Array, jax.Array]:
    """For the given arcs: the body on one side, and the joint frame on it, axes (e, 2, 2) and origin (e, 2)."""
    C, origin, axes = (f.C_i, f.p_i, p.second) if side == "second" else (f.C_j, f.p_j, p.first)
    body = np.array([getattr(p.arcs[a], side) for a in arc])
    rows, columns, e = np.array(p.bodies)[body], np.array(axes)[arc], np.arange(len(arc))
    flat = C[arc][e[:, None, None], rows[:, :, None], columns[:, None, :]]
    return bodies.at(body), flat, origin[arc][e[:, None], rows]
