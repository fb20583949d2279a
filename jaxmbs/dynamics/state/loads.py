"""The action of all force elements: wrenches on the links, generalized forces, energy, power."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax

from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.model.forces.base import Force as Element
from jaxmbs.model.forces.base import Loads, Numbers, Scene
from jaxmbs.model.structure import Structure
from jaxmbs.spatial import ZERO_FORCE, Force, Vector3, kernel
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, where

if TYPE_CHECKING:
    from jaxmbs.dynamics.state.scene import TreeScene


@kernel
def action(element: Element, numbers: Numbers, scene: Scene) -> tuple[Any, Any, Any]:
    """The action of one element: wrenches by body, generalized forces by joint, and generalized forces on all degrees
    of freedom, (nv,) or ()."""
    loads = Loads(scene)
    element.apply(numbers, scene, loads)
    return loads.on_body, loads.on_joint, loads.on_all


@kernel
def stored_action(element: Element, numbers: Numbers, scene: Scene) -> tuple[Any, Any, Any]:
    """As `action`, for the part of the loads that follows from the potential, in a scene at rest."""
    loads = Loads(scene)
    element.apply_stored(numbers, scene, loads)
    return loads.on_body, loads.on_joint, loads.on_all


def force_on_first(element: Element, on_body: Mapping[str, Force], scene: Scene) -> Vector3 | None:
    """The force, in link axes, on the first body that an element names, or on the first body of the tree if it acts on all
    bodies; None if it acts on no body. on_body: from `action`, whose order is not that of the element."""
    named = (*(getattr(element, field) for field in element.bodies), *scene.masses)
    return next((on_body[body].force for body in named if body in on_body), None)


@kernel
def _potential(element: Element, numbers: Numbers, scene: Scene) -> Scalar:
    return element.potential(numbers, scene)


@kernel
def _power(element: Element, numbers: Numbers, scene: Scene) -> Scalar:
    return element.power(numbers, scene)


def elements(scene: TreeScene, mode: Mode | None) -> list[tuple[str, Element, Numbers, Scene, Any]]:
    """(name, element, numbers, scene, switch) of every force element; the switch is True without a mode."""
    out = []
    for k, f in enumerate(scene.tree.structure.forces):
        prefix = f"{f.name}."
        numbers = {n[len(prefix) :]: scene.tree.values[n] for n in _names(scene.tree.structure, prefix)}
        sides = () if mode is None or mode.sides is None else mode.sides.of(k)
        on = True if mode is None or mode.force is None else mode.force[k]
        out.append((f.name, f.element, numbers, scene.of(f.name, f.element, sides), on))
    return out


@functools.lru_cache(maxsize=4096)
def _names(structure: Structure, prefix: str) -> tuple[str, ...]:
    return tuple(p.name for p in structure.parameters if p.name.startswith(prefix))


class LinkLoads:
    """The summed action of all elements: wrenches by link, in link axes; generalized forces by degree of freedom."""

    def __init__(self) -> None:
        self.on_link: dict[int, Force] = {}
        self.on_joint: dict[int, Scalar] = {}
        self.on_cut: dict[str, Force] = {}  # by cut joint, on its second body at frame b; also in on_link

    def add_wrench(self, link: int, wrench: Force) -> None:
        self.on_link[link] = self.on_link[link] + wrench if link in self.on_link else wrench

    def add_joint(self, k: int, value: Scalar) -> None:
        self.on_joint[k] = self.on_joint.get(k, ZERO) + value


def loads(scene: TreeScene, mode: Mode | None) -> LinkLoads:
    """The action of all force elements that are switched on."""
    s, total = scene.tree.structure, LinkLoads()
    for _, element, numbers, seen, on in elements(scene, mode):
        on_body, on_joint, on_all = scene.action(element, numbers, seen)
        if on is not True:
            switched = jax.tree_util.tree_map(lambda x, on=on: where(on, x, 0.0), (on_body, on_joint, on_all))
            on_body, on_joint, on_all = switched
        for body, wrench in on_body.items():
            total.add_wrench(s.find_body(body), wrench)
        for joint, values in on_joint.items():
            if joint in s.loop_by_name:
                on_links, at_b = scene.cut_wrenches(joint, values)
                for body, wrench in on_links.items():
                    total.add_wrench(s.find_body(body), wrench)
                total.on_cut[joint] = total.on_cut[joint] + at_b if joint in total.on_cut else at_b
                continue
            for k, value in enumerate(values, s.v_slices[s.find_joint(joint)].start):
                total.add_joint(k, value)
        for k, value in enumerate(on_all):
            total.add_joint(k, value)
    return total


def link_wrenches(tree: Tree, found: LinkLoads) -> list[Force]:
    """Per block, the wrench on its links in their own axes."""
    out = []
    for b in tree.blocks:
        here = [found.on_link.get(i, ZERO_FORCE) for i in b.nodes]
        out.append(tree.per_block(b, here))
    return out


def potential(scene: TreeScene, mode: Mode | None) -> Scalar:
    """Energy [J] stored in the force elements that are switched on."""
    return _total(_potential, scene, mode)


def power(scene: TreeScene, mode: Mode | None) -> Scalar:
    """Power [W] of the non-conservative actions of the force elements that are switched on."""
    return _total(_power, scene, mode)


def _total(of: Callable[[Element, Numbers, Scene], Scalar], scene: TreeScene, mode: Mode | None) -> Scalar:
    found: Scalar = ZERO
    for _, element, numbers, seen, on in elements(scene, mode):
        found += where(on, of(element, numbers, seen), 0.0)
    return found
