"""What every force element does alone, parted into what it stores, what it loses and what it brings in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import LinkMotion
from jaxmbs.dynamics.state.scene import TreeScene
from jaxmbs.model.forces import External, Thruster
from jaxmbs.model.forces.base import Force as Element
from jaxmbs.model.forces.base import Loads, Numbers, Scene
from jaxmbs.spatial import ZERO_MOTION, kernel
from jaxmbs.spatial.scalar import Scalar, is_number, sub, where

Efforts = dict[str, tuple[Scalar, ...]]
SOURCES = (External, Thruster)


@kernel
def _acting(element: Element, numbers: Numbers, scene: Scene) -> tuple[Any, Any, Any]:
    loads = Loads(scene)
    element.apply(numbers, scene, loads)
    return {b: f.scalars() for b, f in loads.on_body.items()}, loads.on_joint, loads.on_all


def element_loads(state: State) -> Iterator[tuple[str, str, str, Efforts]]:
    """(role, kind, name, {node: effort}) of every part of the force elements, zero where they are switched off.

    The stored part is the action at rest, long after every delay: it alone has the potential; the rest has the power
    of `Force.power`. A part whose potential or power is zero by structure is left out.
    """
    tree = state.tree
    s, values = tree.structure, tree.values
    still = [LinkMotion(m.X, m.S, ZERO_MOTION, m.c, m.rates) for m in state.motions]
    at_rest = TreeScene(tree, still, state.q, [0.0] * s.nv, math.inf)
    for k, (name, element) in enumerate((f.name, f.element) for f in s.forces):
        prefix = f"{name}."
        numbers = {p.name.removeprefix(prefix): values[p.name] for p in s.parameters if p.name.startswith(prefix)}
        seen = state.scene.of(name, element)
        whole = _efforts(state.scene, _acting(element, numbers, seen))
        on = True if state.mode is None else state.mode.force[k]
        stores = not _zero(element.potential(numbers, seen))
        if stores:
            stored = _efforts(at_rest, _acting(element, numbers, at_rest.of(name, element)))
            yield "store", "C", name, _switched(stored, on)
            whole = {n: tuple(sub(x, y) for x, y in zip(f, stored[n], strict=True)) for n, f in whole.items()}
        if not _zero(element.power(numbers, seen)):
            role, kind = ("source", "Se") if isinstance(element, SOURCES) else ("loss", "R")
            yield role, kind, name, _switched(whole, on)


def _efforts(scene: TreeScene, loads: tuple[Any, Any, Any]) -> Efforts:
    s, (on_body, on_joint, on_all) = scene.tree.structure, loads
    out = {f"body:{body}": f for body, f in on_body.items()}
    for joint, f in on_joint.items():
        if joint in s.loop_by_name:
            out |= {f"body:{body}": F.scalars() for body, F in scene.cut_wrenches(joint, f).items()}
        else:
            out[f"rate:{joint}"] = f
    if on_all:
        out |= {f"rate:{x.name}": on_all[p] for x, p in zip(s.links, s.v_slices, strict=True) if x.joint.nv}
    return out


def _zero(x: Scalar) -> bool:
    return is_number(x) and x == 0


def _switched(efforts: Efforts, on: Any) -> Efforts:
    return efforts if on is True else jax.tree_util.tree_map(lambda x: where(on, x, 0.0), efforts)
