"""Simulation of one instance; map it for a batch."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained.constraints import tree_of
from jaxmbs.dynamics.state.calling import compiles_itself, instances, may_count, require_model, state_dtype, vector
from jaxmbs.dynamics.state.programs import Known, program
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model, ModelError, ModelWarning
from jaxmbs.model.functions import ORDER, check_arguments, evaluated, takes
from jaxmbs.model.given import Coordinates, GeneralizedForces, Law, Number, Rates, Vector
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.shapes import Float
from jaxmbs.simulate.chance import Chance, needs_key
from jaxmbs.simulate.fast_modes import too_fast
from jaxmbs.simulate.functions import Functions
from jaxmbs.simulate.grid import DT, Grid
from jaxmbs.simulate.guards import cornered
from jaxmbs.simulate.log import checked_events
from jaxmbs.simulate.loops import levels_of
from jaxmbs.simulate.mode_changes import Changes, all_held, start_mode
from jaxmbs.simulate.pace import checked_steps, checked_tolerance
from jaxmbs.simulate.plain import plain
from jaxmbs.simulate.rows import has_room, picked
from jaxmbs.simulate.sampling import check_delays, reserved
from jaxmbs.simulate.solution import Solution
from jaxmbs.simulate.start import with_states
from jaxmbs.simulate.steppers import Flow, Stepper, stepper_for
from jaxmbs.simulate.steppers.base import Phase
from jaxmbs.simulate.through_events import through_events

Fold = tuple[Any, Callable[[Any, Model, Any, Any, Any], Any]]


def simulate(
    model: Model,
    q0: Coordinates,
    v0: Rates,
    t_end: float | None = None,
    dt: float | None = None,
    tau: GeneralizedForces | Law | None = None,
    *,
    t0: float = 0.0,
    times: Float[jax.Array, " k"] | Vector | None = None,
    mode: Mode | None = None,
    held: Iterable[str] = (),
    method: str | Stepper = "rk4",
    tolerance: Number | Vector | None = None,
    max_steps: int | None = None,
    max_events: int | None = None,
    checkpoint: bool | int | None = True,
    save_every: int | None = 1,
    fold: Fold | None = None,
    baumgarte: Number | None = None,
    key: jax.Array | None = None,
) -> Solution:
    """Integrate the motion from (q0, v0) at t0 to t_end [s] in steps of dt [s] (by default 1 ms).

    q0 (nq,), v0 (nv,); quaternions are normalised. tau: None, generalized forces (nv,) [N m or N], or a function
    (model, t, q, v) -> (nv,). mode: locks and switches (`Model.mode`). held: joints that are locked until an event
    releases them, in addition to those that the mechanism holds.
    Rows are saved at t0, then every `save_every` steps at t0 + i dt, and exactly at t_end (save_every = None: at t0 and
    t_end only). If t_end - t0 is not a multiple of dt, the last step is shorter. fold: (carry, fn), with carry = fn(carry,
    model, t, q, v) or fn(carry, model, t, q, v, mode) at every point of the grid, both ends included, and where an event
    ends the run; the last carry is solution.folded. fn(carry, model, t, q, v, mode, event) is called just before every
    event as well: event is its index in model.event_names, -1 at the points of the grid and after an impact that ends the
    run, and -2 just after velocities jumped. An event that ends the run without an impact is the last call.

    method: "rk4" (order 4), "dopri5" (5), "dop853" (8), "implicit" (5, for stiff elements), "symplectic" (2, for long
    conservative motions), or an object of `mbs.steppers`. tolerance: None for steps of dt; with a number, or (nv,)
    numbers, each instance chooses its own steps, such that the estimated error per step in every coordinate and rate x
    is below tolerance times (1 + |x|) ("dopri5", "dop853", "implicit"). The steps are no longer than dt; without dt
    they are as long as the tolerance allows, and the rows are those of `times`, or the first and the last: pass dt if
    an event could come and go within such a step. max_steps: the largest number of trial steps with a tolerance; None:
    4 per step of dt plus 1000, or without dt 4 per row plus 4000. max_events: how often each repeating event may
    happen; None: 16 times; what one event does not use, others may. An instance that needs more of either stops with
    status UNFINISHED. checkpoint: what reverse mode stores. True (the default) or None stores the state before every step
    and the accelerations within it, and recomputes the rest; False stores every stage, and is no faster; a number k of
    levels stores only the states at the starts of k nested loops, each about as long as the k-th root of the number of
    steps, and computes each step again.

    times (k,) [s]: rows at these times alone, in any spacing, from the first of them on, instead of t0, t_end and
    save_every; without a tolerance the steps between two times are equal, and none is longer than dt.
    t0, t_end, dt, times, save_every are plain numbers. In an eager call on a CPU, also within jax.vmap and jax.jvp, the
    number of steps is an input of the compiled program, which has room for up to twice as many (above a thousand, a
    quarter more): a run of another length compiles nothing. Within jax.jit, mbs.jit or reverse mode, on other devices, or if
    the rows of all instances are more than 33 million numbers, another number of steps needs another compilation.
    Functions are compared by what they compute, so that a lambda in the call is compiled once; JAX arrays in it are
    inputs of the program, plain numbers are part of it.
    Events of the model (`Mechanism.add_event`) happen at their exact times within a step; solution.events contains
    their times, solution.mode the mode at the end, and derivatives through them are exact. Joints that the mechanism
    holds start locked.
    Controllers of the model sample from t0 on, at instants that each end a step; a sample at t_end belongs to a run that
    goes on from there. key: one of jax.random, for the noise of sensors and for controllers that take one; the motion is a
    function of it.
    Works under jit, vmap and both modes of differentiation. Loops and constraints hold after every step by projection
    or, with baumgarte [rad/s] (a frequency, about ten times those of the motion), approximately by stabilisation. An
    initial position or velocity that violates them gives the status INCONSISTENT (solution.message names them), a state
    that is no longer finite NOT_FINITE.
    Raises ModelError for wrong shapes, times, functions, tolerances, or a method that is unknown or does not suit the
    model.

    >>> model = mbs.library.double_pendulum().build()
    >>> run = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01, tau=lambda model, t, q, v: -0.1 * v)
    >>> print(run.q.shape, run.q[-1].round(3), run.energy_error[-1] < 1e-6)
    (21, 2) [0.413 0.08 ] True
    """
    require_model(model, "simulate")
    if (times is None) == (t_end is None):
        raise ModelError("simulate: pass t_end, or times (the instants at which the solution is given)")
    own = dt is None and tolerance is not None  # the steps are as long as the tolerance allows
    longest = DT if dt is None and tolerance is None else dt
    grid, wanted = (Grid.of(t0, t_end, longest), None) if times is None else Grid.through(times, longest)
    if wanted is not None and (t0 != 0.0 or save_every != 1):
        raise ModelError(
            "simulate: times say where the run begins and which rows are kept; leave out t0 and save_every"
        )
    if not (said := needs_key(model.structure)):
        key = None
    elif key is None:
        raise ModelError(f"simulate: {said}; pass key, such as jax.random.key(0)")
    check_delays(model)
    model = with_states(model, state_dtype(q0, v0))
    held = all_held(model, held)
    anything = mode is not None
    mode = start_mode(model, mode, held)
    _require_locks_at_rest(model, v0, mode)
    by = stepper_for(method, model, tolerance)
    if tolerance is None:
        _warn_of_fast_modes(model, q0, by, grid, held if not anything else None)
    levels = levels_of(checkpoint)
    if save_every is not None and (isinstance(save_every, bool) or int(save_every) != save_every or save_every < 1):
        raise ModelError(f"simulate: save_every is {save_every!r}; pass a number of steps, 1 or more, or None")
    dtype = state_dtype(q0, v0)
    tolerance = None if tolerance is None else checked_tolerance(model, tolerance, dtype)
    bound = functools.partial(checked_steps, max_steps, adaptive=tolerance is not None, more=4000 if own else 1000)
    trials = bound(grid.steps)
    most = checked_events(max_events, model)
    instant = (model, *(jax.ShapeDtypeStruct(n, dtype) for n in ((), (model.nq,), (model.nv,))))
    drive: Known | None = None
    folding: Known | None = None
    sees = 0  # number of arguments that the fold takes after the state: the mode, the event
    carry = None
    given = (model, q0, v0, mode, baumgarte, fold and fold[0])
    if callable(tau):
        check_arguments(tau, "simulate: tau")
        call = functools.partial(evaluated, tau, "simulate: tau", (model.nv,), dtype)
        tau, drive = None, program(tau, "simulate: tau", instant, call, given)
    if fold is not None:
        carry, fn = jax.tree_util.tree_map(_array, fold[0]), fold[1]
        order = ("carry", *ORDER)
        sees = next((k for k in range(3) if takes(fn, len(order) + k)), 0) if callable(fn) else 0
        check_arguments(fn, "simulate: fold", (*order, "mode", "event")[: len(order) + sees])
        more = (model.mode(), jax.ShapeDtypeStruct((), jnp.int32))[:sees]
        call, now = functools.partial(_folded, fn), (*instant, *more)
        folding = program(fn, "simulate: fold", (carry, *now), call, given)
    every = min(int(save_every), grid.steps) if save_every else grid.steps
    rows = 1 - (-grid.steps // every)
    before, after = (
        (model, q0, v0, tau, mode, carry, baumgarte, tolerance),
        (drive and drive[1], folding and folding[1]),
    )
    inputs = (*before, key, *after)
    larger, each = grid.roomy(every)
    roomy = grid.steps > 1 and may_count(inputs) and has_room(model, larger, each, instances(inputs))
    if roomy:  # of more than one step, which is no loop
        levels = 0  # there is no reverse mode
        grid, every = larger, each
    chance = None if key is None else Chance.of(model.structure, key)
    course = grid, grid.table(every, dtype, levels), np.int32(trials) if roomy else None
    found = _simulate(
        *before, chance, *after, exact=None if roomy else course, counted=course if roomy else None,
        save_every=every, drive=drive and drive[0], fold=folding and folding[0], held=None if anything else held, by=by,
        trials=0 if tolerance is None else bound(grid.steps), most=most, levels=levels,
        samples=reserved(model, grid), sees=sees,
    )  # fmt: skip
    return picked(found, rows, wanted) if (roomy and rows > 2) or wanted is not None else found


def _warn_of_fast_modes(model: Model, q0: Any, by: Stepper, grid: Grid, held: Iterable[str] | None) -> None:
    """Before the computation; of traced numbers and batches nothing is known. held: what is locked, None if that is not
    known."""
    if not model.structure.flexible or held is None or any(map(is_traced, jax.tree_util.tree_leaves((model, q0)))):
        return
    forms = model.structure.table
    if np.shape(q0) != (model.nq,) or any(np.shape(x) not in forms[k][0].forms for k, x in model.overrides.items()):
        return
    if said := too_fast(model, np.asarray(q0, float), by, grid.dt, grid.dt * grid.steps, held):
        warnings.warn(
            f"simulate: {said}; choose method='implicit', whose steps are as long as the slow motion allows, or a shorter "
            "dt, or leave out modes (part.keep)",
            ModelWarning,
            stacklevel=3,
        )


def _array(x: Any) -> jax.Array:
    """x as an array whose dtype is not a weak type."""
    return jnp.asarray(x, jnp.asarray(x).dtype)


def _folded(fn: Callable[..., Any], carry: Any, *instant: Any) -> Any:
    """The new carry, with the dtypes of the old one."""
    new = fn(carry, *instant)
    shapes = [jax.tree_util.tree_map(jnp.shape, x) for x in (carry, new)]
    if shapes[0] != shapes[1]:
        raise ModelError(f"simulate: fold returned a carry of shapes {shapes[1]}, but it began with {shapes[0]}")
    return jax.tree_util.tree_map(lambda a, b: jnp.asarray(b, a.dtype), carry, new)


@compiles_itself(
    "save_every", "drive", "fold", "held", "by", "trials", "most", "levels", "samples", "sees", operands=("counted",)
)  # fmt: skip
def _simulate(
    model: Model, q0: Any, v0: Any, tau: Any, mode: Any, carry: Any, baumgarte: Any, tolerance: Any, chance: Any,
    in_drive: Any, in_fold: Any, exact: Any, counted: Any, *,
    save_every: int, drive: Any, fold: Any, held: tuple[str, ...] | None, by: Stepper, trials: int, most: int,
    levels: int, samples: int, sees: int,
) -> Solution:  # fmt: skip
    """exact: (grid, table, None) of a program for one number of steps; counted: of one that has this number as an input,
    with the largest number of trial steps."""
    grid, table, count = exact or counted
    dtype = state_dtype(q0, v0)
    constrained = model.structure.constrained
    tree = tree_of(model, dtype) if constrained else Tree(model, dtype)
    changes = None if held is None else Changes.of(model.structure, held)
    if changes is not None:
        tree.lockable = changes.lockable(model.structure)
    q, v = vector(model, "q0", q0, model.nq, dtype), vector(model, "v0", v0, model.nv, dtype)
    if tau is not None:
        tau = vector(model, "tau", tau, model.nv, dtype)
    force = tau if drive is None else functools.partial(drive, in_drive)
    first, rate = (x if tree.rolled else list(x) for x in (q, v))
    parts = Phase(first, rate, jnp.zeros((), dtype), tree.states)
    start = jax.tree_util.tree_map(lambda x: jnp.asarray(x, dtype), parts)
    flow = Flow(tree, force, baumgarte)
    of = Functions(flow, by, tolerance, (trials, count), most, levels, changes, fold, in_fold, samples, chance, sees)
    s = model.structure
    if s.events or s.clocks or cornered(s) or tolerance is not None:
        return through_events(of, grid, save_every, start, mode or Mode(None, None, None), carry)
    return plain(of, grid, table, save_every, start, mode, carry)


def _require_locks_at_rest(model: Model, v0: Any, mode: Mode | None) -> None:
    """Raise ModelError for locked degrees of freedom that move at the start, if the values are known; with traced
    values the status is INCONSISTENT instead."""
    if (
        mode is None
        or mode.lock is None
        or is_traced(mode.lock)
        or is_traced(v0)
        or np.shape(v0) != np.shape(mode.lock)
    ):
        return
    s, moving = model.structure, np.asarray(mode.lock) & (np.abs(v0) > 1e-6)
    names = [link.name for link, own in zip(s.links, s.v_slices, strict=True) if moving[own].any()]
    if names:
        raise ModelError(
            f"simulate: v0 moves {names}, which the mode locks; start from v0 = impact(model, q0, v0, mode=mode)[0]"
        )
