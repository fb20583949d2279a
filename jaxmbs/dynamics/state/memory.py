"""Rates of the elements' states, and the energy that moves with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state.loads import elements
from jaxmbs.dynamics.state.state import State
from jaxmbs.model import ModelError
from jaxmbs.model.field_rules import RULES
from jaxmbs.model.fields import declared
from jaxmbs.model.forces.base import Force
from jaxmbs.model.forces.sampled_force import SampledForce
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, where

States = tuple[tuple[Scalar, ...], ...]


def rates(state: State) -> States:
    """The rate of every state, in the order of `Structure.states`; zero where its element is switched off."""
    s = state.tree.structure
    if not s.states:
        return ()
    held = {name for x in s.controllers for name in x.fixed.writes}
    held |= {f"{x.name}.{own}" for x in s.controllers for own in ("state", "commands")}
    held |= {f"{x.name}.reading" for x in s.sensors}
    found: dict[str, tuple[Scalar, ...]] = {p.name: (ZERO,) * len(p.pattern) for p in s.states if p.name in held}
    for name, element, numbers, seen, on in elements(state.scene, state.mode):
        own = [p for p in s.states if p.name.rpartition(".")[0] == name and p.name not in held]
        given = element.rates(numbers, seen) if own else {}
        for p in own:
            field = p.name.rpartition(".")[2]
            if field not in given and isinstance(element, SampledForce):  # held; a sample checks that it takes values
                found[p.name] = (ZERO,) * len(p.pattern)
                continue
            if field not in given:
                raise ModelError(f"force {name!r}: {type(element).__name__}.rates gives no rate of its state {field!r}")
            x = given[field]
            parts = tuple(x) if len(RULES[p.kind].forms[0]) else (x,)
            if len(parts) != len(p.pattern):
                raise ModelError(
                    f"force {name!r}: the rate of {field!r} has {len(parts)} numbers, but the state has {len(p.pattern)}"
                )
            found[p.name] = tuple(where(on, c, 0.0) for c in parts)
    return tuple(found[p.name] for p in s.states)


def power(energy: Callable[[State], Scalar], state: State, rates: States) -> Scalar:
    """The rate [W] at which the energy of the mechanism changes because states do, at constant q and v, as when mass
    leaves it."""
    tree = state.tree
    if not rates or not any(_holds_energy(f.element) for f in tree.structure.forces):
        return ZERO

    def of(states: Any) -> jax.Array:
        return jnp.asarray(energy(State(tree.remembering(states), state.q, state.v, state.t, state.mode)), tree.dtype)

    now, along = (jax.tree_util.tree_map(lambda x: jnp.asarray(x, tree.dtype), x) for x in (tree.states, rates))
    return jax.jvp(of, (now,), (along,))[1]


def _holds_energy(element: Force) -> bool:
    return any(d.is_state for d in declared(type(element))) and (
        element.carries or type(element).potential is not Force.potential
    )
