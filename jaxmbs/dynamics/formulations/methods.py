"""The dense formulations by name: the values of `method=` in mass_matrix and forward_dynamics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from jaxmbs.dynamics.formulations import configuration, general_joints, jacobians, planar, telegin, wittenburg
from jaxmbs.dynamics.formulations.system import System, system
from jaxmbs.dynamics.formulations.wittenburg import hinged
from jaxmbs.dynamics.recursive import crba, rnea
from jaxmbs.dynamics.state import State
from jaxmbs.model import Model, ModelError
from jaxmbs.model.errors import unknown


@dataclass(frozen=True)
class Method:
    """A formulation: mass_matrix(state) and bias(state) of A a + bias = tau, for models without an obstacle.

    source: its origin; joints: the joints that it serves; obstacle(model): why it cannot serve a model, or None.
    """

    source: str
    joints: str
    mass_matrix: Callable[[State], jax.Array]
    bias: Callable[[State], Any]
    obstacle: Callable[[Model], str | None] = lambda model: None


def _free_root(model: Model) -> str | None:
    if any(link.joint.free and link.parent < 0 for link in model.structure.links):
        return None
    return "no body is connected to the world by a Free joint, so there is no fictitious joint"


def _of_system(
    A: Callable[[System], jax.Array],
    b: Callable[[System], jax.Array],
    prepare: Callable[[System], System] = lambda s: s,
) -> tuple[Callable[[State], jax.Array], Callable[[State], Any]]:
    """The mass matrix and the bias as functions of a state, from those of a `System`."""
    return _geared(lambda state: A(prepare(system(state)))), (lambda state: b(prepare(system(state))))


def _geared(of_bodies: Callable[[State], jax.Array]) -> Callable[[State], jax.Array]:
    """The mass matrix including armature, from a formulation that considers only the bodies."""
    return lambda state: state.tree.with_armature(of_bodies(state))


def _newton_euler(state: State) -> Any:
    return state.tree.vector(rnea.inverse_dynamics(state, None))


_GENERAL = _of_system(general_joints.mass_matrix, general_joints.bias)
_FICTITIOUS = _of_system(general_joints.fictitious_mass_matrix, general_joints.fictitious_bias)
_BARYCENTRIC = _of_system(wittenburg.mass_matrix, wittenburg.bias, hinged)
_WANG = _of_system(configuration.mass_matrix, configuration.bias, hinged)

METHODS: dict[str, Method] = {
    "crba": Method("composite rigid bodies", "any", crba.mass_matrix, _newton_euler),
    "configuration": Method("Y 3.4", "any", *_GENERAL),
    "fictitious": Method("Y 3.4.5", "any, free roots", *_FICTITIOUS, _free_root),
    "barycentric": Method("Y 3.2-3.3", "rotational, free roots", *_BARYCENTRIC, wittenburg.obstacle),
    "wang": Method("W 2-3", "rotational, free roots", *_WANG, wittenburg.obstacle),
    "planar": Method("Y 3.2.2", "revolute, parallel axes", _geared(planar.mass_matrix), planar.bias, planar.obstacle),
    "telegin": Method("T 1-4", "revolute", telegin.mass_matrix, _newton_euler, telegin.obstacle),
    "jacobian": Method("virtual power", "any", _geared(jacobians.mass_matrix), jacobians.bias),
}


def _obstacle(name: str, model: Model) -> str | None:
    """Why a method cannot serve a model, or None."""
    if model.structure.flexible and name != "crba":
        return "it has flexible bodies, and this method knows rigid ones only"
    return METHODS[name].obstacle(model)


def find(name: str, model: Model, also: tuple[str, ...] = ()) -> Method:
    """The method of that name. Raises ModelError if there is none or if it cannot serve the model; the message then names
    those that can.

    also: names that the caller handles itself, for the message.
    """
    if name not in METHODS:
        raise unknown("method", name, (*also, *METHODS))
    reason = _obstacle(name, model)
    if reason:
        able = (*also, *(n for n in METHODS if _obstacle(n, model) is None))
        raise ModelError(
            f"method {name!r} does not support model {model.name!r}: {reason}; methods that can: {', '.join(able)}"
        )
    return METHODS[name]
