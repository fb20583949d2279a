"""The motion between the rows of a solution: steps of the same method lead from the preceding row to the given time, by
way of the events in between."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.state.calling import compiles_itself, vector
from jaxmbs.dynamics.state.programs import program
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model, ModelError
from jaxmbs.model.functions import check_arguments, evaluated
from jaxmbs.model.parameters import is_traced
from jaxmbs.simulate.advance import advance
from jaxmbs.simulate.impacts import Impact, after_impact, struck
from jaxmbs.simulate.locating import chosen
from jaxmbs.simulate.log import Events
from jaxmbs.simulate.mode_changes import all_held, jumps, next_mode, start_mode, whole_mode
from jaxmbs.simulate.start import with_states
from jaxmbs.simulate.steppers import Flow, Stepper, stepper
from jaxmbs.simulate.steppers.base import Phase

if TYPE_CHECKING:
    from jaxmbs.simulate.solution import Solution

_STOPPED = (1, 5, 7)  # NOT_FINITE, UNFINISHED, STEP_UNDERFLOW of `Status`


def states_at(
    solution: Solution,
    model: Model,
    t: Any,
    tau: Any,
    mode: Mode | None,
    held: Iterable[str],
    method: Any,
    baumgarte: Any,
    before: bool,
) -> tuple[jax.Array, jax.Array]:
    """See `Solution.at`."""
    taken = solution.steps.taken
    if not is_traced(taken) and np.any(np.asarray(taken) > np.shape(solution.t)[-1] - 1):
        raise ModelError(
            "at: the solution does not contain every step; simulate with save_every=1 and without tolerance"
        )
    if model.structure.clocks:
        raise ModelError(
            "at: the samples of controllers and sensors between rows are not kept; simulate with times=... instead"
        )
    held = all_held(model, held)
    mode, dtype = start_mode(model, mode, held), solution.q.dtype
    drive, in_drive = None, None
    if callable(tau):
        check_arguments(tau, "at: tau")
        call = functools.partial(evaluated, tau, "at: tau", (model.nv,), dtype)
        instant = (model, *(jax.ShapeDtypeStruct(n, dtype) for n in ((), (model.nq,), (model.nv,))))
        drive, in_drive = program(tau, "at: tau", instant, call, (model, solution, mode, baumgarte))
        tau = None
    stopped = functools.reduce(operator.or_, [jnp.asarray(solution.status) == s for s in _STOPPED])
    rows = (solution.t, solution.q, solution.v)
    states = tuple(solution.states[p.name] for p in model.structure.states)
    return _states_at(
        with_states(model, dtype),
        rows,
        states,
        solution.events,
        stopped,
        t,
        tau,
        mode,
        baumgarte,
        in_drive,
        drive=drive,
        by=stepper(method),
        before=before,
    )


@compiles_itself("drive", "by", "before")
def _states_at(
    model: Model, rows: Any, states: Any, events: Events, stopped: Any, t: Any, tau: Any, mode: Any, baumgarte: Any,
    in_drive: Any, *, drive: Any, by: Stepper, before: bool,
) -> tuple[jax.Array, jax.Array]:  # fmt: skip
    s, constrained, dtype = model.structure, model.structure.constrained, rows[1].dtype
    tree = Tree(model, dtype, unrolled=len(s.links)) if constrained else Tree(model, dtype)
    if tau is not None:
        tau = vector(model, "tau", tau, model.nv, dtype)
    flow = Flow(tree, tau if drive is None else functools.partial(drive, in_drive), baumgarte)
    start = Mode(None, None, None) if mode is None else mode

    def one(t: Any) -> tuple[Any, Any]:
        i = jnp.clip(jnp.sum(rows[0] < t if before else rows[0] <= t) - 1, 0, rows[0].shape[0] - 1)
        row = rows[0][i]
        q, v = (x[i] if tree.rolled else list(x[i]) for x in rows[1:])
        own = tuple(tuple(jnp.ravel(x[i])) for x in states)

        def through(carry: Any, event: Any) -> tuple[Any, None]:
            now, phase, mode, done = carry
            time, index, _, rebounded = event
            counts = (index >= 0) & (time < t if before else time <= t)
            here = counts & (time > row)
            moved = advance(flow, by, phase, now, jnp.where(here, time - now, 0.0), mode).phase
            picks = [counts & (index == k) for k in range(len(s.events))]
            closed = [~rebounded] * len(s.events)
            mode = next_mode(tree, mode, picks, closed)
            if any(jumps(s, e) for e in s.events):
                jumped = functools.reduce(
                    jnp.logical_or, [p for p, e in zip(picks, s.events, strict=True) if jumps(s, e)]
                )
                impact = Impact(jumped, *struck(tree, moved.v, picks, closed))
                after = after_impact(tree.remembering(moved.states), moved.q, moved.v, time, mode, impact)
                moved = moved._replace(v=chosen(jumped, after, moved.v))
            ends = [p for p, e in zip(picks, s.events, strict=True) if any(a.finishes for a in e.then)]
            done = functools.reduce(jnp.logical_or, ends, done)
            return (jnp.where(here, time, now), chosen(here, moved, phase), mode, done), None

        phase = jax.tree_util.tree_map(jnp.asarray, Phase(q, v, jnp.zeros((), dtype), own))
        carry = (row, phase, start, jnp.asarray(False))
        if s.events:
            carry, _ = jax.lax.scan(through, carry, events)
        now, phase, mode, done = carry
        end = advance(flow, by, phase, now, jnp.where(done, 0.0, t - now), mode).phase
        outside = (t < rows[0][0]) | (t > rows[0][-1]) | stopped
        return tuple(jnp.where(outside, jnp.nan, tree.vector(x)) for x in (end.q, end.v))  # pyright: ignore[reportReturnType]

    t = jnp.asarray(t, dtype)
    q, v = jax.vmap(one)(t.reshape(-1))
    return q.reshape(*t.shape, model.nq), v.reshape(*t.shape, model.nv)


@compiles_itself("held")
def _modes_at(model: Model, events: Events, t: Any, mode: Any, *, held: tuple[str, ...]) -> Mode:
    s, start = model.structure, start_mode(model, mode, held)
    tree = Tree(model, events.time.dtype)

    def one(t: Any) -> Mode:
        def after(mode: Mode, event: Any) -> tuple[Mode, None]:
            time, which, _, rebounded = event
            picks = [(time <= t) & (which == k) for k in range(len(s.events))]
            return next_mode(tree, mode, picks, [~rebounded] * len(picks)), None

        now = start or Mode(None, None, None)
        if s.events:
            now, _ = jax.lax.scan(after, now, events)
        return whole_mode(model, now)

    return jax.vmap(one)(t)


def modes_at(solution: Solution, model: Model, t: Any, mode: Mode | None = None, held: Iterable[str] = ()) -> Mode:
    """See `Solution.mode_at`."""
    t = jnp.asarray(t, solution.t.dtype)
    held = all_held(model, held)
    found = _modes_at(model, solution.events, t.reshape(-1), mode, held=held)
    return jax.tree_util.tree_map(lambda x: x.reshape(*t.shape, x.shape[-1]), found)
