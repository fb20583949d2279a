"""Evaluates the force elements: wrenches on the links, generalized forces, energy, power."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.kinematics import LinkMotion, world_placements
from jaxmbs.dynamics.tree import Tree
from jaxmbs.model import Mode, ModelError
from jaxmbs.model.forces.base import Force as Element
from jaxmbs.model.forces.base import Numbers
from jaxmbs.model.structure import WORLD
from jaxmbs.spatial import IDENTITY3, ZERO3, ZERO_FORCE, Force, Matrix3, Motion, Transform, Vector3
from jaxmbs.spatial.scalar import Scalar, add, where


class TreeScene:
    """The state of a tree, as force elements see it; implements `model.forces.base.Scene`."""

    def __init__(self, tree: Tree, motions: Sequence[LinkMotion], q: Any, v: Any, t: Scalar):
        self.tree, self.motions, self.q, self.v, self.t = tree, motions, q, v, t
        self._cache: dict[tuple[str, str], Any] = {}

    @functools.cached_property
    def _placements(self) -> list[Transform]:
        return world_placements(self.tree, self.motions)

    def placement(self, body: str) -> Transform:
        """Link frame of the body in the world."""
        return self._once("placement", body, lambda i: self.tree.pick(self._placements, i))

    def motion(self, body: str) -> Motion:
        """Velocity of the link frame, in its own axes."""
        return self._once("motion", body, lambda i: self.tree.pick([m.V for m in self.motions], i))

    def _once(self, what: str, body: str, compute: Callable[[int], Any]) -> Any:
        if (what, body) not in self._cache:
            self._cache[what, body] = compute(self.tree.structure.find_body(body))
        return self._cache[what, body]

    def in_link(self, body: str, local: Vector3) -> Vector3:
        """A point of the body frame, in the link's frame."""
        return self.tree.body_in_link[self.tree.structure.find_body(body)].point(local)

    def point(self, body: str, local: Vector3) -> Vector3:
        return local if body == WORLD else self.placement(body).point(self.in_link(body, local))

    def velocity(self, body: str, local: Vector3) -> Vector3:
        if body == WORLD:
            return ZERO3
        V = self.motion(body)
        return self.placement(body).rotation @ (V.linear + V.angular.cross(self.in_link(body, local)))

    def rotation(self, body: str) -> Matrix3:
        if body == WORLD:
            return IDENTITY3
        i = self.tree.structure.find_body(body)
        return self.placement(body).rotation @ self.tree.body_in_link[i].rotation

    def angular(self, body: str) -> Vector3:
        return ZERO3 if body == WORLD else self.placement(body).rotation @ self.motion(body).angular

    def coordinates(self, joint: str) -> Sequence[Scalar]:
        s = self.tree.structure
        return _items(self.q, s.q_slices[s.find_joint(joint)])

    def rates(self, joint: str) -> Sequence[Scalar]:
        s = self.tree.structure
        return _items(self.v, s.v_slices[s.find_joint(joint)])

    def all_rates(self) -> Sequence[Scalar]:
        return _items(self.v, slice(0, self.tree.structure.nv))

    def masses(self) -> Sequence[tuple[str, Scalar, Vector3]]:
        values = self.tree.values
        found = ((link.body, values[f"{link.body}.mass"]) for link in self.tree.structure.links)
        return [(b, m, values[f"{b}.com"]) for b, m in found if not (isinstance(m, (int, float)) and m == 0)]

    def evaluate(self, fn: Any) -> list[Scalar]:
        model, dtype = self.tree.model, self.tree.dtype
        if dtype is not None:
            return list(jnp.asarray(fn(model, self.tree.vector(self.q), self.tree.vector(self.v), self.t), dtype))
        q, v = np.asarray(self.q, float), np.asarray(self.v, float)
        with jax.enable_x64(True):
            return np.asarray(fn(model, q, v, self.t), float).tolist()


