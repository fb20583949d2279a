"""Residuals and Jacobian of the constraint rows at a configuration, in plain floats without a backend or compilation."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from jaxmbs.dynamics.constrained.order import common
from jaxmbs.dynamics.constrained.rows import kinematics, rows
from jaxmbs.dynamics.constrained.written import spread
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import displaced
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model.constraint_rows import sites
from jaxmbs.model.structure import Structure

Coordinates = Sequence[float]


def owners(s: Structure) -> list[str]:
    """The name of the constraint of each row. Function constraints, which need a backend, have no rows here."""
    return [site.name for site in sites(s) for _ in site.kept]


def rows_at(tree: Tree, q: Coordinates, t: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(residuals (rows,), Jacobian (rows, nv), whether each row is holonomic (rows,)) at time t, in the order of `owners`.

    tree: of floats; the residual of a nonholonomic row is 0.
    """
    s, found = tree.structure, []
    state, parents = State(tree, list(q), [0.0] * s.nv, t), [link.parent for link in s.links]
    motions = kinematics(state)
    for site in sites(s):
        if not site.is_function:
            root = -1 if site.on_joints else common(parents, *site.links)
            own = rows(state, [site], motions)
            found += [spread(state, site, own, r, root) for r in range(site.rows)]
    J = np.array([[float(x) for x in row[0]] for row in found], float).reshape(-1, s.nv)
    return np.array([float(row[3]) for row in found]), J, np.array([row[4] for row in found], bool)


def near_neutral(s: Structure, dice: random.Random, reach: float) -> list[float]:
    """Random coordinates, each within `reach` of the neutral one."""
    return [c + dice.uniform(-reach, reach) for link in s.links for c in link.joint.neutral()]


def moved(tree: Tree, q: Coordinates, step: np.ndarray) -> list[float]:
    """The configuration after a step along a tangent vector (nv,)."""
    return [float(x) for x in displaced(tree, q, step.tolist())]


def consistent(tree: Tree, q: Coordinates) -> Coordinates | None:
    """A configuration near q that satisfies the holonomic rows, found by a damped Newton method; None if none is found.

    The damping decreases with the remaining residual: steps stay small where rows are nearly dependent, and become Newton
    steps near the solution. They converge slowly only where the rows lose rank at the solution itself, as in a
    parallelogram that lies flat. Such a configuration does not represent others, so the result is None then.
    """
    before, slow = np.inf, 0
    for _ in range(40):
        residual, J, holonomic = rows_at(tree, q)
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
        q = moved(tree, q, step * min(1.0, 0.5 / max(np.abs(step).max(initial=0.0), 1e-300)))
    return None
