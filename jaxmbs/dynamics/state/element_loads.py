"""The action of each force element on its own, split into parts that store, dissipate and supply energy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import LinkMotion
from jaxmbs.dynamics.state.loads import action, elements, stored_action
from jaxmbs.dynamics.state.scene import TreeScene
from jaxmbs.spatial import ZERO_MOTION
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, vanishes, where

Efforts = dict[str, tuple[Scalar, ...]]


def element_loads(state: State) -> Iterator[tuple[str, str, str, Efforts]]:
    """(role, kind, name, {node: effort}) of every part of the force elements, zero where they are switched off.

    The part "store", which has the potential, is the action in the same configuration at rest, after every delay
    (t = inf). The other part, "loss" or "source", is the rest of the action; its power is `Force.power`. A part whose
    potential or power is structurally zero is left out.
    """
    still = [LinkMotion(m.X, m.S, ZERO_MOTION, m.c, m.rates) for m in state.motions]
    at_rest = TreeScene(state.tree, still, state.q, [ZERO] * state.tree.structure.nv, math.inf)
    for name, element, numbers, seen, on in elements(state.scene, state.mode):
        whole = _efforts(state.scene, action(element, numbers, seen))
        stores = not vanishes(element.potential(numbers, seen))
        if stores:
            stored = _efforts(at_rest, stored_action(element, numbers, at_rest.of(name, element)))
            yield "store", "C", name, _switched(stored, on)
            whole = {n: tuple(x - y for x, y in zip(f, stored[n], strict=True)) for n, f in whole.items()}
        if not vanishes(element.power(numbers, seen)):
            role, kind = ("source", "Se") if element.source else ("loss", "R")
            yield role, kind, name, _switched(whole, on)


def _efforts(scene: TreeScene, loads: tuple[Any, Any, Any]) -> Efforts:
    s, (on_body, on_joint, on_all) = scene.tree.structure, loads
    found: list[tuple[str, Sequence[Scalar]]] = [(f"body:{body}", F.scalars()) for body, F in on_body.items()]
    for joint, f in on_joint.items():
        if joint in s.loop_by_name:
            found += [(f"body:{body}", F.scalars()) for body, F in scene.cut_wrenches(joint, f)[0].items()]
        else:
            found.append((f"rate:{joint}", f))
    if on_all:
        found += [(f"rate:{x.name}", on_all[p]) for x, p in zip(s.links, s.v_slices, strict=True) if x.joint.nv]
    out: Efforts = {}
    for node, f in found:
        out[node] = tuple(x + y for x, y in zip(out[node], f, strict=True)) if node in out else tuple(f)
    return out


def _switched(efforts: Efforts, on: Any) -> Efforts:
    return efforts if on is True else jax.tree_util.tree_map(lambda x: where(on, x, 0.0), efforts)
