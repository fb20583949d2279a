"""Loops whose constraints depend on one another, found in plain floats when a mechanism is built."""

from __future__ import annotations

import dataclasses
import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmbs.model.errors import ModelWarning
from jaxmbs.model.model import Model
from jaxmbs.model.structure import WORLD, Structure
from jaxmbs.spatial import IDENTITY, ZERO_MOTION, Transform


def without_dependent_rows(model: Model) -> Model:
    """The model less the rows of cut joints that depend on others in every configuration and for all numbers.

    Such are the out-of-plane rows of a revolute joint in a planar loop: they are dependent by the pattern of zeros
    alone. A dependence that hangs on the values of the numbers stays and is handled while running.
    """
    s = model.structure
    if not s.loops or not all(x.joint.formulas for x in (*s.links, *s.loops)):
        return model
    dice = random.Random(1)
    samples = []
    for _ in range(3):
        factors = np.array([1 + dice.uniform(-0.3, 0.3) for _ in model.numbers])
        varied = dataclasses.replace(model, numbers=model.numbers * factors)
        samples.append(_loop_rows(varied, _near(s, dice, 1.0))[1])
    chosen = [_Independent(s.nv) for _ in samples]
    loops, first = [], 0
    for loop in s.loops:
        kept = []
        for row in loop.kept:
            rests = [c.rest(J[first + row]) for c, J in zip(chosen, samples, strict=True)]
            if any(rest is not None for rest in rests):
                kept.append(row)
                for c, rest in zip(chosen, rests, strict=True):
                    c.take(rest)
        first += len(loop.kept)
        loops.append(dataclasses.replace(loop, kept=tuple(kept)))
    if tuple(loops) == s.loops:
        return model
    return dataclasses.replace(model, structure=dataclasses.replace(s, loops=tuple(loops)))


def warn_of_redundancy(model: Model) -> bool:
    """Warn, with names, of constraints that depend on others at consistent configurations, and of an immovable whole.

    Returns whether there are such constraints. Says nothing where no consistent configuration is found near the neutral
    one, or where only single configurations are singular (a parallelogram lying flat).
    """
    s = model.structure
    if not s.loops or s.constraints or not all(x.joint.formulas for x in (*s.links, *s.loops)):
        return False
    dice, null, freedom = random.Random(2), [], s.nv
    for _ in range(2):
        q = _consistent(model, _near(s, dice, 0.1))
        if q is None:
            return False
        J = _loop_rows(model, q)[1]
        sizes = np.linalg.svd(J, compute_uv=False)
        rank = int(np.sum(sizes > 1e-7 * sizes[0])) if len(sizes) else 0
        freedom = min(freedom, s.nv - rank)
        null.append(np.linalg.svd(J)[0][:, rank:] if rank < len(J) else np.zeros((len(J), 0)))
    redundant = min(z.shape[1] for z in null) > 0
    if redundant:
        z = min(null, key=lambda z: z.shape[1])
        owner = [loop.name for loop in s.loops for _ in loop.kept]
        loops = {name for name, row in zip(owner, z, strict=True) if np.abs(row).max() > 1e-6}
        warnings.warn(
            f"mechanism {s.name!r}: {z.shape[1]} of {len(owner)} loop constraints depend on the others, in the loop of "
            f"{_joints_of(s, loops)}; the motion is unique, but not the reactions (the multipliers are those of least "
            "norm); a joint with more freedom in the loop removes the redundancy",
            ModelWarning,
            stacklevel=3,
        )
    if not freedom:
        warnings.warn(f"mechanism {s.name!r} cannot move: its loops leave no freedom", ModelWarning, stacklevel=3)
    return redundant


def _joints_of(s: Structure, loops: set[str]) -> list[str]:
    """The tree joints and cut joints that form the loops."""
    tree = set()
    for loop in s.loops:
        if loop.name in loops:
            a, b = (set(_path(s, body)) for body in (loop.body_a, loop.body_b))
            tree |= a ^ b
    return [link.name for link in s.links if link.name in tree] + [x.name for x in s.loops if x.name in loops]


def _path(s: Structure, body: str) -> list[str]:
    out, i = [], s.body_index[body]
    while i >= 0:
        out.append(s.links[i].name)
        i = s.links[i].parent
    return out


