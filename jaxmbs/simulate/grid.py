"""The times of a run: t0 + i dt and exactly t_end, or given times; never a running sum, which accumulates rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model import ModelError
from jaxmbs.model.parameters import is_traced
from jaxmbs.simulate.loops import shared, sizes

DT = 1e-3  # [s] length of the steps of a run that gives neither a length nor a tolerance
FIRST = 1 / 64  # length of the first trial step of an adaptive run, as a fraction of the given longest step
START = 1e-5  # the same if no longest step is given, as a fraction of the run
MOST_STEPS = 100_000_000  # their times alone take some gigabytes


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Grid:
    """The cells of a run, one step each. Without `points`, they have the length dt from t0 [s] on, except for the last,
    which has the length `last` and ends at t_end. With `points`, they lead from each point to the next, and dt is the
    length of the longest. first: length of the first trial step of an adaptive run.

    The times are inputs of the compiled program, `steps` is part of it: the number of steps, or the number for which
    the program has room; then `count` is the number of steps, and an input as well.
    """

    t0: Any
    t_end: Any
    dt: Any
    last: Any
    first: Any
    steps: int = field(metadata={"static": True})
    points: Any = None
    count: Any = None

    @staticmethod
    def of(t0: Any, t_end: Any, dt: Any) -> Grid:
        """The grid; dt = None: one cell, for steps as long as a tolerance allows. Raises ModelError for times that
        define no grid."""
        start, end = _plain("t0", t0), _plain("t_end", t_end)
        if end <= start:
            raise ModelError(f"simulate: t_end = {t_end!r} must be later than t0 = {t0!r}")
        length = end - start if dt is None else _plain("dt", dt)
        if length <= 0:
            raise ModelError(f"simulate: dt is {dt!r}; pass a positive number of seconds")
        steps = max(1, _counted((end - start) / length, dt))
        if steps > 1 and (start + length == start or end - length == end):
            raise ModelError(
                f"simulate: dt is {dt!r}, which is below the rounding error of times up to {max(abs(start), abs(end)):g} s; "
                "pass a longer dt, or let the run begin at t0 = 0"
            )
        first = START * (end - start) if dt is None else FIRST * length
        return Grid(start, end, length, end - (start + (steps - 1) * length), first, steps)

    @staticmethod
    def through(times: Any, dt: Any) -> tuple[Grid, np.ndarray]:
        """The grid with steps of at most dt from each of the times to the next (dt = None: one step), and the indices
        of the times among its points."""
        if is_traced(times):
            raise ModelError("simulate: times are traced, but they set the number of steps; pass plain numbers")
        rows, longest = np.asarray(times, float), math.inf if dt is None else _plain("dt", dt)
        if rows.ndim != 1 or len(rows) < 2 or not np.isfinite(rows).all() or not (np.diff(rows) > 0).all():
            raise ModelError(
                f"simulate: times are {times!r}; pass two or more numbers of seconds, each later than the one before"
            )
        if longest <= 0:
            raise ModelError(f"simulate: dt is {dt!r}; pass a positive number of seconds")
        gaps = np.diff(rows)
        _counted(float(rows[-1] - rows[0]) / longest, dt)
        counts = np.maximum(1, np.ceil(gaps / longest - 1e-9)).astype(int)
        parts = [a + gap * np.arange(n) / n for a, gap, n in zip(rows[:-1], gaps, counts, strict=True)]
        points = np.append(np.concatenate(parts), rows[-1])
        ends = float(rows[0]), float(rows[-1]), float(np.diff(points).max()), float(points[-1] - points[-2])
        first = START * (ends[1] - ends[0]) if dt is None else FIRST * ends[2]
        return Grid(*ends, first, len(points) - 1, points), np.append(0, np.cumsum(counts))

    @property
    def number(self) -> Any:
        """The number of steps."""
        return self.steps if self.count is None else self.count

    def roomy(self, save_every: int) -> tuple[Grid, int]:
        """(a grid of which the number of steps is an input, save_every): the same for motions of similar length."""
        groups = -(-self.steps // save_every)
        each = room(self.steps) if groups == 1 else save_every
        steps = each if groups == 1 else room(groups) * each
        points = None if self.points is None else np.pad(self.points, (0, steps - self.steps), "edge")
        return replace(self, steps=steps, points=points, count=np.int32(self.steps)), each

    def cell(self, i: Any, dtype: Any) -> tuple[Any, Any, Any]:
        """(start, length, end) of step i."""
        if self.points is not None:
            points = jnp.asarray(self.points, dtype)
            start, end = points[jnp.minimum(i, self.steps)], points[jnp.minimum(i + 1, self.steps)]
            return start, end - start, end
        last = i == self.number - 1
        length = jnp.where(last, jnp.asarray(self.last, dtype), jnp.asarray(self.dt, dtype))
        start = self.begins(i, dtype)
        return start, length, jnp.where(last, jnp.asarray(self.t_end, dtype), start + length)

    def begins(self, i: Any, dtype: Any) -> Any:
        """Time [s] at the start of step i."""
        if self.points is not None:
            return jnp.asarray(self.points, dtype)[jnp.minimum(i, self.steps)]
        return jnp.asarray(self.t0, dtype) + i.astype(dtype) * jnp.asarray(self.dt, dtype)

    def groups(self, save_every: int, levels: int) -> tuple[int, int, int]:
        """(number of groups of save_every steps, levels of the loop over groups, levels of the loop within a group)."""
        number = -(-self.steps // save_every)
        return number, *shared(levels, number, save_every)

    def table(self, save_every: int, dtype: Any, levels: int = 0) -> tuple[Any, ...]:
        """Start times, lengths and end times of the steps, and whether a step is real, each (groups, steps in a group).

        If the number of steps is an input, the last is the number of real steps in each group (groups,). Loops of
        several levels (`loops.sizes`) are padded with idle steps.
        """
        number, outer, inner = self.groups(save_every, levels)
        within, groups = math.prod(sizes(save_every, inner)), math.prod(sizes(number, outer))
        k = np.arange(groups * within)
        i = k // within * save_every + np.minimum(k % within, save_every - 1)
        real = k % within < save_every
        active = real & (i < self.number)
        i = np.minimum(i, self.number - 1)
        if self.points is not None:
            start, end = self.points[i], self.points[i + 1]
            length = end - start
        else:
            start = self.t0 + i * self.dt
            length = np.where(i == self.number - 1, self.last, self.dt)
            end = np.where(i == self.number - 1, self.t_end, self.t0 + (i + 1) * self.dt)
        shape = (groups, within)
        times = (x.astype(dtype).reshape(shape) for x in (start, length, end))
        active = active.reshape(shape)
        return (*times, active if self.count is None else active.sum(1, dtype=np.int32))


def room(number: int) -> int:
    """The number of iterations for which a program has room, at least the given one: few different numbers, at most
    twice the given one or, of more than a thousand, a quarter above it, because rows of results take as much memory.

    They are odd: rows of results that are a power of two apart would compete for cache lines.
    """
    most = 9
    while most < number:
        most = 2 * most - 1 if most < 1025 else math.floor(1.25 * most) | 1
    return most


def _counted(steps: float, dt: Any) -> int:
    """The number of steps, rounded up. Raises ModelError for more steps than a run can take."""
    if not steps <= MOST_STEPS:
        raise ModelError(
            f"simulate: dt is {dt!r}, which makes {steps:.3g} steps, but a run takes at most {MOST_STEPS:,}; pass a "
            "longer dt"
        )
    return math.ceil(steps - 1e-9)


def _plain(name: str, x: Any) -> float:
    if is_traced(x):
        raise ModelError(
            f"simulate: {name} is traced, but it sets the number of steps, which is part of the program; pass a plain "
            "number from outside the transformed function, or as one of its static arguments"
        )
    try:
        value = float(x)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ModelError(f"simulate: {name} is {x!r}; pass a number of seconds")
    return value
