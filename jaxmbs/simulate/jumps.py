"""What events change: locks, switches, and velocities that jump with the momentum kept."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained.constraints import constraints, velocities
from jaxmbs.dynamics.constrained.multipliers import Metric
from jaxmbs.dynamics.recursive import aba
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.scene import LinkLoads
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model
from jaxmbs.model.structure import Event, Structure
from jaxmbs.spatial import ZERO_MOTION, Motion
from jaxmbs.spatial.scalar import mul

Picks = Sequence[Any]  # per event, whether it happens now


class _AtRest(State):
    """The tree without gravity and force elements: what impulses meet."""

    @property
    def base_acceleration(self) -> Motion:
        return ZERO_MOTION

    @functools.cached_property
    def loads(self) -> LinkLoads:
        return LinkLoads()


def start_mode(model: Model, mode: Mode | None, held: Iterable[str]) -> Mode | None:
    """The mode at the start of a run: what is given, and the joints that are held from then on."""
    s, names = model.structure, (*model.structure.held, *([held] if isinstance(held, str) else held))
    if not names and not s.events:
        return mode
    given = model.mode() if mode is None else mode
    locked = np.zeros(model.nv, bool)
    for joint in names:
        locked[s.v_slices[s.find_joint(joint, "simulate(held=...)")]] = True
    return Mode(given.lock | locked, jnp.asarray(given.force), jnp.asarray(given.constraint))


def next_mode(s: Structure, mode: Mode, picks: Picks) -> Mode:
    """The mode after the events that happen now."""
    lock, force, constraint = mode.lock, mode.force, mode.constraint
    forces = [f.name for f in s.forces]
    constrained = [x.name for x in (*s.loops, *s.constraints)]
    for event, now in zip(s.events, picks, strict=True):
        for a in event.then:
            if a.locks or a.releases:
                own = np.zeros(s.nv, bool)
                own[s.v_slices[s.find_joint(a.joint)]] = True  # pyright: ignore[reportAttributeAccessIssue]
                lock = jnp.where(now & own, a.locks, lock)
            if a.switches is not None:
                name = a.name  # pyright: ignore[reportAttributeAccessIssue]
                force = jnp.where(now & np.array([f == name for f in forces], bool), a.switches, force)
                constraint = jnp.where(now & np.array([c == name for c in constrained], bool), a.switches, constraint)
    return Mode(lock, force, constraint)


def jumps(s: Structure, event: Event) -> bool:
    """Whether velocities jump when the event happens."""
    constrained = {x.name for x in (*s.loops, *s.constraints)}
    return any(a.locks or a.strikes or (a.switches and getattr(a, "name", "") in constrained) for a in event.then)


def struck(tree: Tree, v: Any, picks: Picks) -> tuple[Any, Any]:
    """(nv,) whether a freedom is struck now, and its rate after that."""
    s, dtype = tree.structure, tree.dtype
    hit, after = jnp.zeros(s.nv, bool), jnp.zeros(s.nv, dtype)
    v = tree.vector(v)
    for event, now in zip(s.events, picks, strict=True):
        for a in (a for a in event.then if a.strikes):
            own = np.zeros(s.nv, bool)
            own[s.v_slices[s.find_joint(a.joint)]] = True  # pyright: ignore[reportAttributeAccessIssue]
            e = jnp.asarray(tree.values[f"{event.name}.restitution"], dtype)
            hit, after = hit | (now & own), jnp.where(now & own, -e * v, after)
    return hit, after


def after_impact(tree: Tree, q: Any, v: Any, t: Any, mode: Mode, hit: Any, after: Any) -> Any:
    """Velocities after an impact: locked freedoms stop, struck ones take the given rates, constraints hold.

    A (v+ - v-) = impulses along these rows alone, so that the momentum of all else is kept.
    """
    rigid = Mode(mode.lock | hit, mode.force, mode.constraint)
    vector = tree.vector(v)
    wanted = jnp.where(hit, after, 0.0) - vector
    if tree.structure.constrained or tree.structure.rheonomic:
        state = State(tree, q, v, t, rigid)
        found = constraints(state)
        target = tuple(mul(-1, rate) for rate in velocities(state, found))
        change, _ = Metric.of(state, found, list(wanted)).closest([0.0] * tree.structure.nv, target)
        return [a + b for a, b in zip(v, change, strict=True)]
    zero = jnp.zeros_like(vector)
    still = _AtRest(tree, q, zero if tree.rolled else list(zero), t, rigid)
    change = aba.forward_dynamics(still, None, wanted if tree.rolled else list(wanted))
    return v + change if tree.rolled else [a + b for a, b in zip(v, change, strict=True)]
