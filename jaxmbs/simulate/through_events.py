"""Runs with events, switching surfaces or a tolerance: the loop of trial steps, and the rows of its solution."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.model import Mode
from jaxmbs.simulate.balance import Balance
from jaxmbs.simulate.consistency import violated
from jaxmbs.simulate.functions import Functions
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.locating import chosen
from jaxmbs.simulate.log import Events
from jaxmbs.simulate.loops import repeated, shared
from jaxmbs.simulate.mode_changes import whole_mode
from jaxmbs.simulate.run import Run
from jaxmbs.simulate.run_state import ON_GRID, RunState, Tried
from jaxmbs.simulate.solution import Solution, Steps
from jaxmbs.simulate.status import Status
from jaxmbs.simulate.steppers.base import Phase


class Point(NamedTuple):
    """A state on the grid that is stored as a row. number: how many were stored before it; lost: energy [J] lost in
    events so far; least: the smallest conditioning since the previous one."""

    number: Any
    t: Any
    phase: Phase
    mode: Mode
    lost: Any
    least: Any


def through_events(of: Functions, grid: Grid, every: int, start: Phase, mode: Mode, carry: Any) -> Solution:
    """The solution at the first, every `every`-th and the last point of the grid."""
    tree, adaptive = of.flow.tree, of.tolerance is not None
    dtype, constrained = tree.dtype, tree.structure.constrained
    zero, first = jnp.zeros((), dtype), jnp.asarray(grid.t0, dtype)

    some = every < grid.steps  # whether there are rows between the first and the last
    one = jnp.ones(2, dtype) if constrained else None

    def landed(x: RunState, cell: Any, tried: Tried, mode: Mode, lost: Any, before: Any) -> tuple[Any, Point | None]:
        (carry, since), t, phase, least = x.extra, tried.t, tried.step.phase, tried.step.conditioning
        carry = of.folded(carry, t, phase, mode) if before is None else of.folded(carry, t, *before)
        since = since if least is None else jnp.minimum(since, least)
        if x.kept is None:
            return (carry, since), None
        due = (cell > x.cell) & (cell % every == 0)
        if before is not None:
            due &= before[-1] == ON_GRID
        kept = chosen(due, Point(x.kept.number + 1, t, phase, mode, lost, since), x.kept)
        return (carry, since if since is None else jnp.where(due, 1.0, since)), kept

    def row(p: Point) -> Any:
        energy = sum(of.energy(p.t, p.phase, p.mode)) - p.phase.work + p.lost
        rows = tree.vector(p.phase.q), tree.vector(p.phase.v), of.states(p.phase), energy
        return (*rows, of.error(p.t, p.phase, p.mode), jnp.ones(2, dtype) if p.least is None else p.least)

    phase = of.flow.varied(start, (tree.model, start))
    run = Run(of, grid, landed, start, mode)
    phase, samples = run.sampling.start(phase, first, run.mode)
    run.mode = run.branches.after_samples(first, phase, run.mode, run.sampling.written, jnp.asarray(True))
    mode = run.mode
    begin = Point(jnp.zeros((), jnp.int32), first, phase, mode, zero, one)
    before = of.energy(first, start, mode)
    extra = (of.folded(carry, first, phase, mode), one)
    x = run.start(phase, samples, Balance.start(before[0], phase.work), extra, begin if some else None)
    groups = -(-run.iterations // every) if some else 1
    made = None if run.count is None else -(-run.count // every)

    def iterations(x: RunState, length: int, levels: int, count: Any = None) -> RunState:
        def one(x: RunState, _: Any) -> tuple[RunState, None]:
            # most instances need far fewer iterations than are reserved for trial steps
            return jax.lax.cond(run.ended(x), lambda x: x, run.iteration, x) if adaptive else run.iteration(x), None

        return repeated(one, x, None, length, levels, count)[0]

    outer, inner = shared(of.levels, groups, every if some else run.iterations)

    def group(x: RunState, _: Any) -> tuple[RunState, Any]:
        x = iterations(x, every, inner)
        return x, (x.kept.number, row(x.kept))

    if some:
        x, between = repeated(group, x, None, groups, outer, made)
    else:
        x, between = iterations(x, run.iterations, inner, run.count), None
    last = row(Point(begin.number, run.now(x), x.phase, x.mode, x.lost, x.extra[1]))
    inner_rows = (grid.number - 1) // every  # between the first and the last
    q, v, states, e, errors, least = _through(row(begin), between, last, (grid.steps - 1) // every, inner_rows, made)
    broken = violated(tree, start.q, start.v, first, mode) | run.watch.violated(x)
    status = of.status(
        x.phase, broken, start.v, mode, jnp.min(least[:, 1]), x.balance, e[-1] - e[0], before[1],
        *([(x.pace.stalled, Status.STEP_UNDERFLOW)] if x.pace is not None else []),
        *([(x.samples.refused, Status.UNPHYSICAL)] if x.samples is not None else []),
        (~run.ended(x) | x.stuck, Status.UNFINISHED),
    )  # fmt: skip
    times = jnp.append(grid.begins(jnp.arange(0, grid.steps, every), dtype), jnp.asarray(grid.t_end, dtype))
    if grid.count is not None:
        times = jnp.where(jnp.arange(len(times)) <= inner_rows, times, jnp.asarray(grid.t_end, dtype))
    return Solution(
        t=times, q=q, v=v, states=states, mode=whole_mode(tree.model, x.mode),
        events=x.events or Events.none(0, grid.t_end, dtype), status=status, violated=broken,
        energy_error=e - e[0], energy_exchanged=x.balance.exchanged, constraint_error=errors,
        conditioning=least[:, 0], folded=x.extra[0],
        steps=Steps.of(grid.number) if x.pace is None else Steps(x.pace.taken, x.pace.refused),
    )  # fmt: skip


def _through(first: Any, between: Any, last: Any, room: int, count: Any, made: Any) -> Any:
    """The first row, the `count` rows between, and the last row, which fills the `room` for rows between and stands for
    those that were never reached; made: number of groups of iterations, None if all are made."""
    if between is None or not room:
        return jax.tree_util.tree_map(lambda a, b: jnp.stack([a, b]), first, last)
    numbers, rows = between
    if made is not None:
        numbers = jnp.where(jnp.arange(len(numbers)) < made, numbers, jnp.iinfo(numbers.dtype).max)
    ends = len(numbers) if made is None else made

    def row(k: Any) -> Any:
        place = jnp.searchsorted(numbers, k, method="scan_unrolled")  # the first group of iterations that ends with it
        found = jax.tree_util.tree_map(lambda x: x[jnp.minimum(place, numbers.shape[0] - 1)], rows)
        return chosen((place < ends) & (k <= count), found, last)

    found = jax.lax.map(
        row, jnp.arange(1, room + 1, dtype=numbers.dtype)
    )  # one row at a time, because kernels would unroll whole arrays number by number
    return jax.tree_util.tree_map(lambda a, b, c: jnp.concatenate([a[None], b, c[None]]), first, found, last)
