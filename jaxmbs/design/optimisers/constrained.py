"""Conditions held exactly while the rest gets least: sequential quadratic programming, bounds by active sets.

By SciPy, which JAX needs anyway: its SLSQP takes bounds, equalities and inequalities, with the derivatives given, and keeps
the bounds in every step. It refines the best ends of the search by least squares, one after another.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxmbs.batching.compiling import compiled
from jaxmbs.design.optimisers.least_squares import State
from jaxmbs.design.problem import Prepared
from jaxmbs.design.status import Status

Array = Any
REFINED = 3  # of the best starts


def refined(prepared: Prepared, state: State) -> State:
    """The states with the best starts refined."""
    from scipy.optimize import Bounds, minimize

    data = prepared.data()
    problem = prepared.problem
    quick = not any(o.simulates for o in prepared.objectives)

    def parts(x: Array) -> tuple[Array, Array, Array]:
        return prepared.in_parts(x, data)

    def with_derivatives(x: Array) -> Any:
        return parts(x), jax.jacfwd(parts)(x)

    program = compiled(with_derivatives, quick)
    kept: dict[bytes, Any] = {}

    def at(x: np.ndarray) -> Any:
        if x.tobytes() not in kept:
            kept.clear()
            kept[x.tobytes()] = jax.tree.map(np.asarray, program(x))
        return kept[x.tobytes()]

    state = State(*(np.array(leaf) for leaf in state))
    order = np.lexsort((state.cost, np.where(state.status == int(Status.RUNAWAY), 1, 0)))
    bounds = Bounds(prepared.low, prepared.high)  # pyright: ignore[reportArgumentType]
    worst_of = compiled(lambda x: prepared.residuals(x, data), quick)
    for k in order[:REFINED]:
        (_, equal, margin), _ = at(np.asarray(state.x[k], float))
        rules = [
            {"type": kind, "fun": lambda x, j=j: at(x)[0][j], "jac": lambda x, j=j: at(x)[1][j]}
            for kind, j, size in (("eq", 1, len(equal)), ("ineq", 2, len(margin)))
            if size
        ]
        found = minimize(
            lambda x: 0.5 * float(at(x)[0][0] @ at(x)[0][0]), state.x[k], jac=lambda x: at(x)[1][0].T @ at(x)[0][0],
            method="SLSQP", bounds=bounds, constraints=rules,
            options={"maxiter": 4 * problem.max_steps, "ftol": 1e-8 * state.cost[k]},
        )  # fmt: skip
        x = np.clip(found.x, prepared.low, prepared.high)
        r, worst = (np.asarray(a) for a in worst_of(x))
        holds = np.all(worst[prepared.conditions] <= problem.tolerance)
        status = Status.INFEASIBLE
        if holds:
            status = Status.MET if prepared.conditions.all() else Status.LEAST
            status = Status.STEPS if found.status == 9 else status  # its code for the limit of steps
        state.x[k], state.worst[k], state.status[k] = x, worst, int(status)
        state.cost[k] = 0.5 * float(np.sum(r**2))
    return state
