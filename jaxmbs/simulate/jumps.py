"""What events change: locks, switches, and velocities that jump with the momentum kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained.constraints import constraints, velocities
from jaxmbs.dynamics.constrained.multipliers import Metric
from jaxmbs.dynamics.recursive import aba
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.state import Inertial
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model
from jaxmbs.model.events import Action
from jaxmbs.model.events.base import Numbers
from jaxmbs.model.structure import Event, Structure
from jaxmbs.simulate.guards import cornered
from jaxmbs.spatial import ZERO_MOTION
from jaxmbs.spatial.scalar import mul

Picks = Sequence[Any]  # per event, whether it happens now


class Changes(NamedTuple):
    """What may change in a run: per freedom whether it may be locked, per force element and constraint whether it is
    switched."""

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
            found.lock[_freedoms(s, action)] = True
        if action.switch() is not None:
            name = action.name  # pyright: ignore[reportAttributeAccessIssue]
            found.force[:] = [f.name == name for f in s.forces]
            found.constraint[:] = [c.name == name for c in (*s.loops, *s.constraints)]
        return found

    @staticmethod
    def switched_on(s: Structure, event: Event) -> np.ndarray:
        """(constraints,) those that an event switches on."""
        on = [Changes.by(s, a).constraint for a in event.then if a.switch()]
        return np.any([np.zeros(len(s.loops) + len(s.constraints), bool), *on], axis=0)

    @staticmethod
    def of(s: Structure, held: Iterable[str]) -> Changes:
        """What all events change, and the joints that are held at the start."""
        found = Changes.none(s)
        for part in (Changes.by(s, a) for e in s.events for a in e.then):
            for whole, own in zip(found, part, strict=True):
                whole |= own
        found.lock[:] |= held_freedoms(s, held)
        force, constraint = off_at_start(s)
        return Changes(found.lock, found.force | force, found.constraint | constraint)

    def only(self, mode: Mode) -> Mode:
        """The mode with the switches that never change as constants of the program."""
        force, constraint = mode.force, mode.constraint
        return replace(
            mode,
            force=None if force is None else force | ~self.force,
            constraint=None if constraint is None else constraint | ~self.constraint,
        )

    def lockable(self, s: Structure) -> tuple[bool, ...]:
        """Per freedom whether it may ever be locked, even if only at the instant of an impact (`Tree.lockable`)."""
        found = self.lock.copy()
        for action in (a for e in s.events for a in e.then if a.strikes):
            found[_freedoms(s, action)] = True
        return tuple(found.tolist())


def held_freedoms(s: Structure, held: Iterable[str]) -> np.ndarray:
    """(nv,) which freedoms are locked at the start: those of held joints, and those that releasable joints lock."""
    locked = np.array([x for link in s.links for x in link.locked], bool)
    for joint in held:
        locked[s.v_slices[s.find_joint(joint, "simulate(held=...)")]] = True
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
    """The mode at the start of a run: the given mode, with held joints locked and all in `off` switched off.
    Parts of it that never change are None, unless a mode was given."""
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
    """A mode with all its parts and without sides."""
    full = model.mode()
    lock = full.lock if mode.lock is None else mode.lock
    force = full.force if mode.force is None else mode.force
    return Mode(lock, force, full.constraint if mode.constraint is None else mode.constraint)


def rebounding(tree: Tree, event: Event) -> bool:
    """Whether a joint may rebound before the event locks it."""
    return any(_locks_late(tree, event, a) for a in event.then)


def closes(tree: Tree, event: Event, v: Any) -> Any:
    """Whether all locks of an event close when it happens: no joint rebounds faster than it may."""
    closed = jnp.asarray(True)
    for action in event.then:
        if _locks_late(tree, event, action):
            p = _numbers(tree, event, action)
            closed &= action.closes(p, tree.vector(v)[_freedoms(tree.structure, action)])
    return closed


def throws_back(tree: Tree, event: Event, action: Action) -> bool:
    """Whether the joint of an action may rebound, as far as the structure tells."""
    return action.rebounds(_numbers(tree, event, action))


def _locks_late(tree: Tree, event: Event, action: Action) -> bool:
    """Whether an action locks a joint that may rebound first."""
    return bool(action.lock()) and throws_back(tree, event, action)


def _numbers(tree: Tree, event: Event, action: Action) -> Numbers:
    return tree.values.of(event.prefix(action), action.numbers)


def _freedoms(s: Structure, action: Action) -> slice:
    """Those of the action's joint."""
    return s.v_slices[s.find_joint(action.joint)]  # pyright: ignore[reportAttributeAccessIssue]


