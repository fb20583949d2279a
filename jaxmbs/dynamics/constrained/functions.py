"""Rows of constraints that users write as functions, computed from derivatives along the motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxmbs.batching.separable import ClosedJaxpr
from jaxmbs.dynamics.state import State
from jaxmbs.model.constraint_rows import Site
from jaxmbs.model.constraints import Holonomic
from jaxmbs.model.errors import ModelError
from jaxmbs.model.functions import evaluated
from jaxmbs.model.parameters import is_traced
from jaxmbs.spatial.known import ZERO


def rows(state: State, site: Site) -> list[tuple[Any, ...]]:
    """(J, drift, free, residual, holonomic) of every row."""
    tree, dtype, e = state.tree, state.tree.dtype, site.formulas
    q, v, t = tree.vector(state.q), tree.vector(state.v), jnp.asarray(state.t, dtype)
    where = f"constraint {site.name!r}: {type(e).__name__}: fn"
    given = e.with_parameters(e.fn, tree.values.of(site.name, e.numbers), dtype)

    def rates(q: Any, v: Any, t: Any) -> Any:
        return tree.vector(tree.flat([m.rates for m in State(tree, q, v, t, state.mode).motions]))

    def fn(q: Any, v: Any, t: Any) -> Any:
        return evaluated(given, where, None, dtype, tree.model, t, q, v)

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
        (tuple(J[r]), drift[r], free[r], ZERO if residual is None else residual[r], residual is not None)
        for r in range(drift.shape[0])
    ]


def count(state: State, site: Site) -> int:
    """Number of rows."""
    tree, e = state.tree, site.formulas
    given = e.with_parameters(e.fn, tree.values.of(site.name, e.numbers), tree.dtype)

    def fn(t: Any, q: Any, v: Any) -> Any:
        where = f"constraint {site.name!r}: {type(e).__name__}: fn"
        return evaluated(given, where, None, tree.dtype, tree.model, t, q, v)

    instant = jnp.asarray(state.t, tree.dtype), tree.vector(state.q), tree.vector(state.v)
    return jax.eval_shape(fn, *instant).shape[0]


def _varies(f: Callable[[Any], Any], v: Any) -> bool:
    """Whether f(v) depends on v. If the operations do not rule this out, two values of f at random v are compared.

    In f, random numbers replace the values that are traced by an outer transformation. If the values of f are not
    finite, the answer is True.
    """
    closed = jax.make_jaxpr(f)(v)
    if not any(_reached(closed.jaxpr, [True])):
        return False
    dice = np.random.default_rng(0)
    consts = [_drawn(dice, c) if is_traced(c) else c for c in closed.consts]
    with jax.ensure_compile_time_eval():
        program = core.jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, consts))
        a, b = (np.asarray(program(_drawn(dice, v))[0]) for _ in range(2))
    size = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    return not np.abs(a - b).max(initial=0.0) <= float(jnp.finfo(v.dtype).eps) ** 0.5 * size


_CALLS = {"pjit": "jaxpr", "jit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr"}


def _reached(jaxpr: Any, varying: Sequence[bool]) -> list[bool]:
    """Whether each result may depend on the arguments that vary."""
    known = dict(zip(jaxpr.invars, varying, strict=True))
    for equation in jaxpr.eqns:
        given = [not isinstance(x, core.Literal) and known.get(x, False) for x in equation.invars]
        name = equation.primitive.name
        if name in _CALLS:
            found = _reached(equation.params[_CALLS[name]].jaxpr, given)
        else:
            found = [any(given)] * len(equation.outvars)
        known.update(zip(equation.outvars, found, strict=True))
    return [not isinstance(x, core.Literal) and known.get(x, False) for x in jaxpr.outvars]


def _drawn(dice: np.random.Generator, x: Any) -> Any:
    return np.asarray(dice.uniform(0.5, 1.5, jnp.shape(x)), jnp.result_type(x))
