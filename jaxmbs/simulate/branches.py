"""Switching surfaces of force elements (`Force.corners`, `Force.instants`), which a run locates like events.

A trial step stays on the branch (`sides`) on which it began, so that the integrated function is smooth, and the next
step begins at the surface, on the other branch. The elements state how many loop iterations are reserved for this
(`trials`). When these are used up, branches change only at the ends of steps, and the energy balance shows whether that
was accurate enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.model import Mode
from jaxmbs.simulate.guards import Guards
from jaxmbs.simulate.run_state import Judged, RunState, Tried
from jaxmbs.simulate.steppers.base import Phase

LOCATING = 12  # loop iterations reserved for locating one event


class Branches:
    """The switching surfaces of a run: corners, whose guards are numbered after those of the events, and instants,
    whose times are known.

    spare: number of loop iterations that are reserved for locating corners.
    """

    def __init__(self, guards: Guards, t: Any, phase: Phase, mode: Mode):
        self.guards = guards
        self.at_start, self.corners, self.instants = guards.kinks(t, phase, mode)
        self.spare = sum(guards.tree.structure.forces[k].element.trials for k, _ in self.corners)

    def first(self, mode: Mode) -> Mode:
        """The mode at the start, with the branches of the force elements."""
        return replace(mode, sides=self.at_start if self.corners or self.instants else None)

    def searches(self, x: RunState) -> Any:
        """Whether an event or a corner is being located, and iterations are left for it."""
        return (x.search.guard >= 0) & (x.spare > -LOCATING)

    def waits(self, mode: Mode, t: Any) -> list[Any]:
        """Per instant, the time [s] until it; infinite if it has passed."""
        return [jnp.where(_sides(mode, k)[j], jnp.inf, time - t) for k, j, time in self.instants]

    def armed(self, x: RunState) -> list[Any]:
        """Per corner, whether its guard counts now: iterations are left for it, and its element acts."""
        out = []
        for i, (k, _) in enumerate(self.corners, len(x.below)):
            room = (x.spare > 0) | ((x.search.guard == i) & (x.spare > -LOCATING))
            acts = True if x.mode.force is None else x.mode.force[k]
            out.append(~x.done & room & acts)
        return out

    def after(self, x: RunState, tried: Tried, judged: Judged) -> Any:
        """The branches (`sides`) after this iteration."""
        if x.mode.sides is None:
            return None
        out = judged.out
        flips: list[list[Any]] = [[False] * n for n in x.mode.sides.counts]
        for i, (k, j) in enumerate(self.corners, len(x.below)):
            unseen = (judged.values[i] >= 0) & ~judged.armed[i]  # crossed while its guard did not count
            flips[k][j] = unseen | (out.happens & (out.found == i))
        for i, (k, j, _) in enumerate(self.instants):
            flips[k][j] = out.ticks & (tried.instant == i)
        return x.mode.sides.flipped(flips)

    def after_samples(self, t: Any, phase: Phase, mode: Mode, written: Sequence[int], now: Any) -> Mode:
        """The mode after controllers have set numbers of the `written` force elements, if they did so `now`: such an
        element may then be on another side of its corners."""
        sides, guards = mode.sides, self.guards
        if sides is None or not any(k in written for k, _ in self.corners):
            return mode

        def renewed() -> Any:
            fresh = guards.kinks(t, phase, mode).sides
            pairs = [zip(fresh.of(k), sides.of(k), strict=True) for k in range(len(sides.counts))]
            flips = [[a != b if k in written else False for a, b in own] for k, own in enumerate(pairs)]
            return sides.flipped(flips)

        return replace(mode, sides=jax.lax.cond(now, renewed, lambda: sides))


def _sides(mode: Mode, k: int) -> Any:
    assert mode.sides is not None  # where there are instants
    return mode.sides.of(k)
