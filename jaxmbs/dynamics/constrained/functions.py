"""Rows of constraints that users write as functions, by derivatives along the motion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxmbs.dynamics.state import State
from jaxmbs.model.constraints import FunctionConstraint, Holonomic
from jaxmbs.model.errors import ModelError
from jaxmbs.model.functions import evaluated
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.structure import ConstraintElement


def rows(state: State, constraint: ConstraintElement) -> list[tuple[Any, ...]]:
    """(J, drift, free, residual, holonomic) per row."""
    tree, dtype, e = state.tree, state.tree.dtype, constraint.element
    assert isinstance(e, FunctionConstraint)
    q, v, t = tree.vector(state.q), tree.vector(state.v), jnp.asarray(state.t, dtype)
    where = f"constraint {constraint.name!r}: {type(e).__name__}: fn"

    def rates(q: Any, v: Any, t: Any) -> Any:
        return tree.vector(tree.flat([m.rates for m in State(tree, q, v, t, state.mode).motions]))

    def fn(q: Any, v: Any, t: Any) -> Any:
        return evaluated(e.fn, where, None, dtype, tree.model, t, q, v)

    if isinstance(e, Holonomic):
        residual = fn(q, v, t)
        if _varies(lambda v: fn(q, v, t), v):
            raise ModelError(f"{where} depends on the velocities; use q and t only, or write it as Nonholonomic")

        def velocity(q: Any, v: Any, t: Any) -> Any:
            return jax.jvp(lambda q, t: fn(q, jnp.zeros_like(v), t), (q, t), (rates(q, v, t), jnp.ones_like(t)))[1]
    else:
        velocity, residual = fn, None
        if _varies(lambda v: jax.jacfwd(fn, argnums=1)(q, v, t), v):
            raise ModelError(
                f"{where} is not affine in the velocities; it must have the form a0(q, t) + sum of a_k(q, t) v_k"
            )

    J = jax.jacfwd(velocity, argnums=1)(q, v, t)
    _, drift = jax.jvp(lambda q, t: velocity(q, v, t), (q, t), (rates(q, v, t), jnp.ones_like(t)))
    free = velocity(q, jnp.zeros_like(v), t)
    return [
        (tuple(J[r]), drift[r], free[r], 0 if residual is None else residual[r], int(residual is not None))
        for r in range(drift.shape[0])
    ]


def _varies(f: Callable[[Any], Any], v: Any) -> bool:
    """Whether f(v) depends on v: by the operations it is made of, then, where it may, by its values.

    Values are taken at random v, with random numbers in place of what is traced outside; where they are not finite the
    operations decide.
    """
    closed = jax.make_jaxpr(f)(v)
    if not _reached(closed.jaxpr):
        return False
    dice = np.random.default_rng(0)
    consts = [_drawn(dice, c) if is_traced(c) else c for c in closed.consts]
    with jax.ensure_compile_time_eval():
        program = core.jaxpr_as_fun(core.ClosedJaxpr(closed.jaxpr, consts))
        a, b = (np.asarray(program(_drawn(dice, v))[0]) for _ in range(2))
    size = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    return not np.abs(a - b).max(initial=0.0) <= float(jnp.finfo(v.dtype).eps) ** 0.5 * size


def _reached(jaxpr: Any) -> bool:
    """Whether a result may depend on the arguments."""
    reached = set(jaxpr.invars)
    for equation in jaxpr.eqns:
        if any(x in reached for x in equation.invars if not isinstance(x, core.Literal)):
            reached.update(equation.outvars)
    return any(x in reached for x in jaxpr.outvars if not isinstance(x, core.Literal))


def _drawn(dice: np.random.Generator, x: Any) -> Any:
    return jnp.asarray(dice.uniform(0.5, 1.5, jnp.shape(x)), jnp.result_type(x))