def _items(x: Any, part: slice) -> list[Scalar]:
    return [x[k] for k in range(part.start, part.stop)]


class LinkLoads:
    """Sums the action of elements; implements `model.forces.base.Loads`."""

    def __init__(self, scene: TreeScene):
        self.scene = scene
        self.on_link: dict[int, Force] = {}
        self.on_joint: dict[int, Scalar] = {}

    def force(self, body: str, force: Vector3, at: Vector3) -> None:
        if body == WORLD:
            return
        f = self.scene.placement(body).rotation.T @ force
        self.add(self._link(body), Force(self.scene.in_link(body, at).cross(f), f))

    def moment(self, body: str, moment: Vector3) -> None:
        if body != WORLD:
            self.add(self._link(body), Force(self.scene.placement(body).rotation.T @ moment, ZERO3))

    def joint(self, joint: str, values: Sequence[Scalar]) -> None:
        s = self.scene.tree.structure
        for k, value in zip(range(*s.v_slices[s.find_joint(joint)].indices(s.nv)), values, strict=True):
            self.add_joint(k, value)

    def generalized(self, values: Sequence[Scalar]) -> None:
        nv = self.scene.tree.structure.nv
        if len(values) != nv:
            raise ModelError(f"External: fn returned {len(values)} generalized forces; the model has nv = {nv}")
        for k, value in enumerate(values):
            self.add_joint(k, value)

    def add(self, link: int, wrench: Force) -> None:
        self.on_link[link] = self.on_link[link] + wrench if link in self.on_link else wrench

    def add_joint(self, k: int, value: Scalar) -> None:
        self.on_joint[k] = add(self.on_joint.get(k, 0), value)

    def _link(self, body: str) -> int:
        return self.scene.tree.structure.find_body(body)


def elements(tree: Tree, mode: Mode | None) -> list[tuple[Element, Numbers, Any]]:
    """Force elements with their numbers and their switch (True without a mode)."""
    out = []
    for k, f in enumerate(tree.structure.forces):
        prefix = f"{f.name}."
        numbers = {n[len(prefix) :]: tree.values[n] for n in _names(tree.structure, prefix)}
        out.append((f.element, numbers, True if mode is None else mode.force[k]))
    return out


@functools.lru_cache(maxsize=4096)
def _names(structure: Any, prefix: str) -> tuple[str, ...]:
    return tuple(p.name for p in structure.parameters if p.name.startswith(prefix))


def loads(scene: TreeScene, mode: Mode | None) -> LinkLoads:
    """The action of all force elements that are switched on."""
    total = LinkLoads(scene)
    for element, numbers, on in elements(scene.tree, mode):
        own = LinkLoads(scene)
        element.apply(numbers, scene, own)
        for i, wrench in own.on_link.items():
            total.add(i, wrench if on is True else jax.tree_util.tree_map(lambda x, on=on: where(on, x, 0.0), wrench))
        for k, value in own.on_joint.items():
            total.add_joint(k, where(on, value, 0.0))
    return total


def link_wrenches(tree: Tree, found: LinkLoads) -> list[Force]:
    """Per block, the wrench on its links in their own axes."""
    out = []
    for b in tree.blocks:
        here = [found.on_link.get(i, ZERO_FORCE) for i in range(b.first, b.last + 1)]
        out.append(tree.per_block(b, here))
    return out


def potential(scene: TreeScene, mode: Mode | None) -> Scalar:
    """Energy [J] stored in the force elements that are switched on."""
    energy: Scalar = 0
    for element, numbers, on in elements(scene.tree, mode):
        energy = add(energy, where(on, element.potential(numbers, scene), 0.0))
    return energy


def power(scene: TreeScene, mode: Mode | None) -> Scalar:
    """Power [W] of the actions without a potential of the elements that are switched on."""
    rate: Scalar = 0
    for element, numbers, on in elements(scene.tree, mode):
        rate = add(rate, where(on, element.power(numbers, scene), 0.0))
    return rate