def _near(s: Structure, dice: random.Random, reach: float) -> list[list[float]]:
    """Coordinates by link, at random about the neutral ones."""
    return [[c + dice.uniform(-reach, reach) for c in link.joint.neutral()] for link in s.links]


def _consistent(model: Model, q: list[list[float]]) -> list[list[float]] | None:
    """A configuration near q that meets the loops, by damped steps of Newton's method; None if there is none.

    Damped by the gap that is left, the steps stay small where rows are nearly dependent, and are Newton's near the end.
    They lose their speed only where rows lose their rank right there, as in a parallelogram that comes to lie flat: such a
    configuration would say nothing of others, and None says so.
    """
    s, values = model.structure, model.values()
    before, slow = np.inf, 0
    for _ in range(40):
        residual, J = _loop_rows(model, q, values)
        gap = float(np.abs(residual).max(initial=0.0))
        if gap < 1e-11:
            return q
        slow = slow + 1 if 0.1 * before < gap < 0.01 else 0
        if slow > 4:
            return None
        before, S = gap, J @ J.T
        S += np.diag(np.full(len(S), np.trace(S) / len(S) * max(0.01 * min(gap, 1.0) ** 2, 1e-14)))
        step = -J.T @ np.linalg.solve(S, residual)
        step *= min(1.0, 0.5 / max(np.abs(step).max(initial=0.0), 1e-300))
        moved = []
        for link, own, part in zip(s.links, q, s.v_slices, strict=True):
            v = step[part].tolist()
            motion = link.joint.motion(values.of(link.name, link.joint.numbers), own, v, 0.0)
            moved.append([c + r for c, r in zip(own, link.joint.rates(own, v, motion), strict=True)])
        q = moved
    return None


class _Independent:
    """Rows as an orthonormal basis, to which one after the other is added."""

    def __init__(self, n: int):
        self.basis, self.count, self.largest = np.zeros((n, n)), 0, 1.0

    def rest(self, row: np.ndarray) -> np.ndarray | None:
        """What of a row the others do not span; None if nothing."""
        self.largest = max(self.largest, float(np.abs(row).max(initial=0.0)))
        Q = self.basis[: self.count]
        for _ in range(2):  # once more, for what rounding left
            row = row - Q.T @ (Q @ row)
        return row if float(np.linalg.norm(row)) > 1e-9 * self.largest else None

    def take(self, rest: np.ndarray | None) -> None:
        if rest is not None:
            self.basis[self.count] = rest / np.linalg.norm(rest)
            self.count += 1


def _loop_rows(model: Model, q: Sequence[Sequence[float]], values: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """(residuals, Jacobian (rows, nv)) of the rows that the cut joints keep, for coordinates by link."""
    s, values = model.structure, values or model.values()

    def pose(name: str) -> Transform:
        return Transform(values[f"{name}.rotation"], values[f"{name}.position"])

    placed, columns, paths = {WORLD: IDENTITY}, [], {WORLD: frozenset()}
    for link, own_q in zip(s.links, q, strict=True):
        m = link.joint.motion(values.of(link.name, link.joint.numbers), own_q, [0.0] * link.joint.nv, 0.0)
        parent = s.links[link.parent].body if link.parent >= 0 else WORLD
        W = placed[parent] @ pose(f"{link.name}.parent_pose") @ m.placement
        own = range(len(columns), len(columns) + link.joint.nv)
        columns += [W.motion_to_parent(S) for S in m.S]
        placed[link.body] = W @ pose(f"{link.name}.child_pose").inverse()
        paths[link.body] = paths[parent] | frozenset(own)
    residuals, out = [], []
    for loop in s.loops:
        a, b = placed[loop.body_a] @ pose(f"{loop.name}.pose_a"), placed[loop.body_b] @ pose(f"{loop.name}.pose_b")
        numbers = values.of(loop.name, loop.joint.numbers)
        every = loop.joint.rows(numbers, a.inverse() @ b, ZERO_MOTION, 0.0)
        for row in (every[k] for k in loop.kept):
            F = b.force_to_parent(row.wrench)
            residuals.append(row.residual)
            J = [0.0] * s.nv
            for k in paths[loop.body_a] ^ paths[loop.body_b]:
                J[k] = (columns[k] @ F) * (1 if k in paths[loop.body_b] else -1)
            out.append(J)
    return np.array(residuals, float), np.array(out, float).reshape(len(out), s.nv)
