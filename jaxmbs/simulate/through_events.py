"""The motion of a model whose structure changes on its way, as rows of a grid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.simulate.balance import Balance
from jaxmbs.simulate.consistency import locks_hold, violated
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.jumps import Impact, after_impact, whole_mode
from jaxmbs.simulate.log import Events
from jaxmbs.simulate.loops import repeated, shared, sparing
from jaxmbs.simulate.pace import error_norm
from jaxmbs.simulate.projection import projected
from jaxmbs.simulate.run import ON_GRID, Run, Turn
from jaxmbs.simulate.solution import Solution, Steps
from jaxmbs.simulate.status import Status
from jaxmbs.simulate.steppers import Flow, Stepper


class Functions(NamedTuple):
    """What a run computes with.

    energy(t, q, v, mode) -> (kinetic, potential); error(t, q, v, mode); folded(carry, t, q, v, mode, event);
    changes: `Changes`, None if anything may change; trials: the largest number of trial steps of an adaptive run;
    levels: checkpoint levels, see `repeated`; catches: whether folded is called at events, too; most: how often an
    event that repeats may happen.
    """

    flow: Flow
    stepper: Stepper
    tolerance: Any
    trials: int
    levels: int
    energy: Any
    error: Any
    folded: Any
    changes: Any
    catches: bool
    most: int


class Point(NamedTuple):
    """A state on the grid. number: how many states were kept before it; least: the smallest conditioning since the last
    of those."""

    number: Any
    t: Any
    phase: Any
    mode: Mode
    lost: Any
    least: Any


def through_events(of: Functions, grid: Grid, every: int, start: Any, mode: Mode, carry: Any) -> Solution:
    """The solution with every `every`-th point of the grid, the first and the last."""
    tree, adaptive = of.flow.tree, of.tolerance is not None
    dtype, constrained = tree.dtype, tree.structure.constrained
    zero, first = jnp.zeros((), dtype), jnp.asarray(grid.t0, dtype)

    some = every < grid.steps  # rows between the first and the last
    one = jnp.ones(2, dtype) if constrained else None

    def step(phase: Any, t: Any, h: Any, mode: Mode, impact: Impact | None) -> tuple[Any, Any, Any, Any]:
        if impact is None:
            new, kinetic, error = of.stepper.step(of.flow, phase, t, h, mode, adaptive)
        elif of.stepper.impulses(tree):
            flow = replace(of.flow, impulse=(impact.now, impact.jumps(tree, phase[1], mode), phase[1]))
            (q, v, work), kinetic, error = of.stepper.step(flow, phase, t, h, impact.rigid(mode), adaptive)
            new = (q, impact.stopped(tree, v, mode), work)  # exact, where v + jump would be rounded
        else:
            (q, v, work), kinetic, error = of.stepper.step(of.flow, phase, t, h, mode, adaptive)
            apart = sparing(lambda *x: after_impact(tree, *x))  # else reverse mode stores its numbers for all turns
            jumped = apart(*phase[:2], t, mode, impact)
            new = (q, jax.tree_util.tree_map(lambda a, b: jnp.where(impact.now, a, b), jumped, v), work)
        norm = error_norm(tree, of.tolerance, phase, new, error) if adaptive else None
        least = one
        if constrained and of.flow.baumgarte is None:
            *positions, conditioning = projected(tree, *new[:2], t + h, mode)
            new, least = (*positions, new[2]), tree.vector(conditioning)
        return jax.tree_util.tree_map(lambda x: jnp.asarray(x, dtype), new), kinetic, least, norm

    def landed(
        extra: Any, kept: Point | None, cell: Any, t: Any, phase: Any, mode: Mode, lost: Any, least: Any, before: Any
    ) -> tuple[Any, Point | None]:
        carry, since = extra
        carry = of.folded(carry, t, *phase[:2], mode) if before is None else of.folded(carry, t, *before)
        since = jnp.minimum(since, least) if constrained else None
        if kept is None:
            return (carry, since), None
        due = cell % every == 0
        if before is not None:
            due &= before[-1] == ON_GRID
        new = Point(kept.number + 1, t, phase, mode, lost, since)
        kept = jax.tree_util.tree_map(lambda a, b: jnp.where(due, a, b), new, kept)
        return (carry, since if since is None else jnp.where(due, 1.0, since)), kept

    def row(p: Point) -> Any:
        q, v, work = p.phase
        rows = tree.vector(q), tree.vector(v), sum(of.energy(p.t, q, v, p.mode)) - work + p.lost
        return (*rows, of.error(p.t, q, v, p.mode), jnp.ones(2, dtype) if p.least is None else p.least)

    phase = of.flow.varied((*start, zero), (tree.model, start))
    trials = (of.trials, of.stepper.error_order or 0) if adaptive else None
    run = Run(
        tree, grid, step, lambda *x: sum(of.energy(*x)), landed, of.flow.tau, of.changes, trials, of.catches, of.most
    )
    mode = run.located(mode, first, start)
    begin = Point(jnp.zeros((), jnp.int32), first, phase, mode, zero, one)
    before = of.energy(first, *start, mode)
    x = run.start(
        phase,
        mode,
        Balance.start(before[0], phase[2]),
        (of.folded(carry, first, *start, mode), one),
        begin if some else None,
    )
    groups = -(-run.turns // every) if some else 1

    def turns(x: Turn, length: int, levels: int) -> Turn:
        def one(x: Turn, _: Any) -> tuple[Turn, None]:
            # most instances need far fewer turns than are reserved for trial steps
            return jax.lax.cond(run.ended(x), lambda x: x, run.turn, x) if adaptive else run.turn(x), None

        return repeated(one, x, None, length, levels)[0]

    outer, inner = shared(of.levels, groups, every if some else run.turns)

    def group(x: Turn, _: Any) -> tuple[Turn, Any]:
        x = turns(x, every, inner)
        return x, (x.kept.number, row(x.kept))

    if some:
        x, between = repeated(group, x, None, groups, outer)
    else:
        x, between = turns(x, run.turns, inner), None
    last = row(Point(begin.number, run.now(x), x.phase, x.mode, x.lost, x.extra[1]))
    q, v, e, errors, least = _through(row(begin), between, last, (grid.steps - 1) // every)
    broken, eps = violated(tree, start[0], start[1], first, mode), float(jnp.finfo(dtype).eps)
    broken |= run.misplaced(x)
    status = Status.of(
        (~finite(tree, x.phase), Status.NOT_FINITE),
        (jnp.any(broken) | ~locks_hold(tree, start[1], mode), Status.INCONSISTENT),
        *([(x.pace.stalled, Status.STEP_UNDERFLOW)] if x.pace is not None else []),
        (~run.ended(x) | x.stuck, Status.UNFINISHED),
        (~(jnp.min(least[:, 1]) >= eps ** (2 / 3)), Status.SINGULAR),
        (~x.balance.kept(e[-1] - e[0], before[1]), Status.COARSE),
    )
    times = jnp.append(grid.begins(jnp.arange(0, grid.steps, every), dtype), jnp.asarray(grid.t_end, dtype))
    return Solution(
        t=times, q=q, v=v, mode=whole_mode(tree.model, x.mode),
        events=x.events or Events.none(0, grid.t_end, dtype), status=status, violated=broken,
        energy_error=e - e[0], energy_exchanged=x.balance.exchanged, constraint_error=errors,
        conditioning=least[:, 0], folded=x.extra[0],
        steps=Steps.of(grid.steps) if x.pace is None else Steps(x.pace.taken, x.pace.refused),
    )  # fmt: skip


def finite(tree: Tree, phase: Any) -> Any:
    """Whether q and v are finite."""
    return jnp.all(jnp.isfinite(tree.vector(phase[0]))) & jnp.all(jnp.isfinite(tree.vector(phase[1])))


def _through(first: Any, between: Any, last: Any, count: int) -> Any:
    """The first row, the `count` rows kept between, and the last row; rows that were never reached equal the last."""
    if between is None or not count:
        return jax.tree_util.tree_map(lambda a, b: jnp.stack([a, b]), first, last)
    numbers, rows = between

    def row(k: Any) -> Any:
        place = jnp.searchsorted(numbers, k, method="scan_unrolled")  # the turn in which it was kept
        found = jax.tree_util.tree_map(lambda x: x[jnp.minimum(place, numbers.shape[0] - 1)], rows)
        return jax.tree_util.tree_map(lambda a, b: jnp.where(place < numbers.shape[0], a, b), found, last)

    found = jax.lax.map(
        row, jnp.arange(1, count + 1, dtype=numbers.dtype)
    )  # one row at a time: kernels would unroll every number of whole arrays
    return jax.tree_util.tree_map(lambda a, b, c: jnp.concatenate([a[None], b, c[None]]), first, found, last)
