"""Simulation of one instance over a fixed grid of times; map it for a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.recursive import energies
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, require_model, state_dtype, vector
from jaxmbs.dynamics.state.programs import Known, program
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model, ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.functions import ORDER, check_arguments, evaluated
from jaxmbs.model.parameters import is_traced
from jaxmbs.simulate.balance import Balance
from jaxmbs.simulate.flow import runge_kutta_4
from jaxmbs.simulate.grid import Grid
from jaxmbs.simulate.guards import cornered
from jaxmbs.simulate.jumps import Changes, start_mode, whole_mode
from jaxmbs.simulate.projection import projected, violation
from jaxmbs.simulate.run import Events
from jaxmbs.simulate.solution import Solution, Status
from jaxmbs.simulate.through_events import Functions, finite, moving_locks, through_events

Fold = tuple[Any, Callable[[Any, Model, Any, Any, Any], Any]]
METHODS = ("rk4",)


def simulate(
    model: Model,
    q0: Any,
    v0: Any,
    t_end: float,
    dt: float = 1e-3,
    tau: Any = None,
    *,
    t0: float = 0.0,
    mode: Mode | None = None,
    held: Iterable[str] = (),
    method: str = "rk4",
    save_every: int | None = 1,
    fold: Fold | None = None,
    baumgarte: Any = None,
) -> Solution:
    """Motion from (q0, v0) at t0 to t_end [s] by steps of dt [s] on the configuration manifold.

    q0 (nq,), v0 (nv,); quaternions are normalised. tau: None, generalized forces (nv,) [N m or N], or a function
    (model, t, q, v) -> (nv,). mode: locks and switches (`Model.mode`). held: joints that are locked until an event
    releases them, beside those of the mechanism. method: "rk4", the classical Runge-Kutta method.
    Rows are kept at t0, then every `save_every` steps at t0 + i dt, and exactly at t_end (None: first and last only). A
    last shorter step reaches a t_end that is no multiple of dt. fold: (carry, fn), with carry = fn(carry, model, t, q, v) at
    every point of the grid, both ends included; the last carry is solution.folded.

    t0, t_end, dt, save_every are static: other ones are compiled anew. Functions are compared by what they compute, so that
    a lambda in the call compiles once; jax arrays in it are data, plain numbers are part of the program.
    Events of the model (`Mechanism.add_event`) happen at their own instant within a step; solution.events has their times,
    solution.mode what they leave, and derivatives go through them exactly. Joints that the mechanism holds start locked.
    Works under jit, vmap and both modes of differentiation. Loops and constraints hold after every step by projection,
    or, with baumgarte [rad/s] (a frequency, some ten times those of the motion), approximately by stabilisation. An
    initial state that violates them gives status INCONSISTENT, one that stops being finite NOT_FINITE.
    Raises ModelError for wrong shapes, times, functions or an unknown method.

    >>> model = mbs.library.double_pendulum().build()
    >>> run = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01, tau=lambda model, t, q, v: -0.1 * v)
    >>> print(run.q.shape, run.q[-1].round(3), run.energy_error[-1] < 1e-6)
    (21, 2) [0.413 0.08 ] True
    """
    require_model(model, "simulate")
    grid = Grid.of(t0, t_end, dt)
    held = (*model.structure.held, *([held] if isinstance(held, str) else held))
    anything = mode is not None
    mode = start_mode(model, mode, held)
    _require_locks_at_rest(model, v0, mode)
    if method not in METHODS:
        raise unknown("method", method, METHODS, "simulate")
    if save_every is not None and (isinstance(save_every, bool) or int(save_every) != save_every or save_every < 1):
        raise ModelError(f"simulate: save_every is {save_every!r}; pass a number of steps, 1 or more, or None")
    dtype = state_dtype(q0, v0)
    instant = (model, *(jax.ShapeDtypeStruct(n, dtype) for n in ((), (model.nq,), (model.nv,))))
    drive: Known | None = None
    folding: Known | None = None
    carry = None
    given = (model, q0, v0, mode, baumgarte, fold and fold[0])
    if callable(tau):
        check_arguments(tau, "simulate: tau")
        call = functools.partial(evaluated, tau, "simulate: tau", (model.nv,), dtype)
        tau, drive = None, program(tau, "simulate: tau", instant, call, given)
    if fold is not None:
        carry, fn = jax.tree_util.tree_map(_array, fold[0]), fold[1]
        check_arguments(fn, "simulate: fold", ("carry", *ORDER))
        call = functools.partial(_folded, fn)
        folding = program(fn, "simulate: fold", (carry, *instant), call, given)
    return _simulate(
        model, q0, v0, tau, mode, carry, baumgarte, drive and drive[1], folding and folding[1], grid=grid,
        save_every=int(save_every) if save_every else grid.steps, drive=drive and drive[0], fold=folding and folding[0],
        held=None if anything else held,
    )  # fmt: skip


def _array(x: Any) -> jax.Array:
    """As an array whose dtype does not yield to others."""
    return jnp.asarray(x, jnp.asarray(x).dtype)


def _folded(fn: Callable[..., Any], carry: Any, *instant: Any) -> Any:
    """The new carry, in the dtypes of the old one."""
    new = fn(carry, *instant)
    shapes = [jax.tree_util.tree_map(jnp.shape, x) for x in (carry, new)]
    if shapes[0] != shapes[1]:
        raise ModelError(f"simulate: fold returned a carry of shapes {shapes[1]}; it began with {shapes[0]}")
    return jax.tree_util.tree_map(lambda a, b: jnp.asarray(b, a.dtype), carry, new)


@compiles_itself("grid", "save_every", "drive", "fold", "held")
def _simulate(
    model: Model, q0: Any, v0: Any, tau: Any, mode: Any, carry: Any, baumgarte: Any, in_drive: Any, in_fold: Any, *,
    grid: Grid, save_every: int, drive: Any, fold: Any, held: tuple[str, ...] | None,
) -> Solution:  # fmt: skip
    dtype = state_dtype(q0, v0)
    constrained = model.structure.constrained
    tree = Tree(model, dtype, unrolled=len(model.structure.links)) if constrained else Tree(model, dtype)
    q, v = vector(model, "q0", q0, model.nq, dtype), vector(model, "v0", v0, model.nv, dtype)
    if tau is not None:
        tau = vector(model, "tau", tau, model.nv, dtype)
    force = tau if drive is None else functools.partial(drive, in_drive)
    q, v = (x if tree.rolled else list(x) for x in (q, v))

    def energy(t: Any, q: Any, v: Any, mode: Any = mode) -> tuple[Any, Any]:
        state = State(tree, q, v, t, mode)
        return jnp.asarray(energies.kinetic(state), dtype), jnp.asarray(energies.potential(state), dtype)

    def error(t: Any, q: Any, v: Any, mode: Any = mode) -> Any:
        return violation(tree, q, v, t, mode) if constrained else jnp.zeros((), dtype)

    def folded(carry: Any, t: Any, q: Any, v: Any) -> Any:
        return carry if fold is None else fold(in_fold, carry, model, t, tree.vector(q), tree.vector(v))

    if model.structure.events or cornered(model.structure):
        changes = None if held is None else Changes.of(model.structure, held)
        of = Functions(tree, force, baumgarte, energy, error, folded, changes)
        return through_events(of, grid, save_every, (_arrays(q), _arrays(v)), mode, carry)
    start, lengths, ends, active = grid.table(save_every, dtype)

    def step(state: Any, x: Any) -> tuple[Any, None]:
        phase, carry, balance, least = state
        t, h, t_next, on = x
        new, kinetic = runge_kutta_4(tree, phase, t, h, force, mode, baumgarte)
        if constrained and baumgarte is None:
            *positions, conditioning = projected(tree, *new[:2], t_next, mode)
            new, least = (*positions, new[2]), jnp.minimum(least, tree.vector(conditioning))
        out = (new, folded(carry, t_next, *new[:2]), balance.seen(kinetic, new[2]), least)
        if not active.all():  # the last group is filled up with idle steps
            out = jax.tree_util.tree_map(lambda a, b: jnp.where(on, a, b), out, state)
        return out, None

    def group(state: Any, x: Any) -> tuple[Any, Any]:
        state, _ = jax.lax.scan(step, (*state, jnp.ones(2, dtype)), x)
        (q, v, work), _, _, least = state
        t = x[2][-1]
        row = tree.vector(q), tree.vector(v), sum(energy(t, q, v)) - work, error(t, q, v), least
        return state[:3], row

    zero, first = jnp.zeros((), dtype), jnp.asarray(grid.t0, dtype)
    before, error0 = energy(first, q, v), error(first, q, v)
    state = ((_arrays(q), _arrays(v), zero), folded(carry, first, q, v), Balance.start(before[0]))
    (phase, carry, balance), rows = jax.lax.scan(group, state, (start, lengths, ends, active))
    qs, vs, es, errors, least = rows
    e0, moving = sum(before), moving_locks(tree, v, mode)
    eps = float(jnp.finfo(dtype).eps)
    status = Status.of(
        (~finite(tree, phase), Status.NOT_FINITE),
        (jnp.maximum(error0, moving) > eps**0.5, Status.INCONSISTENT),
        (jnp.min(least[:, 1]) < eps ** (2 / 3), Status.SINGULAR),
        (balance.broken(es[-1] - e0, before[1]), Status.COARSE),
    )
    t_rows = np.concatenate([[grid.t0], np.asarray(ends)[:, -1]]).astype(dtype)
    return Solution(
        t=jnp.asarray(t_rows, dtype),
        q=jnp.concatenate([tree.vector(q)[None], qs]),
        v=jnp.concatenate([tree.vector(v)[None], vs]),
        mode=mode and whole_mode(model, mode),
        events=Events.none(0, grid.t_end, dtype),
        status=status,
        energy_error=jnp.concatenate([zero[None], es - e0]),
        constraint_error=jnp.concatenate([error0[None], errors]),
        conditioning=jnp.concatenate([jnp.ones(1, dtype), least[:, 0]]),
        folded=carry,
    )


def _require_locks_at_rest(model: Model, v0: Any, mode: Mode | None) -> None:
    """Where the values are at hand; else a run gets the status INCONSISTENT."""
    if mode is None or is_traced(mode.lock) or is_traced(v0) or np.shape(v0) != np.shape(mode.lock):
        return
    s, moving = model.structure, np.asarray(mode.lock) & (np.abs(v0) > 1e-6)
    names = [link.name for link, own in zip(s.links, s.v_slices, strict=True) if moving[own].any()]
    if names:
        raise ModelError(
            f"simulate: the mode locks {names}, which v0 moves; start from v0 = impact(model, q0, v0, mode=mode)[0]"
        )


def _arrays(x: Any) -> Any:
    return jax.tree_util.tree_map(jnp.asarray, x)
