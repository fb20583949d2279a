"""Stops: events that repeat and whose impact throws back what meets them, or that let nothing rebound; whether one is
passed all the same.

A rebound as good as zero leaves the guard on zero. What is pulled away from there leaves by itself; what is pressed on
would pass without a further event, for the guard does not rise again: that ends the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from jaxmbs.simulate.jumps import rebound
from jaxmbs.simulate.locating import any_of
from jaxmbs.spatial.scalar import is_number


class Stops:
    """of_guard: per guard the number of its event; again: per event whether it may happen several times.

    Of every guard of a stop a run carries whether it is met: when it last happened it did not throw back what met it.
    """

    def __init__(self, tree: Any, of_guard: Sequence[int], again: Sequence[bool]):
        events = tree.structure.events
        # what a lock holds has no need to let go
        self.held = [not any(a.strikes for a in e.then) for e in events]
        self.once = [not more and any(a.strikes and _dead(tree, e, a) for a in e.then)
                     for e, more in zip(events, again, strict=True)]  # fmt: skip
        stops = [once or (more and any(a.strikes or rebound(tree, e, a) for a in e.then))
                 for e, more, once in zip(events, again, self.once, strict=True)]  # fmt: skip
        self.of_guard = of_guard
        self.guards = [i for i, k in enumerate(of_guard) if stops[k]]
        self.near = float(jnp.finfo(tree.dtype).eps) ** 0.5

    def __contains__(self, guard: int) -> bool:
        return guard in self.guards

    def start(self, g: Sequence[Any]) -> tuple[Any, ...]:
        """Per guard of a stop whether the run begins on it; of a stop with two sides nobody knows which one it would be."""
        alone = [self.of_guard.count(self.of_guard[i]) == 1 for i in self.guards]
        return tuple((g[i] >= 0) & (g[i] <= self.near) & one for i, one in zip(self.guards, alone, strict=True))

    def leaves(self, value: Any, rate: Any) -> Any:
        """Whether a guard has left zero, or is about to by more than rounding."""
        return (value < -self.near) | ((value <= self.near) & (rate < -self.near))

    def passed(self, met: Sequence[Any], g: Sequence[Any], armed: Sequence[Any]) -> Any:
        """Whether one that is met has risen; armed: per guard whether its event may happen, or has happened."""
        return any_of([m & armed[i] & (g[i] > self.near) for m, i in zip(met, self.guards, strict=True)])

    def met(
        self, before: Sequence[Any], g: Sequence[Any], slope: Sequence[Any], found: Any, now: Sequence[Any], due: Any,
        closed: Sequence[Any],
    ) -> tuple[Any, ...]:  # fmt: skip
        """Which are, after a turn in which the events `now` happen, by the guard found, and their locks close (closed) or
        rebound, or that of `due` has its impact."""
        out = []
        for m, i in zip(before, self.guards, strict=True):
            k, y, s = self.of_guard[i], g[i], slope[i]
            rests = m & (jnp.abs(s) <= self.near) & ~self.leaves(y, s)
            after = jnp.where(due == k, rests, m)
            meets = (found == i) & ~(closed[k] & self.held[k])
            out.append(jnp.where(now[k], meets, after))
        return tuple(out)


def _dead(tree: Any, event: Any, action: Any) -> bool:
    """Whether nothing rebounds from what strikes, whatever the numbers of an instance."""
    e = tree.values[f"{event.prefix(action)}.restitution"]
    return is_number(e) and e == 0
