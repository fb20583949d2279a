"""Checks of a whole model in plain floats, without a backend or compilation."""

from __future__ import annotations

import random

from jaxmbs.model.errors import ModelError
from jaxmbs.model.model import Model
from jaxmbs.model.parameters import Values
from jaxmbs.model.structure import Structure, TreeJoint
from jaxmbs.spatial import ArticulatedInertia, RigidInertia, Transform
from jaxmbs.spatial.inertias import ZERO_INERTIA

SINGULAR = 1e-13  # relative to the joint's composite inertia; the rounding error is about 1e-16


def check_moves_mass(model: Model) -> None:
    """Raise ModelError if some motion of the tree moves no mass, so that the mass matrix is singular.

    The articulated inertias are eliminated joint by joint at a random configuration [Y 3.174, 3.176]. If some joint is
    a function of arrays, which would need a backend, only the mass and inertia of each subtree are checked.
    """
    s, values = model.structure, model.values()
    numeric = all(link.joint.formulas for link in s.links)
    dice = random.Random(0)
    carriers = [f for f in s.forces if f.element.carries]
    n = len(s.links)
    rigid, articulated = [ZERO_INERTIA] * n, [ZERO_INERTIA.articulated()] * n
    for i in reversed(range(n)):
        link = s.links[i]
        child = values.pose(f"{link.name}.child_pose")
        body = RigidInertia.at_com(*(values[f"{link.body}.{f}"] for f in ("mass", "com", "inertia")))
        for f in carriers:
            body += f.element.masses(values.of(f.name, f.element.numbers)).get(link.body, ZERO_INERTIA)
        body = body.to_parent(child.inverse())
        rigid[i] += body
        articulated[i] += body.articulated()
        if link.joint.elastic or link.joint.follows:  # modes have mass; here the body is taken as rigid
            X = _fixed(s, values, link)
            rigid[link.parent] += rigid[i].to_parent(X)
            articulated[link.parent] += articulated[i].to_parent(X)
            continue
        if link.joint.nv and not any((rigid[i].mass, *rigid[i].inertia, values[f"{link.name}.armature"])):
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
            geared = values[f"{link.name}.armature"]
            D, whole = S @ U + geared, S @ (rigid[i] @ S) + geared
            if SINGULAR * whole >= D:
                raise _massless(link.name, link.body)
            reduced = reduced.minus_outer(U, U * (1 / D), None if geared else S)
        if link.parent >= 0:
            X = _fixed(s, values, link) @ motion.placement
            rigid[link.parent] += rigid[i].to_parent(X)
            articulated[link.parent] += reduced.to_parent(X)


def _fixed(s: Structure, values: Values, link: TreeJoint) -> Transform:
    """The joint's frame in the frame of the parent link."""
    return values.pose(f"{s.links[link.parent].name}.child_pose").inverse() @ values.pose(f"{link.name}.parent_pose")


def armature(model: Model) -> str | None:
    """The name of the first joint with armature, or None."""
    table = model.structure.table
    for link in model.structure.links:
        name = f"{link.name}.armature"
        if table[name][0].free_count or name in model.overrides:
            return link.name
    return None


def refuse_armature(model: Model, where: str, remedy: str) -> None:
    """Raise ModelError if a joint has armature, for methods that use only the bodies' inertias."""
    if geared := armature(model):
        raise ModelError(f"{where}: joint {geared!r} has armature, which this method does not support; {remedy}")


def refuse_flexible(
    model: Model, where: str, remedy: str = "use mbs.forward_dynamics or mbs.constrained_dynamics"
) -> None:
    """Raise ModelError if there is a flexible body, for methods that know rigid bodies only."""
    for body in model.structure.modes_of:
        raise ModelError(f"{where}: body {body!r} is flexible, which this method does not support; {remedy}")


def _massless(joint: str, body: str) -> ModelError:
    return ModelError(
        f"joint {joint!r} has a motion that moves no mass, so the mass matrix is singular; give mass and inertia to body "
        f"{body!r} or to a body that it carries, or remove this degree of freedom"
    )
