"""Stops: repeating events with a rebound, and events that stop a joint. Detects motion that would pass a stop.

A rebound that is zero to rounding leaves the guard at zero. A motion that is then pulled away leaves the stop. A motion
that is pressed against it would pass the stop without another event, because the guard does not rise through zero
again; the run then ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from jaxmbs.simulate.locating import any_of
from jaxmbs.simulate.mode_changes import rebounding, throws_back


class Stops:
    """The stops among the events. of_guard: index of the event of each guard; again: for each event, whether it may
    happen several times.

    For every guard of a stop, the state of a run contains whether the stop is met. This means that the motion did not
    rebound from it when its event last happened.
    """

    def __init__(self, tree: Any, of_guard: Sequence[int], again: Sequence[bool]):
        events = tree.structure.events
        # a locked joint cannot pass its stop, which therefore need not be watched
        self.held = [not any(a.strikes for a in e.then) for e in events]
        self.once = [not more and any(a.strikes and not throws_back(tree, e, a) for a in e.then)
                     for e, more in zip(events, again, strict=True)]  # fmt: skip
        stops = [once or (more and (any(a.strikes for a in e.then) or rebounding(tree, e)))
                 for e, more, once in zip(events, again, self.once, strict=True)]  # fmt: skip
        self.of_guard = of_guard
        self.guards = [i for i, k in enumerate(of_guard) if stops[k]]
        self.near = float(jnp.finfo(tree.dtype).eps) ** 0.5

    def __contains__(self, guard: int) -> bool:
        return guard in self.guards

    def start(self, g: Sequence[Any]) -> tuple[Any, ...]:
        """For each guard of a stop, whether the run begins on the stop. False for a stop with several guards, since it
        is unknown which of them would be met."""
        alone = [self.of_guard.count(self.of_guard[i]) == 1 for i in self.guards]
        return tuple((g[i] >= 0) & (g[i] <= self.near) & one for i, one in zip(self.guards, alone, strict=True))

    def leaves(self, value: Any, rate: Any) -> Any:
        """Whether a guard has fallen below zero, or is falling, by more than rounding."""
        return (value < -self.near) | ((value <= self.near) & (rate < -self.near))

    def passed(self, met: Sequence[Any], g: Sequence[Any], armed: Mapping[int, Any]) -> Any:
        """Whether the guard of any stop that is met has risen above zero, by more than rounding. armed: {guard of a
        stop: whether its event may happen or has happened}."""
        return any_of([m & armed[i] & (g[i] > self.near) for m, i in zip(met, self.guards, strict=True)])

    def met(
        self, before: Sequence[Any], g: Sequence[Any], slope: Sequence[Any], found: Any, now: Sequence[Any], due: Any,
        closed: Sequence[Any],
    ) -> tuple[Any, ...]:  # fmt: skip
        """For each guard of a stop, whether the stop is met after this iteration.

        before: the same before the iteration; g, slope: values and rates of the guards; found: guard that triggers the
        event of this iteration, if there is one; now: for each event, whether it happens; due: event whose impact is
        computed in this iteration; closed: for each event, whether its locks close.
        """
        out = []
        for m, i in zip(before, self.guards, strict=True):
            k, y, s = self.of_guard[i], g[i], slope[i]
            rests = m & (jnp.abs(s) <= self.near) & ~self.leaves(y, s)
            after = jnp.where(due == k, rests, m)
            meets = (found == i) & ~(closed[k] & self.held[k])
            out.append(jnp.where(now[k], meets, after))
        return tuple(out)
