"""Gathers inertial parameters that act only together: augmented bodies.

The part of a link's inertia that the motion of its joint does not affect is moved to the carrying link, from the tips
to the base, as [T (1)] moves the masses of subsystems to their poles. For a rotating link, this part is distributed
along the hinge axis: the mass, the first moment along the axis, and one moment of inertia across it. For a sliding
link, it is the inertia matrix about the pole; mass and first moment remain. Fewer constants remain in the formulas. The
generalized forces, the mass matrix and the kinetic energy do not change; the reactions in the joints do.
"""

from __future__ import annotations

from jaxmbs.dynamics.state.tree import Link
from jaxmbs.model.joints import Joint
from jaxmbs.model.structure import Structure
from jaxmbs.spatial import RigidInertia, Symmetric3, Vector3
from jaxmbs.spatial.inertias import ZERO_INERTIA
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, is_number


def regrouped(structure: Structure, links: list[Link]) -> list[Link]:
    """The links with inertias moved towards the base as far as the joints allow."""
    inertia = [link.inertia for link in links]
    for i in reversed(range(len(links))):
        own = inertia[i]
        moved = _unmoved_part(structure.links[i].joint, links[i], own)
        if moved is not None:
            inertia[i] = _difference(own, moved)
            base = structure.links[i].parent
            if base >= 0:
                inertia[base] = inertia[base] + moved.to_parent(links[i].fixed)
    return [Link(link.fixed, own, link.numbers, link.armature) for link, own in zip(links, inertia, strict=True)]


def _unmoved_part(joint: Joint, link: Link, own: RigidInertia) -> RigidInertia | None:
    """The part of a link's inertia that has the same effect on either side of its joint, or None."""
    if joint.rigid:
        return own
    if joint.keeps_orientation:
        return RigidInertia(0, ZERO_INERTIA.moment, own.inertia)
    if not joint.revolute:
        return None
    axis = list(link.numbers[joint.turning_axis])
    if not all(map(is_number, axis)) or sorted(map(abs, axis)) != [0, 0, 1]:
        return None
    along = next(i for i, c in enumerate(axis) if c)
    across = list(own.inertia)[(along + 1) % 3]
    moment = (c if i == along else 0 for i, c in enumerate(own.moment))
    return RigidInertia(
        own.mass, Vector3(*moment), Symmetric3.diagonal(*(0 if i == along else across for i in range(3)))
    )


def _difference(a: RigidInertia, b: RigidInertia) -> RigidInertia:
    def less(x: Scalar, y: Scalar) -> Scalar:
        return ZERO if x is y else x - y

    return RigidInertia(
        less(a.mass, b.mass),
        Vector3(*map(less, a.moment, b.moment)),
        Symmetric3(*map(less, a.inertia, b.inertia)),
    )
