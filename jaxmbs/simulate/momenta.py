"""The change of the momentum of a free-floating mechanism along a solution, which should be zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from jaxmbs.dynamics import momentum
from jaxmbs.model import Model, ModelError
from jaxmbs.model.forces.base import WORLD, Force
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.structure import ForceElement, Structure

if TYPE_CHECKING:
    from jaxmbs.simulate.solution import Solution


def momentum_error(solution: Solution, model: Model) -> tuple[jax.Array, jax.Array]:
    """See `Solution.momentum_error`."""
    s, values = model.structure, model.values()
    found = sorted(set(_from_outside(s)))
    if found:
        raise ModelError(
            f"momentum_error: {', '.join(map(repr, found))} may act on model {model.name!r} from outside, which changes its "
            "momentum; compare the change with the impulse that you know instead"
        )

    shed = {f.name: _carried(solution, model, f) for f in s.forces if f.element.carries}
    lost = [
        f"{name!r} ({(x[0] - x).max():.6g} kg)" for name, x in shed.items() if not is_traced(x) and (x != x[0]).any()
    ]
    if lost:
        raise ModelError(
            f"momentum_error: mass leaves {', '.join(lost)}, and its momentum with it; compare a run in which none leaves, "
            "or the momentum with the one that you know instead"
        )

    def at(states: dict[str, jax.Array], t: jax.Array, q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        return momentum(replace(model, overrides={**model.overrides, **states}), q, v, t=t)

    angular, linear = jax.vmap(at)(solution.states, solution.t, solution.q, solution.v)
    mass = sum(jnp.asarray(values[f"{body}.mass"]) for body in model.body_names)
    for f in s.forces:
        for carried in f.element.masses(values.of(f.name, f.element.numbers)).values():
            mass += jnp.asarray(carried.mass)
    fallen = jnp.outer(mass * (solution.t - solution.t[0]), jnp.stack([jnp.asarray(x) for x in values["gravity"]]))
    linear = (linear - linear[:1] - fallen).astype(linear.dtype)
    kept = jnp.all(jnp.stack([x == x[0] for x in shed.values()]), axis=0)[:, None] if shed else True
    return jnp.where(kept, angular - angular[:1], jnp.nan), jnp.where(kept, linear, jnp.nan)


def _carried(solution: Solution, model: Model, force: ForceElement) -> jax.Array:
    """The mass [kg] (rows,) that a force element adds to bodies."""

    def at(states: dict[str, jax.Array]) -> jax.Array:
        p = replace(model, overrides={**model.overrides, **states}).values().of(force.name, force.element.numbers)
        return sum((jnp.asarray(x.mass) for x in force.element.masses(p).values()), jnp.zeros(()))

    own = {name: x for name, x in solution.states.items() if name.startswith(f"{force.name}.")}
    return jax.vmap(at)(own) if own else jnp.broadcast_to(at({}), solution.t.shape)


def _from_outside(s: Structure) -> Iterator[str]:
    """Names of the joints, events, elements and constraints that connect bodies to the world, other than free joints and
    uniform gravity."""
    roots = {link.name: link for link in s.links if link.parent < 0}
    for name, link in roots.items():
        if not link.joint.free or name in s.held or any(link.locked):
            yield name
    for event in s.events:
        if any(getattr(action, "joint", None) in roots for action in event.then):
            yield event.name
    yield from (loop.name for loop in s.loops if WORLD in (loop.body_a, loop.body_b))
    for c in s.constraints:
        joints = () if c.element.bodies else c.element.joints
        if not joints or any(getattr(c.element, joint) in roots for joint in joints):
            yield c.name
    for f in s.forces:
        ends = [getattr(f.element, field) for field in f.element.bodies]
        on_root = any(getattr(f.element, joint) in roots for joint in f.element.joints)
        alone = len(ends) == 1 or f.element.on_every_mass or f.element.source
        alone &= type(f.element).spins is Force.spins  # what turns inside the mechanism belongs to it
        if WORLD in ends or on_root or alone:
            yield f.name
