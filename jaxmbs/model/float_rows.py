"""Residuals and Jacobian of the constraint rows at a configuration, in plain floats without a backend or compilation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxmbs.model.constraint_rows import between_joints, every_row, sites
from jaxmbs.model.parameters import Values
from jaxmbs.model.structure import WORLD, Structure
from jaxmbs.spatial import IDENTITY, ZERO_MOTION, Motion, Transform

if TYPE_CHECKING:
    from jaxmbs.model.model import Model

Coordinates = Sequence[Sequence[float]]  # by link


def owners(s: Structure) -> list[str]:
    """The name of the constraint of each row. Function constraints, which need a backend, have no rows here."""
    return [site.name for site in sites(s) for _ in site.kept]


def rows_at(
    model: Model, q: Coordinates, values: Values | None = None, t: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(residuals (rows,), Jacobian (rows, nv), whether each row is holonomic (rows,)) at time t, in the order of `owners`.

    The residual of a nonholonomic row is 0.
    """
    s, values = model.structure, values or model.values()
    placed, paths = _placed(s, values, q, t)
    residuals, jacobian = [], []
    for site in sites(s):
        if site.is_function:
            continue
        p, J = values.of(site.name, site.formulas.numbers), [[0.0] * s.nv for _ in site.kept]
        if site.on_joints:
            found = between_joints(site, p, [q[i][0] for i in site.links], [0.0] * len(site.links))
            residuals += found.residual
            for i, coefficients in zip(site.links, found.ends, strict=True):
                for row, x in zip(J, coefficients, strict=True):
                    row[s.v_slices[i].start] = x
        else:
            a, b = (placed[body] for body in site.bodies)
            if site.poses:
                a, b = (W @ values.pose(pose) for W, pose in zip((a, b), site.poses, strict=True))
            first, second = (paths[body] for body in site.bodies)
            every = every_row(site.formulas, p, a.inverse() @ b, ZERO_MOTION, t)
            residuals += [every[k].residual for k in site.kept]
            for row, r in zip(J, site.kept, strict=True):
                F = b.force_to_parent(every[r].wrench)
                for path, sign in ((first, -1), (second, 1)):
                    for k, S in path.items():
                        if first.get(k) is not second.get(k):
                            row[k] += (S @ F) * sign
        jacobian += J
    gaps = np.array([0.0 if x is None else x for x in residuals], float)
    holonomic = np.array([x is not None for x in residuals], bool)
    return gaps, np.array(jacobian, float).reshape(-1, s.nv), holonomic


def _placed(
    s: Structure, values: Values, q: Coordinates, t: float
) -> tuple[dict[str, Transform], dict[str, dict[int, Motion]]]:
    """(placements of the bodies in the world, for each body its twist per degree of freedom that moves it, in the world
    frame)."""
    placed: dict[str, Transform] = {WORLD: IDENTITY}
    paths: dict[str, dict[int, Motion]] = {WORLD: {}}
    for link, own_q, along in zip(s.links, q, s.motion_v, strict=True):
        of_motion = q[link.parent] if link.joint.follows else own_q
        m = link.joint.motion(
            values.of(link.name, link.joint.numbers), of_motion, [0.0] * (along.stop - along.start), t
        )
        parent = s.links[link.parent].body if link.parent >= 0 else WORLD
        W = placed[parent] @ values.pose(f"{link.name}.parent_pose") @ m.placement
        own = {} if link.joint.elastic else {k: W.motion_to_parent(S) for k, S in enumerate(m.S, along.start)}
        placed[link.body] = W @ values.pose(f"{link.name}.child_pose").inverse()
        paths[link.body] = paths[parent] | own
    return placed, paths


def near_neutral(s: Structure, dice: random.Random, reach: float) -> list[list[float]]:
    """Random coordinates by link, each within `reach` of the neutral one."""
    return [[c + dice.uniform(-reach, reach) for c in link.joint.neutral()] for link in s.links]


def moved(model: Model, q: Coordinates, step: np.ndarray, values: Values) -> list[list[float]]:
    """The configuration after a first-order step along a tangent vector (nv,)."""
    s, out = model.structure, []
    for link, own, part in zip(s.links, q, s.v_slices, strict=True):
        if not link.joint.nq:
            out.append(own)
            continue
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
