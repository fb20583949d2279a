"""Energy, momentum and the power of non-conservative forces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.recursive.rnea import joint_wrenches
from jaxmbs.dynamics.state import State, loads
from jaxmbs.dynamics.state.forest import Strand
from jaxmbs.dynamics.state.kinematics import LinkMotion, world_placements
from jaxmbs.dynamics.state.tree import Link
from jaxmbs.spatial import ZERO3, Motion, Vector3
from jaxmbs.spatial.known import ZERO, known
from jaxmbs.spatial.scalar import Scalar, safe_divide, total, vanishes


def kinetic(state: State) -> Scalar:
    """Kinetic energy [J]."""
    rates = state.tree.split(state.v, state.tree.structure.v_slices)
    return total(
        *(_sum(0.5 * (m.V @ (link.inertia @ m.V)), b) for b, m, link in _links(state)),
        *(_of_modes(m, link, own) for (b, m, link), own in zip(_links(state), rates, strict=True) if b.joint.elastic),
        *(
            _sum(0.5 * link.armature * total(*(x * x for x in own)), b)
            for (b, _, link), own in zip(_links(state), rates, strict=True)
        ),
    )


def kinetic_by_link(state: State) -> list[Scalar]:
    """Kinetic energy [J] of every link, which includes that of its joint's armature."""
    tree = state.tree
    rates = tree.split(state.v, tree.structure.v_slices)
    links = [
        0.5 * (m.V @ (link.inertia @ m.V)) + (_of_modes(m, link, own) if b.joint.elastic else ZERO)
        for (b, m, link), own in zip(_links(state), rates, strict=True)
    ]
    turning = [
        0.5 * link.armature * total(*(x * x for x in own))
        for (_, _, link), own in zip(_links(state), rates, strict=True)
    ]
    found = [a + b for a, b in zip(tree.per_link(links), tree.per_link(turning), strict=True)]
    for i in tree.structure.modes_of.values():  # what the modes add belongs to the flexible body
        body = tree.structure.links[i].parent
        found[body], found[i] = found[body] + found[i], ZERO
    return found


def potential(state: State) -> Scalar:
    """Potential energy [J] in uniform gravity (zero at the world origin) and in the force elements."""
    g = state.tree.values["gravity"]
    height: Scalar = ZERO
    if not all(map(vanishes, g)):
        for W, (b, _, link) in zip(world_placements(state.tree, state.motions), _links(state), strict=True):
            moment = W.rotation @ link.inertia.moment + W.position * link.inertia.mass
            height += _sum(-(g @ moment), b)
    return height + loads.potential(state.scene, state.mode)


def total_energy(state: State) -> Scalar:
    """Kinetic and potential energy [J]."""
    return kinetic(state) + potential(state)


def momentum(state: State) -> tuple[Vector3, Vector3]:
    """Angular momentum about the common centre of mass [N m s] and linear momentum [N s], world axes."""
    mass: Scalar = ZERO
    static, linear, angular = ZERO3, ZERO3, ZERO3
    for W, (b, m, link) in zip(world_placements(state.tree, state.motions), _links(state), strict=True):
        h = link.inertia @ m.V
        h = W.force_to_parent(h + link.deformation.momentum if b.joint.elastic else h)
        c = W.rotation @ link.inertia.moment + W.position * link.inertia.mass
        mass += _sum(link.inertia.mass, b)
        static, linear, angular = static + _sums(c, b), linear + _sums(h.force, b), angular + _sums(h.moment, b)
    for f in state.tree.structure.forces:
        for body, h in f.element.spins(state.tree.values.of(f.name, f.element.numbers)).items():
            angular += state.scene.around(body).rotation(body) @ h
    center = Vector3(*(safe_divide(x, mass) for x in static))
    return angular - center.cross(linear), linear


def power(state: State, tau: Any, a: Any) -> Scalar:
    """Power [W] of tau, non-conservative force elements and the drives of rheonomic joints on the mechanism.

    a: the accelerations of the motion. The power of the forces that hold locked degrees of freedom is not included: they
    are at rest in every simulation, which starts only if the initial velocity is zero along them.
    """
    tree, v = state.tree, state.v
    nv = tree.structure.nv
    received = loads.power(state.scene, state.mode)
    if tau is not None:
        received += _along(tau, v, nv)
    if not tree.structure.rheonomic:
        return received
    wrenches, _ = joint_wrenches(state, a)
    rates = tree.split(v, tree.structure.v_slices)
    for b, m, f, rate in zip(tree.blocks, state.motions, wrenches, rates, strict=True):
        if b.joint.rheonomic:
            received += _own_motion(state, b, m, rate) @ f
    return received


def _own_motion(state: State, block: Any, m: Any, rate: Any) -> Motion:
    """Part of the joint's velocity that does not depend on v (rheonomic joints are never rolled)."""
    tree = state.tree
    link = tree.links[tree.blocks.index(block)]
    q = tree.split(state.q, tree.structure.q_slices)[tree.blocks.index(block)]
    return block.joint.motion(link.numbers, q, [ZERO] * len(rate), state.t).velocity


def _links(state: State) -> list[tuple[Strand, LinkMotion, Link]]:
    return list(zip(state.tree.blocks, state.motions, state.links, strict=True))


def _of_modes(m: LinkMotion, link: Link, rates: Sequence[Scalar]) -> Scalar:
    """Kinetic energy of a flexible body beyond that of the motion of its frame."""
    return m.V @ link.deformation.momentum + 0.5 * total(*(x * x for x in rates))


def _along(force: Any, v: Any, nv: int) -> Scalar:
    if isinstance(v, jax.Array):
        return jnp.sum(jnp.asarray(force) * v)
    return total(*(force[k] * v[k] for k in range(nv)))


def _sum(x: Scalar, block: Strand) -> Scalar:
    """Sum over the links of a block."""
    return x.sum(axis=0) if isinstance(x, jax.Array) and block.rolled else known(block.length) * x


def _sums(v: Vector3, block: Strand) -> Vector3:
    return Vector3(*(_sum(x, block) for x in v))
