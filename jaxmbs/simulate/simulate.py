"""Simulation of one instance over a fixed grid of times; map it for a batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.recursive import energies
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, state_dtype, vector
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model, ModelError
from jaxmbs.model.parameters import is_traced
from jaxmbs.simulate.flow import runge_kutta_4
from jaxmbs.simulate.projection import projected, violation
from jaxmbs.simulate.solution import Solution, Status

Fold = tuple[Any, Callable[[Any, Model, Any, Any, Any], Any]]


def simulate(
    model: Model,
    q0: Any,
    v0: Any,
    t_end: float,
    dt: float = 1e-3,
    tau: Any = None,
    *,
    mode: Mode | None = None,
    save_every: int | None = 1,
    fold: Fold | None = None,
    baumgarte: Any = None,
) -> Solution:
    """Motion from (q0, v0) at t = 0 to t_end [s] by Runge-Kutta 4 with step dt [s] on the configuration manifold.

    q0 (nq,), v0 (nv,); quaternions are normalised. tau: None, (nv,), or a function (model, t, q, v) -> (nv,).
    Rows are kept at 0, then every `save_every` steps, and exactly at t_end (None: first and last only). A last shorter
    step reaches a t_end that is no multiple of dt. fold: (carry, fn), with carry = fn(carry, model, t, q, v) at every
    point of the grid, both ends included; the last carry is solution.folded. t_end, dt, save_every are static.

    Works under jit, vmap and both modes of differentiation. Loops and constraints hold after every step by projection,
    or, with baumgarte [rad/s] (a frequency, some ten times those of the motion), approximately by stabilisation. An
    initial state that violates them gives status INCONSISTENT, one that stops being finite NOT_FINITE.
    Raises ModelError for wrong shapes or times.
    """
    steps, h_last = _grid(t_end, dt)
    if save_every is not None and (isinstance(save_every, bool) or int(save_every) != save_every or save_every < 1):
        raise ModelError(f"simulate: save_every is {save_every!r}; pass a number of steps, 1 or more, or None")
    carry, fn = fold if fold is not None else (None, None)
    function = tau if callable(tau) else None
    return _simulate(
        model, q0, v0, None if callable(tau) else tau, mode, carry, baumgarte, t_end=float(t_end), dt=float(dt), steps=steps,
        h_last=h_last, save_every=int(save_every) if save_every else steps, fold=fn, function=function,
    )  # fmt: skip


def _grid(t_end: float, dt: float) -> tuple[int, float]:
    """Number of steps and the length of the last."""
    for name, x in (("t_end", t_end), ("dt", dt)):
        if is_traced(x):
            raise ModelError(f"simulate: {name} is traced; it sets the number of steps and must be a plain number")
        if not (math.isfinite(x) and x > 0):
            raise ModelError(f"simulate: {name} is {x!r}; pass a positive number of seconds")
    steps = max(1, math.ceil(t_end / dt - 1e-9))
    return steps, t_end - (steps - 1) * dt


@compiles_itself("t_end", "dt", "steps", "h_last", "save_every", "fold", "function")
def _simulate(
    model: Model, q0: Any, v0: Any, tau: Any, mode: Any, carry: Any, baumgarte: Any, *, t_end: float, dt: float, steps: int,
    h_last: float, save_every: int, fold: Any, function: Any,
) -> Solution:  # fmt: skip
    dtype = state_dtype(q0, v0)
    constrained = model.structure.constrained
    tree = Tree(model, dtype, unrolled=len(model.structure.links)) if constrained else Tree(model, dtype)
    q, v = vector(model, "q0", q0, model.nq, dtype), vector(model, "v0", v0, model.nv, dtype)
    if tau is not None:
        tau = vector(model, "tau", tau, model.nv, dtype)
    drive = function if function is not None else tau
    q, v = (x if tree.rolled else list(x) for x in (q, v))

    def energy(t: Any, q: Any, v: Any) -> Any:
        state = State(tree, q, v, t, mode)
        return jnp.asarray(energies.kinetic(state) + energies.potential(state), dtype)

    def error(t: Any, q: Any, v: Any) -> Any:
        return violation(tree, q, v, t, mode) if constrained else jnp.zeros((), dtype)

    def folded(carry: Any, t: Any, q: Any, v: Any) -> Any:
        return carry if fold is None else _like(carry, fold(carry, model, t, tree.vector(q), tree.vector(v)))

    start, lengths, ends, active = _table(t_end, dt, steps, h_last, save_every, dtype)

    def step(state: Any, x: Any) -> tuple[Any, None]:
        phase, carry, least = state
        t, h, t_next, on = x
        new = runge_kutta_4(tree, phase, t, h, drive, mode, baumgarte)
        if constrained and baumgarte is None:
            *positions, conditioning = projected(tree, *new[:2], t_next, mode)
            new, least = (*positions, new[2]), jnp.minimum(least, jnp.asarray(conditioning, dtype))
        out = (new, folded(carry, t_next, *new[:2]), least)
        if not active.all():  # the last group is filled up with idle steps
            out = jax.tree_util.tree_map(lambda a, b: jnp.where(on, a, b), out, state)
        return out, None

    def group(state: Any, x: Any) -> tuple[Any, Any]:
        state, _ = jax.lax.scan(step, (*state, jnp.ones((), dtype)), x)
        (q, v, work), _, least = state
        row = tree.vector(q), tree.vector(v), energy(x[2][-1], q, v) - work, error(x[2][-1], q, v), least
        return state[:2], row

    zero = jnp.zeros((), dtype)
    first = jnp.asarray(0, dtype)
    phase = (_arrays(q), _arrays(v), zero)
    carry = jax.tree_util.tree_map(jnp.asarray, carry)
    state = (phase, folded(carry, first, q, v))
    (phase, carry), (qs, vs, es, errors, least) = jax.lax.scan(group, state, (start, lengths, ends, active))
    e0, error0 = energy(first, q, v), error(first, q, v)
    ok = jnp.all(jnp.isfinite(tree.vector(phase[0]))) & jnp.all(jnp.isfinite(tree.vector(phase[1])))
    limit = float(jnp.finfo(dtype).eps) ** 0.5
    t_rows = np.concatenate([[0.0], np.asarray(ends)[:, -1]]).astype(dtype)
    return Solution(
        t=jnp.asarray(t_rows, dtype),
        q=jnp.concatenate([tree.vector(q)[None], qs]),
        v=jnp.concatenate([tree.vector(v)[None], vs]),
        mode=mode,
        events=(),
        status=jnp.where(ok, jnp.where(error0 <= limit, Status.OK, Status.INCONSISTENT), Status.NOT_FINITE).astype(
            jnp.int32
        ),
        energy_error=jnp.concatenate([zero[None], es - e0]),
        constraint_error=jnp.concatenate([error0[None], errors]),
        conditioning=jnp.concatenate([jnp.ones(1, dtype), least]),
        folded=carry,
    )


def _table(t_end: float, dt: float, steps: int, h_last: float, save_every: int, dtype: Any) -> tuple[Any, ...]:
    """Per group of steps: start times, lengths, end times, whether a step is real. Times are i dt, never a sum."""
    groups = -(-steps // save_every)
    i = np.arange(groups * save_every)
    active = i < steps
    i = np.minimum(i, steps - 1)
    start = i * dt
    length = np.where(i == steps - 1, h_last, dt)
    end = np.where(i == steps - 1, t_end, (i + 1) * dt)
    shape = (groups, save_every)
    times = (x.astype(dtype).reshape(shape) for x in (start, length, end))
    return (*times, active.reshape(shape))


def _like(carry: Any, new: Any) -> Any:
    """The new carry in the dtypes of the old one."""
    return jax.tree_util.tree_map(lambda a, b: jnp.asarray(b, jnp.asarray(a).dtype), carry, new)


def _arrays(x: Any) -> Any:
    return jax.tree_util.tree_map(jnp.asarray, x)
