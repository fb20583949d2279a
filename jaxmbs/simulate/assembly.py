"""Assembly: finds a consistent configuration and velocity near a guess."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained.constraints import constraints, row_counts
from jaxmbs.dynamics.constrained.public import planned_state
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, state_dtype
from jaxmbs.dynamics.state.programs import program
from jaxmbs.model import Mode, Model
from jaxmbs.model.functions import check_arguments, evaluated
from jaxmbs.model.given import Coordinates, Number, Rates, Vector
from jaxmbs.model.shapes import Float, Int
from jaxmbs.simulate.manifold import normalised
from jaxmbs.simulate.status import Status

STEPS = 200


def assemble(
    model: Model,
    q_guess: Coordinates,
    v: Rates | None = None,
    fixed: Iterable[str] = (),
    *,
    t: Number = 0.0,
    mode: Mode | None = None,
    conditions: Callable[..., Vector] | None = None,
) -> tuple[Float[jax.Array, " nq"], Float[jax.Array, " nv"], Int[jax.Array, ""], Float[jax.Array, " rows"]]:
    """A configuration and velocity near the guess that satisfy all constraints: (q, v, status, residual).

    q_guess (nq,); v (nv,) or None for rest; fixed: names of joints whose coordinates and rates do not change. mode:
    locks and switches (`Model.mode`): constraints that are off need not be met, and locked degrees of freedom keep
    their rates, but not their coordinates. conditions: a function (model, q) -> (k,) that must be zero as well in this
    assembly, such as the distance of a point from its target; it does not affect the rates.
    status: Status.OK, UNREACHABLE (the constraints and conditions cannot be met from this guess; residual shows which
    ones, and by how much) or SINGULAR (they are met where rows depend on one another, so that the motion may branch).
    residual (rows + k,): that of the constraint rows, in the order of `constraint_rows` (zero for nonholonomic rows),
    then the values of the conditions. Derivatives follow from the implicit function theorem, in forward and reverse
    mode. Raises ModelError for unknown joints and wrong shapes.

    >>> model = mbs.library.crank_slider().build()
    >>> q, v, status, residual = mbs.assemble(model, [1.0, -1.0, 0.0], fixed="bearing")
    >>> print(mbs.Status(int(status)).name, q.round(3))
    OK [ 1.    -1.284 -0.058]
    """
    s = model.structure
    held_q, held_v = np.zeros(model.nq, bool), np.zeros(model.nv, bool)
    for name in [fixed] if isinstance(fixed, str) else fixed:
        i = s.find_moving(name, "assemble(fixed=...)")
        held_q[s.q_slices[i]], held_v[s.v_slices[i]] = True, True
    v = np.zeros(model.nv) if v is None else v
    wish, in_wish = None, None
    if conditions is not None:
        dtype = state_dtype(q_guess)
        check_arguments(conditions, "assemble: conditions", ("model", "q"))
        call = functools.partial(evaluated, conditions, "assemble: conditions", None, dtype)
        example = (model, jax.ShapeDtypeStruct((model.nq,), dtype))
        wish, in_wish = program(conditions, "assemble: conditions", example, call, (model, q_guess, v, t, mode))
    return _assemble(
        model, q_guess, v, t, mode, in_wish, held_q=tuple(held_q.tolist()), held_v=tuple(held_v.tolist()), wish=wish
    )


@compiles_itself("held_q", "held_v", "wish")
def _assemble(
    model: Model, q: Any, v: Any, t: Any, mode: Mode | None, in_wish: Any, *,
    held_q: tuple[bool, ...], held_v: tuple[bool, ...], wish: Any,
) -> Any:  # fmt: skip
    dtype = state_dtype(q)
    guess, v = jnp.asarray(q, dtype), jnp.asarray(v, dtype)
    moving_q, moving_v = (np.flatnonzero(~np.array(h, bool)) for h in (held_q, held_v))

    def placed(y: Any) -> Any:
        state = planned_state(model, guess.at[moving_q].set(y), jnp.zeros(model.nv, dtype), t, mode)
        return state.tree.vector(normalised(state.tree, state.q if state.tree.rolled else list(state.q)))

    def wished(q: Any) -> Any:
        return jnp.zeros(0, dtype) if wish is None else wish(in_wish, model, q)

    def residual(y: Any, _: None = None) -> Any:
        q = placed(y)
        state = planned_state(model, q, jnp.zeros(model.nv, dtype), t, mode)
        found = constraints(state)
        rows = state.tree.vector(found.residual)[np.flatnonzero(found.holonomic)]
        return jnp.concatenate([rows, wished(q)])

    eps = float(jnp.finfo(dtype).eps)
    y = guess[moving_q]
    if len(moving_q) and (wish is not None or residual_rows(model, guess, t)):
        wide = jnp.result_type(float)  # the dtype in which the solver computes
        y = _root(lambda y, _=None: residual(y.astype(dtype)).astype(wide), y.astype(wide), eps).astype(dtype)
    q = placed(y)
    state = planned_state(model, q, v, t, mode)
    found = constraints(state)
    J, rate = found.jacobian(), state.tree.vector(found.rate)
    own = unlocked = J[:, moving_v]
    if mode is not None and mode.lock is not None:
        own = jnp.where(jnp.asarray(mode.lock, bool)[None, moving_v], 0.0, own)
    v = v.at[moving_v].add(-jnp.linalg.pinv(own, rtol=eps ** (2 / 3)) @ rate)
    g = jnp.concatenate([state.tree.vector(found.residual), wished(q)])
    met = jnp.max(jnp.abs(g), initial=0.0) < eps**0.5
    if model.structure.with_all_rows is not model.structure:  # the rows left out by `build` must hold as well
        whole = replace(model, structure=model.structure.with_all_rows)
        every = planned_state(whole, q, v, t, mode)
        met &= jnp.max(jnp.abs(every.tree.vector(constraints(every).residual)), initial=0.0) < eps**0.5
    met &= jnp.max(jnp.abs(rate - own @ (jnp.linalg.pinv(own, rtol=eps ** (2 / 3)) @ rate)), initial=0.0) < eps**0.5
    size = jnp.linalg.svd(unlocked, compute_uv=False) if min(unlocked.shape) else jnp.ones(1, dtype)
    rank = jnp.minimum(_rows_that_hold(state, J), len(size))  # the largest that the rows can have
    full = (rank == 0) | (size[rank - 1] > eps**0.5 * size[0])
    status = jnp.where(met, jnp.where(full, Status.OK, Status.SINGULAR), Status.UNREACHABLE).astype(jnp.int32)
    return q, v, status, g


def _rows_that_hold(state: State, J: jax.Array) -> Any:
    """The number of constraint rows, without those of constraints that are switched off."""
    if state.holds is None:
        return len(J)
    counts = row_counts(state)
    return jnp.sum(jnp.repeat(jnp.asarray(state.holds, bool), np.array(counts), total_repeat_length=sum(counts)))


def residual_rows(model: Model, q: Coordinates, t: Number) -> int:
    """The number of holonomic rows."""
    return int(sum(constraints(planned_state(model, q, jnp.zeros(model.nv), t, None)).holonomic))


def _root(residual: Any, y: jax.Array, eps: float) -> jax.Array:
    """The y near the given one at which all residuals vanish; its derivatives follow from the implicit function
    theorem.

    The derivatives of optimistix are not used, because they raise an exception for the whole batch if one Jacobian is
    not finite.
    """
    import lineax
    import optimistix  # imported here: with Equinox it takes half as long as importing the whole package

    def solve(_: Any, y: jax.Array) -> jax.Array:
        solver = optimistix.LevenbergMarquardt(rtol=1e-3, atol=eps, linear_solver=lineax.AutoLinearSolver(False))
        y = optimistix.least_squares(residual, solver, y, throw=False, max_steps=STEPS).value
        return _polished(residual, y)

    def equations(y: jax.Array) -> jax.Array:
        """As many equations as unknowns: the components of the shortest step that satisfies all rows; zero at the
        root."""
        return jnp.linalg.pinv(jax.jacfwd(residual)(jax.lax.stop_gradient(y))) @ residual(y)

    def slope(g: Any, change: jax.Array) -> jax.Array:
        return jnp.linalg.pinv(jax.jacfwd(g)(jnp.zeros_like(change))) @ change

    return jax.lax.custom_root(equations, y, solve, slope)


def _polished(residual: Any, y: jax.Array) -> jax.Array:
    """y after two Newton steps of least length, each taken only if it reduces the residual; the error left is
    rounding."""
    for _ in range(2):
        g = residual(y)
        new = y - jnp.linalg.pinv(jax.jacfwd(residual)(y)) @ g
        y = jnp.where(jnp.max(jnp.abs(residual(new))) < jnp.max(jnp.abs(g)), new, y)
    return y
