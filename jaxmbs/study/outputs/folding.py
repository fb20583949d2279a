"""Outputs over a motion: measured at every time, folded to one number each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from jaxmbs.model.fields import names_in
from jaxmbs.model.forces.base import WORLD, Scene
from jaxmbs.model.kinds import Kind
from jaxmbs.spatial import kernel
from jaxmbs.study.outputs.base import Output, Scalar

if TYPE_CHECKING:
    from jaxmbs.model import Model


def folded(outputs: Mapping[str, Output], dtype: Any) -> tuple[Any, Callable[..., Any]]:
    """(carry0, fn) for simulate's fold: all outputs, taken from one pass over the bodies per time."""

    def fn(carry: Any, model: Model, t: Any, q: Any, v: Any) -> Any:
        found = measured(outputs, model, t, q, v)
        return {name: output.fold(carry[name], found[name], t) for name, output in outputs.items()}

    return _start(outputs, dtype), fn


def folded_history(outputs: Mapping[str, Output], t: Any, found: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """The outputs from what was `measured` at the times t (T,)."""

    def step(carry: Any, x: Any) -> tuple[Any, None]:
        t, now = x
        return {name: output.fold(carry[name], now[name], t) for name, output in outputs.items()}, None

    carry, _ = jax.lax.scan(step, _start(outputs, t.dtype), (t, dict(found)))
    return {name: output.result(carry[name]) for name, output in outputs.items()}


def _start(outputs: Mapping[str, Output], dtype: Any) -> dict[str, tuple[Any, Any]]:
    return {name: tuple(jnp.asarray(x, dtype) for x in output.start()) for name, output in outputs.items()}  # type: ignore[misc]


@kernel
def _measure(output: Output, scene: Scene) -> tuple[Scalar, Scalar]:
    return output.measure(scene)


def measured(outputs: Mapping[str, Output], model: Model, t: Any, q: Any, v: Any) -> dict[str, tuple[Scalar, Scalar]]:
    """What every output measures now, in SI, and whether it is defined.

    Outputs that differ only in what they keep share the computation.
    """
    from jaxmbs.dynamics.state.kinematics import link_motions
    from jaxmbs.dynamics.state.scene import TreeScene
    from jaxmbs.dynamics.state.tree import Tree

    tree = Tree(model, q.dtype)
    state = TreeScene(tree, link_motions(tree, q, v, t), q, v, t)

    def seen(output: Output) -> Scene:
        bodies = {b: state.body(b) for _, b in names_in(output, Kind.BODY, Kind.BODY_OR_WORLD) if b != WORLD}
        joints: Any = {j: state.joint(j) for _, j in names_in(output, Kind.JOINT)}
        return Scene(t, bodies, joints, {}, (), ())

    shared: dict[Output, tuple[Scalar, Scalar]] = {}
    found = {}
    for name, output in outputs.items():
        same = replace(output, reduce="final", unit=None)
        if same not in shared:
            shared[same] = _measure(output, seen(output))
        found[name] = shared[same]
    return found
