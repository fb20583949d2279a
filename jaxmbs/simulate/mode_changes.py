"""What events change: locks, switches, and whether velocities jump."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model
from jaxmbs.model.events import Action
from jaxmbs.model.events.base import Numbers
from jaxmbs.model.structure import Event, Structure
from jaxmbs.simulate.guards import cornered

Picks = Sequence[Any]  # for each event, whether it happens now


class Changes(NamedTuple):
    """What may change in a run: whether each degree of freedom may be locked, and whether each force element and each
    constraint may be switched on or off."""

    lock: np.ndarray
    force: np.ndarray
    constraint: np.ndarray

    @staticmethod
    def none(s: Structure) -> Changes:
        return Changes(*(np.zeros(n, bool) for n in (s.nv, len(s.forces), len(s.loops) + len(s.constraints))))

    @staticmethod
    def by(s: Structure, action: Action) -> Changes:
        """What one action changes."""
        found = Changes.none(s)
        if action.lock() is not None:
            found.lock[freedoms(s, action)] = True
        if action.switch() is not None:
            name = action.name  # pyright: ignore[reportAttributeAccessIssue]
            found.force[:] = [f.name == name for f in s.forces]
            found.constraint[:] = [c.name == name for c in (*s.loops, *s.constraints)]
        return found

    @staticmethod
    def switched_on(s: Structure, event: Event) -> np.ndarray:
        """Mask (constraints,) of those that an event switches on."""
        on = [Changes.by(s, a).constraint for a in event.then if a.switch()]
        return np.any([np.zeros(len(s.loops) + len(s.constraints), bool), *on], axis=0)

    @staticmethod
    def of(s: Structure, held: Iterable[str]) -> Changes:
        """What the events change, and what is locked or switched off at the start."""
        found = Changes.none(s)
        for part in (Changes.by(s, a) for e in s.events for a in e.then):
            for whole, own in zip(found, part, strict=True):
                whole |= own
        found.lock[:] |= held_freedoms(s, held)
        force, constraint = off_at_start(s)
        return Changes(found.lock, found.force | force, found.constraint | constraint)

    def only(self, mode: Mode) -> Mode:
        """The mode in which switches that never change are constants of the program."""
        force, constraint = mode.force, mode.constraint
        return replace(
            mode,
            force=None if force is None else force | ~self.force,
            constraint=None if constraint is None else constraint | ~self.constraint,
        )

    def lockable(self, s: Structure) -> tuple[bool, ...]:
        """Per degree of freedom, whether it may ever be locked, even if only during an impact (`Tree.lockable`)."""
        found = self.lock.copy()
        for action in (a for e in s.events for a in e.then if a.strikes):
            found[freedoms(s, action)] = True
        return tuple(found.tolist())


def held_freedoms(s: Structure, held: Iterable[str]) -> np.ndarray:
    """(nv,) which degrees of freedom are locked at the start: all those of held joints, and those that releasable
    joints lock."""
    locked = np.array([x for link in s.links for x in link.locked], bool)
    for joint in held:
        locked[s.v_slices[s.find_moving(joint, "simulate(held=...)")]] = True
    return locked


def off_at_start(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Which force elements and which constraints do not act at the start."""
    parts = (s.forces, (*s.loops, *s.constraints))
    force, constraint = (np.array([x.name in s.off for x in part], bool) for part in parts)
    return force, constraint


def all_held(model: Model, held: str | Iterable[str]) -> tuple[str, ...]:
    """The joints that are locked at the start of a run: those that the model holds, and those given to the run."""
    return (*model.structure.held, *([held] if isinstance(held, str) else held))


def start_mode(model: Model, mode: Mode | None, held: Iterable[str]) -> Mode | None:
    """The mode at the start of a run: the given mode, with held joints locked and everything in `off` of the structure
    switched off. Its parts that never change are None, unless a mode was given."""
    s = model.structure
    locked = held_freedoms(s, held)
    if not locked.any() and not s.off and not s.events and not cornered(s):
        return mode
    no_force, no_constraint = off_at_start(s)
    given = model.mode() if mode is None else mode
    lock, force, constraint = (mode is not None or bool(own.any()) for own in Changes.of(s, held))
    return Mode(
        given.lock | locked if lock else None,
        jnp.asarray(given.force & ~no_force) if force else None,
        jnp.asarray(given.constraint & ~no_constraint) if constraint else None,
    )


def whole_mode(model: Model, mode: Mode) -> Mode:
    """The mode with lock, force and constraint as arrays, and without sides."""
    full = model.mode()
    lock = full.lock if mode.lock is None else mode.lock
    force = full.force if mode.force is None else mode.force
    return Mode(lock, force, full.constraint if mode.constraint is None else mode.constraint)


def rebounding(tree: Tree, event: Event) -> bool:
    """Whether a joint may rebound before the event locks it."""
    return any(locks_late(tree, event, a) for a in event.then)


def closes(tree: Tree, event: Event, v: Any) -> Any:
    """Whether all locks of an event close when it happens: no joint would rebound faster than its `rest_rate`."""
    closed = jnp.asarray(True)
    for action in event.then:
        if locks_late(tree, event, action):
            p = numbers(tree, event, action)
            closed &= action.closes(p, tree.vector(v)[freedoms(tree.structure, action)])
    return closed


def throws_back(tree: Tree, event: Event, action: Action) -> bool:
    """Whether the joint of an action may rebound, judged by the structure alone."""
    return action.rebounds(numbers(tree, event, action))


def locks_late(tree: Tree, event: Event, action: Action) -> bool:
    """Whether an action locks a joint that may rebound first."""
    return bool(action.lock()) and throws_back(tree, event, action)


def numbers(tree: Tree, event: Event, action: Action) -> Numbers:
    return tree.values.of(event.prefix(action), action.numbers)


def freedoms(s: Structure, action: Action) -> slice:
    """The degrees of freedom of the action's joint, as a slice of v."""
    return s.v_slices[s.find_joint(action.joint)]  # pyright: ignore[reportAttributeAccessIssue]


def next_mode(tree: Tree, mode: Mode, picks: Picks, closed: Picks) -> Mode:
    """The mode after the events that happen now; closed: per event, whether its locks close."""
    s = tree.structure
    parts: tuple[Any, Any, Any] = (mode.lock, mode.force, mode.constraint)  # None: no event changes it
    lock, force, constraint = parts
    for event, now, shut in zip(s.events, picks, closed, strict=True):
        for a in event.then:
            own = Changes.by(s, a)
            holds = now & shut if locks_late(tree, event, a) else now
            lock = jnp.where(holds & own.lock, bool(a.lock()), lock) if own.lock.any() else lock
            force = jnp.where(now & own.force, bool(a.switch()), force) if own.force.any() else force
            constraint = (
                jnp.where(now & own.constraint, bool(a.switch()), constraint) if own.constraint.any() else constraint
            )
    return Mode(lock, force, constraint, mode.sides)


def jumps(s: Structure, event: Event) -> bool:
    """Whether velocities jump when the event happens."""
    constrained = {x.name for x in (*s.loops, *s.constraints)}
    return any(a.lock() or a.strikes or (a.switch() and getattr(a, "name", "") in constrained) for a in event.then)
