"""The input of every tree algorithm: the tree, its motion, the loads and the base acceleration."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state.deformation import deformed
from jaxmbs.dynamics.state.kinematics import LinkMotion, link_motions
from jaxmbs.dynamics.state.loads import LinkLoads, link_wrenches, loads
from jaxmbs.dynamics.state.scene import TreeScene
from jaxmbs.dynamics.state.tree import Link, Tree
from jaxmbs.model import Mode
from jaxmbs.spatial import ZERO3, ZERO_MOTION, Force, Motion
from jaxmbs.spatial.known import known
from jaxmbs.spatial.scalar import Scalar, vanishes, where


class State:
    """A tree at (q, v, t) in a mode; derived quantities are computed when they are first used."""

    def __init__(self, tree: Tree, q: Any, v: Any, t: Scalar = 0.0, mode: Mode | None = None):
        tree = tree if mode is None else tree.beside(mode.sides)
        self.tree, self.q, self.v, self.t, self.mode = tree, _scalars(q), _scalars(v), known(t), mode

    @property
    def lock(self) -> Any:
        """(nv,) whether each degree of freedom is locked; None if none is."""
        return None if self.mode is None else self.mode.lock

    @property
    def locks(self) -> Any:
        """The lock of each degree of freedom, None where it can never be locked; None as a whole if none is locked."""
        if self.lock is None or self.tree.rolled:
            return self.lock
        return [self.lock[k] if may else None for k, may in enumerate(self.tree.lockable)]

    @property
    def holds(self) -> Any:
        """(constraints,) whether each constraint holds; None if all do."""
        return None if self.mode is None else self.mode.constraint

    def moving(self, motions: list[LinkMotion]) -> State:
        """The same state with the given motions of its links."""
        other = copy.copy(self)
        for found in ("scene", "loads", "wrenches"):  # computed from the previous motions
            vars(other).pop(found, None)
        other.motions = motions
        return other

    @functools.cached_property
    def motions(self) -> list[LinkMotion]:
        """Per block, the motion of the links."""
        return link_motions(self.tree, self.q, self.v, self.t)

    @functools.cached_property
    def links(self) -> list[Link]:
        """Per block, the numbers of the links; the inertia of flexible bodies is that in this state."""
        tree, s = self.tree, self.tree.structure
        if not s.flexible:
            return tree.links
        parts = zip(tree.links, tree.split(self.q, s.motion_q), tree.split(self.v, s.motion_v), strict=True)
        return [_deformed(b.joint, *part) for b, part in zip(tree.blocks, parts, strict=True)]

    @functools.cached_property
    def scene(self) -> TreeScene:
        return TreeScene(self.tree, self.motions, self.q, self.v, self.t)

    @functools.cached_property
    def loads(self) -> LinkLoads:
        """The summed action of the force elements."""
        return loads(self.scene, self.mode)

    @functools.cached_property
    def wrenches(self) -> list[Force]:
        """Per block, the applied wrench on the links, without gravity."""
        return link_wrenches(self.tree, self.loads)

    @property
    def base_acceleration(self) -> Motion:
        """Uniform gravity as an upward acceleration of the world."""
        return Motion(ZERO3, -self.tree.values["gravity"])

    def with_elements(self, parts: Sequence[Sequence[Scalar]], sign: int) -> list[tuple[Scalar, ...]]:
        """Per block, the given generalized forces plus `sign` times those of the force elements."""
        s, out = self.tree.structure, []
        for b, part in zip(self.tree.blocks, parts, strict=True):
            items = list(part)
            for row, i in enumerate(b.nodes):
                for column, k in enumerate(range(s.v_slices[i].start, s.v_slices[i].stop)):
                    if k in self.loads.on_joint:
                        value = known(sign) * self.loads.on_joint[k]
                        items[column] = self._plus(items[column], value, row if b.rolled else None, b.length)
            out.append(tuple(items))
        return out

    def _plus(self, x: Scalar, value: Scalar, row: int | None, length: int) -> Scalar:
        if row is None:
            return x + value
        return jnp.broadcast_to(jnp.asarray(x, self.tree.dtype), (length,)).at[row].add(value)


def _deformed(joint: Any, link: Link, q: Sequence[Scalar], v: Sequence[Scalar]) -> Link:
    if joint.follows:
        return replace(link, deformation=joint.subspace(link.numbers, q))
    if not joint.elastic:
        return link
    inertia, deformation = deformed(link.numbers, q, v)
    return replace(link, inertia=link.inertia + inertia, deformation=deformation)


def _scalars(x: Any) -> Any:
    return [known(c) for c in x] if isinstance(x, (list, tuple)) else x


class Inertial(State):
    """A state without gravity and force elements."""

    @property
    def base_acceleration(self) -> Motion:
        return ZERO_MOTION

    @functools.cached_property
    def loads(self) -> LinkLoads:
        return LinkLoads()


class Struck(State):
    """A state during an impulse if `now` is true: at rest, without gravity and force elements, so that accelerations are
    jumps of velocity; otherwise an ordinary one. before: the generalized velocities before the jump."""

    def __init__(self, tree: Tree, q: Any, v: Any, t: Scalar, mode: Mode | None, now: Scalar, before: Any):
        super().__init__(tree, q, [where(now, 0.0, x) for x in v], t, mode)
        self.now, self.before = now, before

    def unless(self, x: Any) -> Any:
        """x, or zero during an impulse."""
        return jax.tree_util.tree_map(lambda x: x if vanishes(x) else where(self.now, 0.0, x), x)

    @property
    def base_acceleration(self) -> Motion:
        return self.unless(super().base_acceleration)

    @functools.cached_property
    def loads(self) -> LinkLoads:
        out = loads(self.scene, self.mode)
        out.on_link, out.on_joint = self.unless(out.on_link), self.unless(out.on_joint)
        return out
