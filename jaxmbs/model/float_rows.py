"""Residuals and Jacobian of the constraint rows at a configuration, in plain floats without a backend or compilation."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.model.constraints import Coupling, FunctionConstraint
from jaxmbs.model.parameters import Values
from jaxmbs.model.rows import Row
from jaxmbs.model.structure import WORLD, ConstraintElement, LoopJoint, Structure
from jaxmbs.spatial import IDENTITY, ZERO_MOTION, Motion, Transform

if TYPE_CHECKING:
    from jaxmbs.model.model import Model

Coordinates = Sequence[Sequence[float]]  # by link


def owners(s: Structure) -> list[str]:
    """The name of the constraint of each row. Function constraints, which need a backend, have no rows here."""
    loops = [loop.name for loop in s.loops for _ in loop.kept]
    return loops + [c.name for c in s.constraints for _ in range(getattr(c.element, "count", 0))]


def rows_at(
    model: Model, q: Coordinates, values: Values | None = None, t: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(residuals (rows,), Jacobian (rows, nv), whether each row is holonomic (rows,)) at time t, in the order of `owners`.

    The residual of a nonholonomic row is 0.
    """
    s, values = model.structure, values or model.values()
    placed, columns, paths = _placed(s, values, q, t)
    residuals, jacobian, holonomic = [], [], []

    def take(row: Row, a: str, b: str, frame_b: Transform) -> None:
        F = frame_b.force_to_parent(row.wrench)
        J = [0.0] * s.nv
        for k in paths[a] ^ paths[b]:
            J[k] = (columns[k] @ F) * (1 if k in paths[b] else -1)
        jacobian.append(J)
        residuals.append(0.0 if row.residual is None else row.residual)
        holonomic.append(row.residual is not None)

    for loop in s.loops:
        for row, frame in _of_loop(loop, values, placed, t):
            take(row, loop.body_a, loop.body_b, frame)
    for c in s.constraints:
        e: Any = c.element
        if isinstance(e, Coupling):
            residual, J = _of_coupling(s, c, values, q)
            jacobian.append(J)
            residuals.append(residual)
            holonomic.append(True)
        elif not isinstance(e, FunctionConstraint):
            own, *carrier = (getattr(e, f) for f in e.bodies)
            a = carrier[0] if carrier else WORLD
            for row in e.rows(values.of(c.name, e.numbers), placed[a].inverse() @ placed[own], ZERO_MOTION):
                take(row, a, own, placed[own])
    n = len(jacobian)
    return np.array(residuals, float), np.array(jacobian, float).reshape(n, s.nv), np.array(holonomic, bool)


def _of_loop(
    loop: LoopJoint, values: Values, placed: dict[str, Transform], t: float
) -> Iterable[tuple[Row, Transform]]:
    """The rows of the loop that are in `kept`, each with the placement of frame b in the world."""
    a, b = (
        placed[body] @ _pose(values, f"{loop.name}.{pose}")
        for body, pose in ((loop.body_a, "pose_a"), (loop.body_b, "pose_b"))
    )
    every = loop.joint.rows(values.of(loop.name, loop.joint.numbers), a.inverse() @ b, ZERO_MOTION, t)
    return [(every[k], b) for k in loop.kept]


def _of_coupling(s: Structure, c: ConstraintElement, values: Values, q: Coordinates) -> tuple[float, list[float]]:
    """(residual, row of the Jacobian) of a coupling."""
    e: Any = c.element
    p, own, J = values.of(c.name, e.numbers), s.find_joint(e.joint), [0.0] * s.nv
    J[s.v_slices[own].start] = 1.0
    if e.driver is None:
        return q[own][0] - p["coefficients"][0], J
    driver = s.find_joint(e.driver)
    value, slope, _ = e.followed(p, q[driver][0])
    J[s.v_slices[driver].start] -= slope
    return q[own][0] - value, J


def _placed(
    s: Structure, values: Values, q: Coordinates, t: float
) -> tuple[dict[str, Transform], list[Motion], dict[str, frozenset[int]]]:
    """(placements of the bodies in the world, twist of each degree of freedom in the world frame, for each body the
    indices of the degrees of freedom that move it)."""
    placed, columns, paths = {WORLD: IDENTITY}, [], {WORLD: frozenset[int]()}
    for link, own_q in zip(s.links, q, strict=True):
        m = link.joint.motion(values.of(link.name, link.joint.numbers), own_q, [0.0] * link.joint.nv, t)
        parent = s.links[link.parent].body if link.parent >= 0 else WORLD
        W = placed[parent] @ _pose(values, f"{link.name}.parent_pose") @ m.placement
        own = range(len(columns), len(columns) + link.joint.nv)
        columns += [W.motion_to_parent(S) for S in m.S]
        placed[link.body] = W @ _pose(values, f"{link.name}.child_pose").inverse()
        paths[link.body] = paths[parent] | frozenset(own)
    return placed, columns, paths


def _pose(values: Values, name: str) -> Transform:
    return Transform(values[f"{name}.rotation"], values[f"{name}.position"])


def near_neutral(s: Structure, dice: random.Random, reach: float) -> list[list[float]]:
    """Random coordinates by link, each within `reach` of the neutral one."""
    return [[c + dice.uniform(-reach, reach) for c in link.joint.neutral()] for link in s.links]


def moved(model: Model, q: Coordinates, step: np.ndarray, values: Values) -> list[list[float]]:
    """The configuration after a first-order step along a tangent vector (nv,)."""
    s, out = model.structure, []
    for link, own, part in zip(s.links, q, s.v_slices, strict=True):
        v = step[part].tolist()
        motion = link.joint.motion(values.of(link.name, link.joint.numbers), own, v, 0.0)
        out.append([c + r for c, r in zip(own, link.joint.rates(own, v, motion), strict=True)])
    return out


def consistent(model: Model, q: Coordinates) -> Coordinates | None:
    """A configuration near q that satisfies the holonomic rows, found by a damped Newton method; None if none is found.

    The damping decreases with the remaining residual: steps stay small where rows are nearly dependent, and become Newton
    steps near the solution. They converge slowly only where the rows lose rank at the solution itself, as in a
    parallelogram that lies flat. Such a configuration does not represent others, so the result is None then.
    """
    values = model.values()
    before, slow = np.inf, 0
    for _ in range(40):
        residual, J, holonomic = rows_at(model, q, values)
        residual, J = residual[holonomic], J[holonomic]
        gap = float(np.abs(residual).max(initial=0.0))
        if gap < 1e-11:
            return q
        slow = slow + 1 if 0.1 * before < gap < 0.01 else 0
        if slow > 4:
            return None
        before, S = gap, J @ J.T
        if not np.trace(S) > 1e-24:
            return None  # no joint can close the gap
        S += np.diag(np.full(len(S), np.trace(S) / len(S) * max(0.01 * min(gap, 1.0) ** 2, 1e-14)))
        step = -J.T @ np.linalg.solve(S, residual)
        q = moved(model, q, step * min(1.0, 0.5 / max(np.abs(step).max(initial=0.0), 1e-300)), values)
    return None
