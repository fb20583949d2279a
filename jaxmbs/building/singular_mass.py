"""Whether every motion of a model's tree moves mass, found in plain floats, without a backend or compilation."""

from __future__ import annotations

import random
from typing import Any

from jaxmbs.dynamics.state.kinematics import link_motions
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model.errors import ModelError
from jaxmbs.model.joints import Joint
from jaxmbs.model.model import Model
from jaxmbs.spatial.inertias import ZERO_INERTIA

SINGULAR = 1e-13  # relative to the joint's composite inertia; the rounding error is about 1e-16


def check_moves_mass(model: Model) -> None:
    """Raise ModelError if some motion of the tree moves no mass, so that the mass matrix is singular.

    The articulated inertias are eliminated joint by joint at a random configuration [Y 3.174, 3.176]. If some joint is
    a function of arrays, which would need a backend, only the mass and inertia of each subtree are checked.
    """
    s, dice = model.structure, random.Random(0)
    if not all(link.joint.formulas for link in s.links):
        _check_carried(model)
        return
    tree = Tree(model)
    q = [c if link.joint.elastic else c + dice.uniform(-1, 1) for link in s.links for c in link.joint.neutral()]
    motions = link_motions(tree, q, [0.0] * s.nv, 0.0)
    tree.inward(
        _inward, list(zip(motions, tree.links, s.links, strict=True)), (ZERO_INERTIA, ZERO_INERTIA.articulated())
    )


def _inward(joint: Joint, carried: tuple[Any, ...], d: Any) -> tuple[tuple[Any, ...], None]:
    """Composite and articulated inertia that a link passes to its parent, after the check of its joint."""
    m, link, place = d
    whole, I = link.inertia + carried[0], link.inertia.articulated() + carried[1]
    for S in () if joint.elastic or joint.follows else reversed(m.S):  # modes have mass; their body is taken as rigid
        U = I @ S
        D = S @ U + link.armature
        if SINGULAR * (S @ (whole @ S) + link.armature) >= D:
            raise _massless(place.name, place.body)
        I = I.minus_outer(U, U * (1 / D), None if link.armature else S)
    return (whole.to_parent(m.X), I.to_parent(m.X)), None


def _check_carried(model: Model) -> None:
    s, values = model.structure, model.values()
    carriers = [f for f in s.forces if f.element.carries]
    laden = {body for f in carriers for body in f.element.masses(values.of(f.name, f.element.numbers))}
    carries = [x.body in laden or any((values[f"{x.body}.mass"], *values[f"{x.body}.inertia"])) for x in s.links]
    for i, link in reversed(list(enumerate(s.links))):
        if link.joint.nv and not (link.joint.elastic or carries[i] or values[f"{link.name}.armature"]):
            raise _massless(link.name, link.body)
        if carries[i] and link.parent >= 0:
            carries[link.parent] = True


def _massless(joint: str, body: str) -> ModelError:
    return ModelError(
        f"joint {joint!r} has a motion that moves no mass, so the mass matrix is singular; give mass and inertia to body "
        f"{body!r} or to a body that it carries, or remove this degree of freedom"
    )
