"""Checks of a whole model in plain floats: no backend, nothing compiled."""

from __future__ import annotations

import dataclasses
import random

import numpy as np

from jaxmbs.model.constraints import cuts
from jaxmbs.model.errors import ModelError
from jaxmbs.model.joints.general import General
from jaxmbs.model.model import Model
from jaxmbs.model.structure import WORLD
from jaxmbs.spatial import IDENTITY, ZERO_MOTION, ArticulatedInertia, RigidInertia, Transform
from jaxmbs.spatial.inertias import ZERO_INERTIA

SINGULAR = 1e-13  # of the joint's composite inertia; rounding leaves about 1e-16


def check_moves_mass(model: Model) -> None:
    """Raise ModelError if some motion of the tree moves no mass, so that the mass matrix is singular.

    The articulated inertias are eliminated joint by joint at a random configuration [Y 3.174, 3.176]. With General
    joints, whose functions would need a backend, only the mass of each subtree is checked.
    """
    s, values = model.structure, model.values()
    numeric = not any(isinstance(link.joint, General) for link in s.links)
    dice = random.Random(0)
    n = len(s.links)
    rigid, articulated = [ZERO_INERTIA] * n, [ZERO_INERTIA.articulated()] * n
    for i in reversed(range(n)):
        link = s.links[i]
        child = Transform(values[f"{link.name}.child_pose.rotation"], values[f"{link.name}.child_pose.position"])
        body = RigidInertia.at_com(*(values[f"{link.body}.{f}"] for f in ("mass", "com", "inertia")))
        body = body.to_parent(child.inverse())
        rigid[i] += body
        articulated[i] += body.articulated()
        if link.joint.nv and not any((rigid[i].mass, *rigid[i].inertia)):
            raise _massless(link.name, link.body)
        if not numeric:
            if link.parent >= 0:
                rigid[link.parent] += rigid[i]
            continue
        numbers = values.of(link.name, link.joint.numbers)
        q = [c + dice.uniform(-1, 1) for c in link.joint.neutral()]
        motion = link.joint.motion(numbers, q, [0.0] * link.joint.nv, 0.0)
        reduced: ArticulatedInertia = articulated[i]
        for S in reversed(motion.S):
            U = reduced @ S
            D, whole = S @ U, S @ (rigid[i] @ S)
            if SINGULAR * whole >= D:
                raise _massless(link.name, link.body)
            reduced = reduced.minus_outer(U, U * (1 / D), S, True)
        if link.parent >= 0:
            up = s.links[link.parent].name
            base = Transform(values[f"{up}.child_pose.rotation"], values[f"{up}.child_pose.position"]).inverse()
            fixed = Transform(values[f"{link.name}.parent_pose.rotation"], values[f"{link.name}.parent_pose.position"])
            X = base @ fixed @ motion.placement
            rigid[link.parent] += rigid[i].to_parent(X)
            articulated[link.parent] += reduced.to_parent(X)


def _massless(joint: str, body: str) -> ModelError:
    return ModelError(
        f"joint {joint!r} has a motion that moves no mass, so the mass matrix is singular; give body {body!r} (or a "
        "body that hangs on it) mass and inertia, or remove the freedom"
    )


def without_dependent_rows(model: Model) -> Model:
    """The model less the rows of cut joints that depend on others in every configuration and for all numbers.

    Such are the out-of-plane rows of a revolute joint in a planar loop: they are dependent by the pattern of zeros
    alone. A dependence that hangs on the values of the numbers stays and is handled while running.
    """
    s = model.structure
    if not s.loops or any(isinstance(link.joint, General) for link in s.links):
        return model
    dice = random.Random(1)
    samples = []
    for _ in range(3):
        factors = np.array([1 + dice.uniform(-0.3, 0.3) for _ in model.numbers])
        samples.append(_loop_jacobians(dataclasses.replace(model, numbers=model.numbers * factors), dice))
    chosen: list[list[np.ndarray]] = [[] for _ in samples]
    loops, first = [], 0
    for loop in s.loops:
        kept = []
        for row in loop.kept:
            grown = [[*c, J[first + row]] for c, J in zip(chosen, samples, strict=True)]
            if any(_rank(g) > len(c) for g, c in zip(grown, chosen, strict=True)):
                kept.append(row)
                chosen = grown
        first += len(loop.kept)
        loops.append(dataclasses.replace(loop, kept=tuple(kept)))
    if tuple(loops) == s.loops:
        return model
    return dataclasses.replace(model, structure=dataclasses.replace(s, loops=tuple(loops)))


def _rank(rows: list[np.ndarray]) -> int:
    return int(np.linalg.matrix_rank(np.array(rows), tol=1e-9 * max(1.0, float(np.abs(rows).max()))))


def _loop_jacobians(model: Model, dice: random.Random) -> np.ndarray:
    """Rows (all rows of all loops, nv) of the cut joints' constraints at a random configuration."""
    s, values = model.structure, model.values()

    def pose(name: str) -> Transform:
        return Transform(values[f"{name}.rotation"], values[f"{name}.position"])

    placed, columns, paths = {WORLD: IDENTITY}, [], {WORLD: frozenset()}
    for link in s.links:
        q = [c + dice.uniform(-1, 1) for c in link.joint.neutral()]
        m = link.joint.motion(values.of(link.name, link.joint.numbers), q, [0.0] * link.joint.nv, 0.0)
        parent = s.links[link.parent].body if link.parent >= 0 else WORLD
        W = placed[parent] @ pose(f"{link.name}.parent_pose") @ m.placement
        own = range(len(columns), len(columns) + link.joint.nv)
        columns += [W.motion_to_parent(S) for S in m.S]
        placed[link.body] = W @ pose(f"{link.name}.child_pose").inverse()
        paths[link.body] = paths[parent] | frozenset(own)
    out = []
    for loop in s.loops:
        a, b = placed[loop.body_a] @ pose(f"{loop.name}.pose_a"), placed[loop.body_b] @ pose(f"{loop.name}.pose_b")
        numbers = values.of(loop.name, loop.joint.numbers)
        for row in cuts.rows(loop.joint, numbers, a.inverse() @ b, ZERO_MOTION):
            F = b.force_to_parent(row.wrench)
            out.append([
                (S @ F) * ((k in paths[loop.body_b]) - (k in paths[loop.body_a])) for k, S in enumerate(columns)
            ])  # fmt: skip
    return np.array(out, float)
