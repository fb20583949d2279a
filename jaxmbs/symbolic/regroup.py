"""Inertial parameters that only act together, gathered: augmented bodies.

A mass spread along a hinge axis moves alike with the bodies on both sides of the hinge. It is moved to the carrying
link, from the tips to the base, as [T] moves the masses of subsystems to the poles: what remains in the formulas is
fewer constants. Generalized forces, mass matrix and kinetic energy stay the same; reactions in the joints do not.
"""

from __future__ import annotations

from jaxmbs.dynamics.tree import Link
from jaxmbs.model.joints import Cylindrical, Fixed, Prismatic, Revolute
from jaxmbs.model.structure import Structure
from jaxmbs.spatial import RigidInertia, Symmetric3, Vector3
from jaxmbs.spatial.scalar import is_number, mul


def regrouped(structure: Structure, links: list[Link]) -> list[Link]:
    """The links with inertias moved inwards as far as the joints allow."""
    inertia = [link.inertia for link in links]
    for i in reversed(range(len(links))):
        joint, numbers = structure.links[i].joint, links[i].numbers
        if isinstance(joint, Fixed):
            moved = inertia[i]
        elif isinstance(joint, (Revolute, Prismatic, Cylindrical)) and _coordinate(numbers["axis"]) is not None:
            shared = _along_axis if isinstance(joint, Revolute) else _rotational
            if isinstance(joint, Cylindrical):
                continue
            moved = shared(inertia[i], _coordinate(numbers["axis"]))
        else:
            continue
        inertia[i] = _difference(inertia[i], moved)
        base = structure.links[i].parent
        if base >= 0:
            inertia[base] = inertia[base] + moved.to_parent(links[i].fixed)
    return [Link(link.fixed, own, link.numbers) for link, own in zip(links, inertia, strict=True)]


def _coordinate(axis: Vector3) -> int | None:
    """Which coordinate axis it is by structure."""
    c = list(axis)
    if not all(is_number(x) for x in c) or sorted(map(abs, c)) != [0, 0, 1]:
        return None
    return next(k for k in range(3) if c[k])


def _along_axis(inertia: RigidInertia, k: int) -> RigidInertia:
    """The part that does not notice a turn about axis k: mass, moment along k, and one moment of inertia across."""
    h, J = list(inertia.moment), list(inertia.inertia)
    across = J[(k + 1) % 3]
    return RigidInertia(
        inertia.mass,
        Vector3(*(h[i] if i == k else 0 for i in range(3))),
        Symmetric3.diagonal(*(0 if i == k else across for i in range(3))),
    )


def _rotational(inertia: RigidInertia, k: int) -> RigidInertia:
    """The part that does not notice a displacement: the inertia about the joint's own origin."""
    return RigidInertia(0, Vector3(0, 0, 0), inertia.inertia)


def _difference(a: RigidInertia, b: RigidInertia) -> RigidInertia:
    def less(x: object, y: object) -> object:
        return 0 if x is y else x + mul(-1, y)  # type: ignore[operator]

    return RigidInertia(
        less(a.mass, b.mass),
        Vector3(*map(less, a.moment, b.moment)),
        Symmetric3(*map(less, a.inertia, b.inertia)),
    )
