"""Runs without events, switching surfaces or a tolerance.

Every step is accepted, so that there is nothing to decide or to locate, and the times are inputs of the loop. The loop of
`run` makes the same steps (`advance`), but it carries what an event would need and decides about every step. Because it is
not one fused loop, 1000 steps without any guards took 14 ms in it instead of the 1.6 ms that they take here (double
pendulum), and 73 ms instead of 1.2 ms (crank-slider, whose program took 12 s instead of 1.5 s to compile). Treating such
runs as a special case there would also take more lines than this file.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.model import Mode
from jaxmbs.simulate.balance import Balance
from jaxmbs.simulate.consistency import violated
from jaxmbs.simulate.functions import Functions
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.locating import chosen
from jaxmbs.simulate.log import Events
from jaxmbs.simulate.loops import Packing, repeated, varied
from jaxmbs.simulate.mode_changes import whole_mode
from jaxmbs.simulate.rows import Rows, whole
from jaxmbs.simulate.solution import Solution, Steps
from jaxmbs.simulate.steppers.base import Phase


def plain(of: Functions, grid: Grid, table: Any, every: int, start: Phase, mode: Mode | None, carry: Any) -> Solution:
    """The solution at the first, every `every`-th and the last point of the grid; table: see `Grid.table`."""
    tree, model = of.tree, of.tree.model
    dtype, (starts, _, ends, _) = tree.dtype, table
    groups, outer, inner = grid.groups(every, of.levels)
    idle = grid.count is None and starts.size != grid.steps
    made = None if grid.count is None else -(-grid.count // every)

    def step(state: Any, x: Any) -> tuple[Any, None]:
        packed, carry, balance, least = state
        t, h, to, *on = x
        new, kinetic, conditioning, _ = of.advance(unpacked(packed), t, h, mode, to=to)
        least = least if conditioning is None else jnp.minimum(least, conditioning)
        out = together(new), of.folded(carry, to, new, mode), balance.seen(kinetic, new.work), least
        return chosen(on[0], out, state) if idle else out, None  # the last group is padded with idle steps

    def group(state: Any, x: Any) -> tuple[Any, Any]:
        *state, _, lowest = state
        x, count = (x, None) if grid.count is None else (x[:3], x[3])
        state, _ = repeated(step, (*state, jnp.ones(2, dtype)), x, every, inner, count)
        packed, _, _, least = state
        phase, t = unpacked(packed), x[2][-1]
        energy, error = sum(of.energy(t, phase, mode)) - phase.work, of.error(t, phase, mode)
        row = tree.vector(phase.q), tree.vector(phase.v), of.states(phase), energy, error, least
        last = energy, jnp.minimum(lowest, least[1])
        return (*state[:3], *jax.lax.stop_gradient(last)), row

    zero, first = jnp.zeros((), dtype), jnp.asarray(grid.t0, dtype)
    before, error0 = of.energy(first, start, mode), of.error(first, start, mode)
    phase = of.flow.varied(jax.tree_util.tree_map(jnp.asarray, start), (model, start))
    carry = varied(of.folded(carry, first, start, mode), (model, start, of.in_fold))
    packing = Packing((phase.q, phase.v, phase.states))

    def together(x: Phase) -> tuple[Any, Any]:
        return packing.together((x.q, x.v, x.states)), x.work

    def unpacked(packed: tuple[Any, Any]) -> Phase:
        q, v, states = packing.apart(packed[0])
        return Phase(q, v, packed[1], states)

    state = (together(phase), carry, Balance.start(before[0], phase.work), zero, jnp.ones((), dtype))
    (packed, carry, balance, e1, lowest), rows = repeated(group, state, table, groups, outer, made)
    phase = unpacked(packed)
    qs, vs, xs, es, errors, least = jax.tree_util.tree_map(lambda x: x[:groups], rows)
    e0, broken = sum(before), violated(tree, start.q, start.v, first, mode)
    joined: Any = whole if grid.count is None or groups == 1 else Rows
    return Solution(
        t=joined(first, jnp.asarray(ends[:groups, -1])),
        q=joined(tree.vector(start.q), qs),
        v=joined(tree.vector(start.v), vs),
        states={name: joined(x, xs[name]) for name, x in of.states(start).items()},
        mode=mode and whole_mode(model, mode),
        events=Events.none(0, grid.t_end, dtype),
        status=of.status(phase, broken, start.v, mode, lowest, balance, e1 - e0, before[1]),
        violated=broken,
        energy_error=joined(zero, es - e0),
        energy_exchanged=balance.exchanged,
        constraint_error=joined(error0, errors),
        conditioning=joined(jnp.ones((), dtype), least[:, 0]),
        folded=carry,
        steps=Steps.of(grid.number),
    )