def next_mode(tree: Tree, mode: Mode, picks: Picks, closed: Picks) -> Mode:
    """The mode after the events that happen now; closed: per event whether its locks do."""
    s = tree.structure
    parts: tuple[Any, Any, Any] = (mode.lock, mode.force, mode.constraint)  # None: what no event changes
    lock, force, constraint = parts
    for event, now, shut in zip(s.events, picks, closed, strict=True):
        for a in event.then:
            own = Changes.by(s, a)
            holds = now & shut if _locks_late(tree, event, a) else now
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


def struck(tree: Tree, v: Any, picks: Picks, closed: Picks) -> tuple[Any, Any]:
    """(nv,) whether a freedom is struck now, and its rate after that; closed: per event whether its locks close."""
    s, dtype = tree.structure, tree.dtype
    hit, after = jnp.zeros(s.nv, bool), jnp.zeros(s.nv, dtype)
    v = tree.vector(v)
    for event, now, shut in zip(s.events, picks, closed, strict=True):
        for a in event.then:
            late = _locks_late(tree, event, a)
            if not a.strikes and not late:
                continue
            own = np.zeros(s.nv, bool)
            own[_freedoms(s, a)] = True
            rates = jnp.asarray(a.rates_after(_numbers(tree, event, a), v[_freedoms(s, a)]), dtype)
            own = (now & ~shut if late else now) & own
            hit, after = hit | own, jnp.where(own, _placed(rates, s.nv, _freedoms(s, a)), after)
    return hit, after


def _placed(x: Any, n: int, own: slice) -> Any:
    """(n,) with x at its own places and zeros elsewhere."""
    if x.shape[0] == n:
        return x
    return jax.lax.pad(x, jnp.zeros((), x.dtype), [(own.start, n - own.stop, 0)])


class Impact(NamedTuple):
    """A turn of a run in which velocities may jump. now: whether they do; hit (nv,): which freedoms are struck; after
    (nv,): their rates after the impact."""

    now: Any
    hit: Any
    after: Any

    def lock(self, mode: Mode) -> Any:
        """(nv,) the freedoms whose rates after the impact are given: the locked ones and the struck ones."""
        return self.hit if mode.lock is None else mode.lock | self.hit

    def rigid(self, mode: Mode) -> Mode:
        """The mode with the freedoms of `lock` locked."""
        return replace(mode, lock=self.lock(mode))

    def stopped(self, tree: Tree, v: Any, mode: Mode) -> list[Any]:
        """v with the rates that are given, where velocities jump."""
        lock, given = self.lock(mode), jnp.where(self.hit, self.after, 0.0)
        return [
            jnp.where(self.now & lock[k], given[k], x) if may else x
            for k, (x, may) in enumerate(zip(v, tree.lockable, strict=True))
        ]

    def jumps(self, tree: Tree, v: Any, mode: Mode) -> list[Any]:
        """By how much the given rates differ from v where velocities jump; 0 elsewhere."""
        stopped = self.stopped(tree, v, mode)
        return [a - b if may else 0 for a, b, may in zip(stopped, v, tree.lockable, strict=True)]


def after_impact(tree: Tree, q: Any, v: Any, t: Any, mode: Mode, impact: Impact) -> Any:
    """Velocities after an impact: locked freedoms stop, struck ones take the given rates, constraints hold.

    A (v+ - v-) = impulses along these rows alone, so that the momentum of all else is kept.
    """
    rigid, vector = impact.rigid(mode), tree.vector(v)
    wanted = jnp.where(impact.hit, impact.after, 0.0) - vector
    if tree.structure.constrained:
        state = State(tree, q, v, t, rigid)
        found = constraints(state)
        if tree.rolled:
            metric = Metric.of(state, found, wanted)
            return v + metric.closest(jnp.zeros_like(vector), -velocities(state, found))[0]
        target = tuple(mul(-1, rate) for rate in velocities(state, found))
        change, _ = Metric.of(state, found, list(wanted)).closest([0.0] * tree.structure.nv, target)
        return [a + b for a, b in zip(v, change, strict=True)]
    # gravity, force elements, and what velocities bring about give no impulse, nor do joints that move by themselves
    still = Inertial(tree, q, jnp.zeros_like(vector) if tree.rolled else [0] * tree.structure.nv, t, rigid)
    still = still.moving([replace(m, V=ZERO_MOTION, c=ZERO_MOTION) for m in still.motions])
    change = aba.forward_dynamics(still, None, wanted if tree.rolled else list(wanted))
    return v + change if tree.rolled else [a + b for a, b in zip(v, change, strict=True)]
