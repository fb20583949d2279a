"""The equations of the joints in space; all equations of the same kind are evaluated in one batch.

They are the textbook's [Y 2.3-2.5] and not the rows of `jaxmbs.model.constraint_rows`: tests compare both derivations,
and one batch per kind of equation takes about half the operations of one per kind of joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.absolute import equations
from jaxmbs.absolute.bodies import table
from jaxmbs.absolute.equations import Body, Equation
from jaxmbs.absolute.joints import Arc, PointRow, TurnRow, rows
from jaxmbs.absolute.system import Rows
from jaxmbs.dynamics.formulations.system import apply
from jaxmbs.model.joints.equations import ConstantAngle, Screw
from jaxmbs.model.parameters import Values
from jaxmbs.model.structure import Structure
from jaxmbs.spatial import ZERO3, Vector3


class Frames:
    """The frames of the joints on their second (i) and first (j) bodies: axes C (a, 3, 3) to body axes, origins p (a, 3)
    from the centre of mass in body axes."""

    def __init__(self, arcs: Sequence[Arc], s: Structure, values: Values, dtype: Any):
        sides = [self._side(arcs, s, values, dtype, side) for side in (1, 0)]
        (self.C_i, self.p_i), (self.C_j, self.p_j) = sides

    @staticmethod
    def _side(arcs: Sequence[Arc], s: Structure, values: Values, dtype: Any, side: int) -> tuple[jax.Array, jax.Array]:
        out = []
        for arc in arcs:
            body, frame = (arc.first, arc.second)[side], arc.frames[side]
            com = ZERO3 if body < 0 else values[f"{s.links[body].body}.com"]
            out.append((*values[f"{frame}.rotation"], *(values[f"{frame}.position"] - com)))
        x = table(out, 12, dtype)
        return x[:, :9].reshape(-1, 3, 3), x[:, 9:]


class _Batch:
    """Equations of one kind: arc and row of each, and the components of its vectors in the joint frames."""

    def __init__(self) -> None:
        self.arc: list[int] = []
        self.row: list[int] = []
        self.vectors: list[list[Any]] = []

    def add(self, arc: int, row: int, *scalars: Any) -> None:
        self.arc.append(arc)
        self.row.append(row)
        self.vectors.append(list(scalars))

    def table(self, dtype: Any) -> tuple[np.ndarray, np.ndarray, jax.Array]:
        return np.asarray(self.arc), np.asarray(self.row), table(self.vectors, len(self.vectors[0]), dtype)


def joint_rows(arcs: Sequence[Arc], s: Structure, values: Values, bodies: Body) -> tuple[Rows, Frames]:
    """All equations of the joints; bodies: the state of all bodies and, last, of the world, as from `state_of`."""
    dtype = bodies.r.dtype
    frames = Frames(arcs, s, values, dtype)
    points, turns, angles, screws = (_Batch() for _ in range(4))
    for a, arc in enumerate(arcs):
        for k, row in enumerate(rows(arc, values.of(arc.name, arc.joint.numbers))):
            match row:
                case PointRow(d):
                    points.add(a, k, *d)
                case TurnRow(d, axis):
                    turns.add(a, k, *d, *(_outer(axis) if axis else (0.5, 0, 0, 0, 0.5, 0, 0, 0, 0.5)))
                case ConstantAngle(axis_1, axis_2):
                    angles.add(a, k, *axis_1, *axis_2, axis_1 @ axis_2)
                case Screw(axis, pitch):
                    screws.add(a, k, *axis, pitch)
    out = Rows(len(arcs), 6, dtype)
    for batch, equation in ((points, _point), (turns, _turn), (angles, _angle), (screws, _screw)):
        if batch.arc:
            arc, row, x = batch.table(dtype)
            i, j = (bodies.at(np.array([getattr(arcs[a], side) for a in arc])) for side in ("second", "first"))
            out.put(arc, row, equation(i, j, arc, frames, x))
    return out, frames


def _outer(a: Vector3) -> list[Any]:
    return [x * y for x in a for y in a]


def _point(i: Body, j: Body, arc: np.ndarray, f: Frames, d: jax.Array) -> Equation:
    return equations.point_plane(i, j, -apply(f.C_i[arc], d), f.p_i[arc], f.p_j[arc])


def _relative(i: Body, j: Body, arc: np.ndarray, f: Frames) -> jax.Array:
    """Rotation (e, 3, 3) of the joint frame on j into that on i."""
    return jnp.swapaxes(i.A @ f.C_i[arc], 1, 2) @ j.A @ f.C_j[arc]


def _turn(i: Body, j: Body, arc: np.ndarray, f: Frames, x: jax.Array) -> Equation:
    turned = equations.small_rotation(_relative(i, j, arc, f), x[:, 3:].reshape(-1, 3, 3))
    return equations.relative_rotation(i, j, -apply(f.C_i[arc], x[:, :3]), apply(f.C_i[arc], turned))


def _angle(i: Body, j: Body, arc: np.ndarray, f: Frames, x: jax.Array) -> Equation:
    return equations.constant_angle(i, j, -apply(f.C_i[arc], x[:, 3:6]), apply(f.C_j[arc], x[:, :3]), -x[:, 6])


def _screw(i: Body, j: Body, arc: np.ndarray, f: Frames, x: jax.Array) -> Equation:
    """Displacement minus pitch times angle. The angle is known only modulo 2 pi, so that the residual is periodic."""
    a, pitch = x[:, :3], x[:, 3]
    C = _relative(i, j, arc, f)
    turned = equations.small_rotation(C, 0.5 * jnp.eye(3, dtype=a.dtype)[None])
    turn = equations.relative_rotation(i, j, -apply(f.C_i[arc], a), apply(f.C_i[arc], turned))
    e = equations.combined(_point(i, j, arc, f, a), turn, -pitch)
    flat = pitch == 0
    step, cosine = jnp.where(flat, 1.0, pitch), (jnp.trace(C, axis1=1, axis2=2) - 1) / 2
    advance = e.residual + pitch * turn.residual
    lag = step * (jnp.sin(advance / step) * cosine - jnp.cos(advance / step) * turn.residual)
    return e._replace(residual=jnp.where(flat, advance, lag))
