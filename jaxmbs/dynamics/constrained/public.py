"""The public functions of constrained dynamics: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained import elimination, multipliers, wrenches
from jaxmbs.dynamics.constrained.constraints import constraints, row_counts, tree_of
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, state_dtype, vector
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model, ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.given import Accelerations, Coordinates, GeneralizedForces, Number, Rates, Vector
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.shapes import Float
from jaxmbs.spatial.known import known

_METHODS = {"multipliers": multipliers.constrained_dynamics, "elimination": elimination.constrained_dynamics}


def constrained_state(model: Model, q: Coordinates, v: Rates, t: Number, mode: Mode | None, *others: Any) -> State:
    """State on an unrolled tree, for which constraint rows are written out link by link."""
    dtype = state_dtype(q, v, *others)
    return _state(Tree(model, dtype, unrolled=len(model.structure.links)), model, q, v, t, mode)


def planned_state(model: Model, q: Any, v: Any, t: Any, mode: Mode | None, *others: Any) -> State:
    """State on the tree in the layout that suits the constraints, for functions that need no written-out rows."""
    dtype = state_dtype(q, v, *others)
    return _state(tree_of(model, dtype), model, q, v, t, mode)


def _state(tree: Tree, model: Model, q: Any, v: Any, t: Any, mode: Mode | None) -> State:
    dtype = tree.dtype
    return State(tree, vector(model, "q", q, model.nq, dtype), vector(model, "v", v, model.nv, dtype), t, mode)


@compiles_itself("method")
def constrained_dynamics(
    model: Model,
    q: Coordinates,
    v: Rates,
    tau: GeneralizedForces | None = None,
    *,
    t: Number = 0.0,
    mode: Mode | None = None,
    prescribed: Accelerations | None = None,
    method: str = "multipliers",
) -> tuple[Float[jax.Array, " nv"], Float[jax.Array, " rows"], Float[jax.Array, " rows"]]:
    """Motion under loops and constraints: (a (nv,), multipliers (rows,), residual (rows,)).

    A a + bias = tau + Jᵀ multipliers and J a + drift = 0 [Y 3.190], at q (nq,), v (nv,), under tau (nv,) or None;
    prescribed (nv,): acceleration of the locked degrees of freedom, None for zero. The rows are in the order of
    model.constraint_names (see `constraint_rows`); the multipliers of a cut joint are components of its wrench on the
    second body, at frame b in the axes of b [N, N m]. residual: the violation of each row, in position (m, rad) if it
    is holonomic, else in velocity (m/s or rad/s). method: "multipliers" (Schur complement of the mass matrix) or
    "elimination" of dependent velocities [K 6], chosen by pivoting at every state; both give the same result. Multipliers
    of redundant rows are those of least norm. Raises ModelError for wrong shapes or an unknown method.

    >>> model = mbs.library.crank_slider().build()
    >>> q = [jnp.pi / 2, -jnp.pi / 2 - jnp.arcsin(1 / 3), jnp.sqrt(0.08) - 0.4]  # the crank upright
    >>> a, multipliers, residual = mbs.constrained_dynamics(model, q, [0.0, 0.0, 0.0], tau=[1.0, 0.0, 0.0])
    >>> print(a.round(3), multipliers.shape)
    [ 35.263 -35.263  -3.526] (2,)
    """
    if method not in _METHODS:
        raise unknown("method", method, _METHODS, "constrained_dynamics")
    found_in = planned_state if method == "multipliers" else constrained_state
    state = found_in(model, q, v, t, mode, tau)
    tree = state.tree
    tau = None if tau is None else vector(model, "tau", tau, model.nv, tree.dtype)
    prescribed = None if prescribed is None else vector(model, "prescribed", prescribed, model.nv, tree.dtype)
    a, multipliers, found = _METHODS[method](state, tau, prescribed)
    return tree.vector(a), tree.vector(multipliers), tree.vector(found.violation)


@compiles_itself()
def constraint_jacobian(
    model: Model, q: Coordinates, v: Rates | None = None, *, t: Number = 0.0, mode: Mode | None = None
) -> tuple[Float[jax.Array, "rows nv"], Float[jax.Array, " rows"]]:
    """(J (rows, nv), drift (rows,)) of J a + drift = 0 at q (nq,), v (nv,), None for zero. [Y 3.194-3.198]

    The rows are in the order of the multipliers. Raises ModelError for wrong shapes.

    >>> model = mbs.library.crank_slider().build()
    >>> J, drift = mbs.constraint_jacobian(model, [0.0, 0.0, 0.0])
    >>> print(J.round(3))
    [[ 0.   0.   1. ]
     [-0.4 -0.3  0. ]]
    """
    state = constrained_state(model, q, jnp.zeros(model.nv) if v is None else v, t, mode)
    found = constraints(state)
    return found.jacobian(), state.tree.vector(found.drift)


def constraint_rows(model: Model, q: Coordinates | None = None) -> dict[str, slice]:
    """The slice of each constraint's rows among the multipliers: {name: slice}.

    q (nq,): configuration at which user-defined functions are evaluated to count their rows; None for the neutral one.

    >>> mbs.constraint_rows(mbs.library.four_bar_windows(2).build())
    {'window_1': slice(0, 2, None), 'window_2': slice(2, 4, None)}
    """
    q = model.neutral() if q is None else q
    counts = row_counts(constrained_state(model, q, jnp.zeros(model.nv), 0.0, None))
    out, start = {}, 0
    for name, n in zip(model.constraint_names, counts, strict=True):
        out[name] = slice(start, start + n)
        start += n
    return out


def impact(
    model: Model,
    q: Coordinates,
    v_minus: Rates,
    on: Iterable[str] | None = None,
    *,
    restitution: Number = 0.0,
    target: Mapping[str, Number | Vector] | None = None,
    t: Number = 0.0,
    mode: Mode | None = None,
) -> tuple[Float[jax.Array, " nv"], Float[jax.Array, " rows"]]:
    """Velocity jump when constraints and locks start to hold: (v_plus (nv,), impulses (rows,)).

    At q (nq,), v_minus (nv,): A (v_plus - v_minus) = Jᵀ impulses + impulses on the degrees of freedom that `mode`
    locks, whose velocities are treated like those along constraint rows. For the constraints and locked joints named in
    `on` (None: all), the velocity becomes -restitution times the velocity before; for the others it becomes zero.
    target: {name: velocity after the impact [m/s, rad/s]} of driven constraints and locked joints, which overrides
    this; a number, or one number per row or degree of freedom. Impulses are in N s and N m s, in the order of the
    multipliers; `joint_impulses` gives those that locks transmit. Raises ModelError for unknown names, a target joint that
    is not locked, and a model without constraints if no mode is given.

    >>> model = mbs.library.crank_slider().build()
    >>> v, impulses = mbs.impact(model, [0.0, 0.0, 0.0], [0.0, 0.0, 1.0], on="pin")  # the slider is caught
    >>> print(v.round(3))
    [0. 0. 0.]
    """
    known = model.constraint_names + model.joint_names
    names = known if on is None else ((on,) if isinstance(on, str) else tuple(on))
    for where, given in (("on", names), ("target", target or ())):
        for name in given:
            if name not in known:
                raise unknown("constraint or joint", name, known, f"impact({where}=...)")
    lock = None if mode is None else mode.lock
    if not is_traced(lock):
        for name in (n for n in target or () if n in model.joint_names):
            if lock is None or not np.asarray(lock)[model.v_slice(name)].all():
                raise ModelError(
                    f"impact: joint {name!r} of target is not locked; lock it with mode=model.mode(lock=[{name!r}])"
                )
    if not model.constraint_names and mode is None:
        raise ModelError(
            f"impact: model {model.name!r} has no constraints; add one with close_loop or add_constraint, or pass "
            "mode=model.mode(lock=[...])"
        )
    return _impact(model, q, v_minus, restitution, dict(target or {}), t, mode, names=names)


@compiles_itself()
def joint_impulses(
    model: Model,
    q: Coordinates,
    v_minus: Rates,
    v_plus: Rates,
    impulses: Float[jax.Array, " rows"] | Vector,
    *,
    t: Number = 0.0,
) -> Float[jax.Array, "joints 6"]:
    """Impulse in every joint at a velocity jump, (joints, 6): tree joints, then cut joints, as in `joint_reactions`.

    A row is the (angular [N m s], linear [N s]) impulse on the child, about the origin and in the axes of the child
    joint frame; the modes of a flexible body transmit none, and their rows are NaN. q (nq,); v_minus, v_plus (nv,):
    velocities before and after; impulses (rows,): those of the constraints, from `impact`; zeros if external impulses alone
    cause the jump. Raises ModelError for wrong shapes.

    >>> model = mbs.library.crank_slider().build()
    >>> q, v_minus = [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
    >>> v_plus, impulses = mbs.impact(model, q, v_minus)
    >>> mbs.joint_impulses(model, q, v_minus, v_plus, impulses).shape  # three joints and the loop
    (4, 6)
    """
    state = constrained_state(model, q, jnp.zeros(model.nv), t, None, v_minus)
    tree = state.tree
    jump = vector(model, "v_plus", v_plus, model.nv, tree.dtype) - vector(
        model, "v_minus", v_minus, model.nv, tree.dtype
    )
    in_joints, in_loops = wrenches.impulses(state, jump, jnp.asarray(impulses, tree.dtype))
    return wrenches.in_rows(tree, in_joints, in_loops)


@compiles_itself("names")
def _impact(
    model: Model, q: Any, v: Any, restitution: Any, given: dict[str, Any], t: Any, mode: Any, *, names: tuple[str, ...]
) -> Any:
    state = constrained_state(model, q, v, t, mode)
    found, tree = constraints(state), state.tree
    s, v = tree.structure, state.v

    def jumps(names_of: Iterable[tuple[str, int]], before: Iterable[Any]) -> list[Any]:
        """The change of velocity of every row or degree of freedom."""
        out, rest = [], iter(before)
        rebound = 1 + known(restitution)
        for name, count in names_of:
            after = jnp.asarray(given.get(name, 0.0), tree.dtype)
            if after.shape not in ((), (count,)):
                raise ModelError(f"impact: target {name!r} has shape {after.shape}; pass a number, or {count}")
            after = jnp.broadcast_to(after, (count,))
            for k in range(count):
                velocity = next(rest)
                if name in given:
                    out.append(after[k] - velocity)
                else:
                    out.append(-(rebound * velocity if name in names else velocity))
        return out

    target = jumps(zip(model.constraint_names, row_counts(state), strict=True), found.rate)
    freedoms = ((n, own.stop - own.start) for n, own in zip(model.joint_names, s.v_slices, strict=True))
    metric = found.metric(jumps(freedoms, v))
    jump, impulses = metric.closest(None, target)
    impulses = metric.least_norm(impulses)
    return tree.vector([v[k] + x for k, x in enumerate(jump)]), tree.vector(impulses)
