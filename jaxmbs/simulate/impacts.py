"""Impacts: which rates an event prescribes, and the velocities after it."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained.constraints import constraints
from jaxmbs.dynamics.recursive import aba
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.state import Inertial
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.dynamics.state.vectors import each
from jaxmbs.model import Mode
from jaxmbs.simulate.mode_changes import Picks, freedoms, locks_late, numbers
from jaxmbs.spatial import ZERO_MOTION


def struck(tree: Tree, v: Any, picks: Picks, closed: Picks) -> tuple[Any, Any]:
    """(hit, after), each (nv,): whether a degree of freedom is struck now, and its rate after the impact. closed: per
    event, whether its locks close."""
    s, dtype = tree.structure, tree.dtype
    hit, after = jnp.zeros(s.nv, bool), jnp.zeros(s.nv, dtype)
    v = tree.vector(v)
    for event, now, shut in zip(s.events, picks, closed, strict=True):
        for a in event.then:
            late = locks_late(tree, event, a)
            if not a.strikes and not late:
                continue
            own = np.zeros(s.nv, bool)
            own[freedoms(s, a)] = True
            before = v[freedoms(s, a)]
            rates = jnp.broadcast_to(jnp.asarray(a.rates_after(numbers(tree, event, a), before), dtype), before.shape)
            own = (now & ~shut if late else now) & own
            hit, after = hit | own, jnp.where(own, _placed(rates, s.nv, freedoms(s, a)), after)
    return hit, after


def _placed(x: Any, n: int, own: slice) -> Any:
    """A vector (n,) with x in the slice `own` and zeros elsewhere."""
    if x.shape[0] == n:
        return x
    return jax.lax.pad(x, jnp.zeros((), x.dtype), [(own.start, n - own.stop, 0)])


class Impact(NamedTuple):
    """A possible jump of velocities in one iteration of a run. now: whether they jump; hit (nv,): which degrees of
    freedom are struck; after (nv,): their rates after the impact."""

    now: Any
    hit: Any
    after: Any

    def lock(self, mode: Mode) -> Any:
        """(nv,) the degrees of freedom whose rates after the impact are prescribed: locked ones and struck ones."""
        return self.hit if mode.lock is None else mode.lock | self.hit

    def rigid(self, mode: Mode) -> Mode:
        """The mode with the degrees of freedom of `lock` locked."""
        return replace(mode, lock=self.lock(mode))

    def stopped(self, tree: Tree, v: Any, mode: Mode) -> list[Any]:
        """v, with the prescribed rates in place if velocities jump."""
        lock, given = self.lock(mode), jnp.where(self.hit, self.after, 0.0)
        return [
            jnp.where(self.now & lock[k], given[k], x) if may else x
            for k, (x, may) in enumerate(zip(v, tree.lockable, strict=True))
        ]

    def jumps(self, tree: Tree, v: Any, mode: Mode) -> list[Any]:
        """The prescribed rates minus v, if velocities jump; otherwise 0."""
        stopped = self.stopped(tree, v, mode)
        return [a - b if may else 0 for a, b, may in zip(stopped, v, tree.lockable, strict=True)]


def after_impact(tree: Tree, q: Any, v: Any, t: Any, mode: Mode, impact: Impact) -> Any:
    """Velocities after an impact: locked degrees of freedom stop, struck ones take their given rates, constraints hold.

    The generalized momentum changes by the impulses of these alone: A (v+ - v-) is their sum.
    """
    rigid, vector = impact.rigid(mode), tree.vector(v)
    wanted = jnp.where(impact.hit, impact.after, 0.0) - vector
    if tree.structure.constrained:
        found = constraints(State(tree, q, v, t, rigid))
        change, _ = found.metric(wanted).closest(None, each(operator.neg, found.rate))
        return each(operator.add, v, change)
    # gravity, force elements, velocity terms and joints that move as functions of time give no impulse
    still = Inertial(tree, q, jnp.zeros_like(vector) if tree.rolled else [0] * tree.structure.nv, t, rigid)
    still = still.moving([replace(m, V=ZERO_MOTION, c=ZERO_MOTION) for m in still.motions])
    change = aba.forward_dynamics(still, None, wanted if tree.rolled else list(wanted))
    return each(operator.add, v, change)
